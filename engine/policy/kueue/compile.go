package kueue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/policy"
)

const (
	// MaxAccounts bounds the number of pairs of a node and a flavor-resource of its tree.
	MaxAccounts = 1 << 20
	// MaxDepth bounds the levels of a tree: a queue and the cohorts above it.
	MaxDepth = 1 << 10
)

// SizeError is the error about a cluster that is too large to be judged.
type SizeError struct{ Text string }

func (e *SizeError) Error() string { return e.Text }

// compiler makes a model of a cluster.
type compiler struct {
	*Model

	cluster   *Cluster
	flavorIDs map[string]int32
	resource  map[string]int32
	queueIDs  map[string]int32
	cohortIDs map[string]int32
	pairs     []map[pair]int32
	// work is asked for the memory of what grows with the product of lists; nil: there is enough. lacks is its error.
	work  *policy.Work
	lacks error
}

// hold books memory, or returns false if there is none.
func (c *compiler) hold(bytes int) bool {
	if c.lacks == nil {
		c.lacks = c.work.Hold(bytes)
	}
	return c.lacks == nil
}

// Compile compiles a cluster, which it keeps and does not change. Of objects with the same name the first counts. It returns a *SizeError
// for trees of cohorts that are too deep, or that have too many flavor-resources for so many queues.
func Compile(cluster *Cluster, settings Settings) (*Model, error) {
	return compile(cluster, settings, nil)
}

// compile is Compile, and books what the model and a session on it take beyond what the cluster does.
func compile(cluster *Cluster, settings Settings, work *policy.Work) (*Model, error) {
	c := compiler{
		Model: &Model{settings: settings, now: cluster.Now, standIns: map[int32]int32{}}, cluster: cluster, work: work,
		flavorIDs: map[string]int32{}, resource: map[string]int32{}, queueIDs: map[string]int32{}, cohortIDs: map[string]int32{},
	}
	if err := c.bound(); err != nil {
		return nil, err
	}
	c.listFlavors()
	c.listNodes()
	if err := c.formTrees(); err != nil {
		return nil, err
	}
	c.listResources()
	c.listGroups()
	c.listWorkloads()
	if err := cmp.Or(c.lacks, c.layOut()); err != nil {
		return nil, err
	}
	c.fillQuotas()
	c.bindWorkloads()
	c.settle()
	return c.Model, nil
}

// bound returns an error if the groups of all queues alone have too many flavor-resources, before any is made.
func (c *compiler) bound() error {
	accounts := 0
	for i := range c.cluster.Queues {
		for k := range c.cluster.Queues[i].Groups {
			g := &c.cluster.Queues[i].Groups[k]
			if n := len(g.Covered); n > 0 && len(g.Flavors) > (MaxAccounts-accounts)/n {
				return errAccounts
			}
			accounts += len(g.Covered) * len(g.Flavors)
		}
	}
	return nil
}

// errAccounts is the error about more than MaxAccounts.
var errAccounts = &SizeError{fmt.Sprintf("the queues and cohorts have more than %d accounts of flavor-resources", MaxAccounts)}

func (c *compiler) listFlavors() {
	for i := range c.cluster.Flavors {
		f := &c.cluster.Flavors[i]
		if _, ok := c.flavorIDs[f.Name]; !ok {
			c.flavorIDs[f.Name] = int32(len(c.flavors))
			c.flavors = append(c.flavors, flavor{Flavor: *f, exists: true})
		}
	}
}

// flavor returns the index of a flavor, listed or not.
func (c *compiler) flavor(name string) int32 {
	id, ok := c.flavorIDs[name]
	if !ok {
		id = int32(len(c.flavors))
		c.flavorIDs[name] = id
		c.flavors = append(c.flavors, flavor{Flavor: Flavor{Name: name}})
	}
	return id
}

// listNodes makes the nodes and their edges.
func (c *compiler) listNodes() {
	for i := range c.cluster.Queues {
		q := &c.cluster.Queues[i]
		if _, ok := c.queueIDs[q.Name]; !ok && q.StandsFor == "" {
			c.queueIDs[q.Name] = int32(i)
		}
		c.nodes = append(c.nodes, node{name: q.Name, parent: none, tree: none, weight: q.Weight})
	}
	for i := range c.cluster.Cohorts {
		o := &c.cluster.Cohorts[i]
		if _, ok := c.cohortIDs[o.Name]; !ok {
			c.cohortIDs[o.Name] = int32(len(c.nodes))
		}
		c.nodes = append(c.nodes, node{name: o.Name, parent: none, tree: none, weight: o.Weight})
	}
	for i := range c.cluster.Cohorts {
		c.setParent(len(c.cluster.Queues)+i, c.cluster.Cohorts[i].Parent)
	}
	for i := range c.cluster.Queues {
		c.setParent(i, c.cluster.Queues[i].Cohort)
	}
	c.queues = make([]queue, len(c.cluster.Queues))
	for i := range c.cluster.Queues {
		if name := c.cluster.Queues[i].StandsFor; name != "" {
			c.standIns[int32(i)] = c.cohortIDs[name]
		}
	}
}

// setParent sets the parent of a node, which is made if it is not listed.
func (c *compiler) setParent(child int, name string) {
	if name == "" {
		return
	}
	id, ok := c.cohortIDs[name]
	if !ok {
		id = int32(len(c.nodes))
		c.cohortIDs[name] = id
		c.nodes = append(c.nodes, node{name: name, parent: none, tree: none})
	}
	c.nodes[child].parent = id
}

// formTrees finds the trees, and leaves nodes below a cycle out of them.
func (c *compiler) formTrees() error {
	depth := make([]int32, len(c.nodes))
	var path []int32
	for i := range c.nodes {
		if _, stands := c.standIns[int32(i)]; stands {
			continue
		}
		path = path[:0]
		at := int32(i)
		for at != none && depth[at] == 0 {
			depth[at] = none
			path = append(path, at)
			at = c.nodes[at].parent
		}
		if at != none && c.nodes[at].tree == none {
			continue // A cycle, or below one.
		}
		if len(path) > MaxDepth || at != none && int(depth[at])+len(path) > MaxDepth {
			return &SizeError{fmt.Sprintf("%q is below %d cohorts or more", c.nodes[i].name, MaxDepth)}
		}
		for _, n := range slices.Backward(path) {
			c.nodes[n].tree, depth[n] = c.treeOf(n), 1
			if p := c.nodes[n].parent; p != none {
				depth[n] = depth[p] + 1
			}
			if int(n) >= len(c.queues) {
				c.topDown = append(c.topDown, n)
			}
		}
	}
	for i := range c.queues {
		_, stands := c.standIns[int32(i)]
		c.queues[i].inCycle = c.nodes[i].tree == none && !stands
	}
	c.pairs = make([]map[pair]int32, len(c.trees))
	for i := range c.pairs {
		c.pairs[i] = map[pair]int32{}
	}
	return nil
}

// treeOf returns the tree of a node whose parent has one.
func (c *compiler) treeOf(n int32) int32 {
	if p := c.nodes[n].parent; p != none {
		return c.nodes[p].tree
	}
	c.trees = append(c.trees, tree{root: n})
	return int32(len(c.trees) - 1)
}

// listResources numbers all resources by name.
func (c *compiler) listResources() {
	add := func(name string) { c.resource[name] = 0 }
	groups := func(groups []Group) {
		for i := range groups {
			for _, name := range groups[i].Covered {
				add(name)
			}
			for k := range groups[i].Flavors {
				for r := range groups[i].Flavors[k].Resources {
					add(groups[i].Flavors[k].Resources[r].Resource)
				}
			}
		}
	}
	for i := range c.cluster.Queues {
		groups(c.cluster.Queues[i].Groups)
	}
	for i := range c.cluster.Cohorts {
		groups(c.cluster.Cohorts[i].Groups)
	}
	for i := range c.cluster.Workloads {
		w := &c.cluster.Workloads[i]
		for k := range w.PodSets {
			for _, r := range w.PodSets[k].Requests {
				add(r.Resource)
			}
		}
		if w.Admission != nil {
			for k := range w.Admission.PodSets {
				for _, u := range w.Admission.PodSets[k].Usage {
					add(u.Resource)
				}
			}
		}
	}
	add(podsResource)
	for name := range c.resource {
		c.resources = append(c.resources, name)
	}
	slices.Sort(c.resources)
	for i, name := range c.resources {
		c.resource[name] = int32(i)
	}
	c.order, c.pods = visitingOrder(c.resources), c.resource[podsResource]
}

// podsResource is the resource that counts pods.
const podsResource = "pods"

// note adds a flavor-resource to the tree of a node. It gets its number by layOut.
func (c *compiler) note(n int32, p pair) {
	t := c.nodes[n].tree
	if t == none {
		return
	}
	if _, known := c.pairs[t][p]; !known && c.hold(pairBytes) {
		c.pairs[t][p] = 0
	}
}

// pairBytes is about what a flavor-resource takes in the map and in the list of its tree.
const pairBytes = 48

// listGroups notes the flavor-resources of all quotas.
func (c *compiler) listGroups() {
	for i := range c.cluster.Queues {
		for k := range c.cluster.Queues[i].Groups {
			g := &c.cluster.Queues[i].Groups[k]
			if !c.hold(int32Size * len(g.Flavors) * len(g.Covered)) {
				return
			}
			for f := range g.Flavors {
				for _, name := range g.Covered {
					c.note(int32(i), pair{c.flavor(g.Flavors[f].Flavor), c.resource[name]})
				}
			}
			c.noteQuotas(int32(i), g)
		}
	}
	for i := range c.cluster.Cohorts {
		for k := range c.cluster.Cohorts[i].Groups {
			c.noteQuotas(int32(len(c.queues)+i), &c.cluster.Cohorts[i].Groups[k])
		}
	}
}

func (c *compiler) noteQuotas(n int32, g *Group) {
	for f := range g.Flavors {
		for r := range g.Flavors[f].Resources {
			c.note(n, pair{c.flavor(g.Flavors[f].Flavor), c.resource[g.Flavors[f].Resources[r].Resource]})
		}
	}
}

// layOut numbers the flavor-resources of each tree and gives each node its rows.
func (c *compiler) layOut() error {
	for i := range c.trees {
		t := &c.trees[i]
		for p := range c.pairs[i] {
			t.pairs = append(t.pairs, p)
		}
		slices.SortFunc(t.pairs, func(a, b pair) int {
			return cmp.Or(cmp.Compare(a.resource, b.resource), strings.Compare(c.flavors[a.flavor].Name, c.flavors[b.flavor].Name))
		})
		t.resource = make([]int32, len(t.pairs))
		for k, p := range t.pairs {
			c.pairs[i][p] = int32(k)
			if n := len(t.resources); n == 0 || t.resources[n-1] != p.resource {
				t.resources = append(t.resources, p.resource)
			}
			t.resource[k] = int32(len(t.resources) - 1)
		}
	}
	rows, lendable := 0, 0
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.tree == none {
			continue
		}
		n.row, n.lendable = int32(rows), int32(lendable)
		if rows += len(c.trees[n.tree].pairs); rows > MaxAccounts {
			return errAccounts
		}
		if i >= len(c.queues) {
			lendable += len(c.trees[n.tree].resources)
		}
	}
	// A session has usage of its own.
	if !c.hold(amountSize*(8*rows+lendable) + rows) {
		return c.lacks
	}
	slab := make([]Amount, 7*rows+lendable)
	cut := func(n int) []Amount {
		part := slab[:n:n]
		slab = slab[n:]
		return part
	}
	a := &c.quotas
	a.nominal, a.borrowing, a.lending, a.subtree, a.local, a.potential = cut(rows), cut(rows), cut(rows), cut(rows), cut(rows), cut(rows)
	c.usage, a.lendable, a.kept = cut(rows), cut(lendable), make([]kept, rows)
	return nil
}
