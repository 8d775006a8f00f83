package odds

import "github.com/apportion/apportion/engine/resource"

// room is what nodes have free. It counts the work of keeping and of searching it.
type room struct {
	*resource.Stock[float64]
	model        *Model
	nodes, width int
	// left is the work that may still be done, in amounts that are looked at.
	left *int64
}

func newRoom(m *Model, width int) *room {
	stock := resource.NewStock(len(m.Nodes), width, slack, func(n int, row []float64) { copy(row, m.Nodes[n]) })
	return &room{Stock: stock, model: m, nodes: len(m.Nodes), width: width}
}

func (r *room) clone() *room {
	c := *r
	c.Stock = r.Clone()
	return &c
}

// add gives amounts back to a node, or takes them off.
func (r *room) add(node int, amount []float64, sign float64) {
	row := r.Row(node)
	for d, a := range amount {
		row[d] += float64(sign * a)
	}
	r.Changed(node)
	*r.left -= int64(r.Height() * r.width)
}

// slack is the tolerance of comparisons, a thousandth of a thousandth of a core or a byte: sums of amounts may differ in their last digits.
// Volcano's tolerance (resource.Threshold) is a tenth, which is too wide for the whole units that are counted with it here.
const slack = 1e-3

// positive is the mask of the dimensions that an amount has something of.
func positive(amount []float64) resource.Mask {
	var mask resource.Mask
	for d, a := range amount {
		if a > 0 {
			mask = mask.With(d)
		}
	}
	return mask
}

// find returns the first node that has room for one of the tasks at a second, and may take it, or -1.
func (r *room) find(tasks *Tasks, at int64) int {
	asked := positive(tasks.Request)
	for vertex := resource.Top; vertex > 0; {
		n, seen := r.First(vertex, tasks.Request, asked)
		*r.left -= int64(seen * r.width)
		if n < 0 {
			return -1
		}
		if n < r.nodes && r.model.takes(tasks, n, at) {
			return n
		}
		vertex = r.After(n)
	}
	return -1
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
		if r.model.takes(t, node, at) && r.Covers(node, t.Request, positive(t.Request)) {
			return true
		}
	}
	return false
}
