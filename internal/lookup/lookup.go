// Package lookup finds entities of a snapshot by name, and returns the names of entities that answers refer to by number.
package lookup

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/text"
)

// Task is a task of a snapshot with its job and queue.
type Task struct {
	*apportionv1.Task
	// Number in the whole snapshot.
	Number uint32
	Job    *apportionv1.Job
	Group  *apportionv1.TaskGroup
}

// Name is namespace/name, or the uid, or the number.
func (t Task) Name() string {
	switch {
	case t.GetName() != "":
		return full(t.Job.GetNamespace(), t.GetName())
	case t.GetUid() != "":
		return t.GetUid()
	}
	return fmt.Sprintf("#%d", t.Number)
}

// Request of the task; nil: nothing.
func (t Task) Request() *apportionv1.Resource {
	if own := t.GetDetail().GetRequest(); own != nil {
		return own
	}
	return t.Group.GetRequest()
}

// Pending is true if the task waits for placement.
func (t Task) Pending() bool {
	return t.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_PENDING || t.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED
}

// Snapshot is a snapshot with an index for lookups.
type Snapshot struct {
	*apportionv1.Snapshot
	Tasks []Task
	// queues, jobs and tasks by every name they answer to; a name that several share has the number ambiguous.
	queues, jobs, nodes map[string]int
	// tasks is made when it is first needed: few commands name a task.
	tasks func() map[string]int
	// registered is the number of jobs with names.
	registered int
}

const ambiguous = -1

// Of indexes a snapshot.
func Of(snapshot *apportionv1.Snapshot) *Snapshot {
	s := &Snapshot{
		Snapshot: snapshot,
		queues:   make(map[string]int), jobs: make(map[string]int), nodes: make(map[string]int),
	}
	for i, queue := range snapshot.GetQueues() {
		s.queues[queue.GetName()] = i
	}
	for i, node := range snapshot.GetNodes() {
		s.nodes[node.GetName()] = i
	}
	tasks := 0
	for _, job := range snapshot.GetJobs() {
		for _, group := range job.GetGroups() {
			tasks += len(group.GetTasks())
		}
	}
	s.Tasks = make([]Task, 0, tasks)
	for _, job := range snapshot.GetJobs() {
		s.add(job)
	}
	s.tasks = namesOf(s.Tasks)
	return s
}

// namesOf returns a function that makes the table of tasks once.
func namesOf(tasks []Task) func() map[string]int {
	return sync.OnceValue(func() map[string]int {
		names := make(map[string]int, 2*len(tasks))
		for _, t := range tasks {
			register(names, int(t.Number), t.GetUid(), full(t.Job.GetNamespace(), t.GetName()), t.GetName())
		}
		return names
	})
}

// With returns the snapshot with one more job, as after a change that adds it, and the job's index. s is not modified.
func (s *Snapshot) With(job *apportionv1.Job) (*Snapshot, uint32) {
	larger := &Snapshot{
		Snapshot: &apportionv1.Snapshot{
			AsOf: s.GetAsOf(), Cluster: s.GetCluster(), Dimensions: s.GetDimensions(), Nodes: s.GetNodes(), Queues: s.GetQueues(),
			NodeSets: s.GetNodeSets(), Pods: s.GetPods(), LeftOuts: s.GetLeftOuts(),
			Jobs: append(slices.Clone(s.GetJobs()), job), Total: s.GetTotal(),
		},
		Tasks:  slices.Clone(s.Tasks),
		queues: s.queues, jobs: maps.Clone(s.jobs), nodes: s.nodes, registered: s.registered,
	}
	larger.add(job)
	larger.tasks = namesOf(larger.Tasks)
	return larger, uint32(larger.registered - 1)
}

// add registers a job under the next number.
func (s *Snapshot) add(job *apportionv1.Job) {
	register(s.jobs, s.registered, job.GetUid(), full(job.GetNamespace(), job.GetName()), job.GetName())
	s.registered++
	for _, group := range job.GetGroups() {
		for _, task := range group.GetTasks() {
			s.Tasks = append(s.Tasks, Task{Task: task, Number: uint32(len(s.Tasks)), Job: job, Group: group})
		}
	}
}

// register enters a thing under its names, most telling first: a later name never takes over from a more telling one of another thing.
func register(names map[string]int, number int, list ...string) {
	for i, name := range list {
		if name == "" || strings.HasSuffix(name, "/") || slices.Contains(list[:i], name) {
			continue
		}
		if _, taken := names[name]; taken {
			names[name] = ambiguous
			continue
		}
		names[name] = number
	}
}

// full is namespace/name, or name alone.
func full(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// JobName is namespace/name, or the uid.
func JobName(job *apportionv1.Job) string {
	if name := full(job.GetNamespace(), job.GetName()); name != "" && !strings.HasSuffix(name, "/") {
		return name
	}
	return job.GetUid()
}

// Names returns names for indices in answers with this basis.
func (s *Snapshot) Names(basis *apportionv1.Basis) text.Names {
	names := text.NamesOf(basis, s.Snapshot)
	names.Spent = func(queue, dimension uint32) (all, almost bool) {
		if int(queue) >= len(s.GetQueues()) || s.GetMemory() == nil {
			return false, false
		}
		budget := s.GetQueues()[queue].GetBudget()
		amount, stated := Used(budget.GetAmount(), dimension)
		spent, _ := Used(budget.GetSpent(), dimension)
		stated = stated && budget.GetKind() == apportionv1.BudgetKind_BUDGET_KIND_HARD
		return stated && spent >= amount, stated && amount-spent < s.GetMemory().GetEpochSeconds()
	}
	return names
}

// Unread parts what a snapshot leaves out into the kinds of objects that were not read, and all else.
func Unread(s *apportionv1.Snapshot) (kinds, rest []*apportionv1.LeftOut) {
	for _, l := range s.GetLeftOuts() {
		if l.GetCause() == apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD {
			kinds = append(kinds, l)
		} else {
			rest = append(rest, l)
		}
	}
	return kinds, rest
}

// Queue finds a queue.
func (s *Snapshot) Queue(name string) (uint32, error) {
	return find("queue", s.queues, name, s.GetQueues(), (*apportionv1.Queue).GetName)
}

// Node finds a node.
func (s *Snapshot) Node(name string) (uint32, error) {
	return find("node", s.nodes, name, s.GetNodes(), (*apportionv1.Node).GetName)
}

// Has reports whether a thing of a kind, queue, ClusterQueue, cohort, job or node, is found by a name.
func (s *Snapshot) Has(kind, name string) bool {
	var of map[string]int
	switch kind {
	case "queue", "clusterqueue", "cohort":
		of = s.queues
	case "job":
		of = s.jobs
	case "node":
		of = s.nodes
	}
	number, known := of[name]
	return known && number >= 0
}

// Job finds a job by uid, namespace/name, or name alone if no other job has it.
func (s *Snapshot) Job(name string) (uint32, error) {
	return find("job", s.jobs, name, s.GetJobs(), JobName)
}

// LeftOut reports whether a job or a pod that the scheduler does not consider has a name, given as namespace/name or as the name alone.
func (s *Snapshot) LeftOut(name string) bool {
	return slices.ContainsFunc(s.GetLeftOuts(), func(l *apportionv1.LeftOut) bool {
		return name == full(l.GetNamespace(), l.GetName()) || name == l.GetName()
	})
}

// JobOrTask finds a job by its name, or by the name of one of its tasks.
func (s *Snapshot) JobOrTask(name string) (uint32, error) {
	index, err := s.Job(name)
	if err == nil {
		return index, nil
	}
	if number, ok := s.tasks()[name]; ok && number >= 0 {
		return uint32(slices.Index(s.GetJobs(), s.Tasks[number].Job)), nil
	}
	return 0, err
}

// Task finds a task by uid, namespace/name, or name alone if no other task has it.
func (s *Snapshot) Task(name string) (uint32, error) {
	return find("task", s.tasks(), name, s.Tasks, Task.Name)
}

// TaskName returns the name of a task by its number.
func (s *Snapshot) TaskName(number uint32) string {
	if int(number) < len(s.Tasks) {
		return s.Tasks[number].Name()
	}
	return fmt.Sprintf("#%d", number)
}

// JobName returns the name of a job by its index.
func (s *Snapshot) JobName(index uint32) string {
	if jobs := s.GetJobs(); int(index) < len(jobs) {
		return JobName(jobs[index])
	}
	return fmt.Sprintf("#%d", index)
}

// Reserved says what the reservations of a node keep that have not ended, and for what. names are those of the dimensions that they refer
// to.
func (s *Snapshot) Reserved(names text.Names, list []*apportionv1.NodeReservation) string {
	var said []string
	for _, r := range list {
		if r.GetEndUnixNano() != 0 && r.GetEndUnixNano() <= s.GetAsOf() {
			continue
		}
		holder := r.GetHolder()
		if number, known := s.jobs[holder]; known && number >= 0 {
			holder = s.JobName(uint32(number))
		}
		said = append(said, text.Reserved(names, holder, r))
	}
	return strings.Join(said, "; ")
}

// NodeName returns the name of a node by its index.
func (s *Snapshot) NodeName(index uint32) string {
	if nodes := s.GetNodes(); int(index) < len(nodes) {
		return nodes[index].GetName()
	}
	return fmt.Sprintf("#%d", index)
}

// Holds reports whether a task of this status holds resources of its queue, as model.Status.Holds has it.
func Holds(status apportionv1.TaskStatus) bool {
	switch status {
	case apportionv1.TaskStatus_TASK_STATUS_ALLOCATED, apportionv1.TaskStatus_TASK_STATUS_BINDING,
		apportionv1.TaskStatus_TASK_STATUS_BOUND, apportionv1.TaskStatus_TASK_STATUS_RUNNING:
		return true
	default:
		return false
	}
}

// Granted reports whether a task of this status holds resources, or waits for those that were promised to it and that others release.
func Granted(status apportionv1.TaskStatus) bool {
	return Holds(status) || status == apportionv1.TaskStatus_TASK_STATUS_PIPELINED
}

// Occupies reports whether others cannot have what a task of this status uses: it holds resources, or is releasing them.
func Occupies(status apportionv1.TaskStatus) bool {
	return Holds(status) || status == apportionv1.TaskStatus_TASK_STATUS_RELEASING
}

// Run reports whether a task of any job holds resources.
func (s *Snapshot) Run() bool {
	counted := func(c *apportionv1.TaskCount) bool { return c.GetCount() > 0 && Holds(c.GetStatus()) }
	of := func(g *apportionv1.TaskGroup) bool { return slices.ContainsFunc(g.GetCounts(), counted) }
	return slices.ContainsFunc(s.Tasks, func(t Task) bool { return Holds(t.GetStatus()) }) ||
		slices.ContainsFunc(s.GetJobs(), func(j *apportionv1.Job) bool { return slices.ContainsFunc(j.GetGroups(), of) })
}

// TasksOf returns the tasks of a job.
func (s *Snapshot) TasksOf(job uint32) []Task {
	var tasks []Task
	for _, t := range s.Tasks {
		if int(job) < len(s.GetJobs()) && t.Job == s.GetJobs()[job] {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Some lists the first names in order.
func Some(names []string) string {
	const most = 8
	names = slices.Sorted(slices.Values(names))
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// find looks a name up. If there is no such name, it says what is like it, or else what there is.
func find[T any](kind string, names map[string]int, name string, all []T, nameOf func(T) string) (uint32, error) {
	index, ok := names[name]
	switch {
	case name == "":
		return 0, fmt.Errorf("the name of the %s is missing", kind)
	case ok && index >= 0:
		return uint32(index), nil
	case ok:
		return 0, fmt.Errorf("more than one %s is called %q: write namespace/name", kind, name)
	}
	like := spelling.Similar(name, maps.Keys(names))
	if like == "" {
		like = containing(name, maps.Keys(names))
	}
	if like != "" {
		return 0, fmt.Errorf("no %s %q; did you mean %q?", kind, name, like)
	}
	list := make([]string, len(all))
	for i := range all {
		list[i] = nameOf(all[i])
	}
	return 0, fmt.Errorf("no %s %q; %ss are %s", kind, name, kind, Some(list))
}

// containing is the shortest known name that a name is part of, "" if there is none; one or two letters are part of too many.
func containing(name string, known iter.Seq[string]) string {
	const least = 3
	best := ""
	for candidate := range known {
		if len(name) < least || !strings.Contains(candidate, name) {
			continue
		}
		if best == "" || len(candidate) < len(best) || len(candidate) == len(best) && candidate < best {
			best = candidate
		}
	}
	return best
}
