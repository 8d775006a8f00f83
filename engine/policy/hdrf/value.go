package hdrf

import (
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/dominant"
	"github.com/apportion/apportion/engine/resource"
)

// width is the number of children that are summed as one block. The sum of an inner node is the sum of its blocks' sums, so that a change
// of one child of many costs one block and one sum over the blocks, and gives to the last bit what a sum of everything would give.
const width = 32

// values holds the shares of the tree's nodes for given accounts of its leaves: a pure function of the accounts and of the dimensions that
// are not used up. It is updated when it is read.
type values struct {
	tree *tree
	jobs *dominant.Jobs
	view *policy.View
	// request returns what a leaf's job asks for in all.
	request func(leaf int32) resource.Row

	// account, share and saturated are of each node. A leaf's account is its job's, or one that it is given for a question.
	account   []*resource.Row
	share     []float64
	saturated []bool
	// least is, of an inner node, the share that its unsaturated children are scaled to.
	least  []float64
	blocks []block

	// demanding are the dimensions not used up that the values were computed for.
	demanding resource.Mask
	settled   bool
	stale     []int32
	isStale   []bool
}

// block is the sum of up to width neighbouring children.
type block struct {
	sum resource.Row
	// least is the least share among the children that are neither saturated nor empty, 1 if none is below 1.
	least float64
	// hungry counts the children that are not saturated.
	hungry int32
}

func newValues(v *policy.View, t *tree, jobs *dominant.Jobs, request func(leaf int32) resource.Row) *values {
	n := len(t.nodes)
	inner := 0
	for i := range t.nodes {
		if t.nodes[i].job < 0 {
			inner++
		}
	}
	rows := resource.NewAccounts(inner+t.blocks, v.Dims.Len())
	s := &values{
		tree: t, jobs: jobs, view: v, request: request,
		account: make([]*resource.Row, n), share: make([]float64, n), saturated: make([]bool, n), least: make([]float64, n),
		blocks: make([]block, t.blocks), isStale: make([]bool, n), stale: make([]int32, 0, n-inner),
	}
	for i := range s.blocks {
		s.blocks[i].sum = rows[inner+i]
	}
	next := 0
	for i := range t.nodes {
		if j := t.nodes[i].job; j >= 0 {
			s.account[i], s.share[i] = jobs.Allocated(j), jobs.Share(j)
			continue
		}
		s.account[i] = &rows[next]
		next++
	}
	return s
}

// place gives a leaf an account and the dominant share of it.
func (v *values) place(leaf int32, account *resource.Row, share float64) {
	v.account[leaf], v.share[leaf] = account, share
	if !v.isStale[leaf] {
		v.isStale[leaf] = true
		v.stale = append(v.stale, leaf)
	}
}

// settle brings everything up to date for the dimensions that are not used up. If no work is left for that, the state stays as it is, and
// the answer is discarded.
func (v *values) settle(demanding resource.Mask) {
	dimensions := v.view.Dims.Len()
	switch {
	case !v.settled || demanding != v.demanding || len(v.stale) > 4+len(v.tree.nodes)/128:
		if !v.view.Work.Use(len(v.tree.nodes)+v.tree.blocks, dimensions) {
			return
		}
		v.settled, v.demanding = true, demanding
		for i := int32(len(v.tree.nodes)) - 1; i >= 0; i-- {
			v.view.Yield(int(i))
			v.update(i)
		}
	default:
		if !v.view.Work.Use(v.climbing(), dimensions) {
			return
		}
		for _, leaf := range v.stale {
			v.climb(leaf)
		}
	}
	for _, leaf := range v.stale {
		v.isStale[leaf] = false
	}
	v.stale = v.stale[:0]
}

// update computes a node whose children are up to date.
func (v *values) update(i int32) {
	n := &v.tree.nodes[i]
	if n.job >= 0 {
		v.saturated[i] = v.full(i)
		return
	}
	first, end := v.span(n)
	for b := first; b < end; b++ {
		v.count(n, b)
	}
	v.least[i] = v.leastOf(first, end)
	for b := first; b < end; b++ {
		v.sum(n, b, v.least[i])
	}
	v.total(i, first, end)
}

// climbing returns how many accounts are added when the stale leaves are computed, if the scale of no block changes.
func (v *values) climbing() int {
	added := 0
	for _, leaf := range v.stale {
		for i := v.tree.nodes[leaf].parent; i != missing; i = v.tree.nodes[i].parent {
			first, end := v.span(&v.tree.nodes[i])
			added += width + int(end-first)
		}
	}
	return added
}

// climb computes a leaf and the nodes above it.
func (v *values) climb(leaf int32) {
	v.saturated[leaf] = v.full(leaf)
	for child := leaf; ; {
		i := v.tree.nodes[child].parent
		if i == missing {
			return
		}
		n := &v.tree.nodes[i]
		first, end := v.span(n)
		changed := n.block + (child-n.first)/width
		v.count(n, changed)
		if least := v.leastOf(first, end); least == v.least[i] {
			v.sum(n, changed, least)
		} else {
			v.least[i] = least
			v.view.Work.Use(int(n.children()), v.view.Dims.Len())
			for b := first; b < end; b++ {
				v.sum(n, b, least)
			}
		}
		v.total(i, first, end)
		child = i
	}
}

// full reports whether a leaf is saturated: in some dimension that it holds and requests, it has everything that it requests, or nothing is
// left, or the cluster has none (Volcano's resourceSaturated).
func (v *values) full(leaf int32) bool {
	held, asked := *v.account[leaf], v.request(leaf)
	for m := held.AtLeastThreshold(); m != 0; m = m.Rest() {
		if d := m.First(); asked.V[d] != 0 && (held.V[d] >= asked.V[d] || !v.demanding.Has(d)) {
			return true
		}
	}
	return false
}

// span returns the blocks of a node's children.
func (v *values) span(n *node) (first, end int32) {
	return n.block, n.block + (n.children()+width-1)/width
}

// part returns the children of one block.
func (n *node) part(b int32) (first, end int32) {
	first = n.first + (b-n.block)*width
	return first, min(first+width, n.end)
}

func (v *values) count(n *node, b int32) {
	block := &v.blocks[b]
	block.least, block.hungry = 1, 0
	first, end := n.part(b)
	for i := first; i < end; i++ {
		if v.saturated[i] {
			continue
		}
		block.hungry++
		if share := v.share[i]; share != 0 && share < block.least {
			block.least = share
		}
	}
}

func (v *values) leastOf(first, end int32) float64 {
	least := 1.0
	for b := first; b < end; b++ {
		least = min(least, v.blocks[b].least)
	}
	return least
}

// sum adds up the children of a block that hold something: saturated ones as they are, the others scaled to the least share among them
// (Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013). Weights take no part.
func (v *values) sum(n *node, b int32, least float64) {
	block := &v.blocks[b]
	block.sum.Clear(resource.Base)
	first, end := n.part(b)
	for i := first; i < end; i++ {
		switch share := v.share[i]; {
		case share == 0:
		case v.saturated[i]:
			block.sum.Add(*v.account[i])
		default:
			block.sum.AddTimes(*v.account[i], least/share)
		}
	}
}

// total computes an inner node from its blocks. It is saturated if all its children are; the root of a tree without jobs is not.
func (v *values) total(i, first, end int32) {
	account := v.account[i]
	account.Clear(resource.Base)
	hungry := int32(0)
	for b := first; b < end; b++ {
		account.Add(v.blocks[b].sum)
		hungry += v.blocks[b].hungry
	}
	v.share[i], _ = v.jobs.Of(*account)
	v.saturated[i] = hungry == 0 && end > first
}
