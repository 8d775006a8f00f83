package judge

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// walk places tasks that rules on other pods concern as Placer.placeRelated does, but looks only at the nodes to which best fit comes, in
// place of preparing all nodes for each job.
type walk struct {
	*freeNodes

	p    *place.Placer
	pods *policy.Pods
	// spent is at least what the search of placeRelated counts of its trials.
	spent int
	// placed are the positions of the tasks that count on their nodes now.
	placed []int32
}

// candidate is a node with what it has left of a request.
type candidate struct {
	at   int32
	left float64
}

// placeRelated returns what place.Tasks does for tasks that rules on other pods concern, if best fit places them all, or if a kind has no
// room or too few domains without the others. known is false for all else, and for tasks that must be near others.
func (f *freeNodes) placeRelated(p *place.Placer, booked []model.NodeID) (_ place.Placement, known bool, _ error) {
	w := &walk{freeNodes: f, p: p, pods: f.session.View().CountPods()}
	if slices.ContainsFunc(p.Kinds, func(k place.TaskKind) bool { return w.pods.Near(p.Tasks[k.Tasks[0]]) }) {
		return place.Placement{}, false, nil
	}
	defer f.forget()
	f.book(booked)
	done, err := w.once()
	for _, task := range slices.Backward(w.placed) {
		w.pods.Remove(p.Tasks[task], f.nodes[p.At[task]])
	}
	switch {
	case err != nil || !done:
		return place.Placement{}, false, err
	case len(w.placed) == len(p.Tasks):
		return place.Placement{Outcome: place.Placed, Nodes: p.Placed(), Most: len(w.placed)}, true, nil
	}
	f.forget()
	f.book(booked)
	for k := range p.Kinds {
		alone, done, err := w.fitsAlone(&p.Kinds[k])
		switch {
		case err != nil || !done:
			return place.Placement{}, false, err
		case !alone:
			return place.Placement{Outcome: place.NoPlacement, Most: len(w.placed)}, true, nil
		}
	}
	return place.Placement{}, false, nil
}

// once places kind after kind until no kind has a task that fits. done is false if it cannot be said what placeRelated places.
func (w *walk) once() (done bool, _ error) {
	next := make([]int, len(w.p.Kinds))
	for progress := true; progress; {
		progress = false
		for k := range w.p.Kinds {
			before := next[k]
			if before == len(w.p.Kinds[k].Tasks) {
				continue
			}
			var err error
			if next[k], done, err = w.fillKind(&w.p.Kinds[k], before); !done || err != nil {
				return false, err
			}
			progress = progress || next[k] > before
		}
	}
	return true, nil
}

// fillKind places tasks of a kind from position next on, as many as fit one after the other, and returns the next position; see
// relation.fill.
func (w *walk) fillKind(k *place.TaskKind, next int) (_ int, done bool, _ error) {
	nodes, err := w.inOrder(k)
	f := &fill{walk: w, kind: k, first: w.p.Tasks[k.Tasks[0]]}
	f.buckets = w.buckets(f.first)
	if nodes == nil || f.buckets == 0 || err != nil {
		return next, false, err
	}
	v := w.session.View()
	ordered := v.Ordered(f.first)
	_, single := w.pods.Bucket(f.first, w.nodes[0], nil)
	f.shuts = ordered && !single
	for again := true; again && next < len(k.Tasks); {
		before := next
		f.shut, f.rest = map[string]bool{}, nil
		w.spent++
		for i := 0; i < len(nodes) && next < len(k.Tasks); i++ {
			if v.Stopped(i) {
				return next, false, policy.ErrStopped
			}
			next = f.visit(nodes[i], next)
			if w.spent > place.Trials {
				return next, false, nil
			}
		}
		nodes, again = f.rest, ordered && next > before
	}
	return next, true, nil
}

// fill places tasks of one kind. A spread may refuse a task until others are placed: then its bucket is shut, the nodes that it treats
// alike, and these nodes are visited again once no other takes a task.
type fill struct {
	*walk

	kind  *place.TaskKind
	first model.TaskID
	// buckets is how many there are at most; shuts: one may be shut.
	buckets int
	shuts   bool
	shut    map[string]bool
	// rest are the nodes to visit again, in order.
	rest []candidate
	key  []byte
}

// visit places tasks on a node from position next on, as many as have room and fit, and returns the next position.
func (f *fill) visit(c candidate, next int) int {
	n := f.nodes[c.at]
	if len(f.shut) > 0 && f.shut[f.bucket(n)] {
		f.rest = append(f.rest, c)
		return next
	}
	if !f.covers(c.at, f.kind.Request) || !f.session.Admits(f.first, n, nil) {
		return next
	}
	from := next
	next = f.takeRelated(f.kind, c.at, next)
	f.spent += (next - from + 1) * (1 + f.buckets)
	if next < len(f.kind.Tasks) && f.covers(c.at, f.kind.Request) {
		f.rest = append(f.rest, c)
		if f.shuts && !f.pods.Excludes(f.first, n, f.later) {
			f.shut[f.bucket(n)] = true
		}
	}
	return next
}

// bucket returns the bucket of a node.
func (f *fill) bucket(n model.NodeID) string {
	f.key, _ = f.pods.Bucket(f.first, n, f.key[:0])
	return string(f.key)
}

// takeRelated places the tasks of a kind from a position on a node, as many as have room and fit, and returns the next position.
func (w *walk) takeRelated(k *place.TaskKind, at int32, next int) int {
	for ; next < len(k.Tasks) && w.covers(at, k.Request); next++ {
		task := k.Tasks[next]
		if !w.pods.Fits(w.p.Tasks[task], w.nodes[at], w.later, nil) {
			break
		}
		if w.marks[at] == 0 {
			w.change(at).CopyFrom(w.idle[at])
		}
		w.changed[w.marks[at]-1].idle.SubWithin(k.Request)
		w.p.At[task] = at
		w.pods.Place(w.p.Tasks[task], w.nodes[at])
		w.placed = append(w.placed, task)
	}
	return next
}

// covers reports whether a node has enough left for a request.
func (w *walk) covers(at int32, request resource.Row) bool {
	return resource.Covers(*w.rest(at), request)
}

// rest returns what a node has left.
func (w *walk) rest(at int32) *resource.Row {
	if i := w.marks[at]; i > 0 {
		return &w.changed[i-1].idle
	}
	return &w.idle[at]
}

// inOrder lists the nodes that have room for a kind, the one that has least left first, among equals the first; nil if the nodes have no
// order.
func (w *walk) inOrder(k *place.TaskKind) ([]candidate, error) {
	order, err := w.order(w.session.View().Tasks.At(w.p.Tasks[k.Tasks[0]]).Request, k.Request)
	if order == nil || err != nil {
		return nil, err
	}
	changed := w.tightest(k.Request)
	list := make([]candidate, 0, len(order.order)+len(changed))
	for i := 0; i < len(order.order) || len(changed) > 0; {
		if c := changed; len(c) > 0 && (i == len(order.order) || place.Tighter(c[0].left, c[0].at, order.left[i], order.order[i])) {
			list, changed = append(list, candidate{c[0].at, c[0].left}), c[1:]
			continue
		}
		if w.marks[order.order[i]] == 0 {
			list = append(list, candidate{order.order[i], order.left[i]})
		}
		i++
	}
	return list, nil
}

// fitsAlone reports whether the tasks of a kind have room without the others, and as many domains as they need if they keep each other
// away. done is false if the nodes have no order.
func (w *walk) fitsAlone(k *place.TaskKind) (alone, done bool, _ error) {
	nodes, err := w.inOrder(k)
	if nodes == nil || err != nil {
		return false, false, err
	}
	v, first := w.session.View(), w.p.Tasks[k.Tasks[0]]
	left, room := resource.NewAccount(v.Dims.Len()), 0
	var open []model.NodeID
	for i, c := range nodes {
		n := w.nodes[c.at]
		if v.Stopped(i) {
			return false, false, policy.ErrStopped
		}
		if w.pods.Excludes(first, n, w.later) || !w.session.Admits(first, n, nil) {
			continue
		}
		open = append(open, n)
		for left.CopyFrom(*w.rest(c.at)); room < len(k.Tasks) && resource.Covers(left, k.Request); room++ {
			left.SubWithin(k.Request)
		}
	}
	return room == len(k.Tasks) && w.pods.AtMost(first, open, len(k.Tasks), nil) == len(k.Tasks), true, nil
}

// buckets returns in how many buckets the nodes are for a task, at most and at least one; 0 if there are no nodes or too little work is
// left.
func (w *walk) buckets(t model.TaskID) int {
	kind := w.session.View().PodKind(t)
	if n := w.bucketsOf[kind]; n > 0 || len(w.nodes) == 0 || !w.session.View().Work.Use(len(w.nodes), 1+w.pods.Buckets(t)) {
		return n
	}
	seen := map[string]bool{}
	var key []byte
	for _, n := range w.nodes {
		key, _ = w.pods.Bucket(t, n, key[:0])
		seen[string(key)] = true
	}
	w.bucketsOf[kind] = len(seen)
	return len(seen)
}
