package capacity_test

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/policytest"
	"github.com/apportion/apportion/engine/resource"
)

// amounts are named quantities in the engine's units.
type amounts = policytest.Amounts

// names are the dimensions of every test cluster, in the order of the snapshot.
var names = []string{"cpu", "memory", "gpu", "pods"}

func sparse(a amounts) *model.Amounts { return policytest.Sparse(names, a) }

type queue struct {
	name, parent                    string
	priority                        int32
	state                           model.QueueState
	capability, guarantee, deserved amounts
}

type task struct {
	status  model.Status
	gate    model.Gate
	request amounts
}

func running(request amounts) task { return task{status: model.Running, request: request} }

func pending(request amounts) task { return task{status: model.Pending, request: request} }

// times repeats a task.
func times(n int, each task) []task {
	tasks := make([]task, n)
	for i := range tasks {
		tasks[i] = each
	}
	return tasks
}

type job struct {
	queue string
	phase model.Phase
	min   amounts
	tasks []task
}

func jobOf(queue string, tasks ...task) job { return job{queue: queue, tasks: tasks} }

// cluster is a snapshot in short. Job number i has the uid "ji", its task number k the uid "ji.k".
type cluster struct {
	total  amounts
	queues []queue
	jobs   []job
}

func (c cluster) model(t require.TestingT) *model.Model {
	b := model.NewBuilder(0)
	b.Dimensions(names)
	b.Node(model.NodeSpec{Name: "node", Allocatable: sparse(c.total)})
	for _, q := range c.queues {
		b.Queue(model.QueueSpec{
			Name: q.name, Parent: q.parent, Priority: q.priority, State: q.state,
			Capability: sparse(q.capability), Guarantee: sparse(q.guarantee), Deserved: sparse(q.deserved),
		})
	}
	for i, j := range c.jobs {
		uid := fmt.Sprintf("j%d", i)
		b.Job(model.JobSpec{UID: uid, Queue: j.queue, Phase: j.phase, MinResources: sparse(j.min)})
		for k, each := range j.tasks {
			b.Group(model.GroupSpec{Role: fmt.Sprint(k), Request: sparse(each.request)})
			b.Task(&model.TaskSpec{
				UID: fmt.Sprintf("%s.%d", uid, k), Status: each.status, Gate: each.gate, Node: model.None, Index: -1,
			})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}

// decider is implemented by both states of the plugin.
type decider interface {
	policy.QueueOrderer
	policy.Allocater
	policy.Preempter
	policy.Enqueuer
	policy.Reclaimer
	policy.GangEvictor
	policy.EventHandler
	policy.Sharer
	policy.Warner
	Derivation(queues []model.QueueID) []capacity.Level
}

// session asks by names.
type session struct {
	decider

	v *policy.View
	t require.TestingT
}

func (c cluster) open(t require.TestingT, p capacity.Plugin) session {
	v := policy.NewView(c.model(t), nil)
	s, err := p.Open(v)
	require.NoError(t, err)
	return session{s.(decider), v, t}
}

func (c cluster) flat(t require.TestingT) session { return c.open(t, capacity.Plugin{}) }

func (c cluster) tree(t require.TestingT) session {
	return c.open(t, capacity.Plugin{Hierarchical: true})
}

func (s session) queue(name string) model.QueueID {
	q, ok := s.v.Queue(name)
	require.True(s.t, ok, "queue %s", name)
	return q
}

func (s session) task(uid string) model.TaskID {
	t, ok := s.v.Task(uid)
	require.True(s.t, ok, "task %s", uid)
	return t
}

func (s session) share(queue string) policy.Share {
	share, ok := s.Share(s.queue(queue))
	require.True(s.t, ok, "queue %s takes no part", queue)
	return share
}

// row returns the amounts that a queue's row names, unlimited as +Inf.
func (s session) row(r resource.Row) amounts { return policytest.Named(s.v.Dims, r) }

// allocatable asks for one task and returns the reasons of a refusal.
func (s session) allocatable(uid string, mode policy.Mode) (bool, []policy.Reason) {
	t := s.task(uid)
	var why policy.Reasons
	ok := s.Allocatable(s.v.QueueOf(t), s.request(t), mode, &why, nil)
	require.Equal(s.t, ok, s.Allocatable(s.v.QueueOf(t), s.request(t), mode, nil, nil), "a reason decides")
	return ok, why.List
}

func (s session) preemptive(uid string) (bool, []policy.Reason) {
	t := s.task(uid)
	var why policy.Reasons
	ok := s.Preemptive(s.v.QueueOf(t), s.request(t), &why, nil)
	require.Equal(s.t, ok, s.Preemptive(s.v.QueueOf(t), s.request(t), nil, &policy.Checks{}), "a reason decides")
	return ok, why.List
}

func (s session) request(t model.TaskID) policy.Request {
	row := s.v.Request(t)
	return policy.Request{Row: row, BestEffort: s.v.BestEffort(row)}
}

func (s session) enqueueable(uid string) (policy.Vote, []policy.Reason) {
	j, ok := s.v.Job(uid)
	require.True(s.t, ok, "job %s", uid)
	var why policy.Reasons
	return s.Enqueueable(j, &why), why.List
}

// reclaimable returns the victims and, for each candidate that is spared, the reason.
func (s session) reclaimable(claimant string, candidates ...string) ([]string, map[string]policy.Reason, policy.Vote) {
	ids := make([]model.TaskID, 0, len(candidates))
	for _, c := range candidates {
		ids = append(ids, s.task(c))
	}
	g := policy.Grounds{Checks: &policy.Checks{}}
	victims, vote := s.Reclaimable(s.task(claimant), ids, nil, &g)
	var uids []string
	for _, v := range victims {
		uids = append(uids, s.v.TaskKey(v))
	}
	spared := map[string]policy.Reason{}
	for _, c := range g.Spared.List {
		spared[s.v.TaskKey(c.Task)] = c.Reason
	}
	require.Len(s.t, candidates, len(victims)+len(spared), "a candidate is neither taken nor spared")
	return uids, spared, vote
}

// why is a reason of this plugin, in short.
func (s session) why(code policy.Code, queue, dimension string, have, need, limit float64) policy.Reason {
	d, ok := s.v.Dims.Index(dimension)
	require.True(s.t, ok, "dimension %s", dimension)
	return policy.Reason{
		Plugin: "capacity", Code: code, Queue: s.queue(queue), Dimension: d, Have: have, Need: need, Limit: limit,
	}
}

func (s session) because(code policy.Code, queue string) policy.Reason {
	return policy.Because("capacity", code, s.queue(queue))
}
