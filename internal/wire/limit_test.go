package wire

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

func encoded(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	data, err := proto.Marshal(m)
	require.NoError(tb, err)
	return data
}

// crowd has one queue and jobs of tasks each, with names that are not in order.
func crowd(jobs, tasks int) *apportionv1.Snapshot {
	snapshot := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"},
		Nodes:      []*apportionv1.Node{{Name: "n"}}, Queues: []*apportionv1.Queue{{Name: "q"}},
	}
	for j := range jobs {
		group := &apportionv1.TaskGroup{Role: "worker"}
		for k := range tasks {
			group.Tasks = append(group.Tasks, &apportionv1.Task{Uid: strconv.Itoa((j*tasks+k)*7919%1_000_003) + "-" + strconv.Itoa(j) + "-" + strconv.Itoa(k)})
		}
		snapshot.Jobs = append(snapshot.Jobs, &apportionv1.Job{
			Uid: strconv.Itoa(j*7919%1_000_003) + "-" + strconv.Itoa(j), Queue: "q", Groups: []*apportionv1.TaskGroup{group},
		})
	}
	return snapshot
}

func TestASnapshotIsMeasuredWithoutDecoding(t *testing.T) {
	snapshot := crowd(3, 5)
	data := encoded(t, snapshot)
	size := Measure(data)
	require.Equal(t, Size{
		Bytes: int64(len(data)), Dimensions: 2, Nodes: 1, Queues: 1, Jobs: 3, Groups: 3, Tasks: 15, TaskBytes: 186, layout: size.layout,
	}, size)
	require.Zero(t, testing.AllocsPerRun(10, func() { Measure(data) }))
	require.Equal(t, Size{Bytes: 1}, Measure([]byte{0xff}))
}

func TestPartsAreCountedAtTheSameTimeAsInOnePass(t *testing.T) {
	whole := encoded(t, crowd(50, 7))
	rapid.Check(t, func(t *rapid.T) {
		data := slices.Clone(whole[rapid.IntRange(0, 1).Draw(t, "from"):rapid.IntRange(2, len(whole)).Draw(t, "to")])
		data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "flipped")
		n := rapid.IntRange(2, maxParts).Draw(t, "parts")
		require.Equal(t, measureBeside(data, n), measureAlone(data, n))
	})
}

func TestTheFirstLimitThatIsExceededIsNamed(t *testing.T) {
	long := crowd(1, 1)
	long.Jobs[0].Groups[0].Tasks[0].Uid = strings.Repeat("u", 200)
	role := crowd(1, 1)
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
		"nothing":                        {crowd(3, 5), Limits{Dimensions: 2, Nodes: 1, Queues: 1, Jobs: 3, Groups: 3, Tasks: 15, TextBytes: 128, QueueDepth: 1}, "", "", ""},
		"dimensions":                     {crowd(1, 1), Limits{Dimensions: 1}, "dimensions", "2", "1"},
		"jobs":                           {crowd(3, 5), Limits{Jobs: 2}, "jobs", "3", "2"},
		"groups":                         {crowd(3, 5), Limits{Groups: 2}, "groups", "3", "2"},
		"tasks":                          {crowd(3, 5), Limits{Tasks: 14}, "tasks", "15", "14"},
		"nodes":                          {&apportionv1.Snapshot{Nodes: make([]*apportionv1.Node, 3)}, Limits{Nodes: 2}, "nodes", "3", "2"},
		"queues":                         {&apportionv1.Snapshot{Queues: make([]*apportionv1.Queue, 3)}, Limits{Queues: 2}, "queues", "3", "2"},
		"a long uid":                     {long, Limits{TextBytes: 150}, "text_bytes", "200", "150"},
		"a long role":                    {role, Limits{TextBytes: 128}, "text_bytes", "300", "128"},
		"queues nested ten deep":         {deep, Limits{QueueDepth: 9}, "queue_depth", "10", "9"},
		"queues that are not too deep":   {deep, Limits{QueueDepth: 10}, "", "", ""},
		"queues nested in circles":       {circle, Limits{QueueDepth: 1}, "", "", ""},
		"a long uid that is no longer":   {long, Limits{TextBytes: 200}, "", "", ""},
		"texts shorter than are watched": {crowd(1, 1), Limits{TextBytes: 1}, "", "", ""},
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

func TestStepsAndTheJobsTheyAddAreCountedWithoutDecoding(t *testing.T) {
	request := &apportionv1.SimulateRequest{Steps: make([]*apportionv1.Step, 5)}
	for i := range request.Steps {
		request.Steps[i] = &apportionv1.Step{}
	}
	request.Steps[3] = &apportionv1.Step{Step: &apportionv1.Step_AddJob{AddJob: &apportionv1.AddJobStep{Job: crowd(1, 7).GetJobs()[0]}}}
	steps, added := MeasureSteps(encoded(t, request), 2)
	require.EqualValues(t, 5, steps)
	require.Equal(t, Size{Jobs: 1, Groups: 1, Tasks: 7, TaskBytes: 84}, added)
}

func TestWhatAModelTakesIsEstimatedBeforehand(t *testing.T) {
	for name, snapshot := range map[string]*apportionv1.Snapshot{
		"many tasks": crowd(10, 2000), "many jobs": crowd(5000, 1),
	} {
		t.Run(name, func(t *testing.T) {
			data := encoded(t, snapshot)
			m, err := CompileBytes(data)
			require.NoError(t, err)
			session, err := Open(m, &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
				{Plugin: &apportionv1.Plugin_Drf{Drf: &apportionv1.Drf{}}}, {Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}},
			}}}}, Options{})
			require.NoError(t, err)
			taken, estimate := ModelBytes(m)+session.Bytes(), Measure(data).Memory()
			require.Greater(t, estimate, taken*4/5)
			require.Less(t, estimate, taken*5+1<<12)
		})
	}
}

// TestWorkOnAMillionTasksEndsSoonAfterItIsAskedTo asks to stop at many moments of reading, building, opening and answering, and has each
// end there. Their distance is the time for which it may continue: the time is only logged, because times on a busy machine are not
// certain; the number is checked. The race detector makes this slow: it sees fewer tasks.
func TestWorkOnAMillionTasksEndsSoonAfterItIsAskedTo(t *testing.T) {
	jobs, fewest := 1000, 2000
	if raced.On {
		jobs, fewest = 20, 30
	}
	p := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Gang{Gang: &apportionv1.Gang{}}},
		{Plugin: &apportionv1.Plugin_Drf{Drf: &apportionv1.Drf{}}},
		{Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}},
	}}}}
	for name, snapshot := range map[string]*apportionv1.Snapshot{"large jobs": crowd(jobs, 1000), "small jobs": crowd(100*jobs, 1)} {
		t.Run(name, func(t *testing.T) {
			data := encoded(t, snapshot)
			d := new(Decoder)
			// run does all of the work and returns the longest time between two looks at whether to stop.
			run := func(limit int) (looks int, longest time.Duration, err error) {
				last := time.Now()
				stop := func() bool {
					now := time.Now()
					longest = max(longest, now.Sub(last))
					last = now
					looks++
					return limit > 0 && looks >= limit
				}
				m, err := d.CompileWithin(data, Guard{Stop: stop})
				if err == nil {
					var s *Session
					if s, err = Open(m, p, Options{Stop: stop}); err == nil {
						_, err = s.DoAll([]*apportionv1.Step{
							{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Jobs: &apportionv1.Jobs{}}}},
							{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{}}},
							{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Jobs{Jobs: &apportionv1.Jobs{}}}}},
							{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Tasks: true, Jobs: true}}},
						})
					}
				}
				longest = max(longest, time.Since(last))
				return looks, longest, err
			}
			looks, longest, err := run(0)
			require.NoError(t, err)
			t.Logf("%d looks, at most %v apart", looks, longest)
			for _, part := range []int{1, 10, 25, 50, 75, 90, 97} {
				_, _, err := run(max(1, looks*part/100))
				require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED, AsFault(err).Reason)
			}
			require.Greater(t, looks, fewest)
		})
	}
}

// TestWhereTheJobsLieIsKnown lays jobs before, behind and among the rest of a snapshot: what is left out is jobs alone.
func TestWhereTheJobsLieIsKnown(t *testing.T) {
	queue := encoded(t, &apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "q"}}})
	jobs := encoded(t, &apportionv1.Snapshot{Jobs: crowd(30, 5).GetJobs()})
	long := encoded(t, &apportionv1.Snapshot{Jobs: crowd(300, 500).GetJobs()})
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

func TestTheParentOfTheRootCountsForNothing(t *testing.T) {
	m, err := Compile(&apportionv1.Snapshot{Queues: []*apportionv1.Queue{
		{Name: "root", Parent: "a"}, {Name: "a", Parent: "root"}, {Name: "b", Parent: "a"},
	}})
	require.NoError(t, err)
	require.ErrorContains(t, Depth(m, 2), "nested 3 deep", "what hangs below a parent of the root is bounded like everything else")
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Capacity{Capacity: &apportionv1.Capacity{Hierarchical: true}}},
	}}}}
	s, err := Open(m, policy, Options{})
	require.NoError(t, err)
	warnings := s.Basis().GetWarnings()
	require.NotEmpty(t, warnings)
	require.Equal(t, apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, warnings[0].GetCode())
	require.Equal(t, "snapshot.queues[0].parent", warnings[0].GetPath())
}
