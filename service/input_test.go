package service

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// requireLikeTheLibrary decodes a request and requires the result of the library.
func requireLikeTheLibrary(t *testing.T, in *receiver, data []byte) {
	t.Helper()
	for range 2 {
		want, got := &apportionv1.CheckEnqueueRequest{}, &apportionv1.CheckEnqueueRequest{}
		in.given = rule{}
		err := in.unmarshal(data, got)
		if proto.Unmarshal(data, want) != nil {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.True(t, proto.Equal(want, got), "%v\n%v", want, got)
		if in.given.policy != nil {
			require.Same(t, in.given.policy, got.GetInput().GetPolicy())
			require.Equal(t, decode.PolicyDigest(want.GetInput().GetPolicy()), in.given.digest)
		}
	}
}

// inputs are encoded requests, and whether the policy of each is shared.
var inputs = func() map[string]struct {
	data   []byte
	shared bool
} {
	policy := part(3, part(1, part(1, part(1, nil))))
	digest, enqueue := part(2, []byte("sha256:00")), part(2, part(1, part(1, []byte{3, 4})))
	request := func(input ...[]byte) []byte { return join(part(1, join(input...)), enqueue) }
	return map[string]struct {
		data   []byte
		shared bool
	}{
		"a digest and a policy":       {request(digest, policy), true},
		"the policy first":            {request(policy, digest), true},
		"with texts":                  {request(digest, policy, []byte{0x30, 1}), true},
		"texts twice":                 {request(digest, policy, []byte{0x30, 1, 0x30, 0}), true},
		"a snapshot taken out":        {request(part(1, nil), policy), true},
		"a name":                      {request(part(7, []byte("live")), policy), true},
		"an empty policy":             {request(digest, part(3, nil)), true},
		"the question first":          {join(enqueue, part(1, join(digest, policy))), true},
		"a policy with unknown field": {request(digest, part(3, part(99, nil))), true},
		"a policy by name":            {request(digest, part(4, []byte("p"))), false},
		"no policy":                   {request(digest), false},
		"no input":                    {enqueue, false},
		"nothing":                     {nil, false},
		"two inputs":                  {join(request(digest), request(policy)), false},
		"two policies":                {request(digest, policy, part(3, part(2, nil))), false},
		"a policy and a name":         {request(digest, policy, part(4, []byte("p"))), false},
		"a name and a policy":         {request(digest, part(4, []byte("p")), policy), false},
		"two digests":                 {request(digest, digest, policy), false},
		"a snapshot":                  {request(part(1, part(3, []byte("cpu"))), policy), false},
		"a change":                    {request(digest, part(5, nil), policy), false},
		"an unknown field":            {request(digest, policy, part(99, nil)), false},
		"a long policy":               {request(digest, part(3, part(99, []byte(strings.Repeat("x", longestShared))))), false},
		"a digest that is not UTF-8":  {request(part(2, []byte{0xff}), policy), false},
		"a policy that is no message": {request(digest, part(3, []byte{0xff})), false},
		"a policy of another kind":    {request(digest, []byte{0x18, 1}), false},
		"a digest that breaks off":    {request(policy, []byte{0x12, 9}), false},
		"a question that breaks off":  {join(part(1, join(digest, policy)), []byte{0x12, 9}), false},
	}
}()

func TestInputsAreReadAsTheLibraryReadsThem(t *testing.T) {
	for name, c := range inputs {
		t.Run(name, func(t *testing.T) {
			in := &receiver{inbox: &inbox{}}
			requireLikeTheLibrary(t, in, c.data)
			require.Equal(t, c.shared, in.given.policy != nil)
		})
	}
}

func FuzzInput(f *testing.F) {
	for _, c := range inputs {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireLikeTheLibrary(t, &receiver{inbox: &inbox{}}, data) })
}

func TestPoliciesThatAreRememberedAreFewAndShort(t *testing.T) {
	var p policies
	for i := range 2 * mostRecent {
		encoded, err := proto.Marshal(&apportionv1.Policy{Tiers: make([]*apportionv1.Tier, i)})
		require.NoError(t, err)
		first, ok := p.read(encoded)
		require.Equal(t, len(encoded) <= longestShared, ok)
		again, _ := p.read(encoded)
		require.Same(t, first.policy, again.policy)
		require.LessOrEqual(t, len(p.known), mostRecent)
	}
}
