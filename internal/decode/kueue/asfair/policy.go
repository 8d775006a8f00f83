package asfair

import apportionv1 "github.com/apportion/apportion/gen/apportion/v1"

// Adapt changes the preset fair so that it judges a translation as Kueue would: weights count from deserved amounts, what is not lent stays
// free, and a running gang may be evicted as a whole, because the plugin gang protects none.
func Adapt(policy *apportionv1.Policy) {
	for _, tier := range policy.GetTiers() {
		for _, p := range tier.GetPlugins() {
			if p.GetGang() != nil {
				p.DisabledDecisions = []apportionv1.Decision{
					apportionv1.Decision_DECISION_RECLAIMABLE, apportionv1.Decision_DECISION_PREEMPTABLE,
				}
			}
			if fair := p.GetFair(); fair != nil {
				fair.Base, fair.ReserveGuarantee = apportionv1.FairBase_FAIR_BASE_DESERVED, true
			}
		}
	}
}
