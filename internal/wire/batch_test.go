package wire_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/filled"
	"github.com/apportion/apportion/internal/wire"
)

// agreeOnBatch requires that direct decoding of a request equals the library's, and that other requests stay untouched.
func agreeOnBatch(t require.TestingT, data []byte) (direct bool) {
	var got, want apportionv1.RunSessionRequest
	err := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, &want)
	lent := append([]byte(nil), data...)
	direct = wire.DecodeBatch(lent, &got)
	// Nothing may refer to bytes after they were returned to the transport.
	for i := range lent {
		lent[i] = 0xff
	}
	if !direct {
		require.True(t, proto.Equal(&apportionv1.RunSessionRequest{}, &got))
		return false
	}
	require.NoError(t, err)
	require.True(t, proto.Equal(&want, &got), "%v\n%v", &want, &got)
	return true
}

func TestTheDirectDecoderOfBatchesAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var batch apportionv1.StepBatch
		filled.Message(t, batch.ProtoReflect(), 5, math.Copysign(0, -1))
		request := &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &batch}}
		data, err := proto.Marshal(request)
		require.NoError(t, err)
		agreeOnBatch(t, data)
	})
}

func TestUsualBatchesAreDecodedDirectly(t *testing.T) {
	for name, text := range map[string]string{
		"allocatable": `steps { allocatable { tasks { indices: 7 } } }`,
		"many":        `id: 300 steps { allocatable { tasks { indices: 7 indices: 700 names: "a" names: "" } jointly: true mode: 2 explain: true } } steps { mark {} }`,
		"preemptive":  `steps { preemptive { tasks { names: "ü" } jointly: true explain: true } }`,
		"enqueue":     `steps { enqueue { jobs { indices: [0, 1, 1000000] } mode: ENQUEUE_MODE_ACTION} }`,
		"all jobs":    `steps { enqueue {} } steps { enqueue { jobs {} } }`,
		"events":      `steps { event { place { tasks { indices: 1 indices: 2 } nodes { indices: 3 indices: 400 } } } } steps { event { evict { tasks { indices: 1 } status: 5 } } } steps { event { status { tasks { indices: 1 } status: -1 } } }`,
		"others":      `steps { shares { queues { names: "q" } } } steps { rollback { mark: 3 } } steps { reclaim { claimant { indices: 4 } } }`,
		"no steps":    `id: 1`,
	} {
		t.Run(name, func(t *testing.T) {
			batch := parse(t, &apportionv1.StepBatch{}, text)
			data, err := proto.Marshal(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: batch}})
			require.NoError(t, err)
			require.True(t, agreeOnBatch(t, data))
		})
	}
}

func TestUnusualBatchesAreLeftToTheLibrary(t *testing.T) {
	tasks := message(1, message(1, 7))
	for name, data := range map[string][]byte{
		"nothing":                  {},
		"an opening":               message(1, message(2, "digest")),
		"two batches":              message(3, message(1, 1), 3, message(1, 2)),
		"a step of two kinds":      message(3, message(2, message(4, tasks, 5, tasks))),
		"a kind twice":             message(3, message(2, message(4, tasks, 4, tasks))),
		"a selection twice":        message(3, message(2, message(4, message(1, message(1, 7), 1, message(1, 8))))),
		"no kind":                  message(3, message(2, []byte{})),
		"a truncated batch":        message(3, message(2, message(4, tasks)))[:5],
		"a uid that is not UTF-8":  message(3, message(2, message(4, message(1, message(2, []byte{0xff}))))),
		"a truncated list":         message(3, message(2, message(4, message(1, message(1, []byte{0x80}))))),
		"a truncated index":        message(3, message(2, message(4, message(1, []byte{1 << 3, 0x80})))),
		"a truncated uid":          message(3, message(2, message(4, message(1, []byte{2<<3 | 2, 5, 'a'})))),
		"a truncated node":         message(3, message(2, message(12, []byte{2 << 3, 0x80}))),
		"a truncated flag":         message(3, message(2, message(4, []byte{2 << 3, 0x80}))),
		"a malformed part":         message(3, message(2, message(1, []byte{0x80}))),
		"field 0":                  {0x00, 0x00},
		"an end without beginning": {0x1c},
	} {
		t.Run(name, func(t *testing.T) { require.False(t, agreeOnBatch(t, data)) })
	}
}

func FuzzTheDirectDecoderOfBatchesAgrees(f *testing.F) {
	f.Add(message(3, message(1, 7, 2, message(4, message(1, message(1, 7, 1, []byte{1, 0x80, 1}, 2, "uid"), 2, 1, 3, 2)))))
	f.Add(message(3, message(2, message(3, message(1, message(1, 7), 2, 1)), 2, message(12, message(2, 3, 2, []byte{4, 5})))))
	f.Add(message(3, message(2, message(16, message(9, 9)), 2, message(17, message(1, 1)))))
	f.Fuzz(func(t *testing.T, data []byte) { agreeOnBatch(t, data) })
}

func BenchmarkDecodeBatch(b *testing.B) {
	step := &apportionv1.Step{Step: &apportionv1.Step_Allocatable{
		Allocatable: &apportionv1.AllocatableStep{Tasks: &apportionv1.Selector{Indices: []uint32{90_000}}},
	}}
	data, err := proto.Marshal(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{
		Batch: &apportionv1.StepBatch{Id: 1, Steps: []*apportionv1.Step{step}},
	}})
	require.NoError(b, err)
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var request apportionv1.RunSessionRequest
			if !wire.DecodeBatch(data, &request) {
				b.Fatal("left to the library")
			}
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var request apportionv1.RunSessionRequest
			if err := proto.Unmarshal(data, &request); err != nil {
				b.Fatal(err)
			}
		}
	})
}
