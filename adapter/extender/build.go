package extender

import (
	"github.com/apportion/apportion/engine/model"
)

// build returns the model of a push, as of a time in Unix nanoseconds. An error is a *model.Error.
func (p *push) build(asOf int64) (*model.Model, error) {
	b := model.NewBuilder(asOf)
	dimensions, number := p.vectors.dimensions()
	b.Dimensions(dimensions)
	f := feeder{push: p, b: b}
	for _, a := range []*amounts{&f.one, &f.two, &f.three} {
		a.number = number
	}
	kept := f.keptJobs()
	f.feedNodes(kept)
	for i := range p.queues {
		f.queue(&p.queues[i])
	}
	for i, keep := range kept {
		if keep {
			f.job(&p.jobs[i])
		}
	}
	return b.Build()
}

// feeder feeds a Builder in the order that it needs: nodes, queues, then jobs with their groups and tasks.
type feeder struct {
	*push

	b               *model.Builder
	one, two, three amounts
	// nodeOf is the node of each name that tasks refer to, or model.None.
	nodeOf []model.NodeID
	// group is the number of each role's group, from 1, in the job being fed; groups are the groups.
	group  map[int32]int
	groups []feederGroup
	counts map[int32]int
}

type feederGroup struct {
	role    int32
	minimum int32
	hasMin  bool
	tasks   []int
}

// keptJobs returns which jobs have a queue. Volcano sends no others; a job without one would be left out with its tasks.
func (f *feeder) keptJobs() []bool {
	queues := make(map[string]bool, len(f.queues))
	for i := range f.queues {
		queues[f.queues[i].name] = true
	}
	kept := make([]bool, len(f.jobs))
	for i := range f.jobs {
		kept[i] = queues[f.jobs[i].queue]
	}
	return kept
}

// feedNodes adds the nodes, with the amounts that tasks without a job in the model use on them.
func (f *feeder) feedNodes(kept []bool) {
	byName := make(map[string]model.NodeID, len(f.nodes))
	for i := range f.nodes {
		byName[f.nodes[i].name] = model.NodeID(i)
	}
	f.nodeOf = make([]model.NodeID, len(f.places.list))
	for i, name := range f.places.list {
		f.nodeOf[i] = model.None
		if n, ok := byName[name]; ok && name != "" {
			f.nodeOf[i] = n
		}
	}
	others := make(map[model.NodeID]*vector)
	use := func(n model.NodeID, request int32) {
		v := others[n]
		if v == nil {
			v = &vector{}
			others[n] = v
		}
		v.plus(f.vectors.list[request])
	}
	for _, stray := range f.strays {
		if _, known := f.known[stray.uid]; !known {
			use(model.NodeID(stray.node), stray.request)
		}
	}
	for i := range f.jobs {
		if kept[i] {
			continue
		}
		for k := f.jobs[i].first; k < f.jobs[i].end; k++ {
			if t := &f.tasks[k]; f.place(t) != model.None && t.status.Counts() {
				use(f.place(t), t.request)
			}
		}
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		spec := model.NodeSpec{Name: n.name, Allocatable: f.one.of(n.allocatable), Group: n.group, Labelled: n.labelled}
		if used := others[model.NodeID(i)]; used != nil {
			spec.UsedByOthers = f.two.of(*used)
		}
		f.b.Node(spec)
	}
}

// place is the node that a task is on, or model.None.
func (f *feeder) place(t *taskRecord) model.NodeID {
	if t.node == none {
		return model.None
	}
	return f.nodeOf[t.node]
}

func (f *feeder) queue(q *queueRecord) {
	spec := model.QueueSpec{
		Name: q.name, Parent: q.parent, Weight: uint32(max(q.weight, 0)), Priority: q.priority, State: q.state,
		Reclaimable: !q.unreclaimable, CreateTime: q.created,
		Capability: f.one.of(q.capability), Guarantee: f.two.of(q.guarantee), Deserved: f.three.of(q.deserved),
		Affinity: q.affinity,
	}
	if q.path != "" {
		spec.Hierarchy = &model.Hierarchy{Path: q.path, Weights: q.weights}
	}
	f.b.Queue(spec)
}

func (f *feeder) job(j *jobRecord) {
	f.b.Job(model.JobSpec{
		UID: j.uid, Name: j.name, Namespace: j.namespace, Queue: j.queue, Priority: j.priority, Phase: j.phase,
		MinAvailable: uint32(max(j.minAvailable, 0)), MinResources: f.one.of(j.minResources),
		CreateTime: j.created,
	})
	f.groupTasks(j)
	for i := range f.groups {
		g := &f.groups[i]
		shared := f.mostCommon(g.tasks)
		spec := model.GroupSpec{Role: f.roles.list[g.role], MinAvailable: uint32(max(g.minimum, 0)), HasMin: g.hasMin}
		if shared != none {
			spec.Request = f.one.of(f.vectors.list[shared])
		}
		f.b.Group(spec)
		for _, k := range g.tasks {
			f.task(&f.tasks[k], shared)
		}
	}
}

// groupTasks sorts a job's tasks by role: first the roles that have a minimum, then the others in order of appearance.
func (f *feeder) groupTasks(j *jobRecord) {
	if f.group == nil {
		f.group, f.counts = make(map[int32]int), make(map[int32]int)
	}
	clear(f.group)
	f.groups = f.groups[:0]
	for _, r := range j.roles {
		if at := f.group[r.role]; at > 0 {
			f.groups[at-1].minimum = r.minimum
			continue
		}
		f.groups = append(f.groups, feederGroup{role: r.role, minimum: r.minimum, hasMin: true})
		f.group[r.role] = len(f.groups)
	}
	for k := j.first; k < j.end; k++ {
		role := f.tasks[k].role
		at := f.group[role]
		if at == 0 {
			f.groups = append(f.groups, feederGroup{role: role})
			at = len(f.groups)
			f.group[role] = at
		}
		f.groups[at-1].tasks = append(f.groups[at-1].tasks, k)
	}
}

// mostCommon is the request that most of the tasks have, the earliest of several; none if there are no tasks.
func (f *feeder) mostCommon(tasks []int) int32 {
	clear(f.counts)
	for _, k := range tasks {
		f.counts[f.tasks[k].request]++
	}
	best := int32(none)
	for _, k := range tasks {
		if request := f.tasks[k].request; best == none || f.counts[request] > f.counts[best] {
			best = request
		}
	}
	return best
}

func (f *feeder) task(t *taskRecord, shared int32) {
	spec := model.TaskSpec{
		UID: t.uid, Name: t.name, Status: t.status, Gate: t.gate, Node: f.place(t), Priority: t.priority, Index: t.index,
		CreateTime: t.created, Preemptable: t.preemptable,
	}
	if t.detail != none {
		spec.Detail = &f.details[t.detail]
	}
	if t.request != shared {
		spec.Request = f.two.of(f.vectors.list[t.request])
	}
	f.b.Task(&spec)
}
