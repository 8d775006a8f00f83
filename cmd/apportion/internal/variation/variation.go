// Package variation converts the changes that users try on a cluster to a Change: another weight, more nodes, a job that has ended.
package variation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// Variation contains the changes of a cluster from flags. Each list is in the order of the flags.
type Variation struct {
	// Set holds KIND/NAME.FIELD=VALUE.
	Set []string
	// Add is the number of added nodes, and Like, in parallel, the name of the node that they copy.
	Add  []int
	Like []string
	// Remove, Cordon and Uncordon name nodes, Finish jobs.
	Remove, Cordon, Uncordon, Finish []string
	// Remembered has the same queues with other usage, and another memory. nil: the usage stays.
	Remembered *apportionv1.Snapshot
	// Now is the time in Unix nanoseconds of a cluster that states none, if reservations of nodes depend on it.
	Now int64
	// Forget removes the memory, without which usage, budgets and owners are ignored.
	Forget bool
}

// Flags adds the flags of the changes.
func (v *Variation) Flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&v.Set, "set", nil,
		"set `KIND/NAME.FIELD=VALUE`, such as queue/vision.weight=5 or queue/vision.capability.gpu=64 (repeatable)")
	flags.IntSliceVar(&v.Add, "add-nodes", nil, "number of nodes to add, as copies of the node of --like (repeatable, with --like)")
	flags.StringArrayVar(&v.Like, "like", nil, "`NODE` to copy for added nodes")
	flags.StringArrayVar(&v.Remove, "remove-node", nil, "`NODE` to remove (repeatable)")
	flags.StringArrayVar(&v.Cordon, "cordon", nil, "`NODE` that takes no new tasks (repeatable)")
	flags.StringArrayVar(&v.Uncordon, "uncordon", nil, "`NODE` that takes new tasks again (repeatable)")
	flags.StringArrayVar(&v.Finish, "finish", nil, "`JOB` to remove as finished (repeatable)")
}

// Empty reports whether there are no changes.
func (v *Variation) Empty() bool {
	return v.Remembered == nil && !v.Forget &&
		len(v.Set)+len(v.Add)+len(v.Like)+len(v.Remove)+len(v.Cordon)+len(v.Uncordon)+len(v.Finish) == 0
}

// Made is a changed cluster.
type Made struct {
	// Base is the cluster with the dimensions of both.
	Base   *lookup.Snapshot
	Change *apportionv1.Change
	// Lines describe the changes.
	Lines []string
}

// Of returns the Change of a cluster, or an error for each flag that does not apply to it. The Change also submits jobs.
func (v *Variation) Of(cluster *lookup.Snapshot, jobs []*apportionv1.Job) (*Made, error) {
	e := &edit{
		snapshot: cluster, names: slices.Clone(cluster.GetDimensions()),
		nodes: map[uint32]*apportionv1.Node{}, queues: map[uint32]*apportionv1.Queue{}, jobs: map[uint32]*apportionv1.Job{},
		gone: map[uint32]string{}, ended: map[uint32]string{}, at: cmp.Or(cluster.GetAsOf(), v.Now),
	}
	v.memory(e)
	v.nodes(e)
	v.added(e)
	for _, name := range v.Finish {
		e.finish("--finish "+name, name)
	}
	for _, set := range v.Set {
		e.set("--set "+set, set)
	}
	if err := errors.Join(e.faults...); err != nil {
		return nil, err
	}
	for _, job := range jobs {
		e.change.Jobs = append(e.change.Jobs, job)
		e.line("submit %s to queue %s", lookup.JobName(job), job.GetQueue())
	}
	return e.made(), nil
}

func (v *Variation) nodes(e *edit) {
	for _, name := range v.Remove {
		flag := "--remove-node " + name
		if index, ok := e.node(flag, name); ok {
			e.gone[index] = flag
			e.change.RemoveNodes = append(e.change.RemoveNodes, name)
			e.line("remove node %s%s", name, e.tasksOn(index))
		}
	}
	for _, name := range v.Cordon {
		e.cordon("--cordon "+name, name, true)
	}
	for _, name := range v.Uncordon {
		e.cordon("--uncordon "+name, name, false)
	}
}

// added adds copies of nodes.
func (v *Variation) added(e *edit) {
	if len(v.Add) != len(v.Like) {
		e.fault("--add-nodes", "each --add-nodes N needs a --like NODE, and the other way round; nodes are %s",
			lookup.Some(names(e.snapshot.GetNodes(), (*apportionv1.Node).GetName)))
		return
	}
	taken, everywhere := map[string]bool{}, podsOfEveryNode(e.snapshot.GetNodes())
	for _, node := range e.snapshot.GetNodes() {
		taken[node.GetName()] = true
	}
	for i, count := range v.Add {
		flag := "--like " + v.Like[i]
		like, ok := e.node(flag, v.Like[i])
		if count < 1 || count > mostAdded {
			e.fault(fmt.Sprintf("--add-nodes %d", count), "from 1 to %d nodes can be added", mostAdded)
			ok = false
		}
		if !ok {
			continue
		}
		var positions []uint32
		for n := 1; len(positions) < count; n++ {
			copied := proto.CloneOf(e.snapshot.GetNodes()[like])
			copied.Name = fmt.Sprintf("%s-new-%d", v.Like[i], n)
			if taken[copied.GetName()] {
				continue
			}
			taken[copied.GetName()] = true
			copied.UsedByOthers, copied.Unschedulable, copied.Reservations = nil, nil, nil
			copied.OtherPods, copied.LeavingPods = everywhere, nil
			positions = append(positions, uint32(len(e.snapshot.GetNodes())+len(e.change.GetNodes())))
			e.change.Nodes = append(e.change.Nodes, copied)
		}
		e.join(like, positions)
		e.line("add %s like %s", text.Count(count, "node"), v.Like[i])
	}
}

// podsOfEveryNode returns the classes of pods that are no tasks and that every node has, as those of a DaemonSet: a new node has them too.
func podsOfEveryNode(nodes []*apportionv1.Node) []uint32 {
	var classes []uint32
	for i, node := range nodes {
		if i == 0 {
			classes = slices.Compact(slices.Sorted(slices.Values(node.GetOtherPods())))
		}
		there := map[uint32]bool{}
		for _, class := range node.GetOtherPods() {
			there[class] = true
		}
		classes = slices.DeleteFunc(classes, func(class uint32) bool { return !there[class] })
	}
	return classes
}

// mostAdded is the maximum number of nodes that one flag adds.
const mostAdded = 100_000

// edit is a Change under construction.
type edit struct {
	snapshot *lookup.Snapshot
	change   apportionv1.Change
	// names are the dimensions, those of the cluster first.
	names  []string
	nodes  map[uint32]*apportionv1.Node
	queues map[uint32]*apportionv1.Queue
	jobs   map[uint32]*apportionv1.Job
	// gone and ended contain the removed nodes and ended jobs, with their flags.
	gone, ended map[uint32]string
	// at is the time of the change.
	at     int64
	sets   []*apportionv1.NodeSet
	lines  []string
	faults []error
}

func (e *edit) line(format string, args ...any) {
	e.lines = append(e.lines, fmt.Sprintf(format, args...))
}

func (e *edit) fault(flag, format string, args ...any) {
	e.faults = append(e.faults, fmt.Errorf("%s: "+format, append([]any{flag}, args...)...))
}

// made returns the finished edit.
func (e *edit) made() *Made {
	for _, index := range slices.Sorted(maps.Keys(e.nodes)) {
		e.change.Nodes = append(e.change.Nodes, e.nodes[index])
	}
	for _, index := range slices.Sorted(maps.Keys(e.queues)) {
		e.change.Queues = append(e.change.Queues, e.queues[index])
	}
	for _, index := range slices.Sorted(maps.Keys(e.jobs)) {
		e.change.Jobs = append(e.change.Jobs, e.jobs[index])
	}
	e.change.NodeSets = e.sets
	base := e.snapshot
	if len(e.names) > len(base.GetDimensions()) {
		base = lookup.Of(&apportionv1.Snapshot{
			AsOf: base.GetAsOf(), Cluster: base.GetCluster(), Dimensions: e.names, Nodes: base.GetNodes(), Queues: base.GetQueues(),
			Jobs: base.GetJobs(), Total: base.GetTotal(), NodeSets: base.GetNodeSets(), LeftOuts: base.GetLeftOuts(),
			Memory: base.GetMemory(), Pods: base.GetPods(),
		})
	}
	return &Made{Base: base, Change: &e.change, Lines: e.lines}
}

// node finds a node that is not removed.
func (e *edit) node(flag, name string) (uint32, bool) {
	index, err := e.snapshot.Node(name)
	if err != nil {
		e.fault(flag, "%w", err)
		return 0, false
	}
	if earlier, goes := e.gone[index]; goes {
		e.fault(flag, "the node is removed by %s", earlier)
		return 0, false
	}
	return index, true
}

// changedNode returns the node to be set.
func (e *edit) changedNode(index uint32) *apportionv1.Node {
	if e.nodes[index] == nil {
		e.nodes[index] = proto.CloneOf(e.snapshot.GetNodes()[index])
	}
	return e.nodes[index]
}

func (e *edit) cordon(flag, name string, on bool) {
	index, ok := e.node(flag, name)
	if !ok {
		return
	}
	node := e.changedNode(index)
	switch {
	case on == (node.GetUnschedulable() != nil):
		word := "takes"
		if on {
			word = "does not take"
		}
		e.fault(flag, "the node %s new tasks already", word)
	case on:
		node.Unschedulable = &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED}
		e.line("cordon node %s", name)
	default:
		node.Unschedulable = nil
		e.line("uncordon node %s", name)
	}
}

// join adds nodes to each node set that contains a node, and that nodes which are like it join.
func (e *edit) join(like uint32, positions []uint32) {
	for i, set := range e.snapshot.GetNodeSets() {
		if set.GetFixed() || !slices.Contains(set.GetNodes(), like) {
			continue
		}
		name := e.snapshot.GetNodeSets()[i].GetName()
		at := slices.IndexFunc(e.sets, func(s *apportionv1.NodeSet) bool { return s.GetName() == name })
		if at < 0 {
			at = len(e.sets)
			e.sets = append(e.sets, proto.CloneOf(set))
			e.sets[at].Nodes = slices.DeleteFunc(e.sets[at].Nodes, func(node uint32) bool { return e.gone[node] != "" })
		}
		e.sets[at].Nodes = append(e.sets[at].Nodes, positions...)
	}
}

// tasksOn returns the number of tasks on a node.
func (e *edit) tasksOn(index uint32) string {
	n := 0
	for _, task := range e.snapshot.Tasks {
		if task.Node != nil && task.GetNode() == index {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return " (its task would be on no node)"
	}
	return " (its " + text.Count(n, "task") + " would be on no node)"
}

// finish ends a job, which removes it from the cluster.
func (e *edit) finish(flag, name string) {
	index, ok := e.job(flag, name)
	if !ok {
		return
	}
	e.ended[index] = flag
	job := e.snapshot.GetJobs()[index]
	id := job.GetUid()
	if id == "" {
		id = lookup.JobName(job)
	}
	e.change.RemoveJobs = append(e.change.RemoveJobs, id)
	e.line("finish %s", lookup.JobName(job))
}

// job finds a job that is not removed.
func (e *edit) job(flag, name string) (uint32, bool) {
	index, err := e.snapshot.Job(name)
	if err != nil {
		e.fault(flag, "%w", err)
		return 0, false
	}
	if earlier, goes := e.ended[index]; goes {
		e.fault(flag, "the job is ended by %s", earlier)
		return 0, false
	}
	return index, true
}
