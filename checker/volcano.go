package checker

import (
	"maps"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// threshold is the amount from which Volcano counts a resource as some; see docs/semantics.md under Resources.
const threshold = 0.1

// volcano checks the shares of a plugin that decides as Volcano does, as far as they follow from the snapshot by arithmetic.
type volcano struct {
	*check

	plugin *apportionv1.PluginShares
	path   string
	given  map[uint32]*apportionv1.QueueShare
	sums   map[int]*sums
	// tree: the plugin divides through a tree of queues.
	tree bool
}

// volcano checks the shares of one plugin: see docs/semantics.md under its name.
func (c *check) volcano(path, field string, step *apportionv1.SharesStep, chosen []int, got *apportionv1.PluginShares) {
	v := &volcano{
		check: c, plugin: got, path: path, given: map[uint32]*apportionv1.QueueShare{},
		tree: field == ofCapacity && c.inTree(),
	}
	for _, q := range got.GetQueues() {
		v.given[q.GetQueue()] = q
	}
	want, but := &apportionv1.PluginShares{Plugin: pluginName(field)}, omitted{
		"PluginShares.hierarchy_reasons": treeRule,
		"PluginShares.jobs":              "the shares of jobs are not repeated here",
		"PluginShares.tree":              "the tree of drf is not repeated here",
		"QueueShare.inqueue":             "the rules for admitted jobs are not repeated here",
		"QueueShare.elastic":             "the rules for jobs above their minimum are not repeated here",
	}
	if field == "hierarchical_drf" {
		but["PluginShares.hierarchy_ready"] = treeRule
	}
	if v.tree {
		for _, name := range []string{"guarantee", "deserved", "capability", "real_capability", "ancestors", "children"} {
			but["QueueShare."+name] = treeRule
		}
	}
	if field == ofProportion && step.GetExplain() == nil {
		but["QueueShare.deserved"] = "it follows from the rounds, which only answers with explain have"
	}
	if ready := c.isTree(); v.tree {
		want.HierarchyReady = &ready
	}
	switch {
	case v.tree && !c.isTree():
		but["PluginShares.queues"], but["PluginShares.capacity"] = treeRule, treeRule
	case field == ofProportion || field == ofCapacity:
		v.sums = v.add()
		for i, q := range chosen {
			given := &apportionv1.QueueShare{}
			if i < len(got.GetQueues()) {
				given = orEmpty(got.GetQueues()[i])
			}
			want.Queues = append(want.Queues, c.asked(step, v.account(field, q, v.sums[q], given)))
		}
	}
	want.Proportion, want.Capacity = got.GetProportion(), got.GetCapacity()
	c.compare(path, got, want, but)
	v.derivations(field, step)
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

const treeRule = "the rules of the tree are not repeated here"

// account is a queue's account: what its tasks hold and ask for, its limits, and what follows from its deserved amount.
func (v *volcano) account(field string, q int, sums *sums, got *apportionv1.QueueShare) *apportionv1.QueueShare {
	want := &apportionv1.QueueShare{Queue: uint32(q)}
	if sums.jobs == 0 && !v.tree {
		return want
	}
	want.Participating = true
	if field == ofProportion {
		want.Weight = uint32(v.weight(q))
	}
	guarantee, limit, most := v.limits(q)
	deserved := amountsOf(got.GetDeserved())
	if field == ofCapacity && !v.tree {
		deserved = v.amounts(v.GetQueues()[q].GetDeserved())
		for d, x := range deserved {
			deserved[d] = min(x, most[d])
		}
		for d, x := range guarantee {
			deserved[d] = max(deserved[d], x)
		}
	}
	want.Guarantee, want.Capability, want.RealCapability = guarantee.resource(), limit.resource(), most.resource()
	want.Allocated, want.Request, want.Deserved = sums.allocated.resource(), sums.request.resource(), deserved.resource()
	want.Inqueue, want.Elastic = got.GetInqueue(), got.GetElastic()
	want.Share, want.Dominant = v.dominant(field, sums.allocated, deserved)
	if want.Overused = field == ofProportion; want.Overused {
		for d, x := range deserved {
			want.Overused = want.GetOverused() && x-sums.allocated[d] < threshold
		}
	}
	return want
}

// limits are a queue's guarantee, its capability and its real capability in a flat policy: no more than the guarantees of others leave. A
// capability that names something does not limit cpu and memory where they are 0 or not named.
func (v *volcano) limits(q int) (guarantee, limit, most amounts) {
	guarantee, limit, most = v.amounts(v.GetQueues()[q].GetGuarantee()), v.amounts(v.GetQueues()[q].GetCapability()), amounts{}
	maps.DeleteFunc(limit, func(_ uint32, x float64) bool { return math.IsInf(x, 1) })
	some := len(limit) > 0
	reserved := amounts{}
	for _, other := range v.GetQueues() {
		plus(reserved, v.amounts(other.GetGuarantee()), 1)
	}
	for d, name := range v.dims {
		d := uint32(d)
		base := isBase(name)
		free := v.whole()[d] - reserved[d]
		if _, own := guarantee[d]; free > 0 || base || own {
			most[d] = max(0, free) + guarantee[d]
			if upper, stated := limit[d]; some && stated && upper < most[d] && (upper > 0 || !base) {
				most[d] = upper
			}
		}
		if some && base && limit[d] <= 0 {
			limit[d] = math.Inf(1)
		}
	}
	return guarantee, limit, most
}

// dominant is the greatest allocated / deserved over the dimensions of which the queue deserves some, and the first such dimension. In
// capacity a queue that deserves nothing but pods has a share of 1.
func (v *volcano) dominant(field string, allocated, deserved amounts) (share float64, dominant *uint32) {
	some := false
	for _, at := range v.byDimension {
		d := uint32(at)
		if deserved[d] < threshold {
			continue
		}
		some = some || v.dims[d] != "pods"
		ratio := allocated[d] / deserved[d]
		if ratio > share {
			share, dominant = ratio, &d
		}
	}
	if field == ofCapacity && !some {
		return 1, nil
	}
	return share, dominant
}

// isBase reports whether a dimension is in every account.
func isBase(name string) bool { return name == "cpu" || name == "memory" }

// whole is the cluster's total.
func (v *volcano) whole() amounts {
	if v.GetTotal() != nil {
		return v.amounts(v.GetTotal())
	}
	all := amounts{}
	for _, n := range v.GetNodes() {
		plus(all, v.amounts(n.GetAllocatable()), 1)
	}
	return all
}

// amounts are those of a resource of the snapshot by dimension of the answer.
func (c *cluster) amounts(r *apportionv1.Resource) amounts {
	a := amounts{}
	for i, d := range r.GetDimension() {
		a[uint32(slices.Index(c.dims, c.GetDimensions()[d]))] = r.GetAmount()[i]
	}
	return a
}

// resource is the amounts as a message.
func (a amounts) resource() *apportionv1.Resource {
	r := &apportionv1.Resource{}
	for _, d := range slices.Sorted(maps.Keys(a)) {
		r.Dimension, r.Amount = append(r.Dimension, d), append(r.Amount, a[d])
	}
	return r
}

func plus(to, from amounts, times float64) {
	for d, x := range from {
		to[d] += times * x
	}
}

// holds reports whether a task of a status is allocated.
func holds(status apportionv1.TaskStatus) bool {
	return status == apportionv1.TaskStatus_TASK_STATUS_ALLOCATED ||
		status >= apportionv1.TaskStatus_TASK_STATUS_BINDING && status <= apportionv1.TaskStatus_TASK_STATUS_RUNNING
}

// sums are what the jobs of a queue come to.
type sums struct {
	jobs               int
	allocated, request amounts
}

// add adds up the jobs of each queue, and in a tree those of the queues below it; see docs/semantics.md under Tasks, jobs and queues.
func (v *volcano) add() map[int]*sums {
	all := map[int]*sums{}
	for q := range v.GetQueues() {
		all[q] = &sums{allocated: amounts{}, request: amounts{}}
	}
	for _, j := range v.jobs {
		s := all[j.queue]
		s.jobs++
		for _, g := range j.message.GetGroups() {
			for _, t := range g.GetTasks() {
				request := g.GetRequest()
				if t.GetDetail().GetRequest() != nil {
					request = t.GetDetail().GetRequest()
				}
				s.count(v, t.GetStatus(), request, 1)
			}
			for _, t := range g.GetCounts() {
				s.count(v, t.GetStatus(), g.GetRequest(), float64(t.GetCount()))
			}
		}
	}
	for _, q := range slices.Backward(v.order) {
		if up, ok := v.parent[q]; ok && v.tree && up != root {
			all[up].jobs += all[q].jobs
			plus(all[up].allocated, all[q].allocated, 1)
			plus(all[up].request, all[q].request, 1)
		}
	}
	return all
}

func (s *sums) count(v *volcano, status apportionv1.TaskStatus, request *apportionv1.Resource, times float64) {
	asked := v.amounts(request)
	switch {
	case holds(status):
		plus(s.allocated, asked, times)
		plus(s.request, asked, times)
	case status <= apportionv1.TaskStatus_TASK_STATUS_PENDING:
		plus(s.request, asked, times)
	}
}
