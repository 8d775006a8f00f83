package wire_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

func encoded(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	data, err := proto.Marshal(m)
	require.NoError(tb, err)
	return data
}

func TestStepsAndTheJobsTheyAddAreCountedWithoutDecoding(t *testing.T) {
	request := &apportionv1.SimulateRequest{Steps: make([]*apportionv1.Step, 5)}
	for i := range request.Steps {
		request.Steps[i] = &apportionv1.Step{}
	}
	request.Steps[3] = event.Change(&apportionv1.Change{Jobs: []*apportionv1.Job{generate.Crowd(1, 7).GetJobs()[0]}})
	steps, added := wire.MeasureSteps(encoded(t, request), 2)
	require.EqualValues(t, 5, steps)
	require.Equal(t, []int64{1, 1, 7}, []int64{added.Jobs, added.Groups, added.Tasks})
}

func TestWhatAModelTakesIsEstimatedBeforehand(t *testing.T) {
	for name, snapshot := range map[string]*apportionv1.Snapshot{
		"many tasks": generate.Crowd(10, 2000), "many jobs": generate.Crowd(5000, 1),
	} {
		t.Run(name, func(t *testing.T) {
			data := encoded(t, snapshot)
			m, err := decode.CompileBytes(data)
			require.NoError(t, err)
			session, err := wire.Open(m, &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
				{Plugin: &apportionv1.Plugin_Drf{Drf: &apportionv1.Drf{}}}, {Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}},
			}}}}, wire.Options{})
			require.NoError(t, err)
			taken, estimate := decode.ModelBytes(m)+session.Bytes(), decode.Measure(data).Memory()
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
	for name, snapshot := range map[string]*apportionv1.Snapshot{"large jobs": generate.Crowd(jobs, 1000), "small jobs": generate.Crowd(100*jobs, 1)} {
		t.Run(name, func(t *testing.T) {
			data := encoded(t, snapshot)
			d := new(decode.Decoder)
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
				m, err := d.CompileWithin(data, decode.Guard{Stop: stop})
				if err == nil {
					var s *wire.Session
					if s, err = wire.Open(m, p, wire.Options{Stop: stop}); err == nil {
						_, err = s.DoAll([]*apportionv1.Step{
							{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Jobs: &apportionv1.Selector{}}}},
							{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{}}},
							{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Jobs{Jobs: &apportionv1.Selector{}}}}},
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
				require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED, decode.AsFault(err).Reason)
			}
			require.Greater(t, looks, fewest)
		})
	}
}

func TestTheParentOfTheRootCountsForNothing(t *testing.T) {
	m, err := decode.Compile(&apportionv1.Snapshot{Queues: []*apportionv1.Queue{
		{Name: "root", Parent: "a"}, {Name: "a", Parent: "root"}, {Name: "b", Parent: "a"},
	}})
	require.NoError(t, err)
	require.ErrorContains(t, decode.Depth(m, 2), "nested 3 deep", "what hangs below a parent of the root is bounded like everything else")
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Capacity{Capacity: &apportionv1.Capacity{Hierarchical: true}}},
	}}}}
	s, err := wire.Open(m, policy, wire.Options{})
	require.NoError(t, err)
	warnings := s.Basis().GetWarnings()
	require.NotEmpty(t, warnings)
	require.Equal(t, apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, warnings[0].GetCode())
	require.Equal(t, "snapshot.queues[0].parent", warnings[0].GetPath())
}
