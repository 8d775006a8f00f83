package wire_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
)

// crowd opens a session on a cluster of many queues.
func crowd(t *testing.T, seed uint64, policy string) (*wire.Session, *apportionv1.Snapshot) {
	t.Helper()
	snapshot := generate.Snapshot(generate.Shape{Queues: 30, Jobs: 300, Tasks: 1500, Nodes: 12, Seed: seed, Depth: int(seed % 3), Dimensions: 4})
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, policy), wire.Options{})
	require.NoError(t, err)
	return s, snapshot
}

const crowdPolicy = `tiers { plugins { priority {} } plugins { gang {} } } tiers { plugins { proportion {} } plugins { overcommit {} } }`

// counted is what a plain loop over the explanations of jobs finds: the jobs, blocked jobs and tasks of each queue.
func counted(answer *apportionv1.ExplainAnswer) map[uint32][3]uint32 {
	of := make(map[uint32][3]uint32)
	for _, e := range answer.GetJobs() {
		c := of[e.GetQueue()]
		c[0]++
		if e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED {
			c[1]++
		}
		c[2] += e.GetWaitingTasks()
		of[e.GetQueue()] = c
	}
	return of
}

func TestKindsOfCausesHoldEachGroupOnceAndCountItsJobsAndQueues(t *testing.T) {
	for seed := range uint64(6) {
		s, _ := crowd(t, seed, crowdPolicy)
		answer := ask(t, s, `explain {}`).GetExplain()
		require.NotEmpty(t, answer.GetKinds())
		require.EqualValues(t, len(answer.GetJobs()), answer.GetWaitingCount())
		var groups []uint32
		jobs := 0
		sums := make(map[uint32][3]uint32)
		for i, kind := range answer.GetKinds() {
			groups = append(groups, kind.GetGroups()...)
			ofGroups := 0
			for _, g := range kind.GetGroups() {
				group := answer.GetGroups()[g]
				require.Equal(t, kind.GetVerdict(), group.GetVerdict())
				require.Equal(t, kind.GetCode(), group.GetCause().GetCode())
				ofGroups += len(group.GetJobs())
			}
			require.EqualValues(t, ofGroups, kind.GetJobCount())
			jobs += ofGroups
			require.NotEmpty(t, kind.GetText())
			for _, q := range kind.GetQueues() {
				c := sums[q.GetQueue()]
				sums[q.GetQueue()] = [3]uint32{c[0] + q.GetJobCount(), c[1] + q.GetBlockedCount(), c[2] + q.GetTaskCount()}
			}
			never := func(k *apportionv1.PendingKind) bool {
				return k.GetCheck() == apportionv1.CheckKind_CHECK_KIND_FEASIBILITY
			}
			if i > 0 {
				require.False(t, never(kind) && !never(answer.GetKinds()[i-1]), "what can never run comes first")
			}
			if i > 0 && answer.GetKinds()[i-1].GetVerdict() == kind.GetVerdict() && never(answer.GetKinds()[i-1]) == never(kind) {
				require.GreaterOrEqual(t, answer.GetKinds()[i-1].GetJobCount(), kind.GetJobCount(), "the largest first")
			}
		}
		slices.Sort(groups)
		require.Len(t, groups, len(answer.GetGroups()))
		require.Len(t, slices.Compact(groups), len(answer.GetGroups()), "each group is of one kind")
		require.Len(t, answer.GetJobs(), jobs)
		require.Equal(t, counted(answer), sums)
		for i, q := range answer.GetQueues() {
			numbers := [3]uint32{q.GetJobCount(), q.GetBlockedCount(), q.GetTaskCount()}
			require.Equal(t, sums[q.GetQueue()], numbers)
			require.True(t, slices.ContainsFunc(answer.GetKinds()[q.GetKind()].GetQueues(), func(o *apportionv1.PendingQueue) bool {
				return o.GetQueue() == q.GetQueue()
			}), "the queue waits for the kind that is named")
			if i > 0 {
				require.GreaterOrEqual(t, answer.GetQueues()[i-1].GetBlockedCount(), q.GetBlockedCount(), "the most blocked first")
			}
		}
		require.Len(t, answer.GetQueues(), len(sums))
	}
}

func TestAFilterSelectsWhatALoopOverAllExplanationsSelects(t *testing.T) {
	s, snapshot := crowd(t, 2, crowdPolicy)
	whole := ask(t, s, `explain {}`).GetExplain()
	below := func(name, above string) bool {
		for range snapshot.GetQueues() {
			if name == above {
				return true
			}
			i := slices.IndexFunc(snapshot.GetQueues(), func(q *apportionv1.Queue) bool { return q.GetName() == name })
			if i < 0 {
				return false
			}
			name = snapshot.GetQueues()[i].GetParent()
		}
		return false
	}
	parent := snapshot.GetQueues()[slices.IndexFunc(snapshot.GetQueues(), func(q *apportionv1.Queue) bool { return q.GetParent() != "" })].GetParent()
	namespace := snapshot.GetJobs()[whole.GetJobs()[0].GetJob()].GetNamespace()
	first := func(e *apportionv1.Explanation) *apportionv1.Finding {
		if e.Blocking == nil {
			return nil
		}
		return e.GetFindings()[e.GetBlocking()]
	}
	for name, c := range map[string]struct {
		filter string
		wants  func(*apportionv1.Explanation) bool
	}{
		"a queue and those below it": {fmt.Sprintf(`queues { names: %q }`, parent), func(e *apportionv1.Explanation) bool {
			return below(snapshot.GetQueues()[e.GetQueue()].GetName(), parent)
		}},
		"no queue": {`queues {}`, func(*apportionv1.Explanation) bool { return false }},
		"a namespace": {fmt.Sprintf(`namespaces: %q`, namespace), func(e *apportionv1.Explanation) bool {
			return snapshot.GetJobs()[e.GetJob()].GetNamespace() == namespace
		}},
		"a check": {`checks: CHECK_KIND_SHARE`, func(e *apportionv1.Explanation) bool {
			return first(e).GetCheck() == apportionv1.CheckKind_CHECK_KIND_SHARE
		}},
		"no check": {`checks: CHECK_KIND_UNSPECIFIED`, func(e *apportionv1.Explanation) bool { return e.Blocking == nil }},
		"jobs": {
			fmt.Sprintf(`jobs { indices: [%d, %d] }`, whole.GetJobs()[1].GetJob(), whole.GetJobs()[3].GetJob()),
			func(e *apportionv1.Explanation) bool {
				return e.GetJob() == whole.GetJobs()[1].GetJob() || e.GetJob() == whole.GetJobs()[3].GetJob()
			},
		},
		"a resource": {`dimensions: 0`, func(e *apportionv1.Explanation) bool {
			return slices.ContainsFunc(e.GetFindings(), func(f *apportionv1.Finding) bool {
				return f.GetOutcome() == apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED &&
					(slices.ContainsFunc(f.GetCauses(), func(r *apportionv1.Cause) bool { return slices.Contains(r.GetDimensions(), 0) }) ||
						slices.ContainsFunc(f.GetNodes(), func(c *apportionv1.Cause) bool { return slices.Contains(c.GetDimensions(), 0) }))
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []uint32
			for _, e := range whole.GetJobs() {
				if c.wants(e) {
					want = append(want, e.GetJob())
				}
			}
			got := ask(t, s, `explain { filter { `+c.filter+` } }`).GetExplain()
			var jobs []uint32
			for _, e := range got.GetJobs() {
				jobs = append(jobs, e.GetJob())
			}
			require.Equal(t, want, jobs)
			require.Equal(t, whole.GetWaitingCount(), got.GetWaitingCount())
			if name != "no queue" {
				require.NotEmpty(t, jobs)
			}
			got.Jobs = nil
			alone := ask(t, s, `explain { groups_only: true filter { `+c.filter+` } }`).GetExplain()
			require.Equal(t, got.String(), alone.String())
		})
	}
	for filter, want := range map[string]string{
		`filter { queues { names: "nothing" } }`:      `explain.filter.queues.names[0]: no queue "nothing"`,
		`filter { dimensions: 99 }`:                   "explain.filter.dimensions[0]: no resource 99, there are 4",
		`filter { checks: CHECK_KIND_SHARE } jobs {}`: "explain.filter: a filter and named jobs exclude each other",
	} {
		_, err := s.Ask(parse(t, &apportionv1.Step{}, `explain { `+filter+` }`))
		require.ErrorContains(t, err, want)
	}
}
