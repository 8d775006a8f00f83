package remedy

import (
	"fmt"
	"math"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// changeBy goes on from the cluster after edits, as Change does. The session must be as its model.
func changeBy(h engine.Host, e *editor) error {
	return h.Change(h.View().Dims.Names(), func(b *model.ChangeBuilder) {
		e.ChangeBuilder = b
		e.feed()
	})
}

// editor states parts of a model again, with differences.
type editor struct {
	*model.ChangeBuilder
	*model.Model

	job   model.JobID
	edits []Edit
	// wider names the node set that takes the place of one that leaves nodes out which tasks of the job may use; nil if there is none.
	wider map[model.NodeSetID]string
}

func (e *editor) feed() {
	joined := e.feedNodes()
	e.feedQueues()
	for set := range e.NodeSets {
		if nodes := joined[model.NodeSetID(set)]; nodes != nil {
			spec := e.NodeSetSpecOf(model.NodeSetID(set))
			spec.Nodes = append(spec.Nodes, nodes...)
			e.NodeSet(spec)
		}
	}
	restated := false
	for i := range e.edits {
		switch e.edits[i].Field { //nolint:exhaustive // The others are not about jobs.
		case JobEnded:
			e.RemoveJobs(e.edits[i].Job)
		case JobQueue, JobMinimum, TaskRequest, TaskNode:
			restated = true
		}
	}
	if restated {
		e.feedNodeSets()
		e.feedJob()
	}
}

// feedNodes adds and uncordons nodes, and returns the new ones by the node sets that they join: those of the node that they are like,
// unless the set is fixed.
func (e *editor) feedNodes() map[model.NodeSetID][]uint32 {
	next := uint32(len(e.Nodes))
	joined := map[model.NodeSetID][]uint32{}
	for i := range e.edits {
		edit := &e.edits[i]
		switch edit.Field { //nolint:exhaustive // The others are not about nodes.
		case NodeUncordoned:
			spec := e.NodeSpecOf(edit.Node)
			spec.Unschedulable = nil
			e.Builder.Node(spec)
		case NodesLike:
			spec := e.NodeSpecOf(edit.Node)
			spec.Unschedulable, spec.UsedByOthers, spec.Reservations = nil, nil, nil
			if spec.Pods != nil {
				spec.Pods = &model.NodePods{Domains: spec.Pods.Domains, Others: e.PodsOfEveryNode()}
			}
			for _, name := range e.newNames(spec.Name, int(edit.After)) {
				spec.Name = name
				e.Builder.Node(spec)
				for set := 1; set < len(e.NodeSets); set++ {
					if s := model.NodeSetID(set); !e.NodeSets[s].Fixed && e.InSet(s, edit.Node) {
						joined[s] = append(joined[s], next)
					}
				}
				next++
			}
		}
	}
	return joined
}

// feedNodeSets adds a node set with the nodes that the waiting tasks of the job may use besides, for each node set of one of them.
func (e *editor) feedNodeSets() {
	var nodes []uint32
	for i := range e.edits {
		if edit := &e.edits[i]; edit.Field == TaskNode {
			nodes = append(nodes, uint32(edit.Node))
		}
	}
	if nodes == nil {
		return
	}
	taken := map[string]bool{}
	for i := range e.NodeSets {
		taken[e.NodeSets[i].Name] = true
	}
	e.wider = map[model.NodeSetID]string{}
	job := e.Jobs.At(e.job)
	for t := job.FirstTask; t < job.EndTask; t++ {
		set := e.NodeSetOf(t)
		if set == model.AllNodes || e.Tasks.At(t).Status != model.Pending || e.wider[set] != "" {
			continue
		}
		spec := e.NodeSetSpecOf(set)
		for spec.Name += " or other nodes"; taken[spec.Name]; {
			spec.Name += " again"
		}
		taken[spec.Name], e.wider[set] = true, spec.Name
		for _, n := range nodes {
			if openable(e.Model, set, model.NodeID(n)) {
				spec.Nodes = append(spec.Nodes, n)
			}
		}
		e.NodeSet(spec)
	}
}

// newNames returns names for copies of a node that no node has.
func (e *editor) newNames(like string, count int) []string {
	var names []string
	for n := 1; len(names) < count; n++ {
		name := fmt.Sprintf("%s-new-%d", like, n)
		if _, taken := e.Node(name); !taken {
			names = append(names, name)
		}
	}
	return names
}

// feedQueues states the queues again that are edited.
func (e *editor) feedQueues() {
	specs := map[model.QueueID]*model.QueueSpec{}
	var order []model.QueueID
	for i := range e.edits {
		edit := &e.edits[i]
		if edit.Field > QueueOpen {
			continue
		}
		spec := specs[edit.Queue]
		if spec == nil {
			made := e.QueueSpecOf(edit.Queue)
			spec, specs[edit.Queue] = &made, &made
			order = append(order, edit.Queue)
		}
		switch edit.Field { //nolint:exhaustive // The others are not about queues.
		case QueueCapability:
			spec.Capability = spec.Capability.With(edit.Dimension, edit.After)
		case QueueGuarantee:
			spec.Guarantee = spec.Guarantee.With(edit.Dimension, edit.After)
		case QueueDeserved:
			spec.Deserved = spec.Deserved.With(edit.Dimension, edit.After)
		case QueueWeight:
			spec.Weight = uint32(edit.After)
		case QueueOpen:
			spec.State = model.Open
		}
	}
	for _, q := range order {
		e.Builder.Queue(*specs[q])
	}
}

// feedJob states the job again.
func (e *editor) feedJob() {
	v, job := e.Model, e.Jobs.At(e.job)
	spec := v.JobSpecOf(e.job)
	spec.MinAvailable = uint32(max(e.minimum(), 0))
	if row := e.minResources(); !row.Absent() {
		for m := row.Has; m != 0; m = m.Rest() {
			spec.MinResources = spec.MinResources.With(m.First(), row.V[m.First()])
		}
	}
	for i := range e.edits {
		if e.edits[i].Field == JobQueue {
			spec.Queue = v.Queues[e.edits[i].Queue].Name
		}
	}
	e.Builder.Job(spec)
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := v.GroupSpecOf(g)
		for i := range e.edits {
			if edit := &e.edits[i]; edit.Field == JobMinimum && edit.Group == g {
				group.MinAvailable = uint32(edit.After)
			}
		}
		e.Group(group)
		for c := range v.CountsOf(g) {
			e.Count(c.Status, c.Gate, uint32(c.N))
		}
		e.feedTasks(g)
	}
}

// feedTasks states the tasks of a group again.
func (e *editor) feedTasks(g model.GroupID) {
	v, job := e.Model, e.Jobs.At(e.job)
	for t := job.FirstTask; t < job.EndTask; t++ {
		task := v.Tasks.At(t)
		if task.Group != g {
			continue
		}
		spec := v.TaskSpecOf(t)
		if wider := e.wider[v.NodeSetOf(t)]; wider != "" && task.Status == model.Pending {
			if spec.NodeSet = wider; spec.Detail == nil {
				spec.Detail = &model.Detail{}
			}
		}
		request := v.Request(t)
		for i := range e.edits {
			edit := &e.edits[i]
			if edit.Field != TaskRequest || edit.Group != g || task.Status != model.Pending || request.V[edit.Dimension] <= edit.After {
				continue
			}
			if spec.Request == nil {
				spec.Request = v.GroupSpecOf(g).Request
			}
			spec.Request = spec.Request.With(edit.Dimension, edit.After)
		}
		e.Builder.Task(&spec)
	}
}

// minimum returns how many tasks the gang needs after the edits.
func (e *editor) minimum() int32 {
	minimum := e.Jobs.At(e.job).MinAvailable
	for i := range e.edits {
		if edit := &e.edits[i]; edit.Field == JobMinimum {
			minimum -= int32(edit.Before - edit.After)
		}
	}
	return minimum
}

// minResources returns the minimum resources of the job after the edits, absent if they stay what they are: in proportion to the minimum,
// without what the tasks that the gang needs ask for less. Amounts are whole.
func (e *editor) minResources() resource.Row {
	job := e.Jobs.At(e.job)
	if job.MinResources.Absent() {
		return resource.Row{}
	}
	row, minimum := job.MinResources.Clone(), e.minimum()
	for i := range e.edits {
		edit := &e.edits[i]
		if edit.Field != TaskRequest {
			continue
		}
		less := 0.0
		for _, t := range e.gangOf(edit.Group) {
			less += max(e.Request(t).V[edit.Dimension]-edit.After, 0)
		}
		if row.Has.Has(edit.Dimension) {
			row.V[edit.Dimension] = max(row.V[edit.Dimension]-less, 0)
		}
	}
	if job.MinAvailable > 0 && minimum != job.MinAvailable {
		for m := row.Has; m != 0; m = m.Rest() {
			row.V[m.First()] = math.Ceil(float64(row.V[m.First()]*float64(minimum)) / float64(job.MinAvailable))
		}
	}
	if resource.Equal(row, job.MinResources) {
		return resource.Row{}
	}
	return row
}

// gangOf lists pending tasks of a role, as many as the gang needs: the minimum of the role, or else of the job.
func (e *editor) gangOf(g model.GroupID) []model.TaskID {
	job, group := e.Jobs.At(e.job), e.Groups.At(g)
	most := job.MinAvailable
	if group.MinAvailable >= 0 {
		most = group.MinAvailable
	}
	var list []model.TaskID
	for t := job.FirstTask; t < job.EndTask && len(list) < int(most); t++ {
		if task := e.Tasks.At(t); task.Group == g && task.Status == model.Pending {
			list = append(list, t)
		}
	}
	return list
}
