package asfair

import (
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// describe notes what of the cluster has no counterpart.
func (t *translator) describe() {
	t.note("quotas of a resource are summed over flavors: nominal quota becomes deserved, what is not lent becomes guarantee, " +
		"nominal quota with the borrowing limit becomes capability")
	queues := t.from.GetQueues()
	count := func(say string, of func(*apportionv1.KueueQueue) bool) {
		n := 0
		for _, q := range queues {
			if of(q.GetKueue()) {
				n++
			}
		}
		if n > 0 {
			t.note("%s: %s", text.Count(n, "queue"), say)
		}
	}
	count("preemption is not a setting of fair: a queue below its line takes from queues above theirs, and evicts lower priorities of "+
		"its own until it has reached its capability", func(q *apportionv1.KueueQueue) bool { return q.GetPreemption() != nil })
	count("flavorFungibility has no counterpart: a gang takes the node that fits", func(q *apportionv1.KueueQueue) bool {
		return q.GetFungibility() != nil
	})
	count("StrictFIFO has no counterpart: a smaller workload behind the first may start", (*apportionv1.KueueQueue).GetStrict)
	count("admission checks are left to Kueue", func(q *apportionv1.KueueQueue) bool { return len(q.GetChecks()) > 0 })
	count("by policies other than kueue, usage of LocalQueues (AdmissionFairSharing) does not order workloads: "+
		"see convert --from kueue for its settings",
		(*apportionv1.KueueQueue).GetUsageBased)
	count("closed here, because a flavor or an admission check of them does not exist or is not active, so that Kueue admits nothing",
		t.inactive)
	unlimitedQuota, withheld, boosted := false, 0, 0
	for _, q := range queues {
		unlimitedQuota = unlimitedQuota || slices.ContainsFunc(q.GetKueue().GetQuotas(), func(o *apportionv1.Quota) bool {
			return slices.ContainsFunc(o.GetNominal().GetAmounts(), func(a float64) bool { return math.IsInf(a, 1) })
		})
	}
	if unlimitedQuota {
		t.note("an unlimited quota is as much as all workloads request: fair divides what there is")
	}
	for _, j := range t.from.GetJobs() {
		if !j.GetKueue().GetAdmitted() && j.GetKueue().GetWithheld() != apportionv1.KueueWithheld_KUEUE_WITHHELD_UNSPECIFIED {
			withheld++
		}
		if j.GetKueue().GetPriorityBoost() != 0 {
			boosted++
		}
	}
	if withheld > 0 {
		t.note("%s that Kueue does not nominate are held by a gate here", text.Count(withheld, "workload"))
	}
	if boosted > 0 {
		t.note("%s: the annotation priority-boost is left out", text.Count(boosted, "workload"))
	}
	for _, name := range t.names {
		if t.cohorts[name].root == "" {
			t.note("Cohort %s is in a cycle, or below one: its queues take no part", name)
		}
	}
}
