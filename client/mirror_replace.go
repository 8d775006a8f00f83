package client

import (
	"slices"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Replace replaces the cluster by a whole snapshot, which is not modified. Equal entities are not sent again: a scheduler that builds a
// snapshot each time still sends only what changed. The snapshot's left_out is ignored. A snapshot that the service would refuse is an
// error and changes nothing.
func (m *Mirror) Replace(snapshot *apportionv1.Snapshot) error {
	if _, err := wire.Compile(snapshot); err != nil {
		return failure(err)
	}
	// Errors of encoding are found before anything changes.
	if _, err := proto.Marshal(snapshot); err != nil {
		return err
	}
	m.whole.Lock()
	defer m.whole.Unlock()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r := replacement{Mirror: m, snapshot: snapshot, dimension: m.adopt(snapshot.GetDimensions())}
	m.changed = m.changed || m.asOf != snapshot.GetAsOf() || m.cluster != snapshot.GetCluster()
	m.asOf, m.cluster = snapshot.GetAsOf(), snapshot.GetCluster()
	if err := m.setTotal(translated(&r, snapshot.GetTotal(), resourceOf)); err != nil {
		return err
	}
	if err := r.set(); err != nil {
		return err
	}
	r.remove()
	return nil
}

// replacement is a whole snapshot that is being put into a mirror.
type replacement struct {
	*Mirror

	snapshot *apportionv1.Snapshot
	// dimension is the mirror's position of each dimension of the snapshot; nil: they are the same.
	dimension []uint32
}

// adopt returns the positions of dimensions in the mirror, including new ones; nil if they are the same as in the snapshot.
func (m *Mirror) adopt(names []string) []uint32 {
	positions, same := make([]uint32, len(names)), true
	for i, name := range names {
		positions[i] = m.dimensions.of(name)
		same = same && positions[i] == uint32(i)
	}
	m.names = m.dimensions.names
	if same {
		return nil
	}
	return positions
}

func (r *replacement) set() error {
	for _, node := range r.snapshot.GetNodes() {
		if err := r.setNode(translated(r, node, nodeResources)); err != nil {
			return err
		}
	}
	for _, queue := range r.snapshot.GetQueues() {
		if err := r.setQueue(translated(r, queue, queueResources)); err != nil {
			return err
		}
	}
	for _, set := range r.snapshot.GetNodeSets() {
		nodes := make([]string, len(set.GetNodes()))
		for i, node := range set.GetNodes() {
			nodes[i] = r.node(node)
		}
		if err := r.setNodeSet(set.GetName(), set.GetRule(), nodes); err != nil {
			return err
		}
	}
	for _, job := range r.snapshot.GetJobs() {
		if err := r.setJob(translated(r, job, jobResources), r.node); err != nil {
			return err
		}
	}
	return nil
}

func (r *replacement) node(position uint32) string { return r.snapshot.GetNodes()[position].GetName() }

// remove removes what the snapshot does not have.
func (r *replacement) remove() {
	keep := map[string]bool{}
	for _, job := range r.snapshot.GetJobs() {
		keep[uidOf(job)] = true
	}
	for id, slot := range r.jobOf {
		if !keep[id] {
			r.removeJob(id, slot)
		}
	}
	clear(keep)
	for _, set := range r.snapshot.GetNodeSets() {
		keep[set.GetName()] = true
	}
	for name, slot := range r.setOf {
		if !keep[name] {
			r.removeNodeSet(name, slot)
		}
	}
	clear(keep)
	for _, queue := range r.snapshot.GetQueues() {
		keep[queue.GetName()] = true
	}
	for name, of := range r.queueOf {
		if !keep[name] {
			r.removeQueue(name, of)
		}
	}
	clear(keep)
	for _, node := range r.snapshot.GetNodes() {
		keep[node.GetName()] = true
	}
	for name, of := range r.nodeOf {
		if !keep[name] && r.nodes.at(of.slot) != nil {
			r.removeNode(of)
		}
	}
}

// translated returns the message with the mirror's dimensions: itself, or a copy. resources are its resources.
func translated[M proto.Message](r *replacement, message M, resources func(M) []*apportionv1.Resource) M {
	if r.dimension == nil || !message.ProtoReflect().IsValid() {
		return message
	}
	again := proto.CloneOf(message)
	for _, resource := range resources(again) {
		for i, dimension := range resource.GetDimension() {
			resource.Dimension[i] = r.dimension[dimension]
		}
	}
	return again
}

func resourceOf(resource *apportionv1.Resource) []*apportionv1.Resource {
	return []*apportionv1.Resource{resource}
}

func nodeResources(node *apportionv1.Node) []*apportionv1.Resource {
	return []*apportionv1.Resource{node.GetAllocatable(), node.GetUsedByOthers()}
}

func queueResources(queue *apportionv1.Queue) []*apportionv1.Resource {
	return []*apportionv1.Resource{queue.GetCapability(), queue.GetGuarantee(), queue.GetDeserved()}
}

func jobResources(job *apportionv1.Job) []*apportionv1.Resource {
	resources := []*apportionv1.Resource{job.GetMinResources()}
	for _, group := range job.GetGroups() {
		resources = append(resources, group.GetRequest())
		for _, task := range group.GetTasks() {
			resources = append(resources, task.GetDetail().GetRequest())
		}
	}
	return slices.DeleteFunc(resources, func(r *apportionv1.Resource) bool { return r == nil })
}
