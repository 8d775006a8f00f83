package service

import (
	"runtime"
	"slices"
	"sync"
)

// idle keeps what is not in use for whoever needs such a thing next: what was used last, first. A sync.Pool keeps one for every processor,
// because none reaches what another put away for itself: twice the memory on two. Like a sync.Pool it drops what nobody wanted between two
// collections of garbage. The zero value is empty.
type idle[T any] struct {
	mutex sync.Mutex
	kept  []aged[T]
	// watched tells that the next collection will be noticed.
	watched bool
}

type aged[T any] struct {
	value       T
	collections int
}

// get takes what was put away last.
func (i *idle[T]) get() (value T, ok bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if len(i.kept) == 0 {
		return value, false
	}
	last := len(i.kept) - 1
	value = i.kept[last].value
	i.kept[last] = aged[T]{}
	i.kept = i.kept[:last]
	return value, true
}

// put keeps a value.
func (i *idle[T]) put(value T) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.kept = append(i.kept, aged[T]{value: value})
	i.watch()
}

// watch has the next collection of garbage noticed: it finds an object that nobody refers to.
func (i *idle[T]) watch() {
	if i.watched {
		return
	}
	i.watched = true
	runtime.AddCleanup(new(sentinel), func(i *idle[T]) { i.collected() }, i)
}

// sentinel is an object of its own: what holds no pointer may share its memory with others.
type sentinel struct{ _ *sentinel }

// collected drops what was not wanted since the collection before this one.
func (i *idle[T]) collected() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for k := range i.kept {
		i.kept[k].collections++
	}
	i.kept = slices.DeleteFunc(i.kept, func(a aged[T]) bool { return a.collections > 1 })
	i.watched = false
	if len(i.kept) > 0 {
		i.watch()
	}
}
