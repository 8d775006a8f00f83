// Package room decides who is left out where there is too much. Each namespace gets an equal part of what there is, so that objects of one
// tenant do not displace those of others.
package room

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
)

const (
	// MostAmount bounds the sum of a resource in Mi, so that fair can divide it beside what nodes, queues and quotas have.
	MostAmount = 1 << 38
	// Costly is more than any limit, and as many of it as there are objects are no more than an int64 holds.
	Costly = 1 << 39
)

// Mi returns an amount in Mi, rounded up, at most Costly.
func Mi(amount float64) int64 { return int64(min(math.Ceil(amount/(1<<20)), Costly)) }

// Limit bounds what objects take together.
type Limit[T any, K comparable] struct {
	// What names what is bounded.
	What string
	Most int64
	// Given is taken without any object, one for each.
	Given map[K]bool
	// Takes returns how much an object takes by itself, and calls share for each thing that it may share with others, with what that takes.
	Takes func(object T, share func(thing K, takes int64)) int64
	// Namespace is that of an object; nil: all are of one.
	Namespace func(object T) string
	// Before says which of two objects of a namespace comes first; nil: the one that takes less.
	Before func(l, r T) int
}

// Total returns how much objects take together. What several share counts once.
func (l *Limit[T, K]) Total(objects []T) int64 {
	used, total := maps.Clone(l.Given), int64(len(l.Given))
	if used == nil {
		used = map[K]bool{}
	}
	for _, object := range objects {
		total += l.Takes(object, func(thing K, takes int64) {
			if !used[thing] {
				used[thing] = true
				total += takes
			}
		})
	}
	return total
}

// ranked is an object by position. Its rank is what those of its namespace take that come before it, and it; 0 if it takes nothing.
type ranked[K comparable] struct {
	at              int
	own, cost, rank int64
	shared          map[K]int64
}

// Exceeding returns the positions of the objects that are left out so that the others are within the limit. Objects are let in by their
// rank, as long as they fit: a namespace is let in up to its equal part before others get more, however many objects it has.
func (l *Limit[T, K]) Exceeding(objects []T) (out []int) {
	if l.Total(objects) <= l.Most {
		return nil
	}
	used, total := map[K]bool{}, int64(len(l.Given))
	for _, one := range l.byRank(objects) {
		more := one.own
		for thing, takes := range one.shared {
			if !used[thing] {
				more += takes
			}
		}
		if total+more > l.Most {
			out = append(out, one.at)
			continue
		}
		total += more
		for thing := range one.shared {
			used[thing] = true
		}
	}
	slices.Sort(out)
	return out
}

// byRank returns the objects in the order in which they are let in.
func (l *Limit[T, K]) byRank(objects []T) []ranked[K] {
	list, sums := make([]ranked[K], len(objects)), map[string]int64{}
	for i, object := range objects {
		one := ranked[K]{at: i, shared: map[K]int64{}}
		one.own = l.Takes(object, func(thing K, takes int64) {
			if !l.Given[thing] {
				one.shared[thing] = takes
			}
		})
		one.cost = one.own
		for _, takes := range one.shared {
			one.cost += takes
		}
		list[i] = one
	}
	slices.SortStableFunc(list, func(a, b ranked[K]) int {
		if l.Before != nil {
			return l.Before(objects[a.at], objects[b.at])
		}
		return cmp.Compare(a.cost, b.cost)
	})
	for i := range list {
		if one := &list[i]; one.cost > 0 {
			namespace := ""
			if l.Namespace != nil {
				namespace = l.Namespace(objects[one.at])
			}
			sums[namespace] += one.cost
			one.rank = sums[namespace]
		}
	}
	slices.SortStableFunc(list, func(a, b ranked[K]) int { return cmp.Compare(a.rank, b.rank) })
	return list
}

// InTurns calls take for all items: of the namespace first that has used the smallest share so far, which take returns, then of the one
// with the first name. A namespace thus uses at least its equal part of a bound before others use more, however many items they have.
func InTurns[T any](items map[string][]T, take func(namespace string, item T) (share float64)) {
	turns := make(turns[T], 0, len(items))
	for namespace, list := range items {
		turns = append(turns, &turn[T]{namespace: namespace, items: list})
	}
	for heap.Init(&turns); len(turns) > 0; {
		next := turns[0]
		next.share = take(next.namespace, next.items[0])
		if next.items = next.items[1:]; len(next.items) == 0 {
			heap.Pop(&turns)
		} else {
			heap.Fix(&turns, 0)
		}
	}
}

// turn is the items of a namespace that wait.
type turn[T any] struct {
	namespace string
	items     []T
	share     float64
}

type turns[T any] []*turn[T]

func (t turns[T]) Len() int { return len(t) }

func (t turns[T]) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(t[i].share, t[j].share), cmp.Compare(t[i].namespace, t[j].namespace)) < 0
}

func (t turns[T]) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push is never called: a heap is made whole.
func (t *turns[T]) Push(any) {}

// Pop drops the last namespace.
func (t *turns[T]) Pop() any {
	*t = (*t)[:len(*t)-1]
	return nil
}
