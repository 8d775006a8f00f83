package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

// BenchmarkCauses groups all waiting jobs of the standard cluster by cause.
func BenchmarkCauses(b *testing.B) {
	data, err := proto.Marshal(generate.Snapshot(generate.Standard()))
	require.NoError(b, err)
	m, err := wire.CompileBytes(data)
	require.NoError(b, err)
	for _, name := range []string{"proportion", "capacity", "fair"} {
		b.Run(name, func(b *testing.B) {
			p, known := client.Preset(name)
			require.True(b, known)
			s, err := wire.Open(m, p, wire.Options{})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				answer := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{GroupsOnly: true}}})
				require.Nil(b, answer.GetError())
			}
		})
	}
}
