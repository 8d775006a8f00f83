package wire_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/wire"
)

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
		require.NotEmpty(t, wire.NewTable(reflect.TypeOf(fake)), name)
	}
	require.Empty(t, wire.NewTable(reflect.TypeFor[inner]()))
}
