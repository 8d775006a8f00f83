package fair_test

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// run is one run to rest.
type run struct {
	*asked
	steps, plans, evictions int
}

// loop lets queues move until none can: the first queue in order with a move makes it.
func (a *asked) loop() any {
	r := run{asked: a}
	mark := a.Mark()
	for r.move() {
		r.steps++
	}
	running := []string{}
	for t := range a.v.Tasks.All() {
		if a.v.Status(model.TaskID(t)) == model.Running && !a.f.SetAside(a.v.Tasks.At(t).Job) {
			running = append(running, a.v.TaskUID(model.TaskID(t)))
		}
	}
	slices.Sort(running)
	if err := a.Rollback(mark); err != nil {
		panic(err)
	}
	return object{"steps": r.steps, "plans": r.plans, "evictions": r.evictions, "running": running}
}

// move makes the first move there is.
func (r *run) move() bool {
	for _, q := range r.f.Order() {
		for _, job := range r.f.Blocks(q) {
			if len(job.Gang) > 0 && r.serve(job.Gang) {
				return true
			}
			if len(job.Gang) > 0 {
				continue
			}
			for i := range job.Loose {
				if r.serve(job.Loose[i : i+1]) {
					return true
				}
			}
		}
	}
	return false
}

// serve places a block where it may be and fits, or else evicts for it if its queue is entitled.
func (r *run) serve(block []model.TaskID) bool {
	block = slices.Clone(block)
	if r.Allocatable(block, policy.InSession, nil, nil) {
		if nodes, ok := r.firstFit(block); ok {
			for i, t := range block {
				r.Book(t, model.Running, nodes[i])
			}
			return true
		}
	}
	if !r.Preemptive(block, nil, nil) {
		return false
	}
	plan := r.f.Plan(&policy.Claim{Tasks: block, Candidates: r.candidates(), Room: policy.Room{Kind: policy.AnyNodes}}, nil)
	if !plan.Made {
		return false
	}
	r.plans++
	r.evictions += len(plan.Victims)
	for _, v := range plan.Victims {
		r.Unbook(v, model.Pending)
	}
	for i, t := range block {
		n := model.NodeID(model.None)
		if len(plan.Nodes) > 0 {
			n = plan.Nodes[i]
		}
		r.Book(t, model.Running, n)
	}
	return true
}

// candidates are all running tasks: those of less priority first, then the younger.
func (r *run) candidates() []model.TaskID {
	var list []model.TaskID
	for t := range r.v.Tasks.All() {
		if r.v.Status(model.TaskID(t)) == model.Running {
			list = append(list, model.TaskID(t))
		}
	}
	slices.SortFunc(list, func(l, o model.TaskID) int {
		lt, ot := r.v.Tasks.At(l), r.v.Tasks.At(o)
		return cmp.Or(cmp.Compare(r.v.Jobs.At(lt.Job).Priority, r.v.Jobs.At(ot.Job).Priority), cmp.Compare(lt.Priority, ot.Priority),
			cmp.Compare(ot.CreateTime, lt.CreateTime), cmp.Compare(l, o))
	})
	return list
}

// firstFit puts each task on the first node that is free for it.
func (r *run) firstFit(block []model.TaskID) ([]model.NodeID, bool) {
	return r.f.FirstFit(block)
}
