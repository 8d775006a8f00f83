package wire_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

// numbers maps the numbers of things in one session to those of the same things in another. nil maps every number to itself.
type numbers struct {
	jobs, tasks, queues, nodes map[uint64]uint64
}

func (n numbers) inverse() numbers {
	inverse := func(m map[uint64]uint64) map[uint64]uint64 {
		if m == nil {
			return nil
		}
		out := map[uint64]uint64{}
		for from, to := range m {
			out[to] = from
		}
		return out
	}
	return numbers{inverse(n.jobs), inverse(n.tasks), inverse(n.queues), inverse(n.nodes)}
}

// jobFields and taskFields are the fields of steps and answers that hold numbers of jobs and of tasks.
var (
	jobFields = map[protoreflect.FullName]bool{
		"apportion.v1.JobShare.job": true, "apportion.v1.TreeNode.job": true,
		"apportion.v1.JobStanding.job": true, "apportion.v1.EnqueueVerdict.job": true, "apportion.v1.InspectedJob.job": true,
		"apportion.v1.InspectedTask.job": true,
	}
	taskFields = map[protoreflect.FullName]bool{
		"apportion.v1.Victim.task": true, "apportion.v1.PluginVictims.victims": true,
		"apportion.v1.Cause.task": true, "apportion.v1.VictimsAnswer.evictions": true,
		"apportion.v1.TaskVerdict.task": true, "apportion.v1.TaskNodes.task": true, "apportion.v1.InspectedTask.task": true,
	}
	queueFields = map[protoreflect.FullName]bool{
		"apportion.v1.QueueShare.queue": true, "apportion.v1.QueueShare.ancestors": true,
		"apportion.v1.QueueShare.children": true, "apportion.v1.QueueStanding.queue": true, "apportion.v1.InspectedJob.queue": true,
		"apportion.v1.Cause.queue": true, "apportion.v1.Warning.queue": true, "apportion.v1.ProportionShare.queue": true,
		"apportion.v1.CapacityLevel.queue": true, "apportion.v1.CapacityLevel.parent": true,
		"apportion.v1.FairDivision.queue": true, "apportion.v1.FairPortion.queue": true, "apportion.v1.FairQueue.queue": true,
	}
	nodeFields = map[protoreflect.FullName]bool{
		"apportion.v1.InspectedNode.node": true,
		"apportion.v1.InspectedTask.node": true, "apportion.v1.TaskNodes.nodes": true, "apportion.v1.JointPlacement.nodes": true, "apportion.v1.Cause.node": true, "apportion.v1.ReclaimPlan.nodes": true,
	}
	orderFields = map[protoreflect.FullName]bool{
		"apportion.v1.OrderAnswer.items": true, "apportion.v1.Pair.left": true, "apportion.v1.Pair.right": true,
	}
)

// renumber replaces the numbers in a message, those of orders by ordered.
func (n numbers) renumber(m protoreflect.Message, ordered map[uint64]uint64) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) || f.IsMap() {
			continue
		}
		to := n.of(f.FullName(), ordered)
		switch {
		case f.Message() != nil && f.Message().FullName() == "apportion.v1.Selector":
			selector, _ := m.Mutable(f).Message().Interface().(*apportionv1.Selector)
			if to := n.selected(f.Name()); to != nil {
				for k, index := range selector.GetIndices() {
					selector.Indices[k] = uint32(to[uint64(index)])
				}
			}
		case f.IsList() && to != nil && m.Has(f):
			list := m.Mutable(f).List()
			for k := range list.Len() {
				list.Set(k, protoreflect.ValueOfUint32(uint32(to[list.Get(k).Uint()])))
			}
		case f.IsList() && f.Message() != nil:
			for k := range m.Get(f).List().Len() {
				n.renumber(m.Get(f).List().Get(k).Message(), ordered)
			}
		case !f.IsList() && to != nil:
			m.Set(f, protoreflect.ValueOfUint32(uint32(to[m.Get(f).Uint()])))
		case !f.IsList() && f.Message() != nil:
			n.renumber(m.Get(f).Message(), ordered)
		}
	}
}

// selected returns how the numbers in a selector are replaced, nil if they are not.
func (n numbers) selected(field protoreflect.Name) map[uint64]uint64 {
	switch field {
	case "queues":
		return n.queues
	case "jobs", "job", "of":
		return n.jobs
	case "nodes", "node":
		return n.nodes
	}
	return n.tasks
}

// of returns how the numbers in a field are replaced, nil if they are not.
func (n numbers) of(name protoreflect.FullName, ordered map[uint64]uint64) map[uint64]uint64 {
	switch {
	case jobFields[name]:
		return n.jobs
	case taskFields[name]:
		return n.tasks
	case queueFields[name]:
		return n.queues
	case nodeFields[name]:
		return n.nodes
	case orderFields[name]:
		return ordered
	}
	return nil
}

// reached returns the snapshot of the state that a session is in: the jobs that are left of those given, with their phases, statuses and
// nodes as they are now, and the numbers that these jobs and their tasks have there.
func reached(t require.TestingT, s *wire.Session, snapshot *apportionv1.Snapshot, jobs []*apportionv1.Job) (*apportionv1.Snapshot, numbers) {
	out := proto.CloneOf(snapshot)
	out.Jobs = nil
	renumbered := numbers{jobs: map[uint64]uint64{}, tasks: map[uint64]uint64{}}
	now := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Jobs: true, Tasks: true}}}).GetInspect()
	require.NotNil(t, now)
	tasks := now.GetTasks()
	for _, j := range now.GetJobs() {
		job := proto.CloneOf(jobs[j.GetJob()])
		job.Phase = j.GetPhase()
		for _, g := range job.GetGroups() {
			for _, task := range g.GetTasks() {
				require.Equal(t, j.GetJob(), tasks[0].GetJob())
				task.Status, task.Node = tasks[0].GetStatus(), tasks[0].Node
				renumbered.tasks[uint64(tasks[0].GetTask())] = uint64(len(renumbered.tasks))
				tasks = tasks[1:]
			}
		}
		renumbered.jobs[uint64(j.GetJob())] = uint64(len(out.Jobs))
		out.Jobs = append(out.Jobs, job)
	}
	require.Empty(t, tasks)
	return out, renumbered
}

// roughen multiplies some amounts, so that sums depend on the order in which they are formed.
func roughen(snapshot *apportionv1.Snapshot, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	rough := func(r *apportionv1.Resource) {
		for i := range r.GetAmounts() {
			r.Amounts[i] *= []float64{1, 1, 1e15, 1. / 3}[random.IntN(4)]
		}
	}
	for _, n := range snapshot.GetNodes() {
		rough(n.GetAllocatable())
	}
	for _, j := range snapshot.GetJobs() {
		rough(j.GetMinResources())
		for _, g := range j.GetGroups() {
			rough(g.GetRequest())
		}
	}
}

// withPaths returns a basis whose warnings name jobs by other numbers.
func withPaths(basis *apportionv1.Basis, jobs map[uint64]uint64) *apportionv1.Basis {
	basis = proto.CloneOf(basis)
	for _, w := range basis.GetWarnings() {
		var job uint64
		if n, _ := fmt.Sscanf(w.GetPath(), "snapshot.jobs[%d]", &job); n == 1 {
			was := fmt.Sprintf("snapshot.jobs[%d]", job)
			w.Path = fmt.Sprintf("snapshot.jobs[%d]", jobs[job]) + strings.TrimPrefix(w.GetPath(), was)
		}
	}
	return basis
}

// aReopenedSessionIsAFreshOne changes a session, reopens it by adding or removing jobs, and requires that it answers every question as a
// session does that is opened on the state reached.
func aReopenedSessionIsAFreshOne(t *rapid.T, policy string) {
	snapshot := drawSnapshot(t, false)
	if policy != policies["fair"] { // which refuses sums above 2^60
		roughen(snapshot, rapid.Uint64().Draw(t, "roughness"))
	}
	s := opened(t, snapshot, policy)
	jobs := append([]*apportionv1.Job(nil), snapshot.GetJobs()...)
	do := func(step *apportionv1.Step) {
		for i, at := range s.Do(step).GetEvent().GetJobs() {
			jobs = slices.Grow(jobs, 1)[:max(len(jobs), int(at)+1)]
			jobs[at] = step.GetEvent().GetChange().GetJobs()[i]
		}
	}
	for range rapid.IntRange(1, 12).Draw(t, "changes") {
		undone := rapid.IntRange(0, 3).Draw(t, "undone") == 0
		mark := uint32(0)
		if undone {
			mark = s.Do(&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}).GetMark().GetMark()
		}
		before := slices.Clone(jobs)
		do(drawChange(t, snapshot))
		if undone {
			s.Do(&apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: mark}}})
			jobs = before
		}
	}
	do(event.Change(&apportionv1.Change{}))

	state, renumbered := reached(t, s, snapshot, jobs)
	fresh := opened(t, state, policy)
	require.Equal(t, prototext.Format(fresh.Basis()), prototext.Format(withPaths(s.Basis(), renumbered.jobs)))
	for _, step := range everything(state) {
		here := proto.CloneOf(step)
		renumbered.inverse().renumber(here.ProtoReflect(), nil)
		got := s.Do(here)
		ordered := map[uint64]uint64(nil)
		if step.GetOrder().GetJobs() != nil {
			ordered = renumbered.jobs
		}
		renumbered.renumber(got.ProtoReflect(), ordered)
		requireBits(t, fresh.Do(step), got, step)
	}
}

func TestAReopenedSessionIsAFreshOneBitForBit(t *testing.T) {
	raced.Skip(t)
	everyPolicy(t, aReopenedSessionIsAFreshOne)
}

func FuzzAReopenedSessionIsAFreshOne(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		aReopenedSessionIsAFreshOne(t, policies[rapid.SampledFrom(policyNames).Draw(t, "policy")])
	}))
}

func TestWhatATaskLeavesBehindIsNotCarriedIntoAReopenedSession(t *testing.T) {
	for name, reopen := range map[string]string{
		"by a job that is added": `event { change { jobs { name: "more" queue: "q" } } }`, "by one that is removed": `event { change { remove_jobs: "spare" } }`,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, `dimensions: "cpu" dimensions: "gpu" total { dimensions: 0 amounts: 1e18 } queues { name: "q" }
			  jobs { uid: "work" queue: "q" groups {
			    tasks { uid: "huge" status: TASK_STATUS_RUNNING detail { request { dimensions: [0, 1] amounts: [1e18, 1] } } }
			    tasks { uid: "small" status: TASK_STATUS_RUNNING detail { request { dimensions: 0 amounts: 500 } } } } }
			  jobs { uid: "spare" queue: "q" }`, proportional)
			requireAnswer(t, `event {} changed: true`, ask(t, s, `event { status { tasks { names: "huge" } status: TASK_STATUS_RELEASING } }`))
			require.Nil(t, ask(t, s, reopen).GetError())
			allocated := ask(t, s, `shares {}`).GetShares().GetPlugins()[0].GetQueues()[0].GetAllocated()
			require.Equal(t, []float64{500, 0}, allocated.GetAmounts(), "neither 512 millicores, the difference of two roundings, nor a gpu")
			require.Equal(t, []uint32{0, 2}, allocated.GetDimensions(), "cpu and memory")
		})
	}
}
