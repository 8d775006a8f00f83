package schedulerconf

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// FuzzReadConfiguration: whatever the bytes are, the answer is a policy that can be written, or an *Error that names something.
func FuzzReadConfiguration(f *testing.F) {
	f.Add([]byte("actions: a\ntiers:\n- plugins:\n  - name: binpack\n    enableJobOrder: false\n    arguments: {binpack.resources: 'a,b'}\n"))
	f.Add([]byte("tiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: capacity, arguments: {ancestorReclaimLevel: 1}}]}]"))
	f.Add([]byte("a: &a [*a]\ntiers: *a\n"))
	f.Add([]byte("items:\n- kind: ConfigMap\n  data:\n    volcano-scheduler.conf: |\n      tiers: [{plugins: [{name: gang}]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		source := objects.Source{Name: "f", Data: data}
		if found, ok, _ := Find(source); ok {
			source = found
		}
		policy, _, err := Read(source)
		if err != nil {
			all, ok := errors.AsType[*objects.Error](err)
			require.True(t, ok && len(all.Problems) > 0 && all.Total >= len(all.Problems) && err.Error() != "", "%#v", err)
			return
		}
		if _, err := proto.Marshal(policy); err != nil {
			t.Fatal(err)
		}
	})
}

// texts are warnings as people see them.
func texts(warned []*apportionv1.Warning) []string {
	var list []string
	for _, warning := range warned {
		list = append(list, warning.Path+": "+warning.Message)
	}
	return list
}

func requireMessage[M proto.Message](t *testing.T, want string, got M) {
	t.Helper()
	expected := got.ProtoReflect().New().Interface()
	require.NoError(t, protojson.Unmarshal([]byte(want), expected))
	require.True(t, proto.Equal(expected, got), "want %s\n got %s", protojson.Format(expected), protojson.Format(got))
}
