package plan

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// pool holds the tasks that a plan may evict, as far as the frame's rules go.
type pool struct {
	tasks []model.TaskID
	// on holds for each node the positions in tasks of those on it, from first[n] to first[n+1]; elsewhere are those on no node.
	on, first []int32
	elsewhere []int32
	// within, if not nil, holds the queues whose tasks may be evicted in the present attempt.
	within map[model.QueueID]bool
}

// fillPool finds the tasks that may be evicted.
func (p *planner) fillPool() error {
	v := p.View()
	looked := 0
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		own := job.Queue == p.queue
		if v.Account(j).Tasks[model.Running] == 0 || own && !p.preempt || !own && (!p.reclaim || !v.Queues[job.Queue].Reclaimable) {
			continue
		}
		for t := job.FirstTask; t < job.EndTask; t++ {
			if looked++; v.Stopped(looked) {
				return policy.ErrStopped
			}
			if _, eligible := p.VictimsOf(own).Eligible(p.tasks[0], t); eligible {
				p.pool.tasks = append(p.pool.tasks, t)
			}
		}
	}
	p.pool.sortByNode(v)
	return nil
}

func (o *pool) sortByNode(v *policy.View) {
	o.first = make([]int32, len(v.Nodes)+1)
	for i, t := range o.tasks {
		if n := v.NodeOf(t); n == model.None {
			o.elsewhere = append(o.elsewhere, int32(i))
		} else {
			o.first[n+1]++
		}
	}
	for n := range v.Nodes {
		o.first[n+1] += o.first[n]
	}
	o.on = make([]int32, len(o.tasks)-len(o.elsewhere))
	next := slices.Clone(o.first)
	for i, t := range o.tasks {
		if n := v.NodeOf(t); n != model.None {
			o.on[next[n]] = int32(i)
			next[n]++
		}
	}
}

// candidates appends the tasks on a node that still run and may be evicted in the present attempt.
func (p *planner) candidates(n model.NodeID, dst []model.TaskID) []model.TaskID {
	for _, i := range p.pool.on[p.pool.first[n]:p.pool.first[n+1]] {
		if t := p.pool.tasks[i]; p.available(t) {
			dst = append(dst, t)
		}
	}
	return dst
}

func (p *planner) available(t model.TaskID) bool {
	return p.View().Status(t) == model.Running && (p.pool.within == nil || p.pool.within[p.View().QueueOf(t)])
}

// compareByStay is negative if l is evicted rather than r: it is of lower priority, younger, or of a smaller name.
func (p *planner) compareByStay(l, r model.TaskID) int {
	v := p.View()
	lt, rt := v.Tasks.At(l), v.Tasks.At(r)
	return cmp.Or(
		cmp.Compare(v.Jobs.At(lt.Job).Priority, v.Jobs.At(rt.Job).Priority), cmp.Compare(lt.Priority, rt.Priority),
		cmp.Compare(rt.CreateTime, lt.CreateTime), v.CompareTasks(l, r))
}

// compareVictimSets is negative if the victims of l are evicted in place of those of r: they are fewer, or the first that differs,
// beginning with the one that would stay longest, comes earlier by compareByStay.
func (p *planner) compareVictimSets(l, r []model.TaskID) int {
	if c := cmp.Compare(len(l), len(r)); c != 0 {
		return c
	}
	for i, t := range slices.Backward(l) {
		if c := p.compareByStay(t, r[i]); c != 0 {
			return c
		}
	}
	return 0
}

// below returns the queues whose tasks count against a limit of a queue: the queue and all below it.
func (p *planner) below(limited model.QueueID) map[model.QueueID]bool {
	v := p.View()
	const maxDepth = 256
	below := make(map[model.QueueID]bool)
	for _, q := range v.QueueOrder {
		at, known := q, true
		for range maxDepth {
			if !known || at == limited {
				break
			}
			at, known = v.Queue(v.Queues[at].Parent)
		}
		if known && at == limited {
			below[q] = true
		}
	}
	return below
}

// consented returns those candidates that the policy lets a task evict, in their order. rest are the tasks that the plan must place beside
// it.
func (p *planner) consented(t model.TaskID, rest, candidates []model.TaskID, n model.NodeID) []model.TaskID {
	p.plan.Looked++
	var own, others []model.TaskID
	for _, c := range candidates {
		if p.View().QueueOf(c) == p.queue {
			own = append(own, c)
		} else {
			others = append(others, c)
		}
	}
	allowed := make(map[model.TaskID]bool, len(candidates))
	if len(own) > 0 {
		choice := p.Preempt().Choose(&policy.Claim{Tasks: []model.TaskID{t}, Candidates: own}, false)
		for _, c := range choice.Victims {
			if !p.Reclaim().Plans() || p.lower(c) {
				allowed[c] = true
			}
		}
	}
	if len(others) > 0 && p.Preemptive(rest, nil, nil) {
		p.reclaimable(t, rest, others, n, allowed)
	}

	return slices.DeleteFunc(slices.Clone(candidates), func(c model.TaskID) bool { return !allowed[c] })
}

// reclaimable adds those of the candidates that the policy lets a task take from other queues. A policy that plans is asked about the task,
// which gives what is short there, and about all tasks to be placed, which gives what the whole plan may cost.
func (p *planner) reclaimable(t model.TaskID, rest, others []model.TaskID, n model.NodeID, allowed map[model.TaskID]bool) {
	claim := policy.Claim{Tasks: []model.TaskID{t}, Candidates: others}
	if n != model.None && p.Reclaim().Plans() {
		claim.Room = policy.Room{Kind: policy.OneNode, Node: n}
	}
	p.allow(&claim, allowed)
	if p.Reclaim().Plans() && len(rest) > 1 && len(allowed) < len(others) {
		claim.Tasks = rest
		p.allow(&claim, allowed)
	}
}

// allow adds the candidates of a claim that may be evicted.
func (p *planner) allow(claim *policy.Claim, allowed map[model.TaskID]bool) {
	choice := p.Reclaim().Choose(claim, false)
	if choice.Plan == nil {
		for _, c := range choice.Victims {
			allowed[c] = true
		}
		return
	}
	switch choice.Plan.Refusal.Code { //nolint:exhaustive // Other refusals leave a reason for each candidate.
	case policy.HierarchyRefused, policy.QueueNotOpen, policy.BestEffortClaimant, policy.NotEntitled:
		return
	}
	protected := choice.Protections(p.View())
	for _, c := range claim.Candidates {
		switch check := protected[c]; {
		case check == nil, check.Reason.Code == policy.NoPlan, check.Reason.Code == policy.NotNeeded:
			// It may be evicted, though this claim does not use it.
			allowed[c] = true
		}
	}
}

// lower reports whether a task of the job's queue belongs to a job of lower priority. Under a policy with a potential, preemption that only
// goes down never goes in circles.
func (p *planner) lower(c model.TaskID) bool {
	v := p.View()
	return v.Jobs.At(v.Tasks.At(c).Job).Priority < v.Jobs.At(p.question.Job).Priority
}
