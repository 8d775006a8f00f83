package fair

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// How much is tried in one run of the tests; `make properties` tries more. A seed names one cluster: failures tell it.
var (
	divisions = flag.Int("divisions", 10_000, "how many divisions the properties of shares are tried on")
	runs      = flag.Int("runs", 300, "how many clusters are run to rest")
	seed      = flag.Uint64("seed", 1, "seed of the first cluster")
)

// cluster describes a small cluster. Amounts are lists by dimension; a nil list and an entry of -1 are not given.
type cluster struct {
	plugin Plugin
	width  int
	total  []int64
	nodes  []node
	queues []queue
	jobs   []job
	// memory is nil for none.
	memory *model.MemorySpec
	// asOf is the time, in nanoseconds.
	asOf int64
}

type node struct {
	offered, others []int64
	closed          bool
}

type queue struct {
	name, parent                    string
	weight                          uint32
	priority                        int32
	created                         int64
	state                           model.QueueState
	fixed                           bool
	guarantee, capability, deserved []int64
	// demand is that of one running task that is not referred to by itself.
	demand []int64
	memory *model.QueueMemorySpec
}

type job struct {
	queue    string
	owner    string
	priority int32
	created  int64
	least    uint32
	request  []int64
	tasks    []task
	set      string
	counts   []count
	// end and runtime are those that are expected, in nanoseconds.
	end, runtime int64
	// minimum is what the job states that its least tasks need, nil for nothing.
	minimum  []int64
	admitted bool
	unjudged model.Constraints
}

type task struct {
	status   model.Status
	gate     model.Gate
	node     model.NodeID
	priority int32
	created  int64
	fixed    bool
	request  []int64
}

type count struct {
	status model.Status
	n      uint32
}

func sparse(row []int64) *model.Amounts {
	if row == nil {
		return nil
	}
	a := &model.Amounts{}
	for d, x := range row {
		if x >= 0 {
			a.Dimension, a.Amount = append(a.Dimension, uint32(d)), append(a.Amount, float64(x))
		}
	}
	return a
}

// open returns the plugin's state in the cluster.
func (c *cluster) open(t require.TestingT) *State {
	b := model.NewBuilder(c.asOf)
	names := make([]string, c.width)
	for d := range names {
		names[d] = fmt.Sprintf("r%d", d)
	}
	b.Dimensions(names)
	b.Total(sparse(c.total))
	b.Memory(c.memory)
	for i, n := range c.nodes {
		spec := model.NodeSpec{Name: fmt.Sprintf("n%d", i), Allocatable: sparse(n.offered), UsedByOthers: sparse(n.others)}
		if n.closed {
			spec.Unschedulable = &model.Unschedulable{}
		}
		b.Node(spec)
	}
	if len(c.nodes) > 1 {
		b.NodeSet(model.NodeSetSpec{Name: "last", Nodes: []uint32{uint32(len(c.nodes) - 1)}})
	}
	for _, q := range c.queues {
		b.Queue(model.QueueSpec{
			Name: q.name, Parent: q.parent, Weight: q.weight, Priority: q.priority, CreateTime: q.created, State: q.state, Reclaimable: !q.fixed,
			Guarantee: sparse(q.guarantee), Capability: sparse(q.capability), Deserved: sparse(q.deserved), Memory: q.memory,
		})
	}
	for _, q := range c.queues {
		if q.demand != nil {
			b.Job(model.JobSpec{UID: "demand of " + q.name, Queue: q.name})
			b.Group(model.GroupSpec{Request: sparse(q.demand)})
			b.Count(model.Running, model.GateNone, 1)
		}
	}
	for i, j := range c.jobs {
		j.add(b, fmt.Sprintf("j%d", i))
	}
	m, err := b.Build()
	require.NoError(t, err)
	state, err := c.plugin.Open(policy.NewView(m, nil))
	require.NoError(t, err)
	if turning, ok := state.(*turning); ok {
		return turning.State
	}
	return state.(*State)
}

func (j *job) add(b *model.Builder, uid string) {
	spec := model.JobSpec{
		UID: uid, Queue: j.queue, Priority: j.priority, CreateTime: j.created, MinAvailable: j.least, Owner: j.owner,
		ExpectedEnd: j.end, ExpectedRuntime: j.runtime, MinResources: sparse(j.minimum),
	}
	if j.admitted {
		spec.Phase = model.PhaseInqueue
	}
	b.Job(spec)
	b.Group(model.GroupSpec{Request: sparse(j.request), NodeSet: j.set, Unjudged: j.unjudged})
	for _, k := range j.counts {
		b.Count(k.status, model.GateNone, k.n)
	}
	for i, t := range j.tasks {
		b.Task(&model.TaskSpec{
			UID: fmt.Sprintf("%st%d", uid, i), Status: t.status, Gate: t.gate, Node: t.node, Priority: t.priority, CreateTime: t.created,
			Index: -1, Preemptable: !t.fixed, Request: sparse(t.request),
		})
	}
}

// draw is a source of clusters.
type draw struct{ *rand.Rand }

func drawFrom(seed uint64) draw { return draw{rand.New(rand.NewPCG(seed, 0))} }

func (d draw) chance(percent int) bool { return d.IntN(100) < percent }

// row draws amounts, each -1 with a chance.
func (d draw) row(width int, most int64, absent int) []int64 {
	row := make([]int64, width)
	for i := range row {
		row[i] = d.Int64N(most + 1)
		if d.chance(absent) {
			row[i] = -1
		}
	}
	return row
}

// base draws the settings and a tree of queues, flat or to a depth of 6, with amounts of about most.
func (d draw) base(most int64) *cluster {
	c := &cluster{width: 1 + d.IntN(3)}
	if d.chance(10) {
		c.width = 1 + d.IntN(6)
	}
	c.plugin = Plugin{Base: Base(d.IntN(3)), ReserveGuarantee: d.chance(15)}
	for i := range c.width {
		c.plugin.Quanta = append(c.plugin.Quanta, Quantum{fmt.Sprintf("r%d", i), []int64{1, 1, 2, 3, 1000}[d.IntN(5)]})
	}
	c.total = d.row(c.width, 4*most, 0)
	depth := []int{0, 0, 1, 2, 6}[d.IntN(5)]
	limit := []int{10, 40, 80}[d.IntN(3)]
	for i := range 1 + d.IntN(8) {
		q := queue{name: fmt.Sprintf("q%d", i), weight: uint32(1 + d.IntN(4)), fixed: d.chance(8)}
		switch {
		case d.chance(5):
			q.weight = uint32(1 + d.IntN(1<<31-1))
		case d.chance(6):
			q.weight = 0
		}
		if i > 0 && depth > 0 && d.chance(70) {
			// A parent not too deep; deeper trees hang on the last queues.
			q.parent = fmt.Sprintf("q%d", max(0, i-1-d.IntN(min(i, depth))))
		}
		if d.chance(20) {
			q.priority, q.created = int32(d.IntN(2)), int64(d.IntN(3))
		}
		if d.chance(limit) {
			q.guarantee = d.row(c.width, most, 20)
		}
		if d.chance(25) {
			q.capability = d.row(c.width, 3*most, 40)
		}
		if d.chance(40) {
			q.deserved = d.row(c.width, 2*most, 25)
		}
		if d.chance(4) {
			q.state = model.Closed
		}
		c.queues = append(c.queues, q)
	}
	if d.chance(4) {
		c.queues = append(c.queues, queue{name: "root", weight: 1, capability: d.row(c.width, 4*most, 40), guarantee: d.row(c.width, most, 50)})
	}
	return c
}

// isLeaf reports whether no queue names this one as its parent.
func (c *cluster) isLeaf(i int) bool {
	return !slices.ContainsFunc(c.queues, func(q queue) bool {
		return q.parent == c.queues[i].name || q.name != "root" && c.queues[i].name == "root"
	})
}

// demanding draws a cluster whose leaves only have a demand.
func (d draw) demanding() *cluster {
	most := []int64{3, 12, 12, 1000, 1 << 40}[d.IntN(5)]
	c := d.base(most)
	for i := range c.queues {
		if c.isLeaf(i) && !d.chance(15) {
			c.queues[i].demand = d.row(c.width, 3*most, 10)
		}
	}
	return c
}

// busy draws a cluster with nodes and tasks in every status.
func (d draw) busy() *cluster {
	c := d.base(12)
	c.total = nil
	for range d.IntN(4) {
		n := node{offered: d.row(c.width, 16, 5), closed: d.chance(8)}
		if d.chance(15) {
			n.others = d.row(c.width, 4, 30)
		}
		c.nodes = append(c.nodes, n)
	}
	if len(c.nodes) == 0 || d.chance(8) {
		c.total = d.row(c.width, 40, 0)
	}
	var leaves []string
	for i := range c.queues {
		if c.isLeaf(i) || d.chance(3) {
			leaves = append(leaves, c.queues[i].name)
		}
	}
	if d.chance(4) {
		c.queues = append(c.queues, queue{name: "lost", parent: "nowhere", weight: 1})
		leaves = append(leaves, "lost")
	}
	for range d.IntN(10) {
		c.jobs = append(c.jobs, d.job(c, leaves[d.IntN(len(leaves))]))
	}
	return c
}

func (d draw) job(c *cluster, queue string) job {
	j := job{queue: queue, request: d.row(c.width, 6, 20), created: int64(d.IntN(4))}
	if d.chance(20) {
		j.priority = int32(d.IntN(3))
	}
	if d.chance(30) {
		j.least = uint32(d.IntN(5))
	}
	if d.chance(8) && len(c.nodes) > 1 {
		j.set = "last"
	}
	if d.chance(8) {
		j.counts = append(j.counts, count{[]model.Status{model.Pending, model.Running, model.Releasing}[d.IntN(3)], uint32(1 + d.IntN(2))})
	}
	equal := d.chance(60)
	for range d.IntN(6) {
		t := task{node: model.None, priority: 1, fixed: d.chance(12)}
		if !equal {
			t.priority, t.created = int32(d.IntN(3)), int64(d.IntN(3))
		}
		if d.chance(15) {
			t.request = d.row(c.width, 8, 30)
		}
		switch {
		case d.chance(45):
			t.status = model.Running
		case d.chance(10):
			t.status = model.Status(d.IntN(model.NumStatus))
		case d.chance(8):
			t.gate = model.Gate(d.IntN(3))
		}
		if t.status != model.Pending && len(c.nodes) > 0 && !d.chance(10) {
			t.node = model.NodeID(d.IntN(len(c.nodes)))
		}
		j.tasks = append(j.tasks, t)
	}
	return j
}

// eachCluster draws clusters until enough are tried: each returns how many. A failure tells the seed.
func eachCluster(t *testing.T, enough int, drawn func(draw) *cluster, try func(t require.TestingT, d draw, c *cluster) int) {
	t.Helper()
	for n, at := 0, *seed; n < enough; at++ {
		d := drawFrom(at)
		c := drawn(d)
		n += try(&telling{t, at}, d, c)
		if t.Failed() {
			return
		}
	}
}

// telling tells the seed of a cluster when something about it fails.
type telling struct {
	*testing.T
	seed uint64
}

// Errorf fails the test.
func (t *telling) Errorf(format string, args ...any) {
	t.Helper()
	t.T.Errorf("seed %d: "+format, append([]any{t.seed}, args...)...)
}
