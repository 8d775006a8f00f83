package service

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

func part(number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), data)
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// requireSame requires that taking the snapshot out and decoding the whole come to the same.
func requireSame(t *testing.T, data []byte) bool {
	t.Helper()
	var whole, apart apportionv1.EvaluateSharesRequest
	wholeErr := proto.Unmarshal(data, &whole)
	out, rest, taken := takeOut(data, &apart)
	if !taken {
		return false
	}
	snapshot := out.data
	err := proto.Unmarshal(rest, &apart)
	if err == nil && out.change {
		var decoded apportionv1.Change
		if err = proto.Unmarshal(snapshot, &decoded); err == nil {
			apart.Input.Events = []*apportionv1.Event{{Event: &apportionv1.Event_Change{Change: &decoded}}}
		}
	} else if err == nil {
		// What is wrong with the snapshot shows when it is compiled.
		var decoded apportionv1.Snapshot
		if err = proto.Unmarshal(snapshot, &decoded); err == nil {
			apart.Input.Source = &apportionv1.Input_Snapshot{Snapshot: &decoded}
		}
	}
	require.Equal(t, wholeErr == nil, err == nil, "%v against %v", wholeErr, err)
	if err == nil {
		require.True(t, proto.Equal(&whole, &apart), "%v against %v", &whole, &apart)
	}
	return true
}

func TestASnapshotIsTakenOutOfARequest(t *testing.T) {
	snapshot, err := proto.Marshal(&apportionv1.Snapshot{Cluster: "c", Queues: []*apportionv1.Queue{{Name: "q"}}})
	require.NoError(t, err)
	policy := part(3, part(1, part(1, part(1, nil))))
	shares := part(2, []byte{0x30, 1})
	for name, tc := range map[string]struct {
		data  []byte
		taken bool
	}{
		"as written by every library":          {join(part(1, join(part(1, snapshot), policy)), shares), true},
		"the policy before the snapshot":       {join(shares, part(1, join(policy, part(1, snapshot)))), true},
		"an empty snapshot":                    {part(1, join(part(1, nil), policy)), true},
		"unknown fields on all sides":          {join(part(99, nil), part(1, join(part(98, nil), part(1, snapshot), part(97, nil))), part(96, nil)), true},
		"a snapshot in two parts":              {part(1, join(part(1, snapshot), part(1, snapshot))), false},
		"an input in two parts":                {join(part(1, part(1, snapshot)), part(1, policy)), false},
		"a digest beside the snapshot":         {part(1, join(part(1, snapshot), part(2, []byte("sha256:")))), false},
		"no snapshot":                          {part(1, policy), false},
		"no input":                             {shares, false},
		"a snapshot that is no message":        {part(1, part(1, []byte{0xff})), true},
		"an input that breaks off":             {part(1, []byte{0x0a, 0x05}), false},
		"a request that breaks off":            {join(part(1, part(1, snapshot)), []byte{0x12, 0x05}), false},
		"a policy that is no message":          {part(1, join(part(1, snapshot), part(3, []byte{0xff}))), true},
		"an input of another kind beside it":   {join(part(1, part(1, snapshot)), []byte{0x08, 0x01}), false},
		"a snapshot of another kind beside it": {part(1, join(part(1, snapshot), []byte{0x08, 0x01})), false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.taken, requireSame(t, tc.data)) })
	}
}

func TestASnapshotIsTakenOutOfTheFirstMessageOfASession(t *testing.T) {
	snapshot, err := proto.Marshal(&apportionv1.Snapshot{Cluster: "c", Queues: []*apportionv1.Queue{{Name: "q"}}})
	require.NoError(t, err)
	policy, chunked := part(3, part(1, part(1, part(1, nil)))), part(2, []byte{0x10, 7})
	batch := part(3, []byte{0x08, 1})
	for name, tc := range map[string]struct {
		data  []byte
		taken bool
	}{
		"as written by every library": {part(1, part(1, join(part(1, snapshot), policy))), true},
		"chunks announced beside it":  {part(1, join(part(1, join(part(1, snapshot), policy)), chunked)), true},
		"an input in two parts":       {part(1, join(part(1, part(1, snapshot)), part(1, policy))), false},
		"two openings":                {join(part(1, part(1, part(1, snapshot))), part(1, part(1, policy))), false},
		"a chunk behind it":           {join(part(1, part(1, part(1, snapshot))), part(2, nil)), false},
		"a batch behind it":           {join(part(1, part(1, part(1, snapshot))), batch), false},
		"a batch":                     {batch, false},
		"no input":                    {part(1, chunked), false},
		"a message that breaks off":   {join(part(1, part(1, part(1, snapshot))), []byte{0x12, 0x05}), false},
	} {
		t.Run(name, func(t *testing.T) {
			var whole, apart apportionv1.RunSessionRequest
			taken, rest, ok := takeOut(tc.data, &apart)
			require.Equal(t, tc.taken, ok)
			if !ok {
				require.Equal(t, tc.data, rest)
				return
			}
			require.Equal(t, snapshot, taken.data)
			require.NoError(t, proto.Unmarshal(tc.data, &whole))
			require.NoError(t, proto.Unmarshal(rest, &apart))
			apart.GetOpen().GetInput().Source = whole.GetOpen().GetInput().GetSource()
			require.True(t, proto.Equal(&whole, &apart), "%v against %v", &whole, &apart)
		})
	}
}

func FuzzTakingASnapshotOutChangesNothing(f *testing.F) {
	f.Add(join(part(1, join(part(1, part(5, part(1, []byte("q")))), part(3, nil))), part(2, nil)))
	f.Fuzz(func(t *testing.T, data []byte) { requireSame(t, data) })
}

func TestDigestsThatAreRememberedAreThoseOfThePolicies(t *testing.T) {
	var digests policyDigests
	for i := range 2 * mostRecent {
		plugin := &apportionv1.Plugin{
			Plugin:            &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}},
			DisabledDecisions: slices.Repeat([]apportionv1.Decision{apportionv1.Decision(i)}, 1+i%64*50),
		}
		p := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{plugin}}}}
		for range 2 {
			require.Equal(t, decode.PolicyDigest(p), digests.digest(p))
		}
		require.LessOrEqual(t, len(digests.known), mostRecent)
	}
	for data := range digests.known {
		require.LessOrEqual(t, len(data), longestPolicy)
	}
}
