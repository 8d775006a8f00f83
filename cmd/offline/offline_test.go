package offline_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/offline"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func hold(t *testing.T, e *offline.Engine, s *apportionv1.Snapshot) string {
	t.Helper()
	data, err := proto.Marshal(s)
	require.NoError(t, err)
	digest, err := e.Hold(data)
	require.NoError(t, err)
	return digest
}

func TestACallIsAboutTheSnapshotThatIsHeld(t *testing.T) {
	e := offline.NewEngine(nil)
	first := hold(t, e, &apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "a", Weight: new(uint32(1))}}})
	answer, err := e.Answer("Simulate", []byte(`{
		"input": {"snapshotDigest": "`+first+`", "policy": {}, "events": [{"change": {}}]}, "steps": [{"inspect": {"queues": true}}]}`), offline.JSON)
	require.NoError(t, err)
	require.Contains(t, string(answer), `"a"`)
	hold(t, e, &apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "b", Weight: new(uint32(1))}}})
	_, err = e.Answer("Simulate", []byte(`{"input": {"snapshotDigest": "`+first+`", "policy": {}}}`), offline.JSON)
	require.JSONEq(t, `{"code": "failed_precondition", "reason": "SNAPSHOT_NOT_FOUND",
		"message": "input.snapshot_digest: no such snapshot is held here; send it again"}`, string(offline.FaultJSON(err)))
}

func TestWhatCannotBeAnsweredIsAFault(t *testing.T) {
	e := offline.NewEngine(nil)
	for _, c := range []struct{ name, request, want string }{
		{"GetUsage", `{}`, "the call GetUsage needs a server"},
		{"", `{}`, "needs a server"},
		{"Simulate", `{"x": 1}`, "the message cannot be read: "},
		{"Simulate", `[`, "the message cannot be read: "},
		{"Simulate", `{}`, "neither a policy nor the name of one is given"},
		{"Simulate", `{"input": {"policy": {}}}`, "neither a snapshot nor the digest or name of one is given"},
		{"Simulate", `{"input": {"policyName": "p"}}`, `no policy "p" is configured`},
		{"Simulate", `{"input": {"policy": {}, "snapshotName": "n"}}`, `this server keeps no snapshot "n"`},
		{"Simulate", `{"input": {"policy": {}, "snapshot": {}, "events": [{}]}}`, "input.events[0]"},
	} {
		_, err := e.Answer(c.name, []byte(c.request), offline.JSON)
		require.ErrorContains(t, err, c.want, c.request)
	}
	_, err := e.Hold([]byte{0xff})
	require.Error(t, err)
}
