package bench_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
)

// BenchmarkMemory measures calls and questions about clusters whose queues state usage, in turns with the same ones without.
func BenchmarkMemory(b *testing.B) {
	for _, rule := range []string{"fair", "fair-tree"} {
		shape := generate.Standard()
		if inTree(rule) {
			shape.Depth = 3
		}
		s, p := generate.Snapshot(shape), message(b, rule)
		plain, err := proto.Marshal(s)
		require.NoError(b, err)
		remember(s)
		used, err := proto.Marshal(s)
		require.NoError(b, err)
		b.Run("call/"+rule, func(b *testing.B) {
			var first, second decode.Decoder
			require.NoError(b, answer(&first, plain, p))
			require.NoError(b, answer(&second, used, p))
			pair(b, func() { _ = answer(&first, plain, p) }, func() { _ = answer(&second, used, p) })
		})
		b.Run("questions/"+rule, func(b *testing.B) {
			without, with := asked(b, plain, p), asked(b, used, p)
			pair(b, without.questions, with.questions)
		})
	}
}

// remember states usage of every queue in every dimension: between nothing and twice its part.
func remember(s *apportionv1.Snapshot) {
	const offered = 1 << 44
	all := func(n int64) *apportionv1.Usage {
		u := &apportionv1.Usage{}
		for d := range s.GetDimensions() {
			u.Dimensions, u.QuantumSeconds = append(u.Dimensions, uint32(d)), append(u.QuantumSeconds, n)
		}
		return u
	}
	s.Memory = &apportionv1.Memory{EpochSeconds: 21600, HalfLifeEpochs: 28, Epoch: s.GetAsOf() / 1e9 / 21600, Offered: all(offered)}
	for i, q := range s.GetQueues() {
		q.Usage = all(offered / int64(len(s.GetQueues())) * int64(i%21) / 10)
	}
}

// asked is a session on a snapshot, with things to ask.
func asked(b *testing.B, data []byte, p *apportionv1.Policy) *subject {
	b.Helper()
	var decoder decode.Decoder
	m, err := decoder.Compile(data)
	require.NoError(b, err)
	rule, err := decode.Policy(p)
	require.NoError(b, err)
	session, err := engine.Open(m, rule, nil)
	require.NoError(b, err)
	s := &subject{Session: session, m: m}
	s.find()
	s.questions()
	return s
}

// pair measures two operations in turns and reports the processor time of both, and their ratio.
func pair(b *testing.B, first, second func()) {
	b.Helper()
	var spent [2]time.Duration
	for turn := 0; b.Loop(); turn++ {
		// The order alternates, because each pays for some of the other's garbage.
		for i := range 2 {
			before := processorTime()
			if i ^= turn & 1; i == 0 {
				first()
			} else {
				second()
			}
			spent[i] += processorTime() - before
		}
	}
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(b.N), "cpu-ns/plain")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(b.N), "cpu-ns/memory")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
}
