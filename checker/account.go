package checker

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// The plugins that divide among queues, by their field in the contract.
const (
	ofFair       = "fair"
	ofProportion = "proportion"
	ofCapacity   = "capacity"
)

// dividers are the plugins that have shares.
var dividers = []string{ofProportion, ofCapacity, "drf", "hierarchical_drf", ofFair}

// shares checks an answer to shares: the account of each queue in each plugin, and the standings.
func (c *check) shares(path string, step *apportionv1.SharesStep, got *apportionv1.SharesAnswer) {
	chosen, ok := c.chosen(step.GetQueues())
	if !ok {
		c.wrong("%s answers a question about queues that the snapshot does not have", path)
		return
	}
	fields, _ := c.plugins(dividers...)
	if len(got.GetPlugins()) != len(fields) {
		c.wrong("%s.plugins has %d entries, not one for each of %d plugins that divide", path, len(got.GetPlugins()), len(fields))
		return
	}
	for i, field := range fields {
		at, given := fmt.Sprintf("%s.plugins[%d]", path, i), got.GetPlugins()[i]
		if field == ofFair {
			c.compare(at, given, c.fairShares(step, chosen, given), c.beyondFair(step))
			continue
		}
		c.volcano(at, field, step, chosen, given)
	}
	if len(got.ProtoReflect().GetUnknown()) > 0 {
		c.wrong("%s has fields that the contract does not have", path)
	}
	c.standings(path, step, chosen, got)
}

// chosen are the queues of a selection; all without one.
func (c *cluster) chosen(q *apportionv1.Queues) (list []int, ok bool) {
	if q == nil {
		for i := range c.GetQueues() {
			list = append(list, i)
		}
		return list, true
	}
	for _, i := range q.GetIndex() {
		if int(i) >= len(c.GetQueues()) {
			return nil, false
		}
		list = append(list, int(i))
	}
	for _, name := range q.GetName() {
		i, found := c.index[name]
		if !found {
			return nil, false
		}
		list = append(list, i)
	}
	return list, true
}

// beyondFair are the fields of the shares of fair that need a certificate that the answers do not have.
func (c *check) beyondFair(step *apportionv1.SharesStep) omitted {
	but := omitted{}
	if e := step.GetExplain(); e.GetQueues() != nil || e.GetJobs() != nil || e.GetTasks() != nil {
		but["PluginShares.fair"] = "the derivation is one of some queues"
	}
	if c.entered {
		but["QueueShare.inqueue"] = "a step before has admitted jobs"
	}
	if c.lines == nil {
		for _, field := range []string{"deserved", "overused", "with_memory"} {
			but["QueueShare."+field] = "it needs the shares of all queues with their derivation: ask with explain"
		}
	}
	return but
}

// fairShares are the shares of plugin fair. The certificate is checked apart.
func (c *check) fairShares(
	step *apportionv1.SharesStep, chosen []int, got *apportionv1.PluginShares,
) *apportionv1.PluginShares {
	want := &apportionv1.PluginShares{Plugin: ofFair, HierarchyReasons: c.refusals(got.GetHierarchyReasons())}
	want.HierarchyReady = new(len(want.HierarchyReasons) == 0)
	if step.GetExplain() != nil {
		// The first one was checked; others of one state are the same.
		if want.Fair = c.fair; want.Fair == nil {
			want.Fair = &apportionv1.FairDerivation{}
		}
	}
	for _, q := range chosen {
		share := &apportionv1.QueueShare{Queue: uint32(q)}
		if c.refused[q] == 0 {
			share = c.account(q)
		}
		want.Queues = append(want.Queues, c.asked(step, share))
	}
	return want
}

// asked removes from a share what the question does not ask for, and names the queue.
func (c *check) asked(step *apportionv1.SharesStep, share *apportionv1.QueueShare) *apportionv1.QueueShare {
	if !step.GetOmitNames() {
		share.Name = c.GetQueues()[share.GetQueue()].GetName()
	}
	if len(step.GetFields()) == 0 {
		return share
	}
	share.Ancestors, share.Children = nil, nil
	fields := share.ProtoReflect().Descriptor().Fields()
	for number, name := range apportionv1.ShareField_name {
		f := apportionv1.ShareField(number)
		if f == 0 || slices.Contains(step.GetFields(), f) {
			continue
		}
		share.ProtoReflect().Clear(fields.ByName(protoreflect.Name(strings.ToLower(strings.TrimPrefix(name, "SHARE_FIELD_")))))
		if f == apportionv1.ShareField_SHARE_FIELD_SHARE {
			share.Dominant = nil
		}
	}
	return share
}

// account is a queue's account in fair: what docs/fair.md says of queues under Inputs and Division.
func (c *check) account(q int) *apportionv1.QueueShare {
	width := len(c.dims)
	guarantee, deserved, most := make([]int64, width), make([]int64, width), slices.Clone(c.all)
	for d := range width {
		guarantee[d] = c.bounds[d][q].guaranteed * c.unit[d]
		if c.lines != nil {
			deserved[d] = c.lines[q][d][2] * c.unit[d]
		}
		for _, a := range c.path(q) {
			most[d] = min(most[d], c.capability[a][d])
		}
	}
	share := &apportionv1.QueueShare{
		Queue: uint32(q), Participating: true, Weight: uint32(c.weight(q)),
		Guarantee: c.resourceOf(guarantee), Deserved: c.resourceOf(deserved), Allocated: c.resourceOf(c.held[q]),
		Request: c.resourceOf(c.demand[q]), Inqueue: c.resourceOf(c.inqueue(q, nil)),
		Capability: c.resourceOf(c.capability[q]), RealCapability: c.resourceOf(most),
		Overused: c.overused(q) != nil,
	}
	if c.GetMemory() != nil && c.lines != nil {
		line := make([]int64, width)
		for d := range line {
			line[d] = c.remembered(q, d) * c.unit[d]
		}
		share.WithMemory = c.resourceOf(line)
	}
	greatest := c.load(q)
	if greatest.Sign() > 0 {
		d := c.byDimension[slices.IndexFunc(c.byDimension, func(d int) bool { return c.part(q, d).Cmp(greatest) == 0 })]
		// Of both amounts as doubles, which differs from the exact one beyond 2^53.
		share.Share = float64(c.held[q][d]) / float64(c.whole(d))
		share.Dominant = new(uint32(d))
	}
	for _, a := range slices.Backward(c.path(q)[1:]) {
		if a != root {
			share.Ancestors = append(share.Ancestors, uint32(a))
		}
	}
	for _, k := range c.kids[q] {
		share.Children = append(share.Children, uint32(k))
	}
	return share
}

// weight is the weight of a queue; 1 if none is stated.
func (c *cluster) weight(q int) int64 {
	if q == root || c.GetQueues()[q].Weight == nil {
		return 1
	}
	return int64(c.GetQueues()[q].GetWeight())
}

// part is what a queue holds of a dimension, as a part of what there is in whole quanta.
func (c *cluster) part(q, d int) *big.Rat {
	if all := c.whole(d); all > 0 {
		return big.NewRat(c.held[q][d], all)
	}
	return new(big.Rat)
}

// whole is what there is of a dimension in whole quanta.
func (c *cluster) whole(d int) int64 { return c.all[d] / c.unit[d] * c.unit[d] }

// load is the greatest part of a queue.
func (c *cluster) load(q int) *big.Rat {
	most := new(big.Rat)
	for d := range c.dims {
		if x := c.part(q, d); x.Cmp(most) > 0 {
			most = x
		}
	}
	return most
}

// refusals are the queues that are set aside, and those with children that have jobs, in any order.
func (c *check) refusals(got []*apportionv1.Reason) []*apportionv1.Reason {
	faults := map[uint32]apportionv1.HierarchyFault{}
	for q, fault := range c.refused {
		faults[uint32(q)] = fault
	}
	for _, j := range c.jobs {
		if j.leaf == aside && c.refused[j.queue] == 0 {
			faults[uint32(j.queue)] = apportionv1.HierarchyFault_HIERARCHY_FAULT_JOB_ON_INNER_QUEUE
		}
	}
	var list []*apportionv1.Reason
	add := func(q uint32) {
		list = append(list, &apportionv1.Reason{
			Plugin: ofFair, Code: apportionv1.ReasonCode_REASON_CODE_HIERARCHY_REFUSED, Queue: &q, HierarchyFault: faults[q],
		})
		delete(faults, q)
	}
	for _, r := range got {
		if faults[r.GetQueue()] != 0 {
			add(r.GetQueue())
		}
	}
	for q := range c.GetQueues() {
		if faults[uint32(q)] != 0 {
			add(uint32(q))
		}
	}
	return list
}

// standings checks which queues are overused and the order of queues, as far as fair alone decides them.
func (c *check) standings(path string, step *apportionv1.SharesStep, chosen []int, answer *apportionv1.SharesAnswer) {
	got, but := answer.GetStandings(), c.sentences()
	overused, ranks := c.alone(ofProportion), map[int]uint32{}
	if !overused {
		but["QueueStanding.reasons"] = "only the reasons of fair are checked"
	}
	if c.alone(ofProportion, ofCapacity, "hierarchical_drf") {
		for i, q := range c.inOrder(c.busy()) {
			ranks[q] = uint32(i)
		}
	} else {
		but["QueueStanding.rank"] = onlyFair
	}
	if len(got) != len(chosen) {
		c.wrong("%s.standings has %d entries, not %d", path, len(got), len(chosen))
	}
	for i, q := range chosen[:min(len(chosen), len(got))] {
		want := &apportionv1.QueueStanding{Queue: uint32(q)}
		if rank, busy := ranks[q]; busy {
			want.Rank = &rank
		}
		if !step.GetOmitNames() {
			want.Name = c.GetQueues()[q].GetName()
		}
		if overused {
			if reason := c.overused(q); reason != nil {
				want.Overused, want.Reasons = true, []*apportionv1.Reason{reason}
			}
		} else {
			want.Overused = c.overusedByAny(q, answer)
		}
		c.compare(fmt.Sprintf("%s.standings[%d]", path, i), got[i], want, but)
	}
}

// sentences are the texts of reasons, if the request asks for texts.
func (c *check) sentences() omitted {
	if c.texts {
		return omitted{"Reason.text": "a sentence made of the numbers beside it"}
	}
	return omitted{}
}

func first(list []*apportionv1.Reason) *apportionv1.Reason {
	if len(list) == 0 {
		return &apportionv1.Reason{}
	}
	return list[0]
}

// overusedByAny reports whether some plugin of the answer that takes part in this decision says that a queue is overused.
func (c *check) overusedByAny(q int, answer *apportionv1.SharesAnswer) bool {
	votes := c.voting(apportionv1.Decision_DECISION_OVERUSED, dividers...)
	for i, p := range answer.GetPlugins() {
		for _, share := range p.GetQueues() {
			if votes[i] && int(share.GetQueue()) == q && share.GetOverused() {
				return true
			}
		}
	}
	return false
}

// busy are the queues with jobs, by name.
func (c *cluster) busy() []int {
	queues := map[int]bool{}
	for _, j := range c.jobs {
		queues[j.queue] = true
	}
	list := slices.Collect(maps.Keys(queues))
	slices.SortFunc(list, func(l, r int) int { return cmp.Compare(c.GetQueues()[l].GetName(), c.GetQueues()[r].GetName()) })
	return list
}
