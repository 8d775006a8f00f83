package engine

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// related reports whether a rule on other pods concerns some of the tasks.
func (p *placer) related() bool {
	return !p.bare && slices.ContainsFunc(p.kinds, func(k taskKind) bool { return p.session.view.PodKind(p.tasks[k.tasks[0]]) != 0 })
}

// relation is the placement of tasks that rules on other pods concern. They are placed one after the other, as a scheduler does: each with
// the tasks placed before it on their nodes.
type relation struct {
	*placer

	pods *policy.Pods
	free []resource.Row
	// ordered: what fits depends on the order of placing. ofKind says it of each kind.
	ordered bool
	ofKind  []bool
	// placed are the positions of the tasks that count on their nodes now; undo takes each off the bounds of the policy.
	placed []int32
	undo   []func()
	// first, if above 0, is how many of the buckets are left out for the first task that must be near others.
	first int
}

// maxStarts bounds in how many buckets the first of the tasks is tried that must be near each other.
const maxStarts = 64

// placeRelated places tasks that rules on other pods concern. It tries best fit, then every order and place up to the bound. That there is
// no placement is proven by the room of the nodes alone, by tasks that keep each other away, or if all was tried.
func (p *placer) placeRelated() (Placement, error) {
	r := &relation{placer: p, pods: p.session.view.Rules(), ofKind: make([]bool, len(p.kinds))}
	for k := range p.kinds {
		kind := &p.kinds[k]
		t := p.tasks[kind.tasks[0]]
		r.ofKind[k] = p.session.view.Ordered(t)
		r.ordered = r.ordered || r.ofKind[k]
		for i, n := range p.nodes {
			p.session.view.Yield(i)
			kind.fits[i] = kind.fits[i] && !r.pods.Excludes(t, n, p.later)
		}
	}
	most, err := r.greedy()
	switch {
	case err != nil:
		return Placement{}, err
	case most == len(p.tasks):
		return Placement{Outcome: Placed, Nodes: p.placed(), Most: most}, nil
	case !slices.ContainsFunc(p.kinds, func(k taskKind) bool { return !p.hasRoomAlone(&k) || !r.apart(&k) }) && !p.exceedsTotal():
	default:
		return Placement{Outcome: NoPlacement, Most: most}, nil
	}
	if len(p.tasks)*p.session.view.Dims.Len() > placementCells {
		return Placement{Outcome: PlacementUnknown, Most: most}, nil
	}
	p.start()
	found := r.search(0, 0, 0, len(p.tasks))
	r.lift(0)
	switch {
	case found:
		return Placement{Outcome: Placed, Nodes: p.placed(), Most: len(p.tasks)}, nil
	case p.stopped:
		return Placement{}, policy.ErrStopped
	case p.trials >= 0:
		return Placement{Outcome: NoPlacement, Most: most}, nil
	}
	return Placement{Outcome: PlacementUnknown, Most: most}, nil
}

// apart reports whether there are as many domains with room as tasks of a kind, if these keep each other away.
func (r *relation) apart(k *taskKind) bool {
	var nodes []model.NodeID
	for i, n := range r.nodes {
		if k.fits[i] && resource.Covers(r.idle[i], k.request) {
			nodes = append(nodes, n)
		}
	}
	return r.pods.AtMost(r.tasks[k.tasks[0]], nodes, len(k.tasks)) == len(k.tasks)
}

// put places a task on the node at a position, and lift takes all but the first n placed tasks off again.
func (r *relation) put(k *taskKind, task, at int32) {
	r.at[task] = at
	r.pods.Place(r.tasks[task], r.nodes[at])
	r.placed, r.undo = append(r.placed, task), append(r.undo, r.filling.put(r.bound(k, int(at)), k.request))
}

func (r *relation) lift(n int) {
	for _, task := range slices.Backward(r.placed[n:]) {
		r.pods.Remove(r.tasks[task], r.nodes[r.at[task]])
	}
	for _, undo := range slices.Backward(r.undo[n:]) {
		undo()
	}
	r.placed, r.undo = r.placed[:n], r.undo[:n]
}

// greedy places by best fit and returns how many tasks it placed. Where tasks must be near each other, it also tries to begin elsewhere.
func (r *relation) greedy() (most int, _ error) {
	near := slices.ContainsFunc(r.kinds, func(k taskKind) bool { return r.pods.Near(r.tasks[k.tasks[0]]) })
	var best []int32
	for r.first = 0; r.first < maxStarts; r.first++ {
		if r.session.view.Stop != nil && r.session.view.Stop() {
			return 0, policy.ErrStopped
		}
		for i := range r.at {
			r.at[i] = -1
		}
		r.free = resource.NewTable(len(r.nodes), r.session.view.Dims.Len())
		for i := range r.free {
			r.free[i].CopyFrom(r.idle[i])
		}
		more := r.once()
		placed := len(r.placed)
		if r.lift(0); best == nil || placed > most {
			most, best = placed, slices.Clone(r.at)
		}
		if placed == len(r.tasks) || !near || !more || r.trials < 0 {
			break
		}
	}
	copy(r.at, best)
	return most, nil
}

// once places kind after kind until no kind has a task that fits, and reports whether there is another bucket to begin with.
func (r *relation) once() (more bool) {
	next, begun := make([]int, len(r.kinds)), false
	for progress := true; progress; {
		progress = false
		for k := range r.kinds {
			kind := &r.kinds[k]
			if next[k] == len(kind.tasks) {
				continue
			}
			skip := 0
			if !begun && r.pods.Near(r.tasks[kind.tasks[0]]) {
				skip = r.first
			}
			buckets := r.bucketsOf(kind)
			if skip > 0 && skip < len(buckets) {
				buckets = append(buckets[skip:], buckets[:skip]...)
			}
			if skip > 0 || r.first == 0 && r.pods.Near(r.tasks[kind.tasks[0]]) {
				more = more || skip+1 < len(buckets)
			}
			before := next[k]
			next[k] = r.fill(kind, r.ofKind[k], buckets, next[k], skip > 0)
			if next[k] > before {
				progress, begun = true, begun || r.pods.Near(r.tasks[kind.tasks[0]])
			}
		}
	}
	return more
}

// bucket is the nodes that the spreads and the affinity of a kind treat alike, the one that has least left first. shut: they take no task
// until another one is placed. aside are nodes that take none until then.
type bucket struct {
	tightness

	shut  bool
	aside []int32
	// size is how many nodes it has at first.
	size int
}

// bucketsOf sorts the nodes with room for a kind into buckets, the largest first.
func (r *relation) bucketsOf(k *taskKind) []*bucket {
	t := r.tasks[k.tasks[0]]
	if !r.session.view.Work.Use(len(r.nodes), 1+r.pods.Buckets(t)) {
		return nil
	}
	at := map[string]*bucket{}
	var list []*bucket
	var key []byte
	left := make([]float64, len(r.nodes))
	for i, n := range r.nodes {
		if !k.fits[i] || !resource.Covers(r.free[i], k.request) {
			continue
		}
		key, _ = r.pods.Bucket(t, n, key[:0])
		b := at[string(key)]
		if b == nil {
			b = &bucket{}
			b.left = left
			at[string(key)] = b
			list = append(list, b)
		}
		b.order = append(b.order, int32(i))
		left[i] = leftOf(r.free[i], k.request)
	}
	for _, b := range list {
		b.size = len(b.order)
		heap.Init(&b.tightness)
	}
	slices.SortStableFunc(list, func(l, r *bucket) int { return cmp.Compare(r.size, l.size) })
	return list
}

// tightest returns the bucket whose first node has least left; nil if all are shut or empty.
func (r *relation) tightest(buckets []*bucket) *bucket {
	var best *bucket
	for _, b := range buckets {
		if b.shut || b.Len() == 0 {
			continue
		}
		if best == nil || tighter(b.left[b.order[0]], b.order[0], best.left[best.order[0]], best.order[0]) {
			best = b
		}
	}
	return best
}

// fill places tasks of a kind from position next on, as many as fit one after the other, and returns the next position. inOrder: the first
// task goes into the first bucket that takes it.
func (r *relation) fill(k *taskKind, ordered bool, buckets []*bucket, next int, inOrder bool) int {
	if len(buckets) == 0 {
		return next
	}
	_, single := r.pods.Bucket(r.tasks[k.tasks[0]], r.nodes[0], nil)
	moved := false
	for next < len(k.tasks) && r.try() {
		b := r.tightest(buckets)
		if inOrder {
			b = r.tightest(buckets[:1])
			inOrder = b != nil && b.Len() > 1
		}
		if b == nil {
			if !moved || !ordered {
				break
			}
			moved = false
			reopen(buckets)
			continue
		}
		i, t := b.order[0], k.tasks[next]
		r.trials -= len(buckets)
		switch {
		case !resource.Covers(r.free[i], k.request), !r.filling.takes(r.bound(k, int(i)), k.request):
			heap.Pop(&b.tightness)
		case r.pods.Fits(r.tasks[t], r.nodes[i], r.later, nil):
			r.free[i].SubWithin(k.request)
			r.put(k, t, i)
			next++
			moved, inOrder = true, false
		case ordered && !single && !r.pods.Excludes(r.tasks[t], r.nodes[i], r.later):
			b.shut = true
		default:
			b.aside = append(b.aside, i)
			heap.Pop(&b.tightness)
		}
	}
	return next
}

// reopen gives the nodes that were left aside another chance.
func reopen(buckets []*bucket) {
	for _, b := range buckets {
		b.shut = false
		b.order = append(b.order, b.aside...)
		b.aside = b.aside[:0]
		heap.Init(&b.tightness)
	}
}

// search places the tasks that are left, those of kind k from position n on, on nodes from position from on. Where the order of placing
// makes a difference it tries every order of the kinds and every node for each task; otherwise exchanging two tasks of a kind makes none.
func (r *relation) search(k, n, from, left int) bool {
	if left == 0 {
		return true
	}
	if !r.ordered {
		for n == len(r.kinds[k].tasks) {
			k, n, from = k+1, 0, 0
		}
		return r.searchKind(k, n, from, left)
	}
	for k := range r.kinds {
		next := slices.IndexFunc(r.kinds[k].tasks, func(task int32) bool { return r.at[task] < 0 })
		if next >= 0 && r.searchKind(k, next, 0, left) {
			return true
		}
		if r.trials < 0 {
			return false
		}
	}
	return false
}

// searchKind places the task at position n of kind k, and then the others.
func (r *relation) searchKind(k, n, from, left int) bool {
	kind := &r.kinds[k]
	task := kind.tasks[n]
	saved := &r.saved[task]
	for i := from; i < len(r.nodes); i++ {
		if !r.try() {
			return false
		}
		if !kind.fits[i] || !resource.Covers(r.idle[i], kind.request) || !r.filling.takes(r.bound(kind, i), kind.request) ||
			!r.pods.Fits(r.tasks[task], r.nodes[i], r.later, nil) {
			continue
		}
		saved.CopyFrom(r.idle[i])
		r.idle[i].SubWithin(kind.request)
		before := len(r.placed)
		r.put(kind, task, int32(i))
		if r.search(k, n+1, i, left-1) {
			return true
		}
		r.lift(before)
		r.at[task] = -1
		r.idle[i].CopyFrom(*saved)
		if r.trials < 0 {
			return false
		}
	}
	return false
}
