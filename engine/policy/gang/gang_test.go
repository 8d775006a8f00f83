package gang_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/policytest"
)

var (
	some = policytest.Amounts{"cpu": 1000, "pods": 1}
	none = policytest.Amounts{"pods": 1}
)

func open(t require.TestingT, jobs ...policytest.Job) (*policy.View, *gang.State) {
	for i := range jobs {
		jobs[i].Queue = "q"
	}
	v := policytest.Cluster{Total: policytest.Amounts{"cpu": 100000, "pods": 100}, Queues: policytest.Queues("q"), Jobs: jobs}.View(t)
	state, err := gang.Plugin{}.Open(v)
	require.NoError(t, err)
	require.IsType(t, &gang.State{}, state)
	return v, state.(*gang.State)
}

func short(code policy.Code, have, limit float64, role string) []policy.Reason {
	return []policy.Reason{{Plugin: "gang", Code: code, Queue: model.None, Dimension: -1, Have: have, Limit: limit, Detail: role}}
}

func TestStandingOfAJob(t *testing.T) {
	type verdict struct{ valid, ready, pipelined, starving []policy.Reason }
	for name, c := range map[string]struct {
		job policytest.Job
		// want holds the reasons of each refusal; for starving, of not starving.
		want verdict
	}{
		"a job without minimum and tasks lacks nothing": {
			want: verdict{starving: short(policy.NotStarving, 0, 0, "")},
		},
		"releasing, unknown and failed tasks will never count": {
			job: policytest.Job{Min: 1, Tasks: []policytest.Tasks{
				{Status: model.Releasing, Request: some},
				{Status: model.Unknown, Request: some},
				{Status: model.Failed, Request: some},
			}},
			want: verdict{
				valid: short(policy.NotEnoughTasks, 0, 1, ""), ready: short(policy.NotReady, 0, 1, ""),
				pipelined: short(policy.NotPipelined, 0, 1, ""),
			},
		},
		"a succeeded task is ready": {
			job:  policytest.Job{Min: 1, Tasks: []policytest.Tasks{{Status: model.Succeeded, Request: some}}},
			want: verdict{starving: short(policy.NotStarving, 1, 1, "")},
		},
		"a pipelined task ends starving but is not ready": {
			job: policytest.Job{Min: 2, Tasks: []policytest.Tasks{{Status: model.Running, Request: some}, {Status: model.Pipelined, Request: some}}},
			want: verdict{
				ready: short(policy.NotReady, 1, 2, ""), starving: short(policy.NotStarving, 2, 2, ""),
			},
		},
		"a pending best-effort task is ready, gated or not, but does not end starving": {
			job: policytest.Job{Min: 2, Tasks: []policytest.Tasks{{Request: none}, {Request: none, Gate: model.GateOther}}},
		},
		"a role below its minimum is named first": {
			job: policytest.Job{
				Min: 3, RoleMin: map[string]uint32{"ps": 1, "worker": 2},
				Tasks: []policytest.Tasks{{Role: "worker", Status: model.Running, Request: some}, {Role: "ps", Status: model.Running, Request: some}},
			},
			want: verdict{
				valid: short(policy.NotEnoughTasksOfRole, 1, 2, "worker"), ready: short(policy.RoleNotReady, 1, 2, "worker"),
				pipelined: short(policy.NotPipelined, 1, 2, "worker"),
			},
		},
		"every role below its minimum is named, one without tasks too": {
			job: policytest.Job{Min: 2, RoleMin: map[string]uint32{"ps": 1, "worker": 1}, Tasks: []policytest.Tasks{{N: 2, Status: model.Running, Request: some}}},
			want: verdict{
				valid:     append(short(policy.NotEnoughTasksOfRole, 0, 1, "ps"), short(policy.NotEnoughTasksOfRole, 0, 1, "worker")...),
				ready:     append(short(policy.RoleNotReady, 0, 1, "ps"), short(policy.RoleNotReady, 0, 1, "worker")...),
				pipelined: append(short(policy.NotPipelined, 0, 1, "ps"), short(policy.NotPipelined, 0, 1, "worker")...),
				starving:  short(policy.NotStarving, 2, 2, ""),
			},
		},
		"pending best-effort tasks count for their role": {
			job: policytest.Job{
				Min: 2, RoleMin: map[string]uint32{"worker": 2},
				Tasks: []policytest.Tasks{{Role: "worker", Status: model.Running, Request: some}, {Role: "worker", Request: none}},
			},
		},
		"pipelined tasks count for their role when asked about pipelined": {
			job: policytest.Job{
				Min: 2, RoleMin: map[string]uint32{"worker": 2},
				Tasks: []policytest.Tasks{{Role: "worker", Status: model.Running, Request: some}, {Role: "worker", Status: model.Pipelined, Request: some}},
			},
			want: verdict{ready: short(policy.RoleNotReady, 1, 2, "worker"), starving: short(policy.NotStarving, 2, 2, "")},
		},
		"minima of roles are void when they add up to more than the job's": {
			job: policytest.Job{
				Min: 1, RoleMin: map[string]uint32{"ps": 1, "worker": 1},
				Tasks: []policytest.Tasks{{Role: "ps", Status: model.Running, Request: some}},
			},
			want: verdict{starving: short(policy.NotStarving, 1, 1, "")},
		},
		"minima beyond 32 bits in sum are void too": {
			job: policytest.Job{
				Min: 1<<31 - 1, RoleMin: map[string]uint32{"a": 1<<31 - 1, "b": 1<<31 - 1, "c": 2},
				Tasks: []policytest.Tasks{{Role: "a", Status: model.Running, Request: some}},
			},
			want: verdict{
				valid: short(policy.NotEnoughTasks, 1, 1<<31-1, ""), ready: short(policy.NotReady, 1, 1<<31-1, ""),
				pipelined: short(policy.NotPipelined, 1, 1<<31-1, ""),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.job.Name = "j"
			_, s := open(t, c.job)
			for what, ask := range map[string]struct {
				ask  func(model.JobID, *policy.Reasons) bool
				want []policy.Reason
			}{
				"valid":     {s.Valid, c.want.valid},
				"ready":     {s.Ready, c.want.ready},
				"pipelined": {permits(s.Pipelined), c.want.pipelined},
				"starving":  {s.Starving, c.want.starving},
			} {
				var why policy.Reasons
				require.Equal(t, ask.want == nil, ask.ask(0, &why), what)
				require.Equal(t, ask.want, why.List, what)
				require.Equal(t, ask.want == nil, ask.ask(0, nil), what)
			}
		})
	}
}

// permits is a vote as a verdict; gang never abstains.
func permits(vote func(model.JobID, *policy.Reasons) policy.Vote) func(model.JobID, *policy.Reasons) bool {
	return func(j model.JobID, why *policy.Reasons) bool { return vote(j, why) == policy.Permit }
}

func TestActionsThatTakeWholeGangsMayTakeAny(t *testing.T) {
	v, s := open(t, policytest.Job{Name: "j", Min: 3, Tasks: []policytest.Tasks{{N: 3, Status: model.Running, Request: some}}})
	candidates := policytest.TaskIDs(t, v, "j-2", "j-0")
	got, vote := s.GangEvictable(0, candidates, nil)
	require.Equal(t, policy.Permit, vote)
	require.Equal(t, candidates, got)
}

func TestJobsThatLackTheirMinimumComeFirstWhateverTheirRoles(t *testing.T) {
	running := []policytest.Tasks{{N: 2, Status: model.Running, Request: some}}
	v, s := open(t,
		policytest.Job{Name: "lacking", Min: 3, Tasks: running},
		policytest.Job{Name: "ready", Min: 2, Tasks: running},
		policytest.Job{Name: "ready but for a role", Min: 2, RoleMin: map[string]uint32{"ps": 2}, Tasks: running},
		policytest.Job{Name: "ready by a best-effort task", Min: 3, Tasks: append([]policytest.Tasks{{Request: none}}, running...)},
	)
	lacking := policytest.JobID(t, v, "lacking")
	for _, name := range []string{"ready", "ready but for a role", "ready by a best-effort task"} {
		ready := policytest.JobID(t, v, name)
		require.Equal(t, -1, s.CompareJobs(lacking, ready), name)
		require.Equal(t, 1, s.CompareJobs(ready, lacking), name)
		require.Zero(t, s.CompareJobs(ready, policytest.JobID(t, v, "ready")), name)
	}
	require.Zero(t, s.CompareJobs(lacking, lacking))
}

func TestVictimsAreTakenDownToTheMinimum(t *testing.T) {
	running := func(n int) []policytest.Tasks {
		return []policytest.Tasks{{N: n, Status: model.Running, Request: some}}
	}
	v, s := open(t,
		policytest.Job{Name: "one of one", Min: 1, Tasks: running(1)},
		policytest.Job{Name: "three of two", Min: 2, Tasks: running(3)},
		policytest.Job{Name: "elastic", Tasks: running(2)},
		policytest.Job{Name: "with a finished task", Min: 1, Tasks: append(running(1), policytest.Tasks{Status: model.Succeeded, Request: some})},
		policytest.Job{Name: "claims", Tasks: []policytest.Tasks{{Request: some}}},
	)
	chosen, spared := policytest.Victims(t, v, s.Preemptable, "claims-0",
		"three of two-2", "one of one-0", "three of two-0", "elastic-0", "elastic-1", "with a finished task-0", "three of two-1")
	require.Equal(t, []string{"three of two-2", "elastic-0", "elastic-1", "with a finished task-0"}, chosen)
	require.Equal(t, map[string]policy.Reason{
		"one of one-0":   short(policy.GangMinimum, 1, 1, "")[0],
		"three of two-0": short(policy.GangMinimum, 2, 2, "")[0],
		"three of two-1": short(policy.GangMinimum, 2, 2, "")[0],
	}, spared)

	reclaimed, _ := policytest.Victims(t, v, s.Reclaimable, "claims-0", "three of two-2", "one of one-0", "three of two-0")
	require.Equal(t, []string{"three of two-2"}, reclaimed)
}

func TestVictimsFollowTheStatusOfTasks(t *testing.T) {
	v, s := open(t, policytest.Job{Name: "j", Min: 1, Tasks: []policytest.Tasks{{N: 2, Status: model.Running, Request: some}}})
	candidates := policytest.TaskIDs(t, v, "j-0", "j-1")
	victims, _ := s.Preemptable(candidates[0], candidates, nil, nil)
	require.Len(t, victims, 1)
	v.SetStatus(candidates[1], model.Releasing, model.None)
	victims, _ = s.Preemptable(candidates[0], candidates, victims[:0], nil)
	require.Empty(t, victims)
}

func TestNoJobFallsBelowItsMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := make([]policytest.Job, rapid.IntRange(1, 4).Draw(t, "jobs"))
		for i := range jobs {
			jobs[i] = policytest.Job{
				Name: string(rune('a' + i)), Min: rapid.Uint32Range(0, 4).Draw(t, "min"),
				Tasks: []policytest.Tasks{{N: rapid.IntRange(1, 6).Draw(t, "tasks"), Status: model.Running, Request: some}},
			}
		}
		v, s := open(t, jobs...)
		all := make([]model.TaskID, v.Tasks.Len())
		for i := range all {
			all[i] = model.TaskID(i)
		}
		victims, _ := s.Reclaimable(0, rapid.Permutation(all).Draw(t, "candidates"), nil, nil)
		left := make([]int, len(jobs))
		for j := range jobs {
			left[j] = jobs[j].Tasks[0].N
		}
		for _, task := range victims {
			left[v.Tasks.At(task).Job]--
		}
		for j := range jobs {
			require.Equal(t, min(jobs[j].Tasks[0].N, int(jobs[j].Min)), left[j], "as many as possible, and no more")
		}
	})
}

func BenchmarkGang(b *testing.B) {
	jobs := make([]policytest.Job, 100)
	for i := range jobs {
		jobs[i] = policytest.Job{
			Name: "j" + string(rune(0x100+i)), Min: 2, RoleMin: map[string]uint32{"worker": 1},
			Tasks: []policytest.Tasks{{N: 4, Role: "worker", Status: model.Running, Request: some}},
		}
	}
	v, s := open(b, jobs...)
	candidates := make([]model.TaskID, v.Tasks.Len())
	for i := range candidates {
		candidates[i] = model.TaskID(i)
	}
	dst := make([]model.TaskID, 0, len(candidates))
	b.Run("preemptable, 400 candidates", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = s.Preemptable(0, candidates, dst[:0], nil)
		}
	})
	b.Run("ready", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Ready(7, nil)
		}
	})
}

func TestQuestionsAllocateNothing(t *testing.T) {
	v, s := open(t, policytest.Job{Name: "j", Min: 1, RoleMin: map[string]uint32{"w": 1}, Tasks: []policytest.Tasks{{N: 3, Role: "w", Status: model.Running, Request: some}}})
	candidates := policytest.TaskIDs(t, v, "j-0", "j-1", "j-2")
	dst := make([]model.TaskID, 0, 3)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		dst, _ = s.Preemptable(0, candidates, dst[:0], nil)
		s.Valid(0, nil)
		s.Ready(0, nil)
		s.Pipelined(0, nil)
		s.Starving(0, nil)
		s.CompareJobs(0, 0)
	}))
}
