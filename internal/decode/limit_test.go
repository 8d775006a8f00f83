package decode

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
)

func encoded(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	data, err := proto.Marshal(m)
	require.NoError(tb, err)
	return data
}

func TestASnapshotIsMeasuredWithoutDecoding(t *testing.T) {
	snapshot := generate.Crowd(3, 5)
	data := encoded(t, snapshot)
	size := Measure(data)
	require.Equal(t, Size{
		Bytes: int64(len(data)), Dimensions: 2, Nodes: 1, Queues: 1, Jobs: 3, Groups: 3, Tasks: 15, TaskBytes: 186, layout: size.layout,
	}, size)
	require.Zero(t, testing.AllocsPerRun(10, func() { Measure(data) }))
	require.Equal(t, Size{Bytes: 1}, Measure([]byte{0xff}))
}

func TestPartsAreCountedAtTheSameTimeAsInOnePass(t *testing.T) {
	whole := encoded(t, generate.Crowd(50, 7))
	rapid.Check(t, func(t *rapid.T) {
		data := slices.Clone(whole[rapid.IntRange(0, 1).Draw(t, "from"):rapid.IntRange(2, len(whole)).Draw(t, "to")])
		data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "flipped")
		n := rapid.IntRange(2, maxParts).Draw(t, "parts")
		require.Equal(t, measureBeside(data, n), measureAlone(data, n))
	})
}

func TestTheFirstLimitThatIsExceededIsNamed(t *testing.T) {
	long := generate.Crowd(1, 1)
	long.Jobs[0].Groups[0].Tasks[0].Uid = strings.Repeat("u", 200)
	role := generate.Crowd(1, 1)
	role.Jobs[0].Groups[0].Role = strings.Repeat("r", 300)
	deep := &apportionv1.Snapshot{}
	for i := range 10 {
		deep.Queues = append(deep.Queues, &apportionv1.Queue{Name: "q" + strconv.Itoa(9-i), Parent: "q" + strconv.Itoa(8-i)})
	}
	circle := &apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "a", Parent: "b"}, {Name: "b", Parent: "a"}, {Name: "c", Parent: "c"}}}
	for name, tc := range map[string]struct {
		snapshot              *apportionv1.Snapshot
		limits                Limits
		limit, value, maximum string
	}{
		"nothing":                        {generate.Crowd(3, 5), Limits{Dimensions: 2, Nodes: 1, Queues: 1, Jobs: 3, Groups: 3, Tasks: 15, TextBytes: 128, QueueDepth: 1}, "", "", ""},
		"dimensions":                     {generate.Crowd(1, 1), Limits{Dimensions: 1}, "dimensions", "2", "1"},
		"jobs":                           {generate.Crowd(3, 5), Limits{Jobs: 2}, "jobs", "3", "2"},
		"groups":                         {generate.Crowd(3, 5), Limits{Groups: 2}, "groups", "3", "2"},
		"tasks":                          {generate.Crowd(3, 5), Limits{Tasks: 14}, "tasks", "15", "14"},
		"nodes":                          {&apportionv1.Snapshot{Nodes: make([]*apportionv1.Node, 3)}, Limits{Nodes: 2}, "nodes", "3", "2"},
		"queues":                         {&apportionv1.Snapshot{Queues: make([]*apportionv1.Queue, 3)}, Limits{Queues: 2}, "queues", "3", "2"},
		"a long uid":                     {long, Limits{TextBytes: 150}, "text_bytes", "200", "150"},
		"a long role":                    {role, Limits{TextBytes: 128}, "text_bytes", "300", "128"},
		"queues nested ten deep":         {deep, Limits{QueueDepth: 9}, "queue_depth", "10", "9"},
		"queues that are not too deep":   {deep, Limits{QueueDepth: 10}, "", "", ""},
		"queues nested in circles":       {circle, Limits{QueueDepth: 1}, "", "", ""},
		"a long uid that is no longer":   {long, Limits{TextBytes: 200}, "", "", ""},
		"texts shorter than are watched": {generate.Crowd(1, 1), Limits{TextBytes: 1}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := new(Decoder).CompileWithin(encoded(t, tc.snapshot), Guard{Limits: tc.limits})
			if tc.limit == "" {
				require.NoError(t, err)
				return
			}
			fault := AsFault(err)
			require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_LIMIT_EXCEEDED, fault.Reason, "%v", err)
			require.Equal(t, map[string]string{"limit": tc.limit, "value": tc.value, "maximum": tc.maximum}, fault.Metadata)
		})
	}
}

// TestWhereTheJobsLieIsKnown lays jobs before, behind and among the rest of a snapshot: what is left out is jobs alone.
func TestWhereTheJobsLieIsKnown(t *testing.T) {
	queue := encoded(t, &apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "q"}}})
	jobs := encoded(t, &apportionv1.Snapshot{Jobs: generate.Crowd(30, 5).GetJobs()})
	long := encoded(t, &apportionv1.Snapshot{Jobs: generate.Crowd(300, 500).GetJobs()})
	for name, tc := range map[string]struct {
		message []byte
		left    [2][]byte
	}{
		"nothing":            {nil, [2][]byte{nil, nil}},
		"no jobs":            {queue, [2][]byte{queue, nil}},
		"jobs alone":         {jobs, [2][]byte{{}, {}}},
		"behind a queue":     {slices.Concat(queue, jobs), [2][]byte{queue, {}}},
		"between queues":     {slices.Concat(queue, jobs, queue, queue), [2][]byte{queue, slices.Concat(queue, queue)}},
		"in parts":           {slices.Concat(queue, long, queue), [2][]byte{queue, queue}},
		"on both sides":      {slices.Concat(jobs, queue, jobs), [2][]byte{slices.Concat(jobs, queue, jobs), nil}},
		"on both, in parts":  {slices.Concat(long, queue, long), [2][]byte{slices.Concat(long, queue, long), nil}},
		"before what is bad": {slices.Concat(queue, jobs, []byte{0xff}), [2][]byte{queue, {0xff}}},
	} {
		t.Run(name, func(t *testing.T) {
			size := Measure(tc.message)
			require.Equal(t, tc.left, size.around(tc.message))
			require.Equal(t, [2][]byte{append([]byte("x"), tc.message...)}, size.around(append([]byte("x"), tc.message...)))
		})
	}
}
