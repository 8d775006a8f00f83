package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// DisruptionBudget bounds how many of the tasks that name it may be evicted. One without a name was removed by a Change.
type DisruptionBudget struct {
	Namespace, Name string
	// Allowed is how many evictions it allows now; below 1: none.
	Allowed int32
}

// Quota bounds what the jobs of a namespace may ask for together. One without a name was removed by a Change.
type Quota struct {
	Namespace, Name string
	// Hard are the bounds, Used is what is used of them; a name that Used lacks: nothing.
	Hard, Used []NamedAmount
}

// NamedAmount is an amount of something that need not be a dimension, such as `count/pods`.
type NamedAmount struct {
	Name   string
	Amount float64
}

// MaxEntries bounds the disruption budgets and the quotas of a snapshot, each.
const MaxEntries = 100_000

// maxNamedAmounts bounds the amounts of one list.
const maxNamedAmounts = 1000

// listing is the state of a list of objects that have a namespace and a name, in a builder.
type listing struct {
	// set and removed count the calls, for paths; claimed has the path under which each object was set or removed.
	set, removed int
	claimed      map[string]string
	// own: the list and its index are not those of the base.
	own bool
}

// claim records that an object is set or removed, and returns its key and path; false: it was already.
func (l *listing) claim(b *Builder, kind, path, namespace, name string) (string, bool) {
	if l.claimed == nil {
		l.claimed = map[string]string{}
	}
	key := qualified(namespace, name)
	return key, b.claim(l.claimed, kind, key, path)
}

// DisruptionBudget sets a disruption budget, before the jobs whose tasks name it.
func (b *Builder) DisruptionBudget(s DisruptionBudget) {
	path := func(field string) string { return fmt.Sprintf("disruption_budgets[%d].%s", b.budgets.set, field) }
	s.Namespace, s.Name = b.text.again(&b.namespace, s.Namespace), b.text.keep(s.Name)
	m := &b.m
	enter(b, &b.budgets, &m.DisruptionBudgets, &m.budgetIndex, "disruption budget", path, s.Namespace, s.Name, s)
}

// Quota sets the quota of a namespace.
func (b *Builder) Quota(s Quota) {
	path := func(field string) string { return fmt.Sprintf("quotas[%d].%s", b.quotas.set, field) }
	s.Namespace, s.Name = b.text.again(&b.namespace, s.Namespace), b.text.keep(s.Name)
	s.Hard = b.namedAmounts(s.Hard, func(field string) string { return path("hard_amounts" + field) })
	s.Used = b.namedAmounts(s.Used, func(field string) string { return path("used_amounts" + field) })
	enter(b, &b.quotas, &b.m.Quotas, &b.m.quotaIndex, "quota", path, s.Namespace, s.Name, s)
}

// enter puts an object into its list: where one of its name is, or behind all others.
func enter[T any](
	b *Builder, l *listing, list *[]T, index *map[string]int32, kind string, path func(string) string, namespace, name string, entry T,
) {
	defer func() { l.set++ }()
	if len(*list) == MaxEntries {
		b.faults.Add(path("name"), "more than %d of them", MaxEntries)
	}
	if len(*list) >= MaxEntries {
		return
	}
	if name == "" {
		b.faults.Add(path("name"), "a %s needs a name", kind)
		return
	}
	take(l, list, index)
	key, _ := l.claim(b, kind, path("name"), namespace, name)
	at, known := (*index)[key]
	if !known {
		at = int32(len(*list))
		(*index)[key] = at
	}
	*list = put(*list, at, entry)
}

// take copies a list and its index for the result.
func take[T any](l *listing, list *[]T, index *map[string]int32) {
	if l.own {
		return
	}
	*list, *index, l.own = slices.Clone(*list), maps.Clone(*index), true
	if *index == nil {
		*index = map[string]int32{}
	}
}

// RemoveDisruptionBudget removes a disruption budget, given as namespace/name. No task of the result may name it.
func (b *ChangeBuilder) RemoveDisruptionBudget(key string) {
	removeEntry(b, &b.budgets, &b.m.DisruptionBudgets, &b.m.budgetIndex, "disruption budget", "remove_disruption_budgets", key)
}

// RemoveQuota removes a quota, given as namespace/name.
func (b *ChangeBuilder) RemoveQuota(key string) {
	removeEntry(b, &b.quotas, &b.m.Quotas, &b.m.quotaIndex, "quota", "remove_quotas", key)
}

func removeEntry[T any](b *ChangeBuilder, l *listing, list *[]T, index *map[string]int32, kind, field, key string) {
	path := fmt.Sprintf("%s[%d]", field, l.removed)
	l.removed++
	if _, ok := l.claim(&b.Builder, kind, path, "", key); !ok {
		return
	}
	at, known := (*index)[key]
	if !known {
		b.faults.Add(path, "no %s %q", kind, key)
		return
	}
	take(l, list, index)
	var none T
	(*list)[at] = none
	delete(*index, key)
}

// namedAmounts returns a copy of a list, and records what is wrong with it.
func (b *Builder) namedAmounts(list []NamedAmount, path func(string) string) []NamedAmount {
	if len(list) > maxNamedAmounts {
		b.faults.Add(path(""), "%d amounts, at most %d are taken", len(list), maxNamedAmounts)
		return nil
	}
	if len(list) == 0 {
		return nil
	}
	out, seen := make([]NamedAmount, 0, len(list)), make(map[string]int, len(list))
	for i, a := range list {
		at := func(field string) string { return path(fmt.Sprintf("[%d].%s", i, field)) }
		first, twice := seen[a.Name]
		switch {
		case a.Name == "":
			b.faults.Add(at("name"), "an amount needs a name")
		case twice:
			b.faults.Add(at("name"), "%q is [%d] already", a.Name, first)
		case math.IsNaN(a.Amount) || math.IsInf(a.Amount, 0):
			b.faults.Add(at("amount"), "%s is not finite", a.Name)
		case a.Amount < 0:
			b.faults.Add(at("amount"), "%s is negative: %g", a.Name, a.Amount)
		}
		name := b.text.keep(a.Name)
		seen[name] = i
		// Adding 0 turns a negative zero into zero.
		out = append(out, NamedAmount{name, a.Amount + 0})
	}
	return out
}

// budget returns the position of the disruption budget of a name in a namespace.
func (m *Model) budget(namespace, name string) (int32, bool) {
	at, ok := m.budgetIndex[qualified(namespace, name)]
	return at, ok
}

// checkBudgets records the disruption budgets that were removed though tasks name them.
func (b *Builder) checkBudgets(r *result) {
	if b.budgets.removed == 0 || !r.namesRemovedBudget() {
		return
	}
	for _, j := range r.JobOrder {
		job := r.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			for _, at := range r.BudgetsOf(t) {
				if r.DisruptionBudgets[at].Name == "" {
					was := b.change.base.DisruptionBudgets[at]
					key := qualified(was.Namespace, was.Name)
					b.faults.Add(b.budgets.claimed[key], "task %q of job %q names the disruption budget", r.TaskKey(t), job.UID)
				}
			}
		}
	}
}

// namesRemovedBudget reports whether any task, including those of removed jobs, names a disruption budget that was removed. It avoids a
// walk over all tasks.
func (m *Model) namesRemovedBudget() bool {
	for d := range int32(m.rares.Len()) {
		for _, at := range m.rares.At(d).budgets {
			if m.DisruptionBudgets[at].Name == "" {
				return true
			}
		}
	}
	return false
}

// entryBytes returns about what disruption budgets and quotas take without their texts.
func (m *Model) entryBytes() int {
	const budget, quota, amount, index = 40, 80, 24, 48
	bytes := (budget+index)*len(m.DisruptionBudgets) + (quota+index)*len(m.Quotas)
	for i := range m.Quotas {
		bytes += amount * (len(m.Quotas[i].Hard) + len(m.Quotas[i].Used))
	}
	return bytes
}
