// Package policytest describes small clusters for the tests of policies.
package policytest

import (
	"maps"
	"slices"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Amounts are resources by name; cpu in milli-cores, memory in bytes.
type Amounts map[string]float64

// Tasks are N equal tasks; 0 counts as 1. The uid of a task is the job's and a number, from 0 through all tasks of the job role by role,
// such as job-0.
type Tasks struct {
	N        int
	Status   model.Status
	Request  Amounts
	Role     string
	Priority int32
	Gate     model.Gate
	Detail   *model.Detail
}

// Job is a job with its tasks. RoleMin holds the minima of roles.
type Job struct {
	Name, Namespace, Queue string
	Priority               int32
	Min                    uint32
	RoleMin                map[string]uint32
	Tasks                  []Tasks
}

// Cluster is a whole snapshot.
type Cluster struct {
	AsOf   int64
	Total  Amounts
	Queues []model.QueueSpec
	Jobs   []Job
}

// Queues returns queues of the given names.
func Queues(names ...string) []model.QueueSpec {
	specs := make([]model.QueueSpec, len(names))
	for i, name := range names {
		specs[i] = model.QueueSpec{Name: name, Weight: 1, Reclaimable: true}
	}
	return specs
}

// View compiles the cluster.
func (c Cluster) View(t require.TestingT) *policy.View {
	b := model.NewBuilder(c.AsOf)
	dimensions := c.dimensions()
	b.Dimensions(dimensions)
	b.Total(Sparse(dimensions, c.Total))
	for _, q := range c.Queues {
		b.Queue(q)
	}
	for _, j := range c.Jobs {
		b.Job(model.JobSpec{
			UID: j.Name, Name: j.Name, Namespace: j.Namespace, Queue: j.Queue, Priority: j.Priority, MinAvailable: j.Min,
		})
		j.add(b, dimensions)
	}
	m, err := b.Build()
	require.NoError(t, err)
	return policy.NewView(m, nil)
}

func (j Job) add(b *model.Builder, dimensions []string) {
	roles := map[string][]Tasks{}
	for role := range j.RoleMin {
		roles[role] = nil
	}
	for _, tasks := range j.Tasks {
		roles[tasks.Role] = append(roles[tasks.Role], tasks)
	}
	next := 0
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		minimum, has := j.RoleMin[role]
		b.Group(model.GroupSpec{Role: role, MinAvailable: minimum, HasMin: has})
		for _, tasks := range roles[role] {
			for range max(tasks.N, 1) {
				b.Task(&model.TaskSpec{
					UID: j.Name + "-" + strconv.Itoa(next), Status: tasks.Status, Gate: tasks.Gate, Node: model.None,
					Priority: tasks.Priority, Index: -1, Preemptable: true, Detail: tasks.Detail,
					Request: Sparse(dimensions, tasks.Request),
				})
				next++
			}
		}
	}
}

func (c Cluster) dimensions() []string {
	names := map[string]bool{}
	add := func(a Amounts) {
		for name := range a {
			names[name] = true
		}
	}
	add(c.Total)
	for _, j := range c.Jobs {
		for _, tasks := range j.Tasks {
			add(tasks.Request)
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Sparse returns amounts as a snapshot with these dimensions has them; nil stays nil.
func Sparse(dimensions []string, a Amounts) *model.Amounts {
	if a == nil {
		return nil
	}
	s := &model.Amounts{}
	for i, name := range dimensions {
		if x, ok := a[name]; ok {
			s.Dimension, s.Amount = append(s.Dimension, uint32(i)), append(s.Amount, x)
		}
	}
	return s
}

// Task returns a task by its uid.
func Task(t require.TestingT, v *policy.View, uid string) model.TaskID {
	id, ok := v.Task(uid)
	require.True(t, ok, "no task %s", uid)
	return id
}

// TaskIDs returns tasks by their uids.
func TaskIDs(t require.TestingT, v *policy.View, uids ...string) []model.TaskID {
	ids := make([]model.TaskID, len(uids))
	for i, uid := range uids {
		ids[i] = Task(t, v, uid)
	}
	return ids
}

// JobID returns a job by its uid.
func JobID(t require.TestingT, v *policy.View, uid string) model.JobID {
	id, ok := v.Job(uid)
	require.True(t, ok, "no job %s", uid)
	return id
}

// QueueID returns a queue by its name.
func QueueID(t require.TestingT, v *policy.View, name string) model.QueueID {
	id, ok := v.Queue(name)
	require.True(t, ok, "no queue %s", name)
	return id
}

// Victims asks for victims with every check explained, and returns the uids of those chosen and the reasons of those spared.
func Victims(
	t require.TestingT, v *policy.View, ask policy.VictimFunc, claimant string, candidates ...string,
) (chosen []string, spared map[string]policy.Reason) {
	g := policy.Grounds{Checks: &policy.Checks{}}
	asked := TaskIDs(t, v, candidates...)
	victims, vote := ask(Task(t, v, claimant), asked, nil, &g)
	require.Equal(t, policy.Permit, vote)
	quiet, _ := ask(Task(t, v, claimant), asked, nil, nil)
	require.Equal(t, victims, quiet, "the same without grounds, and asked again")
	for _, id := range victims {
		chosen = append(chosen, v.TaskUID(id))
	}
	spared = map[string]policy.Reason{}
	for _, check := range g.Spared.List {
		spared[v.TaskUID(check.Task)] = check.Reason
	}
	require.Len(t, g.Spared.List, len(candidates)-len(victims), "who is no victim is spared for one reason")
	return chosen, spared
}

// Toggle releases a task that holds resources, and allocates any other, and tells an account of it.
func Toggle(v *policy.View, account interface {
	Allocate(task model.TaskID)
	Deallocate(task model.TaskID)
}, task model.TaskID,
) {
	if v.Status(task).Holds() {
		v.SetStatus(task, model.Releasing, model.None)
		account.Deallocate(task)
	} else {
		v.SetStatus(task, model.Allocated, model.None)
		account.Allocate(task)
	}
}

// Named returns the amounts of a row by name.
func Named(dimensions resource.Dimensions, r resource.Row) Amounts {
	a := Amounts{}
	for d := range dimensions.Len() {
		if r.Has.Has(d) {
			a[dimensions.Name(d)] = r.V[d]
		}
	}
	return a
}
