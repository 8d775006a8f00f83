package place

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Related reports whether a rule on other pods concerns some of the tasks.
func (p *Placer) Related() bool {
	return !p.Bare && slices.ContainsFunc(p.Kinds, func(k TaskKind) bool { return p.View().PodKind(p.Tasks[k.Tasks[0]]) != 0 })
}

// relation is the placement of tasks that rules on other pods concern. They are placed one after the other, as a scheduler does: each with
// the tasks placed before it on their nodes.
type relation struct {
	*Placer

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
func (p *Placer) placeRelated() (Placement, error) {
	r := &relation{Placer: p, pods: p.View().CountPods(), ofKind: make([]bool, len(p.Kinds))}
	for k := range p.Kinds {
		kind := &p.Kinds[k]
		t := p.Tasks[kind.Tasks[0]]
		r.ofKind[k] = p.View().Ordered(t)
		r.ordered = r.ordered || r.ofKind[k]
		for i, n := range p.Nodes {
			p.View().Yield(i)
			kind.Fits[i] = kind.Fits[i] && !r.pods.Excludes(t, n, p.Later)
		}
	}
	most, err := r.greedy()
	switch {
	case err != nil:
		return Placement{}, err
	case most == len(p.Tasks):
		return Placement{Outcome: Placed, Nodes: p.Placed(), Most: most}, nil
	case !slices.ContainsFunc(p.Kinds, func(k TaskKind) bool { return !p.hasRoomAlone(&k) || !r.apart(&k) }) && !p.exceedsTotal():
	default:
		return Placement{Outcome: NoPlacement, Most: most}, nil
	}
	if len(p.Tasks)*p.View().Dims.Len() > Cells {
		return Placement{Outcome: Unknown, Most: most}, nil
	}
	p.start()
	found := r.search(0, 0, 0, len(p.Tasks))
	r.lift(0)
	switch {
	case found:
		return Placement{Outcome: Placed, Nodes: p.Placed(), Most: len(p.Tasks)}, nil
	case p.stopped:
		return Placement{}, policy.ErrStopped
	case p.Trials >= 0:
		return Placement{Outcome: NoPlacement, Most: most}, nil
	}
	return Placement{Outcome: Unknown, Most: most}, nil
}

// apart reports whether there are as many domains with room as tasks of a kind, if these keep each other away.
func (r *relation) apart(k *TaskKind) bool {
	var nodes []model.NodeID
	for i, n := range r.Nodes {
		if k.Fits[i] && resource.Covers(r.idle[i], k.Request) {
			nodes = append(nodes, n)
		}
	}
	return r.pods.AtMost(r.Tasks[k.Tasks[0]], nodes, len(k.Tasks), nil) == len(k.Tasks)
}

// put places a task on the node at a position, and lift takes all but the first n placed tasks off again.
func (r *relation) put(k *TaskKind, task, at int32) {
	r.At[task] = at
	r.pods.Place(r.Tasks[task], r.Nodes[at])
	r.placed, r.undo = append(r.placed, task), append(r.undo, r.filling.Put(r.bound(k, int(at)), k.Request))
}

func (r *relation) lift(n int) {
	for _, task := range slices.Backward(r.placed[n:]) {
		r.pods.Remove(r.Tasks[task], r.Nodes[r.At[task]])
	}
	for _, undo := range slices.Backward(r.undo[n:]) {
		undo()
	}
	r.placed, r.undo = r.placed[:n], r.undo[:n]
}

// greedy places by best fit and returns how many tasks it placed. Where tasks must be near each other, it also tries to begin elsewhere.
func (r *relation) greedy() (most int, _ error) {
	near := slices.ContainsFunc(r.Kinds, func(k TaskKind) bool { return r.pods.Near(r.Tasks[k.Tasks[0]]) })
	var best []int32
	for r.first = 0; r.first < maxStarts; r.first++ {
		if r.View().Stop != nil && r.View().Stop() {
			return 0, policy.ErrStopped
		}
		for i := range r.At {
			r.At[i] = -1
		}
		r.free = resource.NewTable(len(r.Nodes), r.View().Dims.Len())
		for i := range r.free {
			r.free[i].CopyFrom(r.idle[i])
		}
		more := r.once()
		placed := len(r.placed)
		if r.lift(0); best == nil || placed > most {
			most, best = placed, slices.Clone(r.At)
		}
		if placed == len(r.Tasks) || !near || !more || r.Trials < 0 {
			break
		}
	}
	copy(r.At, best)
	return most, nil
}

// once places kind after kind until no kind has a task that fits, and reports whether there is another bucket to begin with.
func (r *relation) once() (more bool) {
	next, begun := make([]int, len(r.Kinds)), false
	for progress := true; progress; {
		progress = false
		for k := range r.Kinds {
			kind := &r.Kinds[k]
			if next[k] == len(kind.Tasks) {
				continue
			}
			skip := 0
			if !begun && r.pods.Near(r.Tasks[kind.Tasks[0]]) {
				skip = r.first
			}
			buckets := r.bucketsOf(kind)
			if skip > 0 && skip < len(buckets) {
				buckets = append(buckets[skip:], buckets[:skip]...)
			}
			if skip > 0 || r.first == 0 && r.pods.Near(r.Tasks[kind.Tasks[0]]) {
				more = more || skip+1 < len(buckets)
			}
			before := next[k]
			next[k] = r.fill(kind, r.ofKind[k], buckets, next[k], skip > 0)
			if next[k] > before {
				progress, begun = true, begun || r.pods.Near(r.Tasks[kind.Tasks[0]])
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
func (r *relation) bucketsOf(k *TaskKind) []*bucket {
	t := r.Tasks[k.Tasks[0]]
	if !r.View().Work.Use(len(r.Nodes), 1+r.pods.Buckets(t)) {
		return nil
	}
	at := map[string]*bucket{}
	var list []*bucket
	var key []byte
	left := make([]float64, len(r.Nodes))
	for i, n := range r.Nodes {
		if !k.Fits[i] || !resource.Covers(r.free[i], k.Request) {
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
		left[i] = LeftOf(r.free[i], k.Request)
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
		if best == nil || Tighter(b.left[b.order[0]], b.order[0], best.left[best.order[0]], best.order[0]) {
			best = b
		}
	}
	return best
}

// fill places tasks of a kind from position next on, as many as fit one after the other, and returns the next position. inOrder: the first
// task goes into the first bucket that takes it.
func (r *relation) fill(k *TaskKind, ordered bool, buckets []*bucket, next int, inOrder bool) int {
	if len(buckets) == 0 {
		return next
	}
	_, single := r.pods.Bucket(r.Tasks[k.Tasks[0]], r.Nodes[0], nil)
	moved := false
	for next < len(k.Tasks) && r.try() {
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
		i, t := b.order[0], k.Tasks[next]
		r.Trials -= len(buckets)
		switch {
		case !resource.Covers(r.free[i], k.Request), !r.filling.Takes(r.bound(k, int(i)), k.Request):
			heap.Pop(&b.tightness)
		case r.pods.Fits(r.Tasks[t], r.Nodes[i], r.Later, nil):
			r.free[i].SubWithin(k.Request)
			r.put(k, t, i)
			next++
			moved, inOrder = true, false
		case ordered && !single && !r.pods.Excludes(r.Tasks[t], r.Nodes[i], r.Later):
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
		for n == len(r.Kinds[k].Tasks) {
			k, n, from = k+1, 0, 0
		}
		return r.searchKind(k, n, from, left)
	}
	for k := range r.Kinds {
		next := slices.IndexFunc(r.Kinds[k].Tasks, func(task int32) bool { return r.At[task] < 0 })
		if next >= 0 && r.searchKind(k, next, 0, left) {
			return true
		}
		if r.Trials < 0 {
			return false
		}
	}
	return false
}

// searchKind places the task at position n of kind k, and then the others.
func (r *relation) searchKind(k, n, from, left int) bool {
	kind := &r.Kinds[k]
	task := kind.Tasks[n]
	saved := &r.saved[task]
	for i := from; i < len(r.Nodes); i++ {
		if !r.try() {
			return false
		}
		if !kind.Fits[i] || !resource.Covers(r.idle[i], kind.Request) || !r.filling.Takes(r.bound(kind, i), kind.Request) ||
			!r.pods.Fits(r.Tasks[task], r.Nodes[i], r.Later, nil) {
			continue
		}
		saved.CopyFrom(r.idle[i])
		r.idle[i].SubWithin(kind.Request)
		before := len(r.placed)
		r.put(kind, task, int32(i))
		if r.search(k, n+1, i, left-1) {
			return true
		}
		r.lift(before)
		r.At[task] = -1
		r.idle[i].CopyFrom(*saved)
		if r.Trials < 0 {
			return false
		}
	}
	return false
}
