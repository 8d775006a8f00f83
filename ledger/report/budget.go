package report

import (
	"maps"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/ledger"
)

// budgets lists what became of the periods of budgets that have begun.
func (r *report) budgets() error {
	const nanos = 1_000_000_000
	until := r.out.GetEnds()
	if r.EndTime != nil {
		until = r.GetEndTime()
	}
	end := r.ledger.EpochOf(until / nanos)
	for i := range r.Budgets {
		b := &r.Budgets[i]
		if !r.shows(b.Queue) {
			continue
		}
		for n, account := range r.ledger.Accounts(b.Queue, !b.Free, b.Periods, end) {
			if account.From > end || r.StartTime != nil && account.To*r.seconds*nanos <= r.GetStartTime() {
				continue
			}
			use := &apportionv1alpha1.BudgetUse{
				Queue: b.Queue, Kind: apportionv1.BudgetKind_BUDGET_KIND_SOFT, Carry: !b.Free, StartTime: account.Begin * nanos,
				Amount: r.named(account.Amount), Spent: r.named(account.Spent), Granted: r.named(ledger.Granted(&account)),
			}
			if b.Hard {
				use.Kind = apportionv1.BudgetKind_BUDGET_KIND_HARD
			}
			if n+1 < len(b.Periods) {
				use.EndTime = new(b.Periods[n+1].Begin * nanos)
			}
			if use.GetAmount() == nil {
				continue
			}
			use.Users = r.users(b.Queue, &account)
			r.out.Budgets = append(r.out.GetBudgets(), use)
			if err := r.grow(use.GetUsers()); err != nil {
				return err
			}
		}
	}
	return nil
}

// users lists who spent the resources of a budget.
func (r *report) users(queue string, account *ledger.Account) []*apportionv1alpha1.QueueUse {
	names := r.ledger.Dimensions()
	var out []*apportionv1alpha1.QueueUse
	for to, v := range r.ledger.Users(queue, account.From, account.To, r.GetOwners()) {
		for d := range v {
			if _, limited := account.Amount[names[d]]; !limited {
				v[d] = 0
			}
		}
		if use := r.use(to, v); use.GetUsed() != nil {
			out = append(out, use)
		}
	}
	slices.SortFunc(out, byName)
	return out
}

// named returns amounts by name of the dimension, zeros included; nil if none is wanted.
func (r *report) named(amounts map[string]int64) *apportionv1.Usage {
	var out *apportionv1.Usage
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		d := r.dimension(name)
		if d < 0 {
			continue
		}
		if out == nil {
			out = &apportionv1.Usage{}
		}
		out.Dimensions, out.QuantumSeconds = append(out.Dimensions, uint32(d)), append(out.QuantumSeconds, amounts[name])
	}
	return out
}
