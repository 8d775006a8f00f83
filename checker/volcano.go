package checker

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// threshold is the amount from which Volcano counts a resource as some; see docs/semantics.md under Resources.
const threshold = 0.1

// volcano forms the shares of a plugin that decides as Volcano does; see docs/semantics.md under its name.
type volcano struct {
	*check

	// tree: the plugin divides through a tree of queues.
	tree  bool
	field string
	// total is what there is, reserved what all queues are guaranteed.
	total, reserved amounts
	sums            map[int]*sums
	// limits are by queue, deserved what each deserves.
	limits   map[int]*limits
	deserved map[int]amounts
}

// sums are the sums over the jobs of a queue.
type sums struct {
	jobs                                 int
	allocated, request, inqueue, elastic amounts
}

// limits are a queue's guarantee, its capability, resolved, and its real capability, with what this follows from: the real capability above
// it, or the total, and the guarantees that share it.
type limits struct{ guarantee, capability, most, above, siblings amounts }

// volcano checks the shares of one plugin.
func (c *check) volcano(path, field string, step *apportionv1.SharesStep, chosen []int, got *apportionv1.PluginShares) {
	want, but := &apportionv1.PluginShares{Plugin: pluginName(field)}, omitted{}
	if c.enqueued {
		but["QueueShare.inqueue"] = "a step before has admitted jobs"
	}
	ready, inTree := c.isTree(), field == ofCapacity && c.inTree()
	switch {
	case field == "hierarchical_drf":
		but["PluginShares.hierarchy_ready"], but["PluginShares.hierarchy_reasons"] = treeRule, treeRule
	case inTree:
		if want.HierarchyReady = &ready; !ready {
			but["PluginShares.hierarchy_reasons"] = treeRule
		}
	}
	v := &volcano{check: c, tree: inTree && ready, field: field, limits: map[int]*limits{}, deserved: map[int]amounts{}}
	switch divides := field == ofProportion || field == ofCapacity; {
	case !divides:
		but["PluginShares.jobs"], but["PluginShares.tree"] = drfRule, drfRule
	case !v.divide(step.GetExplain(), want):
		but["PluginShares.queues"], but["PluginShares.proportion"] = tooLong, tooLong
	default:
		for _, q := range chosen {
			share := &apportionv1.QueueShare{Queue: uint32(q)}
			if v.limits[q] != nil && (ready || !inTree) {
				share = v.share(q)
			}
			want.Queues = append(want.Queues, c.asked(step, share))
		}
	}
	if e := step.GetExplain(); len(want.GetQueues()) > 0 && (e.GetQueues() != nil || e.GetJobs() != nil || e.GetTasks() != nil) {
		but["PluginShares."+field] = "a derivation of some queues"
	}
	c.compare(path, got, want, but)
}

// divide finds what each queue may have and deserves, and how, if it is explained; false if that takes too long.
func (v *volcano) divide(e *apportionv1.Explain, want *apportionv1.PluginShares) bool {
	v.total = v.sumOfNodes()
	v.sum()
	var proportion *apportionv1.ProportionDerivation
	capacity := &apportionv1.CapacityDerivation{}
	switch {
	case v.tree:
		v.grown()
	case v.field == ofCapacity && v.inTree():
	default:
		v.flat()
	}
	if v.field == ofProportion {
		if proportion = v.rounds(); proportion == nil {
			return false
		}
	}
	for _, q := range v.listed() {
		if v.limits[q] != nil && v.field == ofCapacity {
			capacity.Levels = append(capacity.GetLevels(), v.level(q))
		}
	}
	if e != nil && v.field == ofProportion {
		want.Proportion = proportion
	} else if e != nil {
		want.Capacity = capacity
	}
	return true
}

// inTree reports whether capacity divides through the tree of queues.
func (c *check) inTree() bool {
	for _, tier := range c.policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if plugin.GetCapacity().GetHierarchical() {
				return true
			}
		}
	}
	return false
}

// isTree reports whether the queues form a tree under a queue named root, with jobs on leaves alone.
func (c *check) isTree() bool {
	return c.top != root && len(c.refused) == 0 && !slices.ContainsFunc(c.jobs, func(j *job) bool { return j.leaf == aside })
}

const (
	treeRule = "the rules of the tree are not repeated here"
	drfRule  = "the shares of drf are not repeated here"
	tooLong  = "the division takes too many rounds"
)

// share is a queue's account.
func (v *volcano) share(q int) *apportionv1.QueueShare {
	limit, sums, deserved := v.limits[q], v.sums[q], v.deserved[q]
	want := &apportionv1.QueueShare{
		Queue: uint32(q), Participating: true, Guarantee: limit.guarantee.resource(), Deserved: deserved.resource(),
		Allocated: sums.allocated.resource(), Request: sums.request.resource(), Inqueue: sums.inqueue.resource(),
		Elastic: sums.elastic.resource(), Capability: limit.capability.resource(), RealCapability: limit.most.resource(),
	}
	if v.field == ofProportion {
		want.Weight, want.Overused = uint32(v.weight(q)), sums.allocated.covers(deserved)
	}
	if want.Share = 1; v.field == ofProportion || !v.none(deserved) {
		want.Share = 0
		for _, at := range v.byDimension {
			d := uint32(at)
			if ratio := sums.allocated[d] / deserved[d]; deserved[d] >= threshold && ratio > want.GetShare() {
				want.Share, want.Dominant = ratio, &d
			}
		}
	}
	if v.tree {
		for up := q; up != v.top; {
			up = v.parent[up]
			want.Ancestors = slices.Insert(want.GetAncestors(), 0, uint32(up))
		}
		for _, k := range v.byQueueName(v.kids[q]) {
			want.Children = append(want.GetChildren(), uint32(k))
		}
	}
	return want
}

// byQueueName sorts queues by name.
func (c *cluster) byQueueName(queues []int) []int {
	return slices.SortedFunc(slices.Values(queues), func(l, r int) int {
		return cmp.Compare(c.GetQueues()[l].GetName(), c.GetQueues()[r].GetName())
	})
}

// flat sets the limits of the queues with jobs without a tree: the total less all guarantees, and its own, and at most its capability. A
// capability that names something does not limit cpu and memory where they are 0 or not named.
func (v *volcano) flat() {
	all, _ := v.chosen(nil)
	v.reserved = v.sumOf()
	for _, q := range v.byQueueName(all) {
		v.reserved.add(v.amounts(v.GetQueues()[q].GetGuarantee()), 1)
	}
	for _, q := range v.busy() {
		queue := v.GetQueues()[q]
		l := &limits{
			guarantee: v.sumOf(queue.GetGuarantee()), capability: v.sumOf(queue.GetCapability()), above: v.total, siblings: v.reserved,
		}
		if named := len(queue.GetCapability().GetDimension()) > 0; named {
			l.inherit(v, amounts{uint32(v.byDimension[0]): math.Inf(1), uint32(v.byDimension[1]): math.Inf(1)}, true)
			l.limit(v, l.capability)
		} else {
			l.limit(v, nil)
		}
		v.limits[q] = l
		if v.field == ofCapacity {
			v.deserved[q] = v.sumOf(queue.GetDeserved())
			v.deserved[q].atMost(l.most, math.Inf(1))
			v.deserved[q].atLeast(l.guarantee)
		}
	}
}

// inherit resolves a capability: cpu and memory of 0, and, unless base, dimensions that it does not name, are those of the queue above.
func (l *limits) inherit(v *volcano, above amounts, base bool) {
	for d, x := range above {
		if _, named := l.capability[d]; v.isBase(d) && l.capability[d] <= 0 || !named && !base {
			l.capability[d] = x
		}
	}
}

func (v *volcano) isBase(d uint32) bool { return v.dims[d] == "cpu" || v.dims[d] == "memory" }

// limit sets the real capability.
func (l *limits) limit(v *volcano, capability amounts) {
	l.most = v.exceeding(l.above, l.siblings)
	l.most.add(l.guarantee, 1)
	if capability != nil {
		l.most.atMost(capability, math.Inf(1))
	}
}

// grown sets the limits of a tree from the root down, after the sums of what its queues are guaranteed and deserve.
func (v *volcano) grown() {
	for _, q := range v.listed() {
		queue := v.GetQueues()[q]
		v.limits[q] = &limits{guarantee: v.sumOf(queue.GetGuarantee()), capability: v.sumOf(queue.GetCapability())}
		v.deserved[q] = v.sumOf(queue.GetDeserved())
		v.deserved[q].atLeast(v.limits[q].guarantee)
	}
	top := v.limits[v.top]
	top.guarantee, v.deserved[v.top] = v.sumOf(), v.sumOf()
	for _, k := range v.byQueueName(v.kids[v.top]) {
		top.guarantee.add(v.limits[k].guarantee, 1)
		v.deserved[v.top].add(v.deserved[k], 1)
	}
	if written := v.amounts(v.GetQueues()[v.top].GetCapability()); v.none(written) {
		top.capability = amounts{}
		for d := range v.total {
			top.capability[d] = math.Inf(1)
		}
	}
	top.most = top.capability
	for _, q := range v.listed() {
		siblings := v.sumOf()
		for _, k := range v.byQueueName(v.kids[q]) {
			siblings.add(v.limits[k].guarantee, 1)
		}
		for _, k := range v.kids[q] {
			l := v.limits[k]
			l.above, l.siblings = v.limits[q].most, siblings
			l.inherit(v, v.limits[q].capability, false)
			l.limit(v, l.capability)
		}
	}
}

// sum adds up the jobs of each queue by uid, and in a tree those of the queues below it; see docs/semantics.md under Tasks, jobs and
// queues.
func (v *volcano) sum() {
	v.sums = map[int]*sums{}
	for q := range v.GetQueues() {
		v.sums[q] = &sums{allocated: v.sumOf(), request: v.sumOf(), inqueue: v.sumOf(), elastic: v.sumOf()}
	}
	byUID := func(l, r *job) int { return cmp.Compare(nameOf(l.message), nameOf(r.message)) }
	for _, j := range slices.SortedFunc(slices.Values(v.jobs), byUID) {
		v.sums[j.queue].job(v, j.message)
	}
	for _, q := range slices.Backward(v.listed()) {
		if up, ok := v.parent[q]; ok && v.tree {
			above, below := v.sums[up], v.sums[q]
			above.jobs += below.jobs
			above.allocated.add(below.allocated, 1)
			above.request.add(below.request, 1)
			above.inqueue.add(below.inqueue, 1)
			above.elastic.add(below.elastic, 1)
		}
	}
}

// job adds a job: first its tasks, in order, then those that are given as counts.
func (s *sums) job(v *volcano, j *apportionv1.Job) {
	allocated, pending, gated := v.sumOf(), v.sumOf(), v.sumOf()
	holding := uint32(0)
	count := func(status apportionv1.TaskStatus, gate apportionv1.TaskGate, request *apportionv1.Resource, n uint32) {
		switch asked := v.amounts(request); {
		case status == apportionv1.TaskStatus_TASK_STATUS_ALLOCATED || status >= apportionv1.TaskStatus_TASK_STATUS_BINDING &&
			status <= apportionv1.TaskStatus_TASK_STATUS_RUNNING:
			holding += n
			allocated.add(asked, float64(n))
		case status <= apportionv1.TaskStatus_TASK_STATUS_PENDING:
			pending.add(asked, float64(n))
			if gate == apportionv1.TaskGate_TASK_GATE_OTHER {
				gated.add(asked, float64(n))
			}
		}
	}
	for _, g := range j.GetGroups() {
		for _, t := range g.GetTasks() {
			request := g.GetRequest()
			if t.GetDetail().GetRequest() != nil {
				request = t.GetDetail().GetRequest()
			}
			count(t.GetStatus(), t.GetDetail().GetGate(), request, 1)
		}
	}
	for _, g := range j.GetGroups() {
		for _, t := range g.GetCounts() {
			count(t.GetStatus(), t.GetGate(), g.GetRequest(), t.GetCount())
		}
	}
	s.jobs++
	s.allocated.add(allocated, 1)
	s.request.add(allocated, 1)
	s.request.add(pending, 1)
	minimum := v.sumOf(j.GetMinResources())
	if holding > 0 {
		s.elastic.add(v.exceeding(allocated, minimum), 1)
	}
	if j.GetPhase() == apportionv1.JobPhase_JOB_PHASE_INQUEUE || j.GetPhase() == apportionv1.JobPhase_JOB_PHASE_RUNNING &&
		j.GetMinResources() != nil && int64(holding) >= int64(j.GetMinAvailable()) {
		lack := v.exceeding(minimum, allocated)
		for d := range lack {
			if v.dims[d] == "ephemeral-storage" {
				lack[d] = 0
			} else if !v.none(gated) {
				lack[d] = max(0, lack[d]-gated[d])
			}
		}
		s.inqueue.add(lack, 1)
	}
}

// level is the derivation of a queue's limits in capacity.
func (v *volcano) level(q int) *apportionv1.CapacityLevel {
	queue, l := v.GetQueues()[q], v.limits[q]
	level := &apportionv1.CapacityLevel{
		Queue: uint32(q), Capability: proto.CloneOf(queue.GetCapability()), ResolvedCapability: l.capability.resource(),
		RealCapability: l.most.resource(), WrittenDeserved: proto.CloneOf(queue.GetDeserved()), Deserved: v.deserved[q].resource(),
	}
	if queue.GetCapability() != nil {
		level.Capability = v.amounts(queue.GetCapability()).resource()
	}
	if queue.GetDeserved() != nil {
		level.WrittenDeserved = v.amounts(queue.GetDeserved()).resource()
	}
	if l.above != nil {
		level.ParentRealCapability, level.SiblingGuarantee = l.above.resource(), l.siblings.resource()
	}
	if v.tree && q != v.top {
		level.Parent, level.Depth = new(uint32(v.parent[q])), uint32(len(v.path(q))-1)
	}
	return level
}

// listed are the queues of the levels: those with jobs by name or, in a tree, all, level by level, those of one parent by name.
func (v *volcano) listed() []int {
	if !v.tree {
		return v.busy()
	}
	list := []int{v.top}
	for k := 0; k < len(list); k++ {
		list = append(list, v.byQueueName(v.kids[list[k]])...)
	}
	return list
}
