package edit

import (
	"fmt"
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// Make feeds edits of a model to the builder of a change of it, whose amounts are in the order of its Dims. They are made in their order:
// of several edits of one setting the last counts. Each names an object of the model that no edit removes. extras may be nil.
func Make(b *model.ChangeBuilder, m *model.Model, edits []Edit, extras Extras) {
	e := &editor{
		ChangeBuilder: b, Model: m, edits: edits, extras: extras, ofJob: map[model.JobID][]*Edit{},
		gone: map[model.NodeID]bool{}, joined: map[model.NodeSetID][]uint32{}, like: map[uint32]model.NodeID{},
	}
	for i := range edits {
		if j := edits[i].Job; j != model.None {
			e.ofJob[j] = append(e.ofJob[j], &edits[i])
		}
	}
	e.feedNodes()
	e.feedSnapshot()
	e.feedQueues()
	e.feedNodeSets()
	e.feedJobs()
}

// editor states parts of a model again, with differences.
type editor struct {
	*model.ChangeBuilder
	*model.Model

	edits  []Edit
	extras Extras
	// ofJob are the edits of each job, and gone the nodes that edits remove.
	ofJob map[model.JobID][]*Edit
	gone  map[model.NodeID]bool
	// joined are the new nodes by the node sets that they join: those of the node that they are like, unless the set is fixed.
	joined map[model.NodeSetID][]uint32
	// like has the node that each new one is like.
	like map[uint32]model.NodeID
	// wider names the node set that takes the place of one that leaves nodes out which tasks of a job may use.
	wider map[wide]string
}

type wide struct {
	job model.JobID
	set model.NodeSetID
}

// objects lists what edits of some kinds are about, each once, in the order of the first edit.
func objects[ID ~int32](edits []Edit, of func(*Edit) ID) []ID {
	var list []ID
	known := map[ID]bool{}
	for i := range edits {
		if id := of(&edits[i]); id != model.None && !known[id] {
			known[id] = true
			list = append(list, id)
		}
	}
	return list
}

// feedNodes removes, changes and adds nodes.
func (e *editor) feedNodes() {
	for i := range e.edits {
		if edit := &e.edits[i]; edit.Kind == Remove && !e.gone[edit.Node] {
			e.gone[edit.Node] = true
			e.RemoveNode(e.Nodes[edit.Node].Name)
		}
	}
	for _, n := range objects(e.edits, changedNode) {
		spec := e.NodeSpecOf(n)
		for i := range e.edits {
			if edit := &e.edits[i]; changedNode(edit) == n {
				edit.changeNode(&spec)
			}
		}
		e.Builder.Node(spec)
	}
	next, tried := uint32(len(e.Nodes)), map[model.NodeID]int{}
	for i := range e.edits {
		if edit := &e.edits[i]; edit.Kind == NodesLike {
			next = e.addNodes(edit, next, tried)
		}
	}
}

// changedNode is the node whose settings an edit changes.
func changedNode(e *Edit) model.NodeID {
	switch e.Kind {
	case Cordon, Uncordon, Allocatable, Maintenance:
		return e.Node
	default:
		return model.None
	}
}

func (e *Edit) changeNode(spec *model.NodeSpec) {
	switch e.Kind {
	case Cordon:
		spec.Unschedulable = &model.Unschedulable{Cause: model.Cordoned}
	case Uncordon:
		spec.Unschedulable = nil
	case Allocatable:
		spec.Allocatable = e.amounts(spec.Allocatable)
	default:
		spec.Reservations = slices.DeleteFunc(slices.Clone(spec.Reservations), func(r model.ReservationSpec) bool {
			return r.Holder == "" && r.Request == nil
		})
		spec.Reservations = append(spec.Reservations, *e.Downtime...)
	}
}

// amounts returns amounts with the value of the edit.
func (e *Edit) amounts(of *model.Amounts) *model.Amounts {
	if e.None {
		return of.Without(e.Dimension)
	}
	return of.With(e.Dimension, e.Amount)
}

// addNodes adds copies of a node from position next on, and returns the position after them. tried are the last numbers in the names of
// copies, by node. No two nodes have copies of one name, because it ends in the number.
func (e *editor) addNodes(edit *Edit, next uint32, tried map[model.NodeID]int) uint32 {
	spec := e.NodeSpecOf(edit.Node)
	spec.Unschedulable, spec.UsedByOthers, spec.Reservations = nil, nil, nil
	if spec.Pods != nil {
		spec.Pods = &model.NodePods{Domains: spec.Pods.Domains, Others: e.PodsOfEveryNode()}
	}
	like := spec.Name
	for left := int(edit.Amount); left > 0; {
		tried[edit.Node]++
		spec.Name = fmt.Sprintf("%s-new-%d", like, tried[edit.Node])
		if _, known := e.Node(spec.Name); known {
			continue
		}
		e.Builder.Node(spec)
		e.like[next] = edit.Node
		for s := model.NodeSetID(1); int(s) < len(e.NodeSets); s++ {
			if !e.NodeSets[s].Fixed && e.InSet(s, edit.Node) {
				e.joined[s] = append(e.joined[s], next)
			}
		}
		next++
		left--
	}
	return next
}

// feedSnapshot changes what belongs to no queue, job or node.
func (e *editor) feedSnapshot() {
	for i := range e.edits {
		edit := &e.edits[i]
		if edit.Kind == Forget {
			e.Forget()
		}
	}
	made := map[string]bool{}
	for i := range e.edits {
		if name := e.edits[i].Flavor; e.edits[i].Kind == Flavor && e.extras != nil && !made[name] {
			made[name] = true
			e.NodeSet(model.NodeSetSpec{Name: name, Extra: e.extras.Flavor()})
		}
	}
}

// feedQueues states the queues again that are edited.
func (e *editor) feedQueues() {
	for _, q := range objects(e.edits, changedQueue) {
		spec := e.QueueSpecOf(q)
		for i := range e.edits {
			edit := &e.edits[i]
			if changedQueue(edit) != q {
				continue
			}
			if e.extras != nil {
				if extra := e.extras.Queue(edit, spec.Extra); extra != spec.Extra {
					spec.Extra = extra
					if edit.Kind != Open && edit.Kind != Close {
						continue
					}
				}
			}
			edit.changeQueue(&spec)
		}
		e.Builder.Queue(spec)
	}
}

// changedQueue is the queue whose settings an edit changes.
func changedQueue(e *Edit) model.QueueID {
	if e.Kind == Queue {
		return model.None
	}
	return e.Queue
}

func (e *Edit) changeQueue(spec *model.QueueSpec) {
	switch e.Kind {
	case Capability:
		spec.Capability = e.amounts(spec.Capability)
	case Guarantee:
		spec.Guarantee = e.amounts(spec.Guarantee)
	case Deserved:
		spec.Deserved = e.amounts(spec.Deserved)
	case Weight:
		spec.Weight = uint32(e.Amount)
	case Open:
		spec.State = model.Open
	case Close:
		if spec.State = model.Closed; e.Text == Closing {
			spec.State = model.Closing
		}
	case Parent:
		spec.Parent = e.Text
	case Priority:
		spec.Priority = int32(e.Amount)
	case Reclaimable, Unreclaimable:
		spec.Reclaimable = e.Kind == Reclaimable
	case Usage, Budget, BudgetKind, Spent:
		if spec.Memory == nil {
			spec.Memory = &model.QueueMemorySpec{}
		}
		e.changeMemory(spec.Memory)
	default:
	}
}

// changeMemory changes what a queue used or may use.
func (e *Edit) changeMemory(of *model.QueueMemorySpec) {
	switch e.Kind {
	case Usage:
		of.Usage = e.integers(of.Usage)
	case BudgetKind:
		if e.Text == "" {
			of.Budget = nil
			return
		}
		if of.Budget == nil {
			of.Budget = &model.BudgetSpec{}
		}
		if of.Budget.Kind = model.HardBudget; e.Text == Soft {
			of.Budget.Kind = model.SoftBudget
		}
	default:
		if of.Budget == nil {
			of.Budget = &model.BudgetSpec{Kind: model.HardBudget}
		}
		if e.Kind == Budget {
			of.Budget.Amount = e.integers(of.Budget.Amount)
		} else {
			of.Budget.Spent = e.integers(of.Budget.Spent)
		}
	}
}

// integers returns usage with the value of the edit.
func (e *Edit) integers(of *model.Integers) *model.Integers {
	out := &model.Integers{}
	if of != nil {
		for i, d := range of.Dimension {
			if d != uint32(e.Dimension) {
				out.Dimension, out.Amount = append(out.Dimension, d), append(out.Amount, of.Amount[i])
			}
		}
	}
	if !e.None {
		out.Dimension, out.Amount = append(out.Dimension, uint32(e.Dimension)), append(out.Amount, int64(e.Amount))
	}
	return out
}
