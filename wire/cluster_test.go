package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

func TestTheClusterIsReadAsTheLibraryReadsIt(t *testing.T) {
	named := func(names ...string) []byte {
		data, err := proto.Marshal(&apportionv1.Snapshot{AsOf: 7, Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "q"}}})
		require.NoError(t, err)
		for _, name := range names {
			data = protowire.AppendString(protowire.AppendTag(data, 2, protowire.BytesType), name)
		}
		return data
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "no name": named(), "one": named("prod"), "the last of several": named("prod", "test"), "the last is empty": named("prod", ""),
		"of another type": append(named("prod"), 2<<3, 1),
	} {
		t.Run(name, func(t *testing.T) {
			var message apportionv1.Snapshot
			require.NoError(t, proto.Unmarshal(data, &message))
			require.Equal(t, message.GetCluster(), wire.ClusterOf(data))
		})
	}
	require.Empty(t, wire.ClusterOf(append(named("prod"), 0xff)), "cut off")
	require.Empty(t, wire.ClusterOf(named("\xff")), "no text")
}
