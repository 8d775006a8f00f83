package edit

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// feedNodeSets states the node sets again that new nodes join, and adds a node set with the nodes that the waiting tasks of a job may use
// besides, for each node set of one of them.
func (e *editor) feedNodeSets() {
	for s := range e.NodeSets {
		if set := model.NodeSetID(s); e.joined[set] != nil {
			e.NodeSet(e.nodeSet(set))
		}
	}
	e.wider = map[wide]string{}
	taken := map[string]bool{}
	for _, j := range objects(e.edits, func(edit *Edit) model.JobID {
		if edit.Kind == AllowedNode {
			return edit.Job
		}
		return model.None
	}) {
		e.widen(j, taken)
	}
}

// nodeSet is the spec of a node set after the edits of nodes.
func (e *editor) nodeSet(s model.NodeSetID) model.NodeSetSpec {
	spec := e.NodeSetSpecOf(s)
	for i := range spec.Preferences {
		p := &spec.Preferences[i]
		for _, n := range e.joined[s] {
			if slices.Contains(p.Nodes, uint32(e.like[n])) {
				p.Nodes = append(p.Nodes, n)
			}
		}
	}
	removed := func(n uint32) bool { return e.gone[model.NodeID(n)] }
	spec.Nodes = append(slices.DeleteFunc(spec.Nodes, removed), e.joined[s]...)
	for i := range spec.Exclusions {
		spec.Exclusions[i].Nodes = slices.DeleteFunc(spec.Exclusions[i].Nodes, removed)
	}
	for i := range spec.Preferences {
		spec.Preferences[i].Nodes = slices.DeleteFunc(spec.Preferences[i].Nodes, removed)
	}
	return spec
}

// widen adds the wider node sets of a job. taken are the names of such sets.
func (e *editor) widen(j model.JobID, taken map[string]bool) {
	job := e.Jobs.At(j)
	var allowed []model.NodeID
	for _, edit := range e.ofJob[j] {
		if edit.Kind == AllowedNode && !slices.Contains(allowed, edit.Node) {
			allowed = append(allowed, edit.Node)
		}
	}
	for t := job.FirstTask; t < job.EndTask; t++ {
		set := e.NodeSetOf(t)
		if set == model.AllNodes || e.Tasks.At(t).Status != model.Pending || e.wider[wide{j, set}] != "" {
			continue
		}
		spec := e.nodeSet(set)
		spec.Name += " or other nodes"
		for _, known := e.NodeSetNamed(spec.Name); known || taken[spec.Name]; _, known = e.NodeSetNamed(spec.Name) {
			spec.Name += " again"
		}
		taken[spec.Name], e.wider[wide{j, set}] = true, spec.Name
		for _, n := range allowed {
			if Openable(e.Model, set, n) {
				spec.Nodes = append(spec.Nodes, uint32(n))
			}
		}
		e.NodeSet(spec)
	}
}

// Openable reports whether a node is not in a set, and a change of a task could let it use the node.
func Openable(m *model.Model, set model.NodeSetID, n model.NodeID) bool {
	return !m.InSet(set, n) && !m.NodeSets[set].Exclusion(n).Firm
}

// feedJobs removes jobs, and states those again that are edited.
func (e *editor) feedJobs() {
	ended := objects(e.edits, func(edit *Edit) model.JobID {
		if edit.Kind == End {
			return edit.Job
		}
		return model.None
	})
	e.RemoveJobs(ended...)
	for _, j := range objects(e.edits, func(edit *Edit) model.JobID { return edit.Job }) {
		if !slices.Contains(ended, j) {
			e.feedJob(j)
		}
	}
}

// feedJob states a job again.
func (e *editor) feedJob(j model.JobID) {
	v, job := e.Model, e.Jobs.At(j)
	spec := v.JobSpecOf(j)
	for _, edit := range e.ofJob[j] {
		e.changeJob(edit, &spec)
	}
	e.Builder.Job(spec)
	t := job.FirstTask
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := v.GroupSpecOf(g)
		for _, edit := range e.ofJob[j] {
			if edit.Kind == Minimum && edit.Group == g {
				group.MinAvailable, group.HasMin = uint32(edit.Amount), true
			}
		}
		e.Group(group)
		for c := range v.CountsOf(g) {
			e.Count(c.Status, c.Gate, uint32(c.N))
		}
		t = e.feedTasks(j, g, t)
	}
}

func (e *editor) changeJob(edit *Edit, spec *model.JobSpec) {
	if e.extras != nil {
		if extra := e.extras.Job(edit, spec.Extra); extra != spec.Extra {
			spec.Extra = extra
			return
		}
	}
	switch edit.Kind {
	case Queue:
		spec.Queue = e.Queues[edit.Queue].Name
	case Priority:
		spec.Priority = int32(edit.Amount)
	case Minimum:
		if edit.Group == model.None {
			spec.MinAvailable = uint32(edit.Amount)
		}
	case MinResources:
		spec.MinResources = edit.amounts(spec.MinResources)
	default:
	}
}

// feedTasks states the tasks of a group of a job again, which begin at t, and returns where the next group's begin.
func (e *editor) feedTasks(j model.JobID, g model.GroupID, t model.TaskID) model.TaskID {
	v, job := e.Model, e.Jobs.At(j)
	for ; t < job.EndTask && v.Tasks.At(t).Group == g; t++ {
		task := v.Tasks.At(t)
		spec := v.TaskSpecOf(t)
		if e.gone[spec.Node] {
			spec.Node = model.None
		}
		if task.Status != model.Pending {
			e.Builder.Task(&spec)
			continue
		}
		if wider := e.wider[wide{j, v.NodeSetOf(t)}]; wider != "" {
			if spec.NodeSet = wider; spec.Detail == nil {
				spec.Detail = &model.Detail{}
			}
		}
		request := v.Request(t)
		for _, edit := range e.ofJob[j] {
			if edit.Kind != Request || edit.Group != g || request.V[edit.Dimension] <= edit.Amount {
				continue
			}
			if spec.Request == nil {
				spec.Request = v.GroupSpecOf(g).Request
			}
			spec.Request = spec.Request.With(edit.Dimension, edit.Amount)
		}
		e.Builder.Task(&spec)
	}
	return t
}
