package fair

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// order is the order of service of all leaves; it is valid for one version of the accounts.
type order struct {
	version uint64
	known   bool
	// wants reports whether a leaf has a block that it is entitled to, or some leaf below a place has.
	wants []bool
	// ratio is what a place holds most of, in proportion to the total.
	ratio  []ratio
	leaves []place
	rank   []int32
	walk   []place
}

// ratio is held / total of the dimension in which it is greatest.
type ratio struct{ held, total int64 }

func (o *order) open(n int) {
	o.wants, o.ratio, o.rank = make([]bool, n), make([]ratio, n), make([]int32, n)
}

// ordered returns the leaves as they are served.
func (s *State) ordered() []place {
	o, t := &s.order, &s.tree
	if o.known && o.version == s.version {
		return o.leaves
	}
	s.settle()
	o.known, o.version = true, s.version
	for p := place(t.len()) - 1; p >= 0; p-- {
		o.ratio[p] = s.ratioOf(p)
		if t.isLeaf(p) {
			o.wants[p] = s.wants(p)
		} else {
			o.wants[p] = slices.Contains(o.wants[t.first[p]:t.end[p]], true)
		}
	}
	o.leaves, o.walk = o.leaves[:0], append(o.walk[:0], 0)
	for len(o.walk) > 0 {
		p := o.walk[len(o.walk)-1]
		o.walk = o.walk[:len(o.walk)-1]
		if t.isLeaf(p) {
			o.rank[p] = int32(len(o.leaves))
			o.leaves = append(o.leaves, p)
			continue
		}
		from := len(o.walk)
		for k := t.first[p]; k < t.end[p]; k++ {
			o.walk = append(o.walk, k)
		}
		slices.SortFunc(o.walk[from:], func(l, r place) int { return s.compareSiblings(r, l) })
	}
	return o.leaves
}

// wants reports whether a leaf has a block, not of best effort, that it is entitled to.
func (s *State) wants(p place) bool {
	entitled := func(tasks []model.TaskID) bool {
		positive := s.sum(tasks, s.scratch.request)
		return positive != 0 && s.entitled(p, 2, s.scratch.request, positive)
	}
	for _, b := range s.blocksOf(p) {
		if len(b.gang) > 0 && entitled(b.gang) {
			return true
		}
		for i := range b.loose {
			if entitled(b.loose[i : i+1]) {
				return true
			}
		}
	}
	return false
}

// ratioOf returns the greatest held / total over the dimensions that there is something of.
func (s *State) ratioOf(p place) ratio {
	greatest := ratio{0, 1}
	for d, held := range s.row(s.accounts.held, p) {
		if total := s.division.columns[d].total * s.quantum[d]; total > 0 && held > 0 {
			if r := (ratio{held, total}); r.compare(greatest) > 0 {
				greatest = r
			}
		}
	}
	return greatest
}

func (r ratio) compare(o ratio) int {
	lHigh, lLow := bits.Mul64(uint64(r.held), uint64(o.total))
	rHigh, rLow := bits.Mul64(uint64(o.held), uint64(r.total))
	return cmp.Or(cmp.Compare(lHigh, rHigh), cmp.Compare(lLow, rLow))
}

// compareOver compares r / lw with o / rw.
func (r ratio) compareOver(lw int64, o ratio, rw int64) int {
	return compareProducts(
		[3]uint64{uint64(r.held), uint64(o.total), uint64(rw)}, [3]uint64{uint64(o.held), uint64(r.total), uint64(lw)})
}

// compareProducts compares the products of three factors each.
func compareProducts(l, r [3]uint64) int {
	product := func(f [3]uint64) [3]uint64 {
		high, low := bits.Mul64(f[0], f[1])
		carry, least := bits.Mul64(low, f[2])
		most, middle := bits.Mul64(high, f[2])
		middle, over := bits.Add64(middle, carry, 0)
		return [3]uint64{most + over, middle, least}
	}
	lp, rp := product(l), product(r)
	return slices.Compare(lp[:], rp[:])
}

// compareSiblings puts first what is served first of two siblings.
func (s *State) compareSiblings(l, r place) int {
	o, v := &s.order, s.v
	lq, rq := &v.Queues[s.tree.queue[l]], &v.Queues[s.tree.queue[r]]
	if c := cmp.Compare(rq.Priority, lq.Priority); c != 0 {
		return c
	}
	if o.wants[l] != o.wants[r] {
		return first(o.wants[l])
	}
	if (lq.Weight == 0) != (rq.Weight == 0) {
		return first(rq.Weight == 0)
	}
	c := o.ratio[l].compareOver(max(int64(lq.Weight), 1), o.ratio[r], max(int64(rq.Weight), 1))
	return cmp.Or(c, compareAge(lq.CreateTime, rq.CreateTime), cmp.Compare(l, r))
}

func first(l bool) int {
	if l {
		return -1
	}
	return 1
}

// CompareQueues compares two queues by priority of service. Queues that serve no jobs come last.
func (s *State) CompareQueues(l, r model.QueueID) int { return cmp.Compare(s.rankOf(l), s.rankOf(r)) }

// rankOf returns a queue's position among the leaves in order.
func (s *State) rankOf(q model.QueueID) int32 {
	leaves := s.ordered()
	if p := s.tree.at[q]; p != none && s.tree.isLeaf(p) {
		return s.order.rank[p]
	}
	return int32(len(leaves))
}

// Order lists the queues without children as they are served.
func (s *State) Order() []model.QueueID {
	leaves := s.ordered()
	list := make([]model.QueueID, 0, len(leaves))
	for _, p := range leaves {
		if q := s.tree.queue[p]; q != model.None {
			list = append(list, q)
		}
	}
	return list
}
