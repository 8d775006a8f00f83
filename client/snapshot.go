package client

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/quantity"
)

// Snapshot builds a snapshot from names and Kubernetes quantities. Entities are added in any order; each keeps the position in which it was
// added. Errors are collected until Build.
type Snapshot struct {
	message    apportionv1.Snapshot
	dimensions dimensions
	// nodes are positions by name; placed are tasks whose node is resolved by Build.
	nodes  map[string]uint32
	placed []placement
	// sets are node sets whose nodes are resolved by Build.
	sets   []members
	faults []string
	total  int
}

// placement is a task with the name of its node. members are the names of the nodes of a set.
type members struct {
	set         *apportionv1.NodeSet
	nodes       []string
	preferences []NodePreference
}

type placement struct {
	task *apportionv1.Task
	node string
	job  int
}

// maxFaults is the maximum number of faults that a SnapshotError lists; it counts all of them.
const maxFaults = 50

// SnapshotError contains the errors of a snapshot, in the order in which they occurred.
type SnapshotError struct {
	// Faults are the first 50, each with its path.
	Faults []string
	// Total is their number.
	Total int
}

// Error lists the errors, one per line.
func (e *SnapshotError) Error() string {
	text := strings.Join(e.Faults, "\n")
	if e.Total > len(e.Faults) {
		text += fmt.Sprintf("\nand %d more", e.Total-len(e.Faults))
	}
	return text
}

// NewSnapshot returns an empty snapshot, which is valid.
func NewSnapshot() *Snapshot {
	return &Snapshot{nodes: make(map[string]uint32), dimensions: dimensions{index: make(map[string]uint32)}}
}

// AsOf sets the time of all decisions.
func (s *Snapshot) AsOf(now time.Time) *Snapshot {
	s.message.AsOf = now.UnixNano()
	return s
}

// Cluster sets a label for logs.
func (s *Snapshot) Cluster(label string) *Snapshot {
	s.message.Cluster = label
	return s
}

// Total sets the cluster's total, which by default is the sum over all nodes.
func (s *Snapshot) Total(total Resources) *Snapshot {
	s.message.Total = s.resource("total", total)
	return s
}

// Queue adds queues.
func (s *Snapshot) Queue(queues ...Queue) *Snapshot {
	for i := range queues {
		s.queue(&queues[i])
	}
	return s
}

func (s *Snapshot) queue(q *Queue) {
	path := fmt.Sprintf("queues[%d]", len(s.message.GetQueues()))
	message := &apportionv1.Queue{
		Name: q.Name, Parent: q.Parent, Priority: q.Priority, State: q.State,
		Capability:        s.resource(path+".capability", q.Capability),
		Guarantee:         s.resource(path+".guarantee", q.Guarantee),
		Deserved:          s.resource(path+".deserved", q.Deserved),
		NodeGroupAffinity: q.NodeGroupAffinity, FairShareHierarchy: q.FairShareHierarchy,
		CreateTime: moment(q.Created),
		Usage:      s.usage(q.Usage), Entitled: s.usage(q.Entitled), Reserved: s.usage(q.Reserved), Budget: s.budget(q.Budget),
		Owners: s.owners(q.Owners), Kueue: ofKueue(s, path+".kueue", q.Kueue, q.Dimensions),
	}
	message.NodeGroupLimits = s.nodeGroupLimits(path, q)
	switch {
	case q.Weightless && q.Weight != 0:
		s.fault(path+".weight", "both weightless and of weight %d", q.Weight)
	case q.Weightless:
		message.Weight = new(uint32(0))
	case q.Weight != 0:
		message.Weight = new(q.Weight)
	}
	if q.NotReclaimable {
		message.Reclaimable = new(false)
	}
	s.message.Queues = append(s.message.Queues, message)
}

// nodeGroupLimits returns a queue's limits for groups of nodes in the order of the groups' names, nil if there are none.
func (s *Snapshot) nodeGroupLimits(path string, q *Queue) *apportionv1.NodeGroupLimits {
	if len(q.NodeGroupLimits) == 0 && !q.NodeGroupLimitsInvalid {
		return nil
	}
	limits := &apportionv1.NodeGroupLimits{Invalid: q.NodeGroupLimitsInvalid}
	for _, group := range slices.Sorted(maps.Keys(q.NodeGroupLimits)) {
		at := fmt.Sprintf("%s.node_group_limits.groups[%d].limit", path, len(limits.GetGroups()))
		limits.Groups = append(limits.Groups, &apportionv1.NodeGroupLimit{Group: group, Limit: s.resource(at, q.NodeGroupLimits[group])})
	}
	return limits
}

// Node adds nodes.
func (s *Snapshot) Node(nodes ...Node) *Snapshot {
	for i := range nodes {
		n := &nodes[i]
		position := len(s.message.GetNodes())
		path := fmt.Sprintf("nodes[%d]", position)
		message := &apportionv1.Node{
			Name:         n.Name,
			Allocatable:  s.resource(path+".allocatable", n.Allocatable),
			UsedByOthers: s.resource(path+".used_by_others", n.UsedByOthers),
		}
		if n.Group != "" {
			message.Group = new(n.Group)
		}
		message.Unschedulable, message.RevocableZone = n.Unschedulable, n.RevocableZone
		message.Domains, message.OtherPods, message.LeavingPods = n.Domains, n.OtherPods, n.LeavingPods
		for k, r := range n.Reservations {
			message.Reservations = append(message.Reservations, &apportionv1.NodeReservation{
				StartUnixNano: moment(r.From), EndUnixNano: moment(r.Until), Holder: r.Holder, Reason: r.Reason,
				Request: s.resource(fmt.Sprintf("%s.reservations[%d].request", path, k), r.Request),
			})
		}
		if _, taken := s.nodes[n.Name]; !taken {
			s.nodes[n.Name] = uint32(position)
		}
		s.message.Nodes = append(s.message.Nodes, message)
	}
	return s
}

// NodeSet adds node sets. Their nodes may be added later.
func (s *Snapshot) NodeSet(sets ...NodeSet) *Snapshot {
	for i := range sets {
		set := &sets[i]
		message := &apportionv1.NodeSet{
			Name: set.Name, Rule: set.Rule, ToleratesCordon: set.ToleratesCordon, Fixed: set.Fixed, Flavor: set.Flavor,
		}
		s.sets = append(s.sets, members{set: message, nodes: set.Nodes, preferences: set.Preferences})
		s.message.NodeSets = append(s.message.NodeSets, message)
	}
	return s
}

// Job adds jobs with their groups and tasks.
func (s *Snapshot) Job(jobs ...Job) *Snapshot {
	for i := range jobs {
		s.job(&jobs[i])
	}
	return s
}

func (s *Snapshot) job(j *Job) {
	position := len(s.message.GetJobs())
	path := fmt.Sprintf("jobs[%d]", position)
	message := &apportionv1.Job{
		Uid: j.UID, Name: j.Name, Namespace: j.Namespace, Queue: j.Queue, Priority: j.Priority, Phase: j.Phase,
		MinAvailable: j.MinAvailable, MinResources: s.resource(path+".min_resources", j.MinResources), CreateTime: moment(j.Created),
		Condition: j.Condition, Owner: j.Owner, ExpectedEnd: moment(j.ExpectedEnd), ExpectedRuntime: int64(j.ExpectedRuntime),
		Kueue: ofKueue(s, path+".kueue", j.Kueue, j.Dimensions), Detail: j.Detail, Groups: make([]*apportionv1.TaskGroup, 0, len(j.Groups)),
	}
	for k := range j.Groups {
		message.Groups = append(message.Groups, s.group(fmt.Sprintf("%s.groups[%d]", path, k), position, &j.Groups[k]))
	}
	s.message.Jobs = append(s.message.Jobs, message)
}

func (s *Snapshot) group(path string, job int, g *Group) *apportionv1.TaskGroup {
	group := &apportionv1.TaskGroup{
		Role: g.Role, Request: s.resource(path+".request", g.Request), MinAvailable: g.MinAvailable,
		NodeSet: g.NodeSet, UnjudgedConstraints: g.Unjudged, PodClass: g.PodClass, Unstated: g.Unstated,
		Tasks: make([]*apportionv1.Task, 0, len(g.Tasks)),
	}
	for i := range g.Tasks {
		group.Tasks = append(group.Tasks, s.task(path, i, job, &g.Tasks[i]))
	}
	group.Counts = appendCount(group.Counts, apportionv1.TaskStatus_TASK_STATUS_PENDING, g.Pending)
	group.Counts = appendCount(group.Counts, apportionv1.TaskStatus_TASK_STATUS_RUNNING, g.Running)
	return group
}

func appendCount(counts []*apportionv1.TaskCount, status apportionv1.TaskStatus, count uint32) []*apportionv1.TaskCount {
	if count == 0 {
		return counts
	}
	return append(counts, &apportionv1.TaskCount{Status: status, Count: count})
}

func (s *Snapshot) task(group string, position, job int, t *Task) *apportionv1.Task {
	message := &apportionv1.Task{
		Uid: t.UID, Name: t.Name, Status: t.Status, Priority: t.Priority, Index: t.Index, CreateTime: moment(t.Created),
	}
	if t.Node != "" {
		s.placed = append(s.placed, placement{task: message, node: t.Node, job: job})
	}
	if t.detailed() {
		detail := &apportionv1.TaskDetail{
			Gate: t.Gate, PriorityClass: t.PriorityClass, NodeSet: t.NodeSet, UnjudgedConstraints: t.Unjudged, Condition: t.Condition,
			PodClass: t.PodClass, NominatedNode: t.NominatedNode, NeverPreempts: t.NeverPreempts, RevocableZone: t.RevocableZone,
			Unlabelled: t.Unlabelled, Unstated: t.Unstated,
		}
		if len(t.DisruptionBudgets) > 0 {
			detail.DisruptionBudgets = &apportionv1.DisruptionBudgetNames{Names: t.DisruptionBudgets}
		}
		if t.Request != nil {
			detail.Request = s.resource(fmt.Sprintf("%s.tasks[%d].detail.request", group, position), t.Request)
		}
		if t.NotPreemptable {
			detail.Preemptable = new(false)
		}
		if !t.Scheduled.IsZero() {
			detail.ScheduleTime = new(t.Scheduled.UnixNano())
		}
		if t.Cooldown != nil {
			detail.Cooldown = new(t.Cooldown.Nanoseconds())
		}
		message.Detail = detail
	}
	return message
}

// detailed reports whether a task has one of the rarely used properties.
func (t *Task) detailed() bool {
	return t.NotPreemptable || t.Gate != 0 || t.PriorityClass != "" || !t.Scheduled.IsZero() || t.Cooldown != nil || t.Request != nil ||
		t.NodeSet != "" || len(t.Unjudged) > 0 || t.PodClass != 0 || t.Condition != "" || t.rare()
}

// rare reports whether a task has one of the properties that hardly any has.
func (t *Task) rare() bool {
	return t.NominatedNode != "" || t.NeverPreempts || t.Unlabelled || t.RevocableZone != "" || len(t.DisruptionBudgets) > 0 ||
		t.Unstated != nil
}

// Build returns the snapshot, or a *SnapshotError. The service makes further checks: duplicate names, jobs on unknown queues.
func (s *Snapshot) Build() (*apportionv1.Snapshot, error) {
	for _, p := range s.placed {
		node, ok := s.nodes[p.node]
		if !ok {
			s.fault(fmt.Sprintf("jobs[%d]", p.job), "task %q is on node %q, which is not in the snapshot", p.task.GetName(), p.node)
			continue
		}
		p.task.Node = &node
	}
	s.placed = nil
	for i, m := range s.sets {
		m.set.Nodes = s.positions(i, m.nodes)
		for _, p := range m.preferences {
			m.set.Preferences = append(m.set.Preferences, &apportionv1.NodePreference{
				Untolerated: p.Untolerated, Affinity: p.Affinity, Nodes: s.positions(i, p.Nodes),
			})
		}
	}
	s.sets = nil
	if s.total > 0 {
		return nil, &SnapshotError{Faults: s.faults, Total: s.total}
	}
	s.message.Dimensions = s.dimensions.finish()
	return &s.message, nil
}

// positions returns the positions of the nodes that the node set at position i names.
func (s *Snapshot) positions(i int, names []string) []uint32 {
	var list []uint32
	for _, name := range names {
		node, ok := s.nodes[name]
		if !ok {
			s.fault(fmt.Sprintf("node_sets[%d]", i), "node %q is not in the snapshot", name)
			continue
		}
		list = append(list, node)
	}
	return list
}

func (s *Snapshot) fault(path, format string, args ...any) {
	s.total++
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, path+": "+fmt.Sprintf(format, args...))
	}
}

// resource encodes quantities; nil stays nil.
func (s *Snapshot) resource(path string, r Resources) *apportionv1.Resource {
	if r == nil {
		return nil
	}
	message := &apportionv1.Resource{}
	for _, name := range inOrder(slices.Collect(maps.Keys(r))) {
		amount, err := quantity.Parse(name, r[name])
		if err != nil {
			s.fault(path+"."+name, "%v", err)
			continue
		}
		message.Dimensions = append(message.Dimensions, s.dimensions.of(name))
		message.Amounts = append(message.Amounts, amount)
	}
	s.dimensions.written = append(s.dimensions.written, message.Dimensions)
	return message
}

// dimensions numbers names in the order of their first use until finish.
type dimensions struct {
	names []string
	index map[string]uint32
	// written are the lists of numbers that were encoded.
	written [][]uint32
}

// ofKueue returns a copy of a message whose amounts refer to named dimensions, for a snapshot.
func ofKueue[M proto.Message](s *Snapshot, path string, message M, names []string) M {
	if !message.ProtoReflect().IsValid() {
		return message
	}
	out := proto.CloneOf(message)
	for _, list := range wirekueue.Lists(out) {
		for i, d := range list {
			if int64(d) >= int64(len(names)) {
				s.fault(path, "no dimension %d is named", d)
				return out
			}
			list[i] = s.dimensions.of(names[d])
		}
		s.dimensions.written = append(s.dimensions.written, list)
	}
	return out
}

func (d *dimensions) of(name string) uint32 {
	if index, ok := d.index[name]; ok {
		return index
	}
	index := uint32(len(d.names))
	d.names = append(d.names, name)
	d.index[name] = index
	return index
}

// finish sorts the names and renumbers the encoded amounts.
func (d *dimensions) finish() []string {
	ordered := inOrder(slices.Clone(d.names))
	final := make([]uint32, len(ordered))
	for position, name := range ordered {
		final[d.index[name]] = uint32(position)
		d.index[name] = uint32(position)
	}
	for _, list := range d.written {
		for i, index := range list {
			list[i] = final[index]
		}
	}
	d.names, d.written = ordered, nil
	return ordered
}

// moment returns a time in Unix nanoseconds, 0 if it is not known.
func moment(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
