package wire_test

import (
	"fmt"
	"maps"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

func BenchmarkCompileChange(b *testing.B) {
	snapshot := generate.Snapshot(generate.Standard())
	whole, err := proto.Marshal(snapshot)
	require.NoError(b, err)
	base, err := decode.CompileBytes(whole)
	require.NoError(b, err)
	b.Run("whole", func(b *testing.B) {
		var d decode.Decoder
		for b.Loop() {
			_, err := d.Compile(whole)
			require.NoError(b, err)
		}
	})
	for _, jobs := range []int{100, 1000} {
		data, err := proto.Marshal(generate.Change(proto.CloneOf(snapshot), jobs, 1))
		require.NoError(b, err)
		b.Run(fmt.Sprint("jobs=", jobs), func(b *testing.B) {
			var d decode.Decoder
			b.ReportAllocs()
			for b.Loop() {
				_, err := d.CompileChange(base, data, decode.Guard{})
				require.NoError(b, err)
			}
		})
	}
	asked := maps.Clone(policies)
	asked["fair"] = `tiers { plugins { fair {} } }`
	for _, name := range []string{"proportion", "capacity flat", "drf", "fair"} {
		p := &apportionv1.Policy{}
		require.NoError(b, prototext.Unmarshal([]byte(asked[name]), p))
		b.Run("open/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := wire.Open(base, p, wire.Options{})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkOpenChanged opens a session, with its basis, on the result of a change that was compiled just before.
func BenchmarkOpenChanged(b *testing.B) {
	snapshot := generate.Snapshot(generate.Standard())
	base, err := decode.Compile(snapshot)
	require.NoError(b, err)
	changes := make([][]byte, 16)
	for i := range changes {
		changes[i], err = proto.Marshal(generate.Change(snapshot, 100, uint64(i)))
		require.NoError(b, err)
	}
	for _, name := range []string{"proportion", "capacity flat", "capacity hierarchical"} {
		p := &apportionv1.Policy{}
		require.NoError(b, prototext.Unmarshal([]byte(policies[name]), p))
		b.Run(name, func(b *testing.B) {
			var d decode.Decoder
			for i := range b.N {
				b.StopTimer()
				m, err := d.CompileChange(base, changes[i%len(changes)], decode.Guard{})
				require.NoError(b, err)
				b.StartTimer()
				s, err := wire.Open(m, p, wire.Options{})
				require.NoError(b, err)
				s.Basis()
			}
		})
	}
}

func TestTenSuccessiveSnapshotsTakeLittleMoreThanOne(t *testing.T) {
	raced.Skip(t)
	snapshot := generate.Snapshot(generate.Standard())
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	before := heap()
	base, err := decode.CompileBytes(data)
	require.NoError(t, err)
	one := heap() - before
	var d decode.Decoder
	held := []*model.Model{base}
	changes := make([][]byte, 9)
	for i := range changes {
		changes[i], err = proto.Marshal(generate.Change(snapshot, 100, uint64(i)))
		require.NoError(t, err)
	}
	before = heap()
	for _, change := range changes {
		next, err := d.CompileChange(held[len(held)-1], change, decode.Guard{})
		require.NoError(t, err)
		held = append(held, next)
	}
	more := heap() - before
	t.Logf("one takes %d MiB, nine more take %d MiB", one>>20, more>>20)
	require.Less(t, one+more, one*3/2)
	runtime.KeepAlive(held)
}

// BenchmarkCauses groups all waiting jobs of the standard cluster by cause.
func BenchmarkCauses(b *testing.B) {
	data, err := proto.Marshal(generate.Snapshot(generate.Standard()))
	require.NoError(b, err)
	m, err := decode.CompileBytes(data)
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
