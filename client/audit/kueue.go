package audit

import (
	"cmp"
	"context"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// The rules about a cluster with Kueue.
var (
	kueueInactive = Rule{
		"kueue-inactive-queue", Error, "Workloads wait in a ClusterQueue that is inactive: it is stopped, or what it names does not exist.",
		"Create the missing ResourceFlavor, AdmissionCheck or Cohort, or set spec.stopPolicy to None.",
	}
	kueueNoQuota = Rule{
		"kueue-no-quota", Warning, "A ClusterQueue has no resource groups, so that it admits nothing that requests a resource.",
		"Add spec.resourceGroups.",
	}
	kueueUncovered = Rule{
		"kueue-uncovered-resource", Error, "A workload requests a resource that no resource group of its ClusterQueue covers.",
		"Add the resource to coveredResources with a quota, or exclude its prefix in Kueue's configuration.",
	}
	kueueNeverFits = Rule{
		"kueue-never-fits", Error, "A workload requests more than its ClusterQueue could ever have, borrowing included.",
		"Raise nominalQuota or borrowingLimit, raise what the cohort lends, or make the workload smaller.",
	}
	kueueNoFlavor = Rule{
		"kueue-no-flavor-suits", Error, "The pods of a workload select or tolerate no flavor of its ClusterQueue.",
		"Correct the workload's node selector, affinity or tolerations, or add a flavor that suits it.",
	}
	kueueStuckHead = Rule{
		"kueue-strict-queue-is-stuck", Error,
		"The first workload of a StrictFIFO queue can never be admitted as things are, and all workloads behind it wait.",
		"Deactivate or resize the first workload, or set spec.queueingStrategy to BestEffortFIFO.",
	}
	kueueNoBorrowing = Rule{
		"kueue-may-not-borrow", Note, "A ClusterQueue is in a cohort with others and may borrow nothing of a resource (borrowingLimit 0).",
		"Raise or remove borrowingLimit, unless that is meant.",
	}
	kueueLonely = Rule{
		"kueue-lonely-cohort", Note, "A cohort has one ClusterQueue and no quota of its own: nothing can be borrowed in it.",
		"Name the same cohort in the queues that share, or leave it out.",
	}
	kueueNoReclaim = Rule{
		"kueue-lends-and-cannot-reclaim", Warning,
		"A ClusterQueue lends its quota and may not evict who borrows it (reclaimWithinCohort Never).",
		"Set spec.preemption.reclaimWithinCohort to Any or LowerPriority, or lendingLimit to 0.",
	}
	kueueUnusedFlavor = Rule{
		"kueue-unused-flavor", Note, "No ClusterQueue and no Cohort has quota of a ResourceFlavor.",
		"Add quotas of it, or delete it.",
	}
	kueueRules = []Rule{
		kueueInactive, kueueNoQuota, kueueUncovered, kueueNeverFits, kueueNoFlavor, kueueStuckHead, kueueNoBorrowing, kueueLonely,
		kueueNoReclaim, kueueUnusedFlavor,
	}
)

// byKueue reports whether the shares are accounts of Kueue.
func (c *checker) byKueue() bool {
	for _, plugin := range c.answer.GetPlugins() {
		for _, q := range plugin.GetQueues() {
			if q.GetKueue() != nil {
				return true
			}
		}
	}
	return false
}

// kueue checks the settings and the waiting workloads of a cluster with Kueue. Nodes take no part in what Kueue decides.
func (c *checker) kueue(ctx context.Context, decider Decider, in client.Input) error {
	c.report.Unjudged = false
	answer, err := decider.Simulate(ctx, in, &apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{}}})
	if err == nil {
		err = answer.Err(0)
	}
	if err != nil {
		return err
	}
	jobs := answer.Answers[0].GetExplain().GetJobs()
	c.kueueQueues()
	c.kueueCohorts()
	c.kueueFlavors()
	stuck := map[uint32]int{}
	inactive := map[uint32]int{}
	for _, e := range jobs {
		n := e.GetKueue()
		if n.GetInactive() != apportionv1.KueueInactivity_KUEUE_INACTIVITY_UNSPECIFIED {
			inactive[e.GetQueue()]++
		}
		if n.Behind != nil {
			stuck[n.GetBehind()]++
		}
		c.kueueWorkload(e)
	}
	for i, q := range c.snapshot.GetQueues() {
		if waiting := inactive[uint32(i)]; waiting > 0 {
			c.say(kueueInactive, Finding{Queue: q.GetName()}, "%s in ClusterQueue %s, which is inactive",
				text.Count(waiting, "workload")+" "+text.Verb(waiting, "waits", "wait"), q.GetName())
		}
	}
	for _, e := range jobs {
		if behind := stuck[e.GetJob()]; behind > 0 && hopeless(e.GetKueue()) {
			c.say(kueueStuckHead, Finding{Queue: c.names.Queue(e.GetQueue()), Job: e.GetName()},
				"%s can never be admitted as things are, and %s behind it in ClusterQueue %s", e.GetName(),
				text.Count(behind, "workload")+" "+text.Verb(behind, "waits", "wait"), c.names.Queue(e.GetQueue()))
		}
	}
	return nil
}

// hopeless reports whether a workload could not be admitted even into an empty cluster.
func hopeless(n *apportionv1.KueueNomination) bool {
	never := n.GetCause() == apportionv1.KueueCause_KUEUE_CAUSE_EXCEEDS_MAX_QUOTA ||
		n.GetCause() == apportionv1.KueueCause_KUEUE_CAUSE_NO_MATCHING_FLAVOR
	return never && n.GetMode() == apportionv1.KueueMode_KUEUE_MODE_NO_FIT
}

// kueueWorkload finds why a workload can never be admitted.
func (c *checker) kueueWorkload(e *apportionv1.Explanation) {
	n, queue := e.GetKueue(), c.names.Queue(e.GetQueue())
	if !hopeless(n) {
		return
	}
	at := Finding{Queue: queue, Job: e.GetName()}
	said := false
	for _, set := range n.GetPodSets() {
		for _, l := range set.GetLacks() {
			switch l.GetKind() {
			case apportionv1.KueueLackKind_KUEUE_LACK_KIND_NOT_COVERED:
				at.Resource, said = l.GetResource(), true
				c.say(kueueUncovered, at, "%s requests %s, which ClusterQueue %s does not cover", e.GetName(), l.GetResource(), queue)
			case apportionv1.KueueLackKind_KUEUE_LACK_KIND_ABOVE_CAPACITY:
				at.Resource, said = l.GetResource(), true
				amounts := quantity.Alike(l.GetResource(), l.GetRequested()+l.GetUsed(), l.GetLimit())
				c.say(kueueNeverFits, at, "%s requests %s %s in flavor %s, and ClusterQueue %s could have %s at most", e.GetName(),
					amounts[0], l.GetResource(), l.GetFlavor(), queue, amounts[1])
			default:
			}
		}
	}
	if !said {
		c.say(kueueNoFlavor, Finding{Queue: queue, Job: e.GetName()}, "%s", e.GetText())
	}
}

// kueueQueues checks the settings of ClusterQueues.
func (c *checker) kueueQueues() {
	members := c.members()
	for _, q := range c.snapshot.GetQueues() {
		own := q.GetKueue()
		if own == nil || own.GetCohort() {
			continue
		}
		if len(own.GetQuotas()) == 0 {
			c.say(kueueNoQuota, Finding{Queue: q.GetName()}, "ClusterQueue %s has no resource groups", q.GetName())
		}
		if q.GetParent() == "" || len(members[c.rootOf(q.GetParent())]) < 2 {
			continue
		}
		lends := ""
		for _, o := range own.GetQuotas() {
			lent := c.kueueQuota(q, o)
			lends = cmp.Or(lends, lent)
		}
		if never := own.GetPreemption() == nil ||
			own.GetPreemption().GetReclaimWithinCohort() <= apportionv1.KueueChoice_KUEUE_CHOICE_NEVER; never && lends != "" {
			c.say(kueueNoReclaim, Finding{Queue: q.GetName()}, "ClusterQueue %s lends %s to cohort %s, and evicts none who borrows it",
				q.GetName(), lends, q.GetParent())
		}
	}
}

// kueueQuota finds dimensions of a quota that may not be borrowed, and returns what of it is lent, or "".
func (c *checker) kueueQuota(q *apportionv1.Queue, o *apportionv1.Quota) (lends string) {
	borrowing, lending := byDimension(o.GetBorrowingLimit()), byDimension(o.GetLendingLimit())
	for i, d := range o.GetNominal().GetDimensions() {
		name := c.names.Dimension(d)
		if limit, limited := borrowing[d]; limited && limit == 0 {
			c.say(kueueNoBorrowing, Finding{Queue: q.GetName(), Resource: name},
				"ClusterQueue %s may borrow no %s of flavor %s in cohort %s", q.GetName(), name, o.GetNodeSet(), q.GetParent())
		}
		limit, limited := lending[d]
		if lends == "" && o.GetNominal().GetAmounts()[i] > 0 && (!limited || limit > 0) {
			lends = name + " of flavor " + o.GetNodeSet()
		}
	}
	return lends
}

func byDimension(r *apportionv1.Resource) map[uint32]float64 {
	out := map[uint32]float64{}
	for i, d := range r.GetDimensions() {
		out[d] = r.GetAmounts()[i]
	}
	return out
}

// rootOf returns the root above a cohort; of one in a cycle, the cohort itself.
func (c *checker) rootOf(cohort string) string {
	parents := map[string]string{}
	for _, q := range c.snapshot.GetQueues() {
		if q.GetKueue().GetCohort() {
			parents[q.GetName()] = q.GetParent()
		}
	}
	at := cohort
	for range parents {
		if parents[at] == "" {
			return at
		}
		at = parents[at]
	}
	return cohort
}

// members lists the queues below each root.
func (c *checker) members() map[string][]string {
	out := map[string][]string{}
	for _, q := range c.snapshot.GetQueues() {
		if q.GetParent() != "" && !q.GetKueue().GetCohort() {
			root := c.rootOf(q.GetParent())
			out[root] = append(out[root], q.GetName())
		}
	}
	return out
}

// kueueCohorts finds cohorts in which nothing can be borrowed.
func (c *checker) kueueCohorts() {
	quota := map[string]bool{}
	for _, q := range c.snapshot.GetQueues() {
		if q.GetKueue().GetCohort() && len(q.GetKueue().GetQuotas()) > 0 {
			quota[c.rootOf(q.GetName())] = true
		}
	}
	members := c.members()
	for _, q := range c.snapshot.GetQueues() {
		root := c.rootOf(q.GetParent())
		if root != "" && !q.GetKueue().GetCohort() && len(members[root]) == 1 && !quota[root] {
			c.say(kueueLonely, Finding{Queue: q.GetName()}, "ClusterQueue %s is alone in cohort %s", q.GetName(), q.GetParent())
		}
	}
}

// kueueFlavors finds flavors that are not used.
func (c *checker) kueueFlavors() {
	used := map[string]bool{}
	for _, q := range c.snapshot.GetQueues() {
		for _, o := range q.GetKueue().GetQuotas() {
			used[o.GetNodeSet()] = true
		}
	}
	for _, f := range c.snapshot.GetNodeSets() {
		if f.GetFlavor() != nil && !used[f.GetName()] {
			c.say(kueueUnusedFlavor, Finding{}, "no queue has quota of ResourceFlavor %s", f.GetName())
		}
	}
}
