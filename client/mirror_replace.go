package client

import (
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// Replace replaces the cluster by a whole snapshot, which is not modified. Equal entities are not sent again: a scheduler that builds a
// snapshot each time still sends only what changed. The snapshot's left_out is ignored. A snapshot that the service would refuse is an
// error and changes nothing.
func (m *Mirror) Replace(snapshot *apportionv1.Snapshot) error {
	if _, err := decode.Compile(snapshot); err != nil {
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
	if err := m.setTotal(translated(&r, snapshot.GetTotal(), resourceDimensions)); err != nil {
		return err
	}
	if err := m.setMemory(translated(&r, snapshot.GetMemory(), memoryDimensions)); err != nil {
		return err
	}
	if err := m.setPods(snapshot.GetPods()); err != nil {
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
		if err := r.setNode(translated(r, node, nodeDimensions)); err != nil {
			return err
		}
	}
	for _, queue := range r.snapshot.GetQueues() {
		if err := r.setQueue(translated(r, queue, queueDimensions)); err != nil {
			return err
		}
	}
	for _, set := range r.snapshot.GetNodeSets() {
		nodes := make([]string, len(set.GetNodes()))
		for i, node := range set.GetNodes() {
			nodes[i] = r.node(node)
		}
		named := NodeSet{
			Name: set.GetName(), Rule: set.GetRule(), Nodes: nodes, ToleratesCordon: set.GetToleratesCordon(), Fixed: set.GetFixed(),
			Flavor: set.GetFlavor(), Preferences: namedPreferences(set.GetPreferences(), r.node),
		}
		if err := r.setNodeSet(&named); err != nil {
			return err
		}
	}
	for _, budget := range r.snapshot.GetDisruptionBudgets() {
		if err := r.setBudget(budget); err != nil {
			return err
		}
	}
	for _, quota := range r.snapshot.GetQuotas() {
		if err := r.setQuota(quota); err != nil {
			return err
		}
	}
	for _, job := range r.snapshot.GetJobs() {
		if err := r.setJob(translated(r, job, jobDimensions), r.node); err != nil {
			return err
		}
	}
	return nil
}

func (r *replacement) node(position uint32) string { return r.snapshot.GetNodes()[position].GetName() }

// remove removes what the snapshot does not have.
func (r *replacement) remove() {
	removeOthers(r.jobOf, r.snapshot.GetJobs(), uidOf, r.removeJob)
	removeOthers(r.budgetOf.of, r.snapshot.GetDisruptionBudgets(), entryKey[*apportionv1.DisruptionBudget], func(key string, _ int) {
		_ = r.budgetOf.remove(r.Mirror, &r.budgets, "disruption budget", key)
	})
	removeOthers(r.quotaOf.of, r.snapshot.GetQuotas(), entryKey[*apportionv1.NamespaceQuota], func(key string, _ int) {
		_ = r.quotaOf.remove(r.Mirror, &r.quotas, "quota", key)
	})
	removeOthers(r.setOf, r.snapshot.GetNodeSets(), (*apportionv1.NodeSet).GetName, r.removeNodeSet)
	removeOthers(r.queueOf, r.snapshot.GetQueues(), (*apportionv1.Queue).GetName, r.removeQueue)
	removeOthers(r.nodeOf, r.snapshot.GetNodes(), (*apportionv1.Node).GetName, func(_ string, of *mirroredNode) {
		if r.nodes.at(of.slot) != nil {
			r.removeNode(of)
		}
	})
}

// removeOthers removes the entities that are not listed.
func removeOthers[V, M any](have map[string]V, list []M, name func(M) string, remove func(name string, of V)) {
	keep := make(map[string]bool, len(list))
	for _, m := range list {
		keep[name(m)] = true
	}
	for name, of := range have {
		if !keep[name] {
			remove(name, of)
		}
	}
}

// translated returns the message with the mirror's dimensions: itself, or a copy. lists are its lists of dimensions.
func translated[M proto.Message](r *replacement, message M, lists func(M) [][]uint32) M {
	if r.dimension == nil || !message.ProtoReflect().IsValid() {
		return message
	}
	again := proto.CloneOf(message)
	for _, list := range lists(again) {
		for i, dimension := range list {
			list[i] = r.dimension[dimension]
		}
	}
	return again
}

func resourceDimensions(resource *apportionv1.Resource) [][]uint32 {
	return [][]uint32{resource.GetDimensions()}
}

func memoryDimensions(memory *apportionv1.Memory) [][]uint32 {
	return [][]uint32{memory.GetOffered().GetDimensions()}
}

func nodeDimensions(node *apportionv1.Node) [][]uint32 {
	lists := [][]uint32{node.GetAllocatable().GetDimensions(), node.GetUsedByOthers().GetDimensions()}
	for _, r := range node.GetReservations() {
		lists = append(lists, r.GetRequest().GetDimensions())
	}
	return lists
}

func queueDimensions(queue *apportionv1.Queue) [][]uint32 {
	budget := queue.GetBudget()
	lists := [][]uint32{
		queue.GetCapability().GetDimensions(), queue.GetGuarantee().GetDimensions(), queue.GetDeserved().GetDimensions(),
		queue.GetUsage().GetDimensions(), budget.GetAmount().GetDimensions(), budget.GetSpent().GetDimensions(),
		queue.GetEntitled().GetDimensions(), queue.GetReserved().GetDimensions(),
	}
	for _, owner := range queue.GetOwners() {
		lists = append(lists, owner.GetUsage().GetDimensions())
	}
	for _, limit := range queue.GetNodeGroupLimits().GetGroups() {
		lists = append(lists, limit.GetLimit().GetDimensions())
	}
	return append(lists, wirekueue.Lists(queue.GetKueue())...)
}

func jobDimensions(job *apportionv1.Job) [][]uint32 {
	lists := [][]uint32{job.GetMinResources().GetDimensions()}
	for _, group := range job.GetGroups() {
		lists = append(lists, group.GetRequest().GetDimensions())
		for _, task := range group.GetTasks() {
			lists = append(lists, task.GetDetail().GetRequest().GetDimensions())
		}
	}
	return append(lists, wirekueue.Lists(job.GetKueue())...)
}
