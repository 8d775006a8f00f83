package checker

import (
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// leavesReserved checks that a plan leaves others what is kept for them of the nodes that it uses: whenever a part is kept while the job
// runs, a node has room for the tasks that use it then, those of the plan, and what is kept beyond what its holders use.
func (p *planned) leavesReserved(path string, got *apportionv1.PlanAnswer) {
	on := map[int][]*task{}
	for _, placement := range got.GetPlacements() {
		if n := int(placement.GetNode()); int(placement.GetTask()) < len(p.tasks) && n < len(p.GetNodes()) {
			on[n] = append(on[n], p.tasks[placement.GetTask()])
		}
	}
	for n, tasks := range on {
		for _, r := range p.GetNodes()[n].GetReservations() {
			at := max(r.GetFrom(), p.GetAsOf())
			if r.GetRequest() == nil || p.isOver(r) || p.holds(r, tasks[0].job) || at >= p.endOf(tasks[0]) {
				continue
			}
			if d := p.lacksBeside(n, tasks, at); d >= 0 {
				p.wrong("%s.placements: node %d lacks room of dimension %d beside what is kept there for others", path, n, d)
				return
			}
		}
	}
}

func (c *check) isOver(r *apportionv1.NodeReservation) bool {
	return r.GetUntil() != 0 && r.GetUntil() <= c.GetAsOf()
}

func (c *check) holds(r *apportionv1.NodeReservation, job int) bool {
	return r.GetHolder() != "" && r.GetHolder() == nameOf(c.jobs[job].message)
}

// lacksBeside returns a dimension that tasks ask for, of which a node would lack some at a time beside what is kept of it for others; -1
// for none.
func (p *planned) lacksBeside(n int, tasks []*task, at int64) int {
	row := p.nodeRow(p.GetNodes()[n])
	// of has what each job uses of the node then, slack how many amounts were rounded.
	of, slack := map[int][]int64{}, int64(2)
	for _, t := range p.tasks {
		placed := slices.Contains(tasks, t)
		runs := t.node != nil && int(*t.node) == n && !p.seen[uint32(t.number)] && usesNode(t.status)
		if !placed && !runs || p.endOf(t) <= at {
			continue
		}
		if of[t.job] == nil {
			of[t.job] = make([]int64, len(p.dims))
		}
		add(of[t.job], t.request, 1)
		add(row, t.request, -1)
		slack++
	}
	asked, kept := sum(tasks, len(p.dims)), make([]bool, len(p.dims))
	for j, amount := range p.keptOf(n, tasks[0].job, at, kept, &slack) {
		for d, x := range amount {
			if j != root && of[j] != nil {
				x -= of[j][d]
			}
			row[d] -= max(0, x)
		}
	}
	for d, left := range row {
		bound := float64(slack) * (1 + p.amounts(p.GetNodes()[n].GetAllocatable())[uint32(d)]*0x1p-53)
		if kept[d] && asked[d] > 0 && -float64(left) > bound {
			return d
		}
	}
	return -1
}

// keptOf sums by holder what is kept of a node for others than a job at a time, and says of which dimensions. Under root is what no job of
// the snapshot holds.
func (p *planned) keptOf(n, asking int, at int64, dims []bool, slack *int64) map[int][]int64 {
	kept := map[int][]int64{}
	for _, r := range p.GetNodes()[n].GetReservations() {
		if p.isOver(r) || p.holds(r, asking) || r.GetFrom() > at || r.GetUntil() != 0 && r.GetUntil() <= at || r.GetRequest() == nil {
			continue
		}
		holder := slices.IndexFunc(p.jobs, func(j *job) bool { return r.GetHolder() != "" && nameOf(j.message) == r.GetHolder() })
		if holder < 0 {
			holder = root
		}
		if kept[holder] == nil {
			kept[holder] = make([]int64, len(p.dims))
		}
		for d, x := range p.row(r.GetRequest(), math.Ceil, 0) {
			kept[holder][d] += max(0, x)
			dims[d] = dims[d] || x > 0
		}
		*slack++
	}
	return kept
}

// usesNode reports whether a task of a status uses its node until its job ends: not while it is being released.
func usesNode(s apportionv1.TaskStatus) bool {
	return s == apportionv1.TaskStatus_TASK_STATUS_ALLOCATED || s == apportionv1.TaskStatus_TASK_STATUS_PIPELINED ||
		s >= apportionv1.TaskStatus_TASK_STATUS_BINDING && s <= apportionv1.TaskStatus_TASK_STATUS_RUNNING
}
