package variation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// memory changes what is remembered of all queues.
func (v *Variation) memory(e *edit) {
	was := e.snapshot.GetMemory()
	switch {
	case v.Forget && was == nil:
		e.fault("--no-memory", "the cluster has no memory: name a ledger with --ledger")
	case v.Forget:
		e.change.ClearMemory = true
		e.line("ignore what queues used")
	case v.Remembered != nil:
		e.change.Memory = v.Remembered.GetMemory()
		for i, q := range v.Remembered.GetQueues() {
			if !proto.Equal(q, e.snapshot.GetQueues()[i]) {
				e.queues[uint32(i)] = proto.CloneOf(q)
			}
		}
		e.line("set the half-life of usage to %s (now %s)", render.HalfLife(v.Remembered.GetMemory()), render.HalfLife(was))
	}
}

// usage sets the amount of a resource in quantum-seconds; none removes it.
func (s *setting) usage(of **apportionv1.Usage) error {
	dimension, err := s.dimension()
	if err != nil {
		return err
	}
	usage := *of
	at := slices.Index(usage.GetDimensions(), dimension)
	s.resource, s.before, s.after = s.edit.names[dimension], none, s.value
	if at >= 0 {
		s.before = strconv.FormatInt(usage.GetQuantumSeconds()[at], 10)
	}
	if s.value == none {
		if at < 0 {
			return fmt.Errorf("there is no usage of %s to remove", s.resource)
		}
		usage.Dimensions, usage.QuantumSeconds = slices.Delete(usage.Dimensions, at, at+1), slices.Delete(usage.QuantumSeconds, at, at+1)
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
		usage.Dimensions, usage.QuantumSeconds = append(usage.Dimensions, dimension), append(usage.QuantumSeconds, amount)
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

// budgetKind sets whether a queue's budget is hard or soft; none removes the budget.
func (s *setting) budgetKind(q *apportionv1.Queue) error {
	words := map[apportionv1.BudgetKind]string{
		apportionv1.BudgetKind_BUDGET_KIND_UNSPECIFIED: none, apportionv1.BudgetKind_BUDGET_KIND_HARD: "hard",
		apportionv1.BudgetKind_BUDGET_KIND_SOFT: "soft",
	}
	s.before, s.after = words[q.GetBudget().GetKind()], s.value
	if q.GetBudget() == nil {
		return errors.New("the queue has no budget: set one with budget.RESOURCE")
	}
	for kind, word := range words {
		switch {
		case word != s.value:
		case word == none:
			q.Budget = nil
			return nil
		default:
			q.Budget.Kind = kind
			return nil
		}
	}
	return fmt.Errorf("%q is not hard, soft or none", s.value)
}

// spent sets what is spent of a queue's budget.
func (s *setting) spent(q *apportionv1.Queue) error {
	if q.GetBudget() == nil {
		return errors.New("the queue has no budget")
	}
	return s.usage(&q.Budget.Spent)
}
