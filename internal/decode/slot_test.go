package decode_test

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/filled"
)

// rereads requires that a slot reads every field of a type of messages as the library does, whatever it read before. Lists of messages are
// left to the caller.
func rereads[M any, P interface {
	*M
	proto.Message
}](t *testing.T) {
	t.Helper()
	t.Run(string(P(new(M)).ProtoReflect().Descriptor().Name()), func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			var data [2][]byte
			var want P
			for i := range data {
				want = new(M)
				filled.Message(t, want.ProtoReflect(), 3, math.Copysign(0, -1))
				for _, f := range slices.Collect(maps.Keys(maps.Collect(want.ProtoReflect().Range))) {
					if f.IsList() && f.Message() != nil {
						want.ProtoReflect().Clear(f)
					}
				}
				var err error
				data[i], err = proto.Marshal(want)
				require.NoError(t, err)
			}
			got, ok := decode.Reread[M](data[0], data[1])
			require.True(t, ok)
			require.True(t, proto.Equal(want, P(got)), "%v\n%v", want, P(got))
		})
	})
}

func TestSlotsReadEveryField(t *testing.T) {
	rereads[apportionv1.Node](t)
	rereads[apportionv1.Queue](t)
	rereads[apportionv1.NodeSet](t)
	rereads[apportionv1.LeftOut](t)
	rereads[apportionv1.Job](t)
	rereads[apportionv1.TaskGroup](t)
	rereads[apportionv1.TaskCount](t)
	rereads[apportionv1.Task](t)
	rereads[apportionv1.Resource](t)
}

func TestATableRefusesWhatASlotWouldMisread(t *testing.T) {
	type inner struct {
		Name string `protobuf:"bytes,1,opt,name=name"`
	}
	for name, fake := range map[string]any{
		"a number above 63": struct {
			A int32 `protobuf:"varint,64,opt,name=a"`
		}{},
		"a list of messages whose tag takes two bytes": struct {
			A []*inner `protobuf:"bytes,16,rep,name=a"`
		}{},
		"a oneof": struct {
			A any `protobuf_oneof:"a"`
		}{},
		"a map": struct {
			A map[string]string `protobuf:"bytes,1,rep,name=a" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
		}{},
		"a number in zigzag": struct {
			A int32 `protobuf:"zigzag32,1,opt,name=a"`
		}{},
		"a fixed number of 32 bits": struct {
			A uint32 `protobuf:"fixed32,1,opt,name=a"`
		}{},
		"a fixed number of 64 bits": struct {
			A uint64 `protobuf:"fixed64,1,opt,name=a"`
		}{},
		"bytes": struct {
			A []byte `protobuf:"bytes,1,opt,name=a"`
		}{},
		"a list of truth values": struct {
			A []bool `protobuf:"varint,1,rep,name=a"`
		}{},
		"a single number of floating point": struct {
			A float64 `protobuf:"fixed64,1,opt,name=a"`
		}{},
	} {
		require.NotEmpty(t, decode.NewTable(reflect.TypeOf(fake)), name)
	}
	require.Empty(t, decode.NewTable(reflect.TypeFor[inner]()))
}
