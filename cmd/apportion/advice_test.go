package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
)

var adviceRuns = flag.Int("advice", 400, "how many clusters told advice is tried on")

// advised is a cluster in which a job waits that asks for more of some resources than its queue or the cluster has.
func advised(seed uint64) *apportionv1.Snapshot {
	d := rand.New(rand.NewPCG(seed, 3))
	amounts := func(scale int) *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{0, 1, 2}, Amounts: []float64{
			float64(500 * (1 + d.IntN(scale*3))), float64((1 + d.IntN(scale*5)) << 28), float64(1000 * d.IntN(scale*2)),
		}}
	}
	job := func(name string, status apportionv1.TaskStatus, phase apportionv1.JobPhase) *apportionv1.Job {
		tasks, request := uint32(1+d.IntN(3)), amounts(4)
		j := &apportionv1.Job{Name: name, Queue: "q", Phase: phase, MinAvailable: tasks, Groups: []*apportionv1.TaskGroup{{Request: request}}}
		j.MinResources = proto.CloneOf(request)
		for i := range j.GetMinResources().GetAmounts() {
			j.MinResources.Amounts[i] *= float64(tasks)
		}
		for i := range tasks {
			task := &apportionv1.Task{Name: fmt.Sprint(name, "-", i), Status: status}
			if status == apportionv1.TaskStatus_TASK_STATUS_RUNNING {
				task.Node = new(uint32(0))
			}
			j.Groups[0].Tasks = append(j.Groups[0].Tasks, task)
		}
		return j
	}
	queue := &apportionv1.Queue{Name: "q", Capability: amounts(10)}
	if d.IntN(2) == 0 {
		queue.Deserved = amounts(8)
	}
	phases := []apportionv1.JobPhase{apportionv1.JobPhase_JOB_PHASE_PENDING, apportionv1.JobPhase_JOB_PHASE_INQUEUE}
	return &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory", "nvidia.com/gpu"},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: amounts(12)}},
		Queues:     []*apportionv1.Queue{queue},
		Jobs: []*apportionv1.Job{
			job("runs", apportionv1.TaskStatus_TASK_STATUS_RUNNING, apportionv1.JobPhase_JOB_PHASE_RUNNING),
			job("waits", apportionv1.TaskStatus_TASK_STATUS_PENDING, phases[d.IntN(2)]),
		},
	}
}

var (
	lessTold = regexp.MustCompile(`the job must ask for no more than (.*?)\.( |$)`)
	giveTold = regexp.MustCompile(`at least (.*?) must (be given back|become free) first`)
)

// toldAmounts reads a list of amounts, such as `8 cpu, 1Gi memory and 2 nvidia.com/gpu`.
func toldAmounts(t *testing.T, list string) map[string]float64 {
	t.Helper()
	told := map[string]float64{}
	for item := range strings.SplitSeq(strings.ReplaceAll(list, " and ", ", "), ", ") {
		amount, dimension, found := strings.Cut(item, " ")
		require.True(t, found, list)
		parsed, err := quantity.Parse(dimension, amount)
		require.NoError(t, err)
		told[dimension] = parsed
	}
	return told
}

// explained returns why the job waits, and the reasons of the check that blocks it.
func explained(t *testing.T, s *apportionv1.Snapshot, policy *apportionv1.Policy) (*apportionv1.Explanation, []*apportionv1.Cause) {
	t.Helper()
	got, err := client.InProcess().Explain(t.Context(), client.Input{Snapshot: s, Policy: policy}, client.ExplainQuestion{Jobs: []string{"waits"}})
	require.NoError(t, err)
	e := got.Answer.GetJobs()[0]
	if e.Blocking == nil {
		return e, nil
	}
	return e, e.GetFindings()[e.GetBlocking()].GetCauses()
}

// TestAdviceThatIsToldHelps does what an explanation advises: a job that asks for no more than it says is no longer refused for the same
// reasons, and the advice names every resource that is exceeded.
func TestAdviceThatIsToldHelps(t *testing.T) {
	tried, several := 0, 0
	for seed := range uint64(*adviceRuns) {
		for _, preset := range []string{"proportion", "capacity"} {
			policy, known := client.Preset(preset)
			require.True(t, known)
			s := advised(seed)
			before, reasons := explained(t, s, policy)
			over := map[string]bool{}
			for _, r := range reasons {
				if len(r.GetDimensions()) > 0 && r.GetHave()+r.GetNeed() > r.GetLimit() {
					over[s.GetDimensions()[r.GetDimensions()[0]]] = true
				}
			}
			if give := giveTold.FindStringSubmatch(before.GetText()); give != nil {
				require.Len(t, toldAmounts(t, give[1]), len(over), before.GetText())
			}
			less := lessTold.FindStringSubmatch(before.GetText())
			if less == nil {
				continue
			}
			told := toldAmounts(t, less[1])
			require.Len(t, told, len(over), before.GetText())
			tried++
			if len(told) > 1 {
				several++
			}
			job := s.GetJobs()[1]
			job.MinAvailable, job.Groups[0].Tasks = 1, job.GetGroups()[0].GetTasks()[:1]
			for i, dimension := range s.GetDimensions() {
				if most, bounded := told[dimension]; bounded {
					job.MinResources.Amounts[i] = min(job.GetMinResources().GetAmounts()[i], most)
					job.Groups[0].Request.Amounts[i] = min(job.GetGroups()[0].GetRequest().GetAmounts()[i], most)
				}
			}
			after, still := explained(t, s, policy)
			for _, r := range still {
				for _, was := range reasons {
					require.False(t, r.GetCode() == was.GetCode() && r.GetQueue() == was.GetQueue() && slices.Equal(r.GetDimensions(), was.GetDimensions()),
						"seed %d: %s\nthen: %s", seed, before.GetText(), after.GetText())
				}
			}
		}
	}
	t.Log(tried, "advices tried,", several, "of them about several resources")
	require.Positive(t, several)
}
