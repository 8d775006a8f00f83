package room

import (
	"cmp"
	"container/heap"
)

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
