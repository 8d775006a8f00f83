package hdrf

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// missing is the node of a part of a path that no job lies under.
const missing = -1

// tree is the weighted tree of the queues' paths with the jobs as leaves. Nodes are numbered level by level from the root, 0, so that a
// node comes before its children, and the children of a node are neighbours.
type tree struct {
	nodes []node
	// leaf is the node of each job, missing if the job is not in the session.
	leaf []int32
	// paths[start[q]:start[q+1]] are the nodes from the root down a queue's path.
	paths []int32
	start []int32
	// blocks counts the blocks of children of all inner nodes.
	blocks   int
	warnings []policy.Warning
}

type node struct {
	name   string
	weight float64
	parent int32
	// first … end-1 are the children; a leaf has none.
	first, end int32
	// block is the first block of children.
	block int32
	// job at a leaf, model.None at an inner node.
	job model.JobID
}

// path returns the nodes from the root down a queue's path.
func (t *tree) path(q model.QueueID) []int32 { return t.paths[t.start[q]:t.start[q+1]] }

// children returns how many children a node has.
func (n *node) children() int32 { return n.end - n.first }

// plant returns the tree of the jobs in the session. Where queues differ on the weight of a node that they share, the queue whose job
// comes first in the session decides (Volcano: whichever job its map yields first).
func plant(v *policy.View) (*tree, error) {
	busy := make([]bool, len(v.Queues))
	for _, j := range v.Present() {
		busy[v.Jobs.At(j).Queue] = true
	}
	if err := check(v.Model, busy); err != nil {
		return nil, err
	}
	g := newGrower()
	home := make([]int32, len(v.Queues))
	for q := range home {
		home[q] = missing
	}
	for i, j := range v.Present() {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		if q := v.Jobs.At(j).Queue; home[q] == missing {
			home[q] = g.grow(int(q), v.Queues[q].Hierarchy)
		}
	}
	t := &tree{warnings: g.warnings}
	number := t.layOut(v, g.inner, home)
	t.trace(v.Queues, g.child, number)
	return t, nil
}

// layOut numbers the nodes level by level and returns the number of each inner node.
func (t *tree) layOut(v *policy.View, grown []inner, home []int32) (number []int32) {
	kids := group(len(grown), func(yield func(parent, child int32)) {
		for i := 1; i < len(grown); i++ {
			yield(grown[i].parent, int32(i))
		}
	})
	jobs := group(len(grown), func(yield func(parent, child int32)) {
		for _, j := range v.Present() {
			yield(home[v.Jobs.At(j).Queue], int32(j))
		}
	})
	number = make([]int32, len(grown))
	t.nodes = make([]node, 0, len(grown)+len(v.Present()))
	t.leaf = make([]int32, v.Jobs.Len())
	for j := range t.leaf {
		t.leaf[j] = missing
	}
	order := make([]int32, 1, len(grown))
	t.nodes = append(t.nodes, node{name: grown[0].name, weight: grown[0].weight, parent: missing, job: model.None})
	for at := 0; at < len(order); at++ {
		i := order[at]
		parent := number[i]
		first := int32(len(t.nodes))
		for _, child := range kids.of(i) {
			number[child] = int32(len(t.nodes))
			order = append(order, child)
			t.nodes = append(t.nodes, node{name: grown[child].name, weight: grown[child].weight, parent: parent, job: model.None})
		}
		for _, j := range jobs.of(i) {
			t.leaf[j] = int32(len(t.nodes))
			t.nodes = append(t.nodes, node{name: v.Jobs.At(model.JobID(j)).UID, weight: 1, parent: parent, job: model.JobID(j)})
		}
		t.nodes[parent].first, t.nodes[parent].end, t.nodes[parent].block = first, int32(len(t.nodes)), int32(t.blocks)
		t.blocks += (len(t.nodes) - int(first) + width - 1) / width
	}
	return number
}

// trace finds the nodes along the paths of all queues, those without jobs included.
func (t *tree) trace(queues []model.Queue, child map[edge]int32, number []int32) {
	t.start = make([]int32, 1, len(queues)+1)
	for q := range queues {
		at := int32(0)
		t.paths = append(t.paths, 0)
		steps(queues[q].Hierarchy, func(_ int, part, _ string) {
			next, there := child[edge{at, part}]
			if at == missing || !there {
				at = missing
				t.paths = append(t.paths, missing)
				return
			}
			at = next
			t.paths = append(t.paths, number[next])
		})
		t.start = append(t.start, int32(len(t.paths)))
	}
}

// groups lists children by parent.
type groups struct {
	start, list []int32
}

func (g *groups) of(parent int32) []int32 { return g.list[g.start[parent]:g.start[parent+1]] }

// group sorts what each yields by parent; children of one parent keep their order.
func group(parents int, each func(yield func(parent, child int32))) groups {
	g := groups{start: make([]int32, parents+2)}
	each(func(parent, _ int32) { g.start[parent+2]++ })
	for i := 2; i < len(g.start); i++ {
		g.start[i] += g.start[i-1]
	}
	g.list = make([]int32, g.start[parents+1])
	each(func(parent, child int32) {
		g.list[g.start[parent+1]] = child
		g.start[parent+1]++
	})
	return g
}
