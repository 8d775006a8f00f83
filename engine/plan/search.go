package plan

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// A search has three parts for each choice of tasks. drafts finds a plan quickly, task by task, and checks it. smaller tries all smaller
// sets of victims within a bound, and roomless proves that no set is enough. leastByRoom bounds the number of victims from below. A plan is
// said to be the least, and no plan to be proven, only if the parts leave nothing untried for every choice; each bound that is reached
// takes that away, and nothing gives it back.

// draft is a plan that is not checked yet: the nodes of the tasks, and victims sorted by rather.
type draft struct {
	nodes   []model.NodeID
	victims []model.TaskID
	// miss, if not nil, gets what a task lacks that has no place.
	miss *Miss
}

// planChoices bounds the choices of tasks for which evictions are searched.
const planChoices = 8

// attempt is the search for evictions for one choice of tasks.
type attempt struct {
	*planner

	// best is the best plan found, nil if none.
	best *draft
	// every: every smaller set of victims was tried, or all if there is no plan. bounded: no plan for these tasks has fewer victims.
	every, bounded bool
}

// evicting makes the plan with the fewest victims among the choices of tasks, or returns what it lacks. proven: there is no plan without
// victims.
func (p *planner) evicting(w *engine.Need, proven bool) (*Miss, error) {
	choices, all := p.choices(w)
	var first, best *attempt
	every := true
	for i, tasks := range choices {
		if i > 0 && Spend(p.Host) != nil {
			all = false
			break
		}
		a, err := p.attempt(tasks, proven)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = a
		} else {
			p.plan.Looked += a.plan.Looked
			p.plan.CutShort = p.plan.CutShort || a.plan.CutShort
		}
		if every = every && a.bounded; a.best == nil {
			continue
		}
		if best == nil || p.compareVictimSets(a.best.victims, best.best.victims) < 0 {
			best = a
		}
		if p.question.Quick {
			break
		}
	}
	return p.least(first, best, every && all, proven)
}

// least makes the best plan of the attempts, or returns what the first lacks. every: nothing was left out.
func (p *planner) least(first, best *attempt, every, proven bool) (*Miss, error) {
	most := p.question.MaxVictims
	if every && (best == nil || most > 0 && len(best.best.victims) > most) {
		p.plan.Outcome = None
	}
	if best == nil {
		miss, err := first.lacking()
		p.plan.Looked = max(p.plan.Looked, first.plan.Looked)
		return miss, err
	}
	p.about(best.tasks)
	if most > 0 && len(best.best.victims) > most {
		miss := &Miss{Check: judge.CheckEviction, Task: model.None, Node: model.None, Placed: len(p.tasks)}
		miss.Victims = len(best.best.victims)
		return miss, nil
	}
	p.plan.Least = !p.question.Quick && (every || len(best.best.victims) == 1 && proven)
	return nil, p.conclude(best.best)
}

// choices lists choices of the tasks that a gang needs, the one that the judge chose first, and reports whether these are all.
func (p *planner) choices(w *engine.Need) (list [][]model.TaskID, all bool) {
	o := place.OptionsOf(p.Host, w)
	if o == nil {
		return [][]model.TaskID{p.tasks}, true
	}
	list, all = p.firstChoices(o)
	if !all && !o.Bounded && p.onlyPlaceable(o) {
		return p.firstChoices(o)
	}
	return list, all
}

// firstChoices lists the first choices, the one that the judge chose first, and reports whether these are all.
func (p *planner) firstChoices(o *place.Options) (list [][]model.TaskID, all bool) {
	list, all = [][]model.TaskID{p.tasks}, !o.Bounded
	o.Each(func(tasks []model.TaskID) bool {
		switch {
		case slices.Equal(tasks, p.tasks):
		case len(list) == planChoices:
			all = false
			return false
		default:
			list = append(list, tasks)
		}
		return true
	})
	return list, all
}

// attempt searches evictions for a choice of tasks.
func (p *planner) attempt(tasks []model.TaskID, proven bool) (*attempt, error) {
	a := &attempt{planner: p}
	if !slices.Equal(tasks, p.tasks) {
		other := *p
		other.plan.Looked, other.plan.CutShort, other.missed, other.hosts, other.pool = 0, false, nil, false, pool{}
		a.planner = &other
		other.about(tasks)
		if p.asks {
			if err := other.Tried(func() error {
				other.enter()
				other.permitReclaim()
				return nil
			}); err != nil {
				return nil, err
			}
		}
	}
	if err := a.fillPool(); err != nil {
		return nil, err
	}
	var err error
	if a.best, err = a.drafts(); err != nil || p.question.Quick {
		return a, err
	}
	// Victims of the own queue may give back what they use of a bound, which the proofs below do not consider.
	exhausted := a.exhausted()
	if a.best == nil && !exhausted {
		if a.every, err = a.roomless(); err != nil || a.every {
			a.bounded = a.every
			return a, err
		}
	}
	if a.every, err = a.smaller(&a.best, proven && !exhausted); err != nil {
		return nil, err
	}
	if a.bounded = a.every; a.best != nil && !a.every && !exhausted {
		least, err := a.leastByRoom()
		if err != nil {
			return nil, err
		}
		a.bounded = len(a.best.victims) <= least
	}
	return a, nil
}

// drafts searches task by task and returns the best plan it finds, nil if none.
func (p *planner) drafts() (*draft, error) {
	var best *draft
	var limited model.QueueID = model.None
	err := p.Tried(func() error {
		p.enter()
		limited = p.limitedAt(p.tasks)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, within := range []bool{true, false} {
		if within && limited == model.None {
			continue
		}
		if p.pool.within = nil; within {
			p.pool.within = p.below(limited)
		}
		for _, hosting := range []bool{false, true} {
			if hosting && !p.hosts {
				continue
			}
			var miss *Miss
			if !within && !hosting && !p.question.Quick {
				miss = &Miss{Task: model.None, Node: model.None}
				p.missed = miss
			}
			d, err := p.greedy(hosting, miss)
			if err != nil {
				return nil, err
			}
			if best, err = p.better(best, d); err != nil {
				return nil, err
			}
		}
	}
	p.pool.within = nil
	if best == nil && p.Reclaim().Plans() {
		return p.byPlanner()
	}
	return best, nil
}

// better returns the better one of a plan and a draft that passes the checks.
func (p *planner) better(best, d *draft) (*draft, error) {
	if d == nil {
		return best, nil
	}
	d, err := p.checked(d)
	if err != nil || d == nil || best != nil && p.compareVictimSets(best.victims, d.victims) <= 0 {
		return best, err
	}
	return d, nil
}

// limitedAt returns the queue that keeps the job's queue from using what tasks ask for, or model.None.
func (p *planner) limitedAt(tasks []model.TaskID) model.QueueID {
	var why policy.Reasons
	if p.Allocatable(tasks, policy.InSession, &why, nil) || len(why.List) == 0 {
		return model.None
	}
	return why.List[0].Queue
}

// planLimited bounds the tasks that are evicted for limits alone, for each task that is placed, and planForLimit those of which the policy
// is asked who of them may go.
const (
	planLimited  = 1 << 8
	planForLimit = 1 << 6
)

// withinLimits evicts further tasks until the policy lets the queue use what a task asks for; false if that is not possible.
func (p *planner) withinLimits(t model.TaskID, d *draft) (bool, error) {
	for range planLimited {
		if p.View().Stop != nil && p.View().Stop() {
			return false, policy.ErrStopped
		}
		var why policy.Reasons
		if p.Allocatable([]model.TaskID{t}, policy.InSession, &why, nil) {
			return true, nil
		}
		victim := model.TaskID(model.None)
		if len(why.List) > 0 && why.List[0].Queue != model.None && why.List[0].Dimension >= 0 {
			reason := &why.List[0]
			victim = p.forLimit(t, p.below(reason.Queue), reason.Dimension, reason.Have+reason.Need-reason.Limit)
		}
		if victim == model.None {
			if d.miss != nil {
				d.miss.Check, d.miss.Task, d.miss.Reasons = judge.CheckShare, t, why.List
			}
			return false, nil
		}
		p.Unbook(victim, model.Pending)
		d.victims = append(d.victims, victim)
	}
	p.plan.CutShort = true
	return false, nil
}

// forLimit chooses a task whose eviction brings queues below a limit, or nearest to it, in one dimension.
func (p *planner) forLimit(t model.TaskID, queues map[model.QueueID]bool, dimension int, excess float64) model.TaskID {
	compare := func(l, r model.TaskID) int {
		lx, rx := min(p.View().Request(l).V[dimension], excess), min(p.View().Request(r).V[dimension], excess)
		return cmp.Or(cmp.Compare(rx, lx), p.compareByStay(l, r))
	}
	// list are the first ones, in order.
	var list []model.TaskID
	for _, c := range p.pool.tasks {
		if p.View().Status(c) != model.Running || !queues[p.View().QueueOf(c)] || p.View().Request(c).V[dimension] <= 0 {
			continue
		}
		if len(list) == planForLimit && compare(c, list[len(list)-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, c, compare)
		list = slices.Insert(list, at, c)
		list = list[:min(len(list), planForLimit)]
	}
	if let := p.consented(t, []model.TaskID{t}, list, model.None); len(let) > 0 {
		return let[0]
	}
	return model.None
}

// plannerNodes bounds the nodes that a planner of the policy looks at, for all tasks together, where it is asked for a plan on any nodes.
const plannerNodes = 1 << 16

// byPlanner asks a planner of the policy for a plan on nodes that it chooses itself.
func (p *planner) byPlanner() (*draft, error) {
	if !p.reclaim || len(p.tasks)*len(p.View().NodeOrder) > plannerNodes {
		return nil, nil //nolint:nilnil // No plan, no error.
	}
	d := &draft{}
	stopped := false
	err := p.Tried(func() error {
		p.enter()
		candidates := slices.DeleteFunc(slices.Clone(p.pool.tasks), func(t model.TaskID) bool { return p.View().QueueOf(t) == p.queue })
		slices.SortFunc(candidates, p.compareByStay)
		choice := p.Reclaim().Choose(&policy.Claim{Tasks: p.tasks, Candidates: candidates, Room: policy.Room{Kind: policy.AnyNodes}}, false)
		switch plan := choice.Plan; {
		case plan == nil:
		case plan.Made:
			d.nodes, d.victims = plan.Nodes, plan.Victims
		default:
			stopped, p.refused = plan.Stopped, []policy.Reason{plan.Refusal}
		}
		return nil
	})
	switch {
	case stopped:
		return nil, policy.ErrStopped
	case err != nil || len(d.nodes) == 0:
		return nil, err
	}
	slices.SortFunc(d.victims, p.compareByStay)
	return p.better(nil, d)
}

// exhausted reports whether a bound alone may keep tasks that are to be placed off some node at present: there, they would exceed it if all
// of them were on that node.
func (p *planner) exhausted() bool {
	if !p.Bounded(p.queue) {
		return false
	}
	all := p.Sum(p.tasks)
	for _, kind := range p.kinds() {
		t := p.tasks[kind[0]]
		beside := resource.NewAccount(p.View().Dims.Len())
		beside.Add(all)
		beside.SubWithin(p.View().Request(t))
		for i, n := range p.View().NodeOrder {
			p.View().Yield(i)
			if place.BoundOf(p.Host, t, n).ExceededBy(all, beside) {
				return true
			}
		}
	}
	return false
}
