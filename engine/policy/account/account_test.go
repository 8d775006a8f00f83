package account_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/policy/policytest"
	"github.com/apportion/apportion/engine/resource"
)

// amounts are named quantities in the engine's units.
type amounts = policytest.Amounts

var names = []string{"cpu", "memory", "gpu", "pods", "ephemeral-storage"}

func sparse(a amounts) *model.Amounts { return policytest.Sparse(names, a) }

type task struct {
	status  model.Status
	gate    model.Gate
	request amounts
}

type job struct {
	queue     string
	phase     model.Phase
	available uint32
	min       amounts
	tasks     []task
}

func feed(b *model.Builder, name string, j job) {
	if j.queue == "" {
		j.queue = "q"
	}
	b.Job(model.JobSpec{Name: name, Queue: j.queue, Phase: j.phase, MinAvailable: j.available, MinResources: sparse(j.min)})
	for k, each := range j.tasks {
		b.Group(model.GroupSpec{Role: string(rune('a' + k)), Request: sparse(each.request)})
		b.Task(&model.TaskSpec{Status: each.status, Gate: each.gate, Node: model.None, Index: -1})
	}
}

func view(t require.TestingT, jobs ...job) *policy.View {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	b.Queue(model.QueueSpec{Name: "q"})
	b.Queue(model.QueueSpec{Name: "other"})
	for i, j := range jobs {
		// The order of the uids differs from the order in the snapshot.
		feed(b, string(rune('z'-i)), j)
	}
	m, err := b.Build()
	require.NoError(t, err)
	return policy.NewView(m, nil)
}

func named(v *policy.View, r resource.Row) amounts { return policytest.Named(v.Dims, r) }

func TestWhatAJobMeansToItsQueue(t *testing.T) {
	running := func(request amounts) task { return task{status: model.Running, request: request} }
	gated := func(gate model.Gate, request amounts) task { return task{gate: gate, request: request} }
	nothing := amounts{"cpu": 0, "memory": 0}
	for name, tt := range map[string]struct {
		job                                  job
		allocated, request, inqueue, elastic amounts
	}{
		"nothing": {job: job{}},
		"all that runs without a minimum is elastic": {
			job:       job{tasks: []task{running(amounts{"cpu": 2, "gpu": 0, "pods": 1}), {request: amounts{"cpu": 1, "gpu": 3}}}},
			allocated: amounts{"cpu": 2, "memory": 0, "gpu": 0, "pods": 1},
			request:   amounts{"cpu": 3, "memory": 0, "gpu": 3, "pods": 1},
			elastic:   amounts{"cpu": 2, "memory": 0, "pods": 1},
		},
		"releasing and finished tasks hold nothing": {
			job: job{tasks: []task{
				{status: model.Releasing, request: amounts{"cpu": 1}},
				{status: model.Succeeded, request: amounts{"cpu": 1}},
				{status: model.Pipelined, request: amounts{"cpu": 1}},
				{status: model.Bound, request: amounts{"cpu": 5}},
			}},
			allocated: amounts{"cpu": 5, "memory": 0}, request: amounts{"cpu": 5, "memory": 0}, elastic: amounts{"cpu": 5, "memory": 0},
		},
		"an admitted job lacks its minimum, less what it holds": {
			job: job{
				phase: model.PhaseInqueue, min: amounts{"cpu": 5, "memory": 1, "gpu": 4, "pods": 3, "ephemeral-storage": 7},
				tasks: []task{running(amounts{"cpu": 2, "memory": 3, "pods": 1})},
			},
			allocated: amounts{"cpu": 2, "memory": 3, "pods": 1}, request: amounts{"cpu": 2, "memory": 3, "pods": 1},
			inqueue: amounts{"cpu": 3, "memory": 0, "gpu": 4, "pods": 2},
			elastic: amounts{"cpu": 0, "memory": 2},
		},
		"a scalar is named that no queue holds, even 0, and not named where enough is held": {
			job: job{
				phase: model.PhaseInqueue, min: amounts{"gpu": 0, "pods": 0},
			},
			inqueue: amounts{"cpu": 0, "memory": 0, "gpu": 0},
		},
		"a scalar that is held in full is not named": {
			job: job{
				phase: model.PhaseInqueue, min: amounts{"gpu": 1, "pods": 1}, tasks: []task{running(amounts{"gpu": 1, "pods": 1})},
			},
			allocated: amounts{"cpu": 0, "memory": 0, "gpu": 1, "pods": 1}, request: amounts{"cpu": 0, "memory": 0, "gpu": 1, "pods": 1},
		},
		"a running job counts once it has as many tasks as it needs": {
			job: job{
				phase: model.PhaseRunning, available: 1, min: amounts{"cpu": 3}, tasks: []task{running(amounts{"cpu": 1})},
			},
			allocated: amounts{"cpu": 1, "memory": 0}, request: amounts{"cpu": 1, "memory": 0}, inqueue: amounts{"cpu": 2, "memory": 0},
		},
		"succeeded tasks do not make it enough": {
			job: job{phase: model.PhaseRunning, available: 1, min: amounts{"cpu": 3}, tasks: []task{{status: model.Succeeded}}},
		},
		"a running job without a minimum books nothing": {job: job{phase: model.PhaseRunning}},
		"a pending job books nothing":                   {job: job{min: amounts{"cpu": 3}}},
		"gated tasks are taken off, but not those held by the scheduler's own gate": {
			job: job{
				phase: model.PhaseInqueue, min: amounts{"cpu": 5, "gpu": 1},
				tasks: []task{gated(model.GateOther, amounts{"cpu": 2, "gpu": 3, "pods": 1}), gated(model.GateAdmission, amounts{"cpu": 1})},
			},
			request: amounts{"cpu": 3, "memory": 0, "gpu": 3, "pods": 1},
			inqueue: amounts{"cpu": 3, "memory": 0, "gpu": 0},
		},
		"gated tasks that ask for pods alone take nothing off": {
			job: job{
				phase: model.PhaseInqueue, min: amounts{"pods": 5},
				tasks: []task{gated(model.GateOther, amounts{"pods": 1})},
			},
			request: amounts{"cpu": 0, "memory": 0, "pods": 1},
			inqueue: amounts{"cpu": 0, "memory": 0, "pods": 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := view(t, tt.job)
			sums, err := account.Open(v)
			require.NoError(t, err)
			require.Equal(t, []int32{1, 0}, sums.Jobs)
			for _, each := range []struct {
				what string
				want amounts
				rows []resource.Row
			}{
				{"allocated", tt.allocated, sums.Allocated},
				{"request", tt.request, sums.Request},
				{"inqueue", tt.inqueue, sums.Inqueue},
				{"elastic", tt.elastic, sums.Elastic},
			} {
				if each.want == nil {
					each.want = nothing
				}
				require.Equal(t, each.want, named(v, each.rows[0]), each.what)
				require.Equal(t, nothing, named(v, each.rows[1]), "%s of the other queue", each.what)
			}
		})
	}
}

func TestAPermitBooksTheWholeMinimumLessWhatGatesHold(t *testing.T) {
	v := view(t,
		job{
			min: amounts{"cpu": 5, "gpu": 0, "ephemeral-storage": 7},
			tasks: []task{
				{status: model.Running, request: amounts{"cpu": 4}}, {gate: model.GateOther, request: amounts{"cpu": 2, "memory": 9, "pods": 1}},
			},
		},
		job{})
	need := resource.NewAccount(v.Dims.Len())
	account.InqueueNeed(v, 0, &need)
	require.Equal(t, amounts{"cpu": 3, "memory": 0, "gpu": 0, "ephemeral-storage": 7}, named(v, need))
	account.InqueueNeed(v, 1, &need)
	require.Equal(t, amounts{"cpu": 0, "memory": 0}, named(v, need), "no minimum, nothing to book")
}

func TestSumsDoNotDependOnTheOrderOfTheSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := make([]job, rapid.IntRange(1, 6).Draw(t, "jobs"))
		for i := range jobs {
			x := rapid.Float64Range(0, 1e9).Draw(t, "x")
			jobs[i] = job{
				queue: rapid.SampledFrom([]string{"q", "other"}).Draw(t, "queue"), phase: model.PhaseInqueue,
				min: amounts{"cpu": x / 3}, tasks: []task{{status: model.Running, request: amounts{"cpu": x / 7}}},
			}
		}
		build := func(order []int) *account.Queues {
			b := model.NewBuilder(0)
			b.Dimensions(names)
			b.Queue(model.QueueSpec{Name: "q"})
			b.Queue(model.QueueSpec{Name: "other"})
			for _, i := range order {
				b.Job(model.JobSpec{Name: string(rune('a' + i)), Queue: jobs[i].queue, Phase: jobs[i].phase, MinResources: sparse(jobs[i].min)})
				b.Group(model.GroupSpec{Request: sparse(jobs[i].tasks[0].request)})
				b.Task(&model.TaskSpec{Status: model.Running, Node: model.None})
			}
			m, err := b.Build()
			require.NoError(t, err)
			sums, err := account.Open(policy.NewView(m, nil))
			require.NoError(t, err)
			return sums
		}
		order := make([]int, len(jobs))
		for i := range order {
			order[i] = i
		}
		require.Equal(t, build(order), build(rapid.Permutation(order).Draw(t, "order")))
	})
}

// changed returns a view after a random change: some of its jobs are removed, or replaced by one of the others.
func changed(t *rapid.T, v *policy.View, others []job) *policy.View {
	b := v.Change(nil)
	var set []model.JobID
	for _, j := range v.Present() {
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			b.RemoveJobs(j)
		case 1:
			set = append(set, j)
		}
	}
	for _, j := range set {
		feed(&b.Builder, v.Jobs.At(j).Name, rapid.SampledFrom(others).Draw(t, "other"))
	}
	m, err := b.Build()
	require.NoError(t, err)
	return policy.NewView(m, nil)
}

// plainly forms the sums of the queues as Volcano does: job by job, in the order of their uids.
func plainly(v *policy.View) []model.QueueSum {
	sums := make([]model.QueueSum, len(v.Queues))
	for q := range sums {
		rows := resource.NewAccounts(6, v.Dims.Len())
		sums[q] = model.QueueSum{Allocated: rows[0], Request: rows[1], Gated: rows[2], Inqueue: rows[3], Elastic: rows[4], Named: rows[5]}
	}
	part := resource.NewAccount(v.Dims.Len())
	for _, j := range v.Present() {
		job, tasks := v.Jobs.At(j), v.Account(j)
		sum := &sums[job.Queue]
		sum.Jobs++
		if tasks.Tasks[model.Pipelined]+tasks.Tasks[model.Releasing] > 0 {
			sum.Moving++
		}
		sum.Named.Add(tasks.Total)
		sum.Named.Add(job.MinResources)
		for g := job.FirstGroup; g < job.EndGroup; g++ {
			sum.Named.Has |= v.Requests[v.Groups.At(g).Request].Has
		}
		sum.Allocated.Add(tasks.Allocated)
		sum.Request.Add(tasks.Allocated)
		sum.Request.Add(tasks.Pending)
		sum.Gated.Add(tasks.Gated)
		account.Elastic(v, j, &part)
		sum.Elastic.Add(part)
		if job.Phase == model.PhaseInqueue ||
			job.Phase == model.PhaseRunning && !job.MinResources.Absent() && tasks.Holding() >= job.MinAvailable {
			account.InqueueLack(v, j, &part)
			sum.Inqueue.Add(part)
		}
	}
	return sums
}

// shown returns what callers see of a sum.
func shown(s *model.QueueSum) []any {
	return []any{s.Allocated, s.Request, s.Gated, s.Inqueue, s.Elastic, s.Named, s.Jobs, s.Moving}
}

func TestSumsAreThoseFormedInTheOrderOfUIDs(t *testing.T) {
	// Sums of amounts like these round in one order and not in another, or nearly do.
	whole := []float64{1, 1, 1, 3, 1<<52 - 1, 1 << 53}
	all := append([]float64{1 << 62, 1e300, 0.5}, whole...)
	amount := rapid.SampledFrom(whole)
	row := rapid.Custom(func(t *rapid.T) amounts {
		if rapid.IntRange(0, 3).Draw(t, "none") == 0 {
			return nil
		}
		a := rapid.MapOf(rapid.SampledFrom(names), amount).Draw(t, "amounts")
		a["cpu"] = amount.Draw(t, "cpu")
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		if amount = rapid.SampledFrom(whole); rapid.IntRange(0, 3).Draw(t, "any amounts") == 0 {
			amount = rapid.SampledFrom(all)
		}
		jobs := make([]job, rapid.IntRange(1, 12).Draw(t, "jobs"))
		for i := range jobs {
			jobs[i] = job{
				queue: rapid.SampledFrom([]string{"q", "other"}).Draw(t, "queue"), min: row.Draw(t, "minimum"),
				phase: rapid.SampledFrom([]model.Phase{model.PhasePending, model.PhaseInqueue, model.PhaseRunning}).Draw(t, "phase"),
				tasks: make([]task, rapid.IntRange(0, 3).Draw(t, "tasks")),
			}
			for k := range jobs[i].tasks {
				jobs[i].tasks[k] = task{
					status:  rapid.SampledFrom([]model.Status{model.Pending, model.Running, model.Running, model.Releasing}).Draw(t, "status"),
					request: row.Draw(t, "request"),
					gate:    rapid.SampledFrom([]model.Gate{model.GateNone, model.GateAdmission, model.GateOther}).Draw(t, "gate"),
				}
			}
		}
		v := view(t, jobs...)
		for range rapid.IntRange(0, 6).Draw(t, "changes") + 1 {
			for q, sum := range plainly(v) {
				require.Equal(t, shown(&sum), shown(v.QueueSumOf(model.QueueID(q))))
			}
			v = changed(t, v, jobs)
		}
	})
}

func TestOpenStopsWhenAsked(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions(nil)
	for i := range 2000 {
		b.Queue(model.QueueSpec{Name: strconv.Itoa(i)})
	}
	m, err := b.Build()
	require.NoError(t, err)
	asked := 0
	_, err = account.Open(policy.NewView(m, func() bool { asked++; return true }))
	require.ErrorIs(t, err, policy.ErrStopped)
	require.Equal(t, 1, asked)
}
