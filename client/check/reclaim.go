package check

import (
	"fmt"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const (
	notSearched = "the search for plans is not repeated here"
	notTheFirst = "that it is this plan, of all that would keep the promises"
	ofAPlan     = "victims are allowed and needed, the claimant is ready within limits and line, what queues lack falls"
)

// ofVictims are the fields of an answer about victims that are not checked.
var ofVictims = omitted{
	"VictimsAnswer.tier": notSearched, "VictimsAnswer.plugins": "votes are not repeated here",
	"VictimsAnswer.protections": notSearched, "VictimsAnswer.checks": notSearched,
}

// reclaim checks what the plan of an answer about victims promises.
func (c *check) reclaim(path string, step *apportionv1.ReclaimStep, got *apportionv1.VictimsAnswer) {
	why := c.unclaimed()
	if why == "" && !got.GetPlan().GetMade() {
		why = notSearched
		if len(got.GetVictims()) > 0 {
			c.wrong("%s has victims without a plan", path)
		}
	}
	if why != "" {
		c.omit(path, why)
		return
	}
	claim, ok := c.tasksOf(step.GetClaimant())
	candidates, known := c.tasksOf(step.GetCandidates())
	if !ok || !known || len(claim) == 0 || claim[0].leaf == aside {
		c.wrong("%s is a plan for tasks, or of candidates, that the snapshot does not have", path)
		return
	}
	if step.GetCandidates() == nil {
		candidates = c.tasks
	}
	before, p := c.numbers, c.newPlan(claim)
	victims := p.victims(path, got.GetVictims(), candidates)
	p.claim(path, step, claim, got.GetPlan())
	want := &apportionv1.VictimsAnswer{Decided: true, Evictions: slices.Clone(got.GetEvictions())}
	for _, v := range victims {
		if !p.needed(v) {
			c.wrong("%s: the plan does without its victim %d", path, v.number)
		}
		want.Victims = append(want.Victims, &apportionv1.Victim{Task: uint32(v.number), Uid: c.named(v.name)})
	}
	fall, rise := p.change()
	p.lowers(path, fall, rise)
	want.Plan = &apportionv1.ReclaimPlan{Made: true, Falls: fractions(fall), Rises: fractions(rise)}
	// Which line and nodes they are is the engine's choice among those of which the plan is true.
	want.Plan.Line, want.Plan.Nodes = got.GetPlan().GetLine(), got.GetPlan().GetNodes()
	c.compare(path, got, want, ofVictims)
	c.omitAll(path, notTheFirst, "victims", "evictions", "plan.line", "plan.nodes")
	c.sameTasks(path+".evictions", got.GetEvictions(), victims)
	c.did(path, ofAPlan, before)
}

// named is a name, or nothing if the input omits names.
func (c *check) named(name string) string {
	if c.omitNames {
		return ""
	}
	return name
}

// victims evicts the victims of an answer, which must be candidates that may be evicted, each once.
func (p *plan) victims(path string, got []*apportionv1.Victim, candidates []*task) (list []*task) {
	for i, v := range got {
		at := slices.IndexFunc(candidates, func(t *task) bool { return t.number == int(v.GetTask()) })
		if at < 0 || slices.Contains(list, candidates[at]) || !p.mayGo(candidates[at]) {
			p.wrong("%s.victims[%d] is task %d, which may not be evicted for this claimant, or is named before", path, i, v.GetTask())
			continue
		}
		list = append(list, candidates[at])
		p.evict(candidates[at], 1)
	}
	p.others = list
	return list
}

// mayGo reports whether a task may be evicted for a task of another queue, as far as settings say so: it runs, holds something, is not
// protected, and its queue takes part and gives tasks back.
func (p *plan) mayGo(t *task) bool {
	if t.leaf == aside || t.leaf == p.queue || within(t.request, make([]int64, len(t.request))) {
		return false
	}
	queue := p.GetQueues()[t.leaf]
	return t.runs() && (queue.Reclaimable == nil || queue.GetReclaimable())
}

// runs reports whether a task runs and may be evicted.
func (t *task) runs() bool {
	return t.status == apportionv1.TaskStatus_TASK_STATUS_RUNNING && t.preemptable
}

// claim checks that the claimant may have the plan by the line that the answer states, and has room.
func (p *plan) claim(path string, step *apportionv1.ReclaimStep, claim []*task, got *apportionv1.ReclaimPlan) {
	line := int(got.GetLine()) - 1
	switch {
	case line < 0 || line > entitlement || !p.entitled(line):
		p.wrong("%s.plan.line is %v, but not all queues are above it, or the claimant is", path, got.GetLine())
	case !p.open[p.queue] || within(p.need, make([]int64, len(p.need))):
		p.wrong("%s: the queue of the claimant is not open, or the claimant asks for nothing", path)
	case p.limited():
		p.wrong("%s: a limit does not permit the claimant", path)
	}
	p.place(root, p.need)
	nodes := got.GetNodes()
	if onNodes := step.GetRoom() >= apportionv1.ClaimRoom_CLAIM_ROOM_NODE && len(p.GetNodes()) > 0; !onNodes || len(nodes) != len(claim) {
		if onNodes || len(nodes) > 0 {
			p.wrong("%s.plan.nodes has %d entries, which is not one for each task on a node", path, len(nodes))
		}
		nodes = nil
	}
	for i, n := range nodes {
		asked := step.GetRoom() != apportionv1.ClaimRoom_CLAIM_ROOM_NODE || p.isNode(step.GetNode(), n)
		if int(n) >= len(p.GetNodes()) || !asked || !p.takes(int(n), claim[i].set) {
			p.wrong("%s.plan.nodes[%d] is %d, which does not take the task", path, i, n)
			continue
		}
		p.place(int(n), claim[i].request)
	}
	for at := range p.placed {
		if d := p.lacks(at, 1); d >= 0 {
			p.wrong("%s: the claimant lacks %d of dimension %d on node %d", path, -p.room[at][d], d, at)
		}
	}
}

// isNode reports whether a selection names one node alone.
func (c *cluster) isNode(nodes *apportionv1.Selector, n uint32) bool {
	return slices.Equal(nodes.GetIndices(), []uint32{n}) ||
		int(n) < len(c.GetNodes()) && slices.Equal(nodes.GetNames(), []string{c.GetNodes()[n].GetName()})
}

// sameTasks notes a list that does not have each of some tasks once.
func (c *check) sameTasks(path string, got []uint32, want []*task) {
	var numbers []uint32
	for _, t := range want {
		numbers = append(numbers, uint32(t.number))
	}
	slices.Sort(numbers)
	if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, numbers) {
		c.wrong("%s is %v, not the victims %v in some order", path, got, fmt.Sprint(numbers))
	}
}
