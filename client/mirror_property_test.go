package client_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// twin is a cluster as a mirror should follow it, in the plainest way: by name, put together anew for each snapshot.
type twin struct {
	nodes  map[string]client.Node
	queues map[string]client.Queue
	sets   map[string]client.NodeSet
	jobs   map[string]client.Job
	asOf   time.Time
	total  client.Resources
	memory *client.Memory
}

// setNames are those of node sets, and of the flavors that quotas name.
var setNames = append([]string{"s0", "s1"}, drawnFlavors...)

func newTwin() *twin {
	return &twin{
		nodes: map[string]client.Node{}, queues: map[string]client.Queue{}, sets: map[string]client.NodeSet{}, jobs: map[string]client.Job{},
	}
}

// settle forgets references to nodes that are not there, which a snapshot cannot express.
func (w *twin) settle() {
	there := func(name string) bool { _, ok := w.nodes[name]; return ok }
	for name, set := range w.sets {
		set.Nodes = slices.DeleteFunc(slices.Clone(set.Nodes), func(node string) bool { return !there(node) })
		w.sets[name] = set
	}
	for _, job := range w.jobs {
		for g := range job.Groups {
			for i := range job.Groups[g].Tasks {
				if task := &job.Groups[g].Tasks[i]; !there(task.Node) {
					task.Node = ""
				}
			}
		}
	}
}

// snapshot is the cluster whole. A reference to an absent node counts as none.
func (w *twin) snapshot(t require.TestingT) *apportionv1.Snapshot {
	again := twin{nodes: w.nodes, sets: maps.Clone(w.sets), jobs: copied(w.jobs)}
	again.settle()
	s := client.NewSnapshot()
	if !w.asOf.IsZero() {
		s.AsOf(w.asOf)
	}
	s.Total(w.total)
	if w.memory != nil {
		s.Memory(*w.memory)
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		s.Node(w.nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.queues)) {
		s.Queue(w.queues[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.sets)) {
		s.NodeSet(again.sets[name])
	}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		s.Job(again.jobs[id])
	}
	whole, err := s.Build()
	require.NoError(t, err)
	return whole
}

// tasks are the tasks with a uid of all jobs, by their place.
func (w *twin) tasks() map[string]*client.Task {
	tasks := map[string]*client.Task{}
	for _, job := range w.jobs {
		for g := range job.Groups {
			for i := range job.Groups[g].Tasks {
				if task := &job.Groups[g].Tasks[i]; task.UID != "" {
					tasks[task.UID] = task
				}
			}
		}
	}
	return tasks
}

var (
	nodeNames  = []string{"n0", "n1", "n2", "n3", "n4"}
	queueNames = []string{"a", "b", "c", "d"}
	jobNames   = []string{"j0", "j1", "j2", "j3", "j4", "j5", "j6"}
	statuses   = []apportionv1.TaskStatus{
		0, apportionv1.TaskStatus_TASK_STATUS_PENDING, apportionv1.TaskStatus_TASK_STATUS_RUNNING, apportionv1.TaskStatus_TASK_STATUS_RELEASING,
	}
)

func drawResources(t *rapid.T, label string) client.Resources {
	return client.Resources{
		"cpu": fmt.Sprint(rapid.IntRange(1, 9).Draw(t, label)), "memory": fmt.Sprint(rapid.IntRange(1, 9).Draw(t, label)) + "Gi",
		"nvidia.com/gpu": fmt.Sprint(rapid.IntRange(0, 2).Draw(t, label)),
	}
}

func drawUsage(t *rapid.T, label string) client.Usage {
	return client.Usage{"nvidia.com/gpu": rapid.Int64Range(0, 9e4).Draw(t, label), "cpu": rapid.Int64Range(0, 9e8).Draw(t, label)}
}

// edit draws a change of the cluster and makes it in both.
func (w *twin) edit(t *rapid.T, m *client.Mirror) {
	var err error
	switch rapid.SampledFrom([]string{
		"node", "node", "remove node", "queue", "remove queue", "set", "remove set", "job", "job", "job", "remove job", "task", "task", "task", "clock", "total", "memory", "again",
	}).Draw(t, "edit") {
	case "node":
		n := client.Node{Name: rapid.SampledFrom(nodeNames).Draw(t, "node"), Allocatable: drawResources(t, "allocatable")}
		if rapid.Bool().Draw(t, "grouped") {
			n.Group = "g"
		}
		w.nodes[n.Name] = n
		err = m.SetNode(n)
	case "remove node":
		name := rapid.SampledFrom(nodeNames).Draw(t, "node")
		_, there := w.nodes[name]
		require.Equal(t, there, m.RemoveNode(name) == nil)
		delete(w.nodes, name)
	case "queue":
		q := client.Queue{Name: rapid.SampledFrom(queueNames).Draw(t, "queue"), Weight: uint32(rapid.IntRange(0, 4).Draw(t, "weight"))}
		if rapid.Bool().Draw(t, "capped") {
			q.Capability = drawResources(t, "capability")
		}
		if rapid.Bool().Draw(t, "used") {
			q.Usage = drawUsage(t, "usage")
			q.Owners = []client.OwnerUsage{{Owner: "ann", Usage: drawUsage(t, "ann's")}}
			q.Budget = &client.Budget{Kind: apportionv1.BudgetKind_BUDGET_KIND_HARD, Amount: drawUsage(t, "budget"), Spent: drawUsage(t, "spent")}
		}
		if rapid.Bool().Draw(t, "of Kueue") {
			q.Kueue, q.Dimensions = drawKueueQueue(t), drawDimension(t)
			q.Parent = rapid.SampledFrom([]string{"", "all", "others"}).Draw(t, "cohort")
		}
		w.queues[q.Name] = q
		err = m.SetQueue(q)
	case "remove queue":
		name := rapid.SampledFrom(queueNames).Draw(t, "queue")
		_, there := w.queues[name]
		used := false
		for _, job := range w.jobs {
			used = used || job.Queue == name
		}
		require.Equal(t, there && !used, m.RemoveQueue(name) == nil)
		if !used {
			delete(w.queues, name)
		}
	case "set":
		set := client.NodeSet{
			Name: rapid.SampledFrom(setNames).Draw(t, "set"), Nodes: rapid.SliceOfDistinct(rapid.SampledFrom(nodeNames), rapid.ID).Draw(t, "members"),
		}
		if rapid.Bool().Draw(t, "a flavor") {
			set.Flavor = &apportionv1.KueueFlavor{NodeLabels: []*apportionv1.KueueLabel{{Key: "gpu", Value: rapid.SampledFrom(drawnFlavors).Draw(t, "label")}}}
		}
		w.sets[set.Name] = set
		err = m.SetNodeSet(set)
	case "remove set":
		name := rapid.SampledFrom(setNames).Draw(t, "set")
		_, there := w.sets[name]
		require.Equal(t, there, m.RemoveNodeSet(name) == nil)
		delete(w.sets, name)
	case "job":
		w.editJob(t, m)
	case "remove job":
		id := rapid.SampledFrom(jobNames).Draw(t, "job")
		_, there := w.jobs[id]
		require.Equal(t, there, m.RemoveJob(id) == nil)
		delete(w.jobs, id)
	case "task":
		tasks := w.tasks()
		if len(tasks) == 0 {
			return
		}
		task := tasks[rapid.SampledFrom(slices.Sorted(maps.Keys(tasks))).Draw(t, "task")]
		task.Status, task.Node = rapid.SampledFrom(statuses).Draw(t, "status"), rapid.SampledFrom(append(nodeNames, "")).Draw(t, "on")
		err = m.SetTask(task.UID, task.Status, task.Node)
	case "clock":
		w.asOf = time.Unix(int64(rapid.IntRange(1, 1000).Draw(t, "clock")), 0)
		m.AsOf(w.asOf)
	case "total":
		w.total = nil
		if rapid.Bool().Draw(t, "given") {
			w.total = drawResources(t, "total")
		}
		err = m.SetTotal(w.total)
	case "memory":
		w.memory = nil
		if rapid.Bool().Draw(t, "given") {
			w.memory = &client.Memory{
				Epoch: time.Hour, HalfLife: uint32(rapid.IntRange(1, 28).Draw(t, "half-life")), Number: 3, Offered: drawUsage(t, "offered"),
			}
		}
		err = m.SetMemory(w.memory)
	case "again":
		err = m.Replace(w.snapshot(t))
		w.settle()
	}
	require.NoError(t, err)
}

func (w *twin) editJob(t *rapid.T, m *client.Mirror) {
	id := rapid.SampledFrom(jobNames).Draw(t, "job")
	job := client.Job{
		Name: id, Queue: rapid.SampledFrom(queueNames).Draw(t, "queue"), MinAvailable: uint32(rapid.IntRange(0, 2).Draw(t, "minimum")),
		Phase: rapid.SampledFrom([]apportionv1.JobPhase{0, apportionv1.JobPhase_JOB_PHASE_RUNNING}).Draw(t, "phase"),
	}
	if rapid.Bool().Draw(t, "of Kueue") {
		job.Kueue, job.Dimensions = drawKueueWorkload(t), drawDimension(t)
	}
	for g := range rapid.IntRange(1, 2).Draw(t, "groups") {
		group := client.Group{Role: fmt.Sprint(g), Request: drawResources(t, "request"), Pending: uint32(rapid.IntRange(0, 1).Draw(t, "counted"))}
		for i := range rapid.IntRange(0, 3).Draw(t, "tasks") {
			task := client.Task{
				Name: fmt.Sprintf("%s-%d-%d", id, g, i), Status: rapid.SampledFrom(statuses).Draw(t, "status"),
				Node: rapid.SampledFrom(append(nodeNames, "")).Draw(t, "on"),
			}
			if i < 2 {
				task.UID = "u-" + task.Name
			}
			group.Tasks = append(group.Tasks, task)
		}
		job.Groups = append(job.Groups, group)
	}
	if _, there := w.queues[job.Queue]; !there {
		require.ErrorContains(t, m.SetJob(job), "no queue")
		return
	}
	w.jobs[id] = job
	require.NoError(t, m.SetJob(job))
}

// asked returns the answers to all kinds of questions without positions and their order.
func asked(t require.TestingT, c *client.Client, in client.Input, w *twin) string {
	ctx := context.Background()
	var out strings.Builder
	note := func(message proto.Message, words ...any) {
		again := proto.Clone(message)
		forgetPositions(again.ProtoReflect())
		text := strings.Split(prototext.MarshalOptions{Multiline: true}.Format(again), "\n")
		for i := range text {
			// The library varies its spaces on purpose.
			text[i] = strings.Join(strings.Fields(text[i]), " ")
		}
		slices.Sort(text)
		fmt.Fprintln(&out, strings.Join(text, "\n"), fmt.Sprintf("%v", words))
	}
	divided, err := c.Shares(ctx, in, client.SharesQuestion{JobShares: true, Explain: true})
	require.NoError(t, err)
	note(divided.Answer)
	for _, name := range slices.Sorted(maps.Keys(w.queues)) {
		share, found := divided.Queue(name)
		fmt.Fprintln(&out, share, found)
	}
	admissions, err := c.Enqueue(ctx, in, client.EnqueueQuestion{AsAction: true})
	require.NoError(t, err)
	note(admissions.Answer)
	for _, job := range admissions.Jobs {
		fmt.Fprintln(&out, job.Job, job.Permitted, job.Why)
	}
	explained, err := c.Explain(ctx, in, client.ExplainQuestion{Jobs: slices.Sorted(maps.Keys(w.jobs))})
	require.NoError(t, err)
	note(explained.Answer)
	tasks := slices.Sorted(maps.Keys(w.tasks()))
	if len(tasks) == 0 {
		return out.String()
	}
	allowances, err := c.Allocatable(ctx, in, client.AllocatableQuestion{Tasks: tasks, Preemptive: true, Explain: true})
	require.NoError(t, err)
	note(allowances.Answer, allowances.Allocatable[0].Why)
	note(allowances.PreemptiveAnswer)
	victims, err := c.Victims(ctx, in, client.VictimsQuestion{Claimant: tasks[0], Candidates: tasks[1:], Explain: true})
	require.NoError(t, err)
	note(victims.Answer, victims.Tasks)
	for _, spared := range victims.Spared {
		fmt.Fprintln(&out, spared.Task, spared.Why)
	}
	scores, err := c.ScoreNodes(ctx, in, client.NodesQuestion{Tasks: tasks[:1], Nodes: slices.Sorted(maps.Keys(w.nodes)), Explain: true})
	require.NoError(t, err)
	fmt.Fprintln(&out, scores.Tasks)
	session, err := c.OpenSession(ctx, in)
	require.NoError(t, err)
	answers, err := session.Do(ctx, deallocate(tasks[0]), &apportionv1.Step{Step: &apportionv1.Step_Preemptive{
		Preemptive: &apportionv1.PreemptiveStep{Tasks: &apportionv1.Selector{Names: tasks}},
	}}, shares())
	require.NoError(t, err)
	require.NoError(t, session.Close())
	for _, answer := range answers {
		// Messages of errors name tasks by number.
		if fault := answer.GetError(); fault != nil {
			fault.Message = ""
		}
		note(answer)
	}
	return out.String()
}

// forgetPositions clears what differs between two snapshots that list the same things in another order.
func forgetPositions(message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() == protoreflect.Uint32Kind && slices.Contains([]protoreflect.Name{
			"queue", "job", "task", "node", "parent", "queues", "jobs", "tasks", "nodes", "ancestors", "children", "blocking", "first_jobs",
			"victims", "evictions",
		}, field.Name()):
			message.Clear(field)
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				forgetPositions(value.List().Get(i).Message())
			}
		default:
			forgetPositions(value.Message())
		}
		return true
	})
}

// After any edits a mirror answers as the whole snapshot does, in process and from a service, to the last bit; a State that was taken
// earlier still answers as it did.
func TestAMirrorAnswersAsTheWholeSnapshotBitForBit(t *testing.T) {
	r := startReplica(t, service.Options{})
	remote, local := dialAll(t, []*replica{r}), client.InProcess()
	rapid.Check(t, func(t *rapid.T) {
		c := local
		if rapid.Bool().Draw(t, "remote") {
			c = remote
		}
		preset := rapid.SampledFrom(slices.Sorted(slices.Values(client.Presets()))).Draw(t, "policy")
		policy, _ := client.Preset(preset)
		m, w := client.NewMirror(c), newTwin()
		// It makes both count dimensions alike.
		w.nodes["first"] = client.Node{Name: "first", Allocatable: drawResources(t, "first")}
		require.NoError(t, m.SetNode(w.nodes["first"]))
		type earlier struct {
			state *client.State
			said  string
			twin  *twin
		}
		var before []earlier
		for range rapid.IntRange(1, 4).Draw(t, "states") {
			for range rapid.IntRange(0, 8).Draw(t, "edits") {
				w.edit(t, m)
			}
			state := m.State()
			require.Same(t, state, m.State())
			whole := w.snapshot(t)
			want := asked(t, local, client.Input{Snapshot: whole, Policy: policy}, w)
			require.Equal(t, want, asked(t, c, client.Input{State: state, Policy: policy}, w))
			require.Equal(t, want, asked(t, local, client.Input{Snapshot: state.Snapshot(), Policy: policy}, w))
			before = append(before, earlier{state, want, &twin{
				nodes: maps.Clone(w.nodes), queues: maps.Clone(w.queues), jobs: copied(w.jobs),
			}})
		}
		old := rapid.SampledFrom(before).Draw(t, "earlier")
		require.Equal(t, old.said, asked(t, c, client.Input{State: old.state, Policy: policy}, old.twin))
	})
}

// copied copies jobs with their tasks.
func copied(jobs map[string]client.Job) map[string]client.Job {
	again := map[string]client.Job{}
	for id, job := range jobs {
		job.Groups = slices.Clone(job.Groups)
		for g := range job.Groups {
			job.Groups[g].Tasks = slices.Clone(job.Groups[g].Tasks)
		}
		again[id] = job
	}
	return again
}
