package variation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// usage sets the amount of a resource in quantum-seconds; none removes it.
func (s *setting) usage(of **apportionv1.Usage) error {
	dimension, err := s.dimension()
	if err != nil {
		return err
	}
	usage := *of
	at := slices.Index(usage.GetDimension(), dimension)
	s.resource, s.before, s.after = s.edit.names[dimension], none, s.value
	if at >= 0 {
		s.before = strconv.FormatInt(usage.GetQuantumSeconds()[at], 10)
	}
	if s.value == none {
		if at < 0 {
			return fmt.Errorf("there is no usage of %s to remove", s.resource)
		}
		usage.Dimension, usage.QuantumSeconds = slices.Delete(usage.Dimension, at, at+1), slices.Delete(usage.QuantumSeconds, at, at+1)
		return nil
	}
	amount, err := strconv.ParseInt(s.value, 10, 64)
	if err != nil || amount < 0 {
		return fmt.Errorf("%q is no amount of quantum-seconds, a whole number from 0 on", s.value)
	}
	if usage == nil {
		usage = &apportionv1.Usage{}
		*of = usage
	}
	if at < 0 {
		usage.Dimension, usage.QuantumSeconds = append(usage.Dimension, dimension), append(usage.QuantumSeconds, amount)
		return nil
	}
	usage.QuantumSeconds[at] = amount
	return nil
}

// budget sets the amount of a resource in a queue's budget, which is a hard one if there was none.
func (s *setting) budget(q *apportionv1.Queue) error {
	if q.Budget == nil {
		q.Budget = &apportionv1.Budget{Kind: apportionv1.BudgetKind_BUDGET_KIND_HARD}
	}
	return s.usage(&q.Budget.Amount)
}

// spent sets what is spent of a queue's budget.
func (s *setting) spent(q *apportionv1.Queue) error {
	if q.GetBudget() == nil {
		return errors.New("the queue has no budget")
	}
	return s.usage(&q.Budget.Spent)
}
