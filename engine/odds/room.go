package odds

import "slices"

// room is what nodes have free, with the largest free amount of each dimension of every half, quarter and so on of the nodes. The first
// node with room is then found without a look at most others.
type room struct {
	width, leaves, nodes int
	// most is a heap: most[i] are the larger amounts of most[2i] and most[2i+1]; node n is at leaves+n.
	most []float64
	// left is the work that may still be done, in amounts that are looked at.
	left *int64
}

func newRoom(nodes [][]float64, width int) *room {
	r := &room{width: width, leaves: 1, nodes: len(nodes)}
	for r.leaves < len(nodes) {
		r.leaves *= 2
	}
	r.most = make([]float64, 2*r.leaves*width)
	for i := range r.most {
		r.most[i] = -1
	}
	for n, free := range nodes {
		copy(r.row(r.leaves+n), free)
	}
	for i := r.leaves - 1; i > 0; i-- {
		r.raise(i)
	}
	return r
}

func (r *room) clone() *room {
	c := *r
	c.most = slices.Clone(r.most)
	return &c
}

func (r *room) row(i int) []float64 { return r.most[i*r.width : (i+1)*r.width] }

func (r *room) raise(i int) {
	to, left, right := r.row(i), r.row(2*i), r.row(2*i+1)
	for d := range to {
		to[d] = max(left[d], right[d])
	}
}

// add gives amounts back to a node, or takes them off.
func (r *room) add(node int, amount []float64, sign float64) {
	i := r.leaves + node
	row := r.row(i)
	for d, a := range amount {
		row[d] += float64(sign * a)
	}
	for i /= 2; i > 0; i /= 2 {
		r.raise(i)
		*r.left -= int64(r.width)
	}
}

// slack is the tolerance of comparisons, a thousandth of a thousandth of a core or a byte: sums of amounts may differ in their last digits.
const slack = 1e-3

func covers(free, request []float64) bool {
	for d, a := range request {
		if a > free[d]+slack && a > 0 {
			return false
		}
	}
	return true
}

// find returns the first node that has room for one of the tasks at a second, and may take it, or -1.
func (r *room) find(tasks *Tasks, at int64) int { return r.below(1, tasks, at) }

func (r *room) below(i int, tasks *Tasks, at int64) int {
	*r.left -= int64(r.width)
	if !covers(r.row(i), tasks.Request) {
		return -1
	}
	if i >= r.leaves {
		if n := i - r.leaves; n < r.nodes && tasks.takes(n, at) {
			return n
		}
		return -1
	}
	if n := r.below(2*i, tasks, at); n >= 0 {
		return n
	}
	return r.below(2*i+1, tasks, at)
}

// place takes room for all tasks of a gang at a second, and adds what it took to held; or it takes none and returns false.
func (r *room) place(gang []Tasks, at int64, held []Held) ([]Held, bool) {
	before := len(held)
	for g := range gang {
		for range gang[g].N {
			n := r.find(&gang[g], at)
			if n < 0 {
				r.giveBack(held[before:])
				return held[:before], false
			}
			r.add(n, gang[g].Request, -1)
			held = append(held, Held{n, gang[g].Request})
		}
	}
	return held, true
}

// giveBack gives back what was taken.
func (r *room) giveBack(held []Held) {
	for _, h := range held {
		r.add(h.Node, h.Amount, 1)
	}
}

// fits reports whether a node has room at a second for one of the tasks of a kind.
func (r *room) fits(node int, list []Tasks, at int64) bool {
	for i := range list {
		t := &list[i]
		if t.takes(node, at) && covers(r.row(r.leaves+node), t.Request) {
			return true
		}
	}
	return false
}
