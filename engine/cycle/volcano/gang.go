package volcano

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// gang is gangpreempt or gangreclaim: all that a job waits for is placed at once, in the place of tasks that their own gangs can spare, and
// if these are too few, of whole gangs.
func (r *run) gang() {
	reclaims := r.action == cycle.GangReclaim
	r.reclaimers(reclaims, func(j model.JobID) {
		tasks := r.pending(j, r.asks)
		if len(tasks) == 0 || reclaims && !r.Preemptive(tasks, nil, nil) {
			return
		}
		r.evictBundles(j, tasks)
		r.keep(j)
	})
}

// bundle is a part of a job that is evicted together. The rest of the gang stays able to run without a safe one.
type bundle struct {
	whole bool
	job   model.JobID
	tasks []model.TaskID
	worth float64
}

// evictBundles adds bundle by bundle until the tasks may have room, and tries to place them then, and after each further bundle.
func (r *run) evictBundles(j model.JobID, tasks []model.TaskID) {
	need := r.Sum(tasks)
	free := resource.NewRow(r.view.Dims.Len())
	for _, n := range r.order {
		free.Add(r.nodes[n].idle)
	}
	for _, of := range r.jobs {
		job := r.view.Jobs.At(of)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if r.view.Status(t) == model.Releasing && r.view.NodeOf(t) != model.None {
				free.Add(r.view.Request(t))
			}
		}
	}
	var chosen []model.TaskID
	for _, b := range r.bundles(j, need) {
		if r.stop() {
			return
		}
		chosen = append(chosen, b.tasks...)
		for _, t := range b.tasks {
			free.Add(r.view.Request(t))
		}
		if resource.FirstUncovered(free, need) < 0 && r.tryBundles(j, tasks, chosen) {
			return
		}
	}
}

// tryBundles evicts tasks and places those of a job. If they do not all have room, it takes everything back.
func (r *run) tryBundles(j model.JobID, tasks, victims []model.TaskID) bool {
	for _, v := range victims {
		r.evict(v)
	}
	m := memory{}
	for line := r.taskLine(tasks); !line.Empty(); {
		t := line.Take()
		if r.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) {
			if fits := r.search(t, r.order, m, true, future); len(fits) > 0 {
				n, _ := r.choose(t, fits)
				r.place(t, n, pipelined, true)
				continue
			}
		}
		r.undo(0)
		return false
	}
	if r.Job(j).Pipelined(nil) {
		return true
	}
	r.undo(0)
	return false
}

// bundles lists what may be evicted for a job, in order.
func (r *run) bundles(j model.JobID, need resource.Row) []bundle {
	of := map[model.JobID][]model.TaskID{}
	var jobs []model.JobID
	for _, n := range r.order {
		for _, c := range r.candidates(n, func(c model.TaskID) bool { return r.inReach(j, c) }) {
			victim := r.view.Tasks.At(c).Job
			if of[victim] == nil {
				jobs = append(jobs, victim)
			}
			of[victim] = append(of[victim], c)
		}
	}
	var list []bundle
	for _, victim := range jobs {
		list = append(list, r.split(victim, of[victim])...)
	}
	r.sortBundles(j, need, list)
	var candidates []model.TaskID
	for i := range list {
		candidates = append(candidates, list[i].tasks...)
	}
	if len(candidates) == 0 {
		return nil
	}
	list = permitted(list, r.UnifiedEvictable(j, candidates))
	r.sortBundles(j, need, list)
	return list
}

// inReach reports whether the action may evict a task for a job, as far as the policy is not asked.
func (r *run) inReach(j model.JobID, c model.TaskID) bool {
	of, status := r.view.Tasks.At(c).Job, r.view.Status(c)
	q, mine := r.queueOf(of), r.queueOf(j)
	if detail := r.view.Jobs.At(of).Detail; detail != nil && detail.Preemptable != nil && !*detail.Preemptable {
		return false
	}
	if r.action == cycle.GangReclaim {
		return status == model.Running && q != mine && r.view.Queues[q].Reclaimable
	}
	return (status == model.Running || status == model.Bound) && q == mine && r.view.Jobs.At(of).Priority < r.view.Jobs.At(j).Priority
}

// split splits the candidates of a job into those that its gang can spare and the rest. A gang that lacks tasks already can spare all.
func (r *run) split(j model.JobID, tasks []model.TaskID) []bundle {
	job, account := r.view.Jobs.At(j), r.view.Account(j)
	slices.SortFunc(tasks, func(l, k model.TaskID) int {
		return cmp.Or(cmp.Compare(r.view.Tasks.At(l).Priority, r.view.Tasks.At(k).Priority), r.view.CompareTasks(l, k))
	})
	spare := account.Ready() - job.MinAvailable
	safe, whole := bundle{job: j}, bundle{whole: true, job: j}
	sum, ofRole := int64(0), map[model.GroupID]int32{}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		least, at := r.view.Groups.At(g).MinAvailable, int(g-job.FirstGroup)
		sum += int64(max(least, 0))
		if least >= 0 {
			ofRole[g] = account.GroupReady(at) + account.GroupPendingBestEffort[at] - least
		}
	}
	roles := int64(job.MinAvailable) >= sum
	for _, t := range tasks {
		g := r.view.Tasks.At(t).Group
		left, counted := ofRole[g]
		counted = counted && roles
		switch {
		case account.Ready() < job.MinAvailable:
			safe.tasks = append(safe.tasks, t)
		case spare > 0 && (!counted || left > 0):
			safe.tasks = append(safe.tasks, t)
			spare--
			if counted {
				ofRole[g]--
			}
		default:
			whole.tasks = append(whole.tasks, t)
		}
	}
	return slices.DeleteFunc([]bundle{safe, whole}, func(b bundle) bool { return len(b.tasks) == 0 })
}

// sortBundles sorts what may be evicted for a job: what gangs can spare first, then, to preempt, by the reverse order of jobs, and to
// reclaim by the order in which queues lose tasks, then by how much of the need is met for how much of the gang, then by job.
func (r *run) sortBundles(j model.JobID, need resource.Row, list []bundle) {
	for i := range list {
		list[i].worth = r.worth(&list[i], need)
	}
	slices.SortStableFunc(list, func(a, b bundle) int {
		if a.whole != b.whole {
			if b.whole {
				return -1
			}
			return 1
		}
		order := 0
		switch aq, bq := r.queueOf(a.job), r.queueOf(b.job); {
		case a.job == b.job:
		case r.action == cycle.GangPreempt && r.Order().CompareJobs(b.job, a.job).Less,
			r.action == cycle.GangReclaim && aq != bq && r.Order().CompareVictimQueues(aq, bq, r.queueOf(j)).Less:
			order = -1
		case r.action == cycle.GangPreempt || aq != bq:
			order = 1
		}
		return cmp.Or(order, cmp.Compare(b.worth, a.worth), strings.Compare(r.view.Jobs.At(a.job).UID, r.view.Jobs.At(b.job).UID))
	})
}

// worth is how much of a need the tasks of a bundle meet, in each dimension at most all, for how much of it the whole gang holds: infinite
// where the gang stays able to run.
func (r *run) worth(b *bundle, need resource.Row) float64 {
	if !b.whole {
		return math.Inf(1)
	}
	job := r.view.Jobs.At(b.job)
	freed, all := r.Sum(b.tasks), resource.NewRow(r.view.Dims.Len())
	for t := job.FirstTask; t < job.EndTask; t++ {
		all.Add(r.view.Request(t))
	}
	met, held := 0.0, 0.0
	for has := need.Positive(); has != 0; has = has.Rest() {
		d := has.First()
		met += min(freed.V[d], need.V[d]) / need.V[d]
		held += all.V[d] / need.V[d]
	}
	if held == 0 {
		return math.Inf(1)
	}
	return met / held
}

// permitted keeps what the policy permits to evict: of what a gang can spare each task by itself, of a whole gang all or nothing.
func permitted(list []bundle, allowed []model.TaskID) []bundle {
	may := make(map[model.TaskID]bool, len(allowed))
	for _, t := range allowed {
		may[t] = true
	}
	var kept []bundle
	for _, b := range list {
		asked := len(b.tasks)
		b.tasks = slices.DeleteFunc(slices.Clone(b.tasks), func(t model.TaskID) bool { return !may[t] })
		if len(b.tasks) == asked || !b.whole && len(b.tasks) > 0 {
			kept = append(kept, b)
		}
	}
	return kept
}
