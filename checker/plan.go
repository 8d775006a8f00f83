package checker

import (
	"fmt"
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// evictors are the plugins that vote on victims of reclaim.
var evictors = []string{ofProportion, ofCapacity, "hierarchical_drf", "gang", "conformance", "cooldown", ofFair}

// hunt is one question about victims.
type hunt struct {
	claim []*task
	room  int
	// candidates are in order if they are given; otherwise all that are eligible, and ordered is false.
	candidates []*task
	ordered    bool
	// left are the candidates that were left out beforehand.
	left []*apportionv1.Spared
}

// reclaim checks an answer about victims if fair decides it alone, after the votes of the other plugins of its tier. Votes of guards are
// formed anew, those of others are taken as they are given. With candidates in a given order the search for a plan is repeated. Otherwise a
// plan that is made is checked for what it promises; that there is none, or none that comes before it, is not.
func (c *check) reclaim(path string, step *apportionv1.ReclaimStep, got *apportionv1.VictimsAnswer) bool {
	names, tiers := c.plugins(evictors...)
	at := slices.Index(names, ofFair)
	if !c.alone() || at < 0 || tiers[0] != tiers[at] {
		return false
	}
	h, ok := c.hunt(step)
	if !ok {
		c.wrong("%s answers a question about tasks or nodes that the snapshot does not have", path)
		return true
	}
	want := &apportionv1.VictimsAnswer{Decided: true, Tier: new(uint32(tiers[at]))}
	but := c.sentences()
	but["VictimsAnswer.checks"] = "the checks of single candidates are not repeated here"
	b := c.votes(path, h, names, tiers, tiers[at], got.GetByPlugin())
	votes := b.votes
	f := c.withoutPlan(h)
	mayPlan := f == nil
	switch {
	case !mayPlan:
	case h.ordered:
		f = c.find(h.claim, b.released, h.room)
	default:
		f = c.promised(h, b.released, got)
	}
	want.Plan = f.message()
	for _, v := range f.victims {
		want.Victims = append(want.Victims, &apportionv1.Victim{Task: uint32(v.number), Uid: c.uid(v, step.GetOmitNames())})
		votes[at].Victims = append(votes[at].Victims, uint32(v.number))
	}
	if votes[at].Vote = apportionv1.Vote_VOTE_PERMIT; f.refusal != nil {
		votes[at].Vote = apportionv1.Vote_VOTE_REJECT
	}
	want.ByPlugin = votes
	want.EvictionOrder = slices.Clone(got.GetEvictionOrder())
	c.sameTasks(path+".eviction_order", want.GetEvictionOrder(), votes[at].GetVictims())
	if len(want.GetEvictionOrder()) > 1 {
		c.omit(path+".eviction_order", "the victims are checked; only the engine can order jobs")
	}
	want.Spared = c.spared(path, h, step.GetOmitNames(), b, f, got.GetSpared())
	if !h.ordered && mayPlan {
		c.unordered(path, at, want.GetPlan().GetMade())
		but["VictimsAnswer.spared"] = notOrdered
	}
	if b.given {
		c.unsure(path, at, "it follows from the votes of other plugins, which are taken as they are given")
	}
	c.compare(path, got, want, but)
	return true
}

const notOrdered = "it depends on the order of candidates, which the request does not give"

// unordered lists what of a question without candidates is not checked: which plan comes first, and that there is none. Of a made plan it
// is checked that its victims are allowed and needed.
func (c *check) unordered(path string, fair int, made bool) {
	why := "whether there is a plan is not checked: " + notOrdered
	if made {
		why = "the plan keeps what it promises, but whether it is the first, and not another, is not checked: " + notOrdered
	}
	c.unsure(path, fair, why)
}

// unsure lists the fields that say which plan there is, the victims and the candidates that are spared.
func (c *check) unsure(path string, fair int, why string) {
	for _, field := range []string{
		"plan", "victims", "spared", "eviction_order", fmt.Sprintf("by_plugin[%d].victims", fair), fmt.Sprintf("by_plugin[%d].vote", fair),
	} {
		c.omit(path+"."+field, why)
	}
}

// promised returns what an answer says about candidates whose order is not known, as far as that can be true. A plan is true if the search
// with its victims as the only candidates, under its line, finds it: then each is allowed and needed, and the claimant has room and is
// within the limits. That there is none is false if there is one without victims.
func (c *check) promised(h *hunt, candidates []*task, got *apportionv1.VictimsAnswer) *found {
	plan := got.GetPlan()
	if !plan.GetMade() {
		if f := c.find(h.claim, nil, h.room); f.refusal == nil {
			return f
		}
		return &found{refusal: c.plausible(h, plan.GetRefusal())}
	}
	line := min(max(int(plan.GetLine())-1, 0), 2)
	var victims []*task
	for _, v := range got.GetVictims() {
		if i := slices.IndexFunc(candidates, func(t *task) bool { return t.number == int(v.GetTask()) }); i >= 0 {
			victims = append(victims, candidates[i])
		}
	}
	s := c.newSearch(h.claim, victims, h.room, line)
	if !c.entitled(s.queue, line, s.need, make([]int64, len(s.need))) {
		return &found{refusal: because(apportionv1.ReasonCode_REASON_CODE_NOT_ENTITLED, s.queue)}
	}
	f := s.attempt()
	f.why = nil
	return f
}

// plausible is a refusal with the numbers that a refusal of its kind must have: of a limit, any that the claimant exceeds now.
func (c *check) plausible(h *hunt, got *apportionv1.Reason) *apportionv1.Reason {
	q, need, d := h.claim[0].leaf, sum(h.claim, len(c.dims)), int(got.GetDimension())
	if got.GetCode() == apportionv1.ReasonCode_REASON_CODE_ABOVE_LIMIT && d < len(need) {
		for _, a := range c.path(q) {
			limit := c.capability[a][d]
			have := int64(min(max(got.GetHave(), 0), float64(c.held[a][d])))
			if a == queueOf(got.Queue) && limit != unlimited && need[d] > 0 && have+need[d] > limit {
				return compared(got.GetCode(), a, d, have, need[d], limit)
			}
		}
	}
	return because(apportionv1.ReasonCode_REASON_CODE_NO_PLAN, q)
}

// uid is a task as answers name it.
func (c *check) uid(t *task, omit bool) string {
	if omit {
		return ""
	}
	return t.name
}

// sameTasks notes a list that does not have each of some tasks once.
func (c *check) sameTasks(path string, got, want []uint32) {
	l, r := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(l, r) {
		c.wrong("%s is %v, not the victims %v in some order", path, got, want)
	}
}

// hunt reads the question.
func (c *check) hunt(step *apportionv1.ReclaimStep) (*hunt, bool) {
	h := &hunt{room: root, ordered: step.GetCandidates() != nil}
	var ok, known bool
	h.claim, ok = c.tasksOf(step.GetClaimant())
	named, known := c.tasksOf(step.GetCandidates())
	switch {
	case !ok || !known || len(h.claim) == 0:
		return nil, false
	case step.GetRoom() == apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES:
		h.room = anywhere
	case step.GetRoom() == apportionv1.ClaimRoom_CLAIM_ROOM_NODE:
		if h.room = c.node(step.GetNode()); h.room < 0 {
			return nil, false
		}
	}
	if !h.ordered {
		named = c.tasks
	}
	seen := map[*task]bool{}
	for _, t := range named {
		reason := &apportionv1.Reason{Code: apportionv1.ReasonCode_REASON_CODE_NOT_A_CANDIDATE}
		if !seen[t] {
			reason = nil
			if code := c.ineligible(t, h.claim[0]); code != 0 && (step.GetEligibleOnly() || !h.ordered) {
				reason = &apportionv1.Reason{Code: code, Queue: new(uint32(c.jobs[t.job].queue))}
			}
		}
		seen[t] = true
		if reason == nil {
			h.candidates = append(h.candidates, t)
		} else if h.ordered {
			h.left = append(h.left, &apportionv1.Spared{
				Task: uint32(t.number), Uid: c.uid(t, step.GetOmitNames()), Reasons: []*apportionv1.Reason{reason},
			})
		}
	}
	return h, true
}

// node is the one node of a selection; -1 if it is not one.
func (c *check) node(nodes *apportionv1.Nodes) int {
	if len(nodes.GetIndex()) == 1 && int(nodes.GetIndex()[0]) < len(c.GetNodes()) {
		return int(nodes.GetIndex()[0])
	}
	if len(nodes.GetName()) == 1 {
		return slices.IndexFunc(c.GetNodes(), func(n *apportionv1.Node) bool { return n.GetName() == nodes.GetName()[0] })
	}
	return -1
}

// ineligible returns why the reclaim action does not consider a candidate for a claimant; 0 if it does.
func (c *check) ineligible(t, claimant *task) apportionv1.ReasonCode {
	mine, its := c.jobs[claimant.job].queue, c.jobs[t.job].queue
	switch {
	case t.status != apportionv1.TaskStatus_TASK_STATUS_RUNNING:
		return apportionv1.ReasonCode_REASON_CODE_NOT_RUNNING
	case !t.preemptable:
		return apportionv1.ReasonCode_REASON_CODE_NOT_PREEMPTABLE
	case within(t.request, make([]int64, len(t.request))):
		return apportionv1.ReasonCode_REASON_CODE_BEST_EFFORT_VICTIM
	case mine == its:
		return apportionv1.ReasonCode_REASON_CODE_SAME_QUEUE
	case !c.reclaimable(its):
		return apportionv1.ReasonCode_REASON_CODE_QUEUE_NOT_RECLAIMABLE
	}
	return 0
}

// pluginName is the name in answers of a plugin by its field in the contract.
func pluginName(field string) string {
	switch field {
	case "hierarchical_drf":
		return "drf"
	case "cooldown":
		return "cdp"
	}
	return field
}

// withoutPlan returns the refusal of a claimant that may not have a plan; nil if it may.
func (c *check) withoutPlan(h *hunt) *found {
	q, need := c.jobs[h.claim[0].job].queue, sum(h.claim, len(c.dims))
	refusal := c.notServed(q)
	switch {
	case refusal != nil:
	case !c.open[q]:
		refusal = because(apportionv1.ReasonCode_REASON_CODE_QUEUE_NOT_OPEN, q)
	case within(need, make([]int64, len(need))):
		refusal = because(apportionv1.ReasonCode_REASON_CODE_BEST_EFFORT_CLAIMANT, q)
	default:
		d := c.unentitled(q, need, c.taking)
		if d < 0 {
			return nil
		}
		refusal = c.aboveLine(apportionv1.ReasonCode_REASON_CODE_NOT_ENTITLED, q, d, need, c.taking)
	}
	return &found{refusal: refusal}
}

// message is what was found as answers have it.
func (f *found) message() *apportionv1.ReclaimPlan {
	if f.refusal != nil {
		return &apportionv1.ReclaimPlan{Refusal: f.refusal}
	}
	plan := &apportionv1.ReclaimPlan{Made: true, Line: apportionv1.FairLine(f.line + 1)}
	for i := range f.fall {
		plan.Fall, plan.Rise = append(plan.GetFall(), fraction(f.fall[i])), append(plan.GetRise(), fraction(f.rise[i]))
	}
	for _, n := range f.nodes {
		plan.Node = append(plan.GetNode(), uint32(n))
	}
	return plan
}

func fraction(r *big.Rat) *apportionv1.Fraction {
	return &apportionv1.Fraction{Numerator: r.Num().String(), Denominator: r.Denom().String()}
}

// spared lists the candidates that are no victims: those that were left out, and in order those that another plugin protects or that the
// search has a reason for. Without an order it is that of the answer.
func (c *check) spared(path string, h *hunt, omit bool, b *ballots, f *found, got []*apportionv1.Spared) []*apportionv1.Spared {
	list := slices.Clone(h.left)
	var order []uint32
	for _, s := range got {
		order = append(order, s.GetTask())
	}
	if !h.ordered {
		c.omit(path+".spared", "each candidate is checked; their order is that of the answer")
	}
	for _, t := range h.inOrder(order) {
		entry := &apportionv1.Spared{Task: uint32(t.number), Uid: c.uid(t, omit)}
		reasons, protected := b.why[t]
		switch {
		case slices.Contains(f.victims, t):
			continue
		case protected && reasons == nil && len(list) < len(got):
			c.omit(fmt.Sprintf("%s.spared[0].reasons", path), "the reasons of other plugins are taken as they are given")
			if given := got[len(list)].GetReasons(); first(given).GetPlugin() != ofFair {
				entry.Reasons = given
			}
		case protected:
			entry.Reasons = reasons
		case f.why[t] == nil:
			continue
		default:
			entry.Reasons = []*apportionv1.Reason{f.why[t]}
		}
		list = append(list, entry)
	}
	return list
}
