package kubescheduler

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// tell gives the mirror what has changed since the last time. A job that the mirror refuses waits, and its fault says why; the lock of
// the model is held.
func (l *loop) tell(now time.Time) error {
	m := l.model
	for name := range m.goneNodes {
		if l.told[name] {
			if err := l.mirror.RemoveNode(name); err != nil {
				return err
			}
			delete(l.told, name)
		}
	}
	clear(m.goneNodes)
	for _, name := range slices.Sorted(maps.Keys(m.dirtyNodes)) {
		if n := m.nodes[name]; n != nil && n.object != nil {
			if err := l.mirror.SetNode(describeNode(n)); err != nil {
				return err
			}
			l.told[name] = true
		}
	}
	clear(m.dirtyNodes)
	if m.shaped {
		if err := l.sets.again(m.nodes); err != nil {
			return err
		}
		m.shaped = false
		// A shape that could use all nodes may have a set now.
		for id, j := range m.jobs {
			if j.placed() < len(j.pods) {
				m.dirtyJobs[id] = true
			}
		}
	}
	for uid, until := range m.spared {
		if now.After(until) {
			delete(m.spared, uid)
			if p := m.pods[uid]; p != nil {
				m.touch(p.job)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.dirtyJobs)) {
		if err := l.tellJob(m.jobs[id], now); err != nil {
			return err
		}
	}
	clear(m.dirtyJobs)
	return nil
}

func (l *loop) tellJob(j *job, now time.Time) error {
	if j == nil {
		return nil
	}
	maps.DeleteFunc(j.refused, func(_ string, until time.Time) bool { return now.After(until) })
	if j.fault == "" && len(j.pods) > 0 {
		described, err := l.describe(j)
		if err == nil {
			err = l.mirror.SetJob(described)
		}
		if err == nil {
			j.known = true
			return l.sets.drop(j.id, len(j.refused) > 0)
		}
		j.fault = client.Describe(err)
	}
	if j.known {
		if err := l.mirror.RemoveJob(j.id); err != nil {
			return err
		}
		j.known = false
	}
	if err := l.sets.drop(j.id, false); err != nil {
		return err
	}
	if len(j.pods) == 0 {
		delete(l.model.jobs, j.id)
	}
	return nil
}

func describeNode(n *node) client.Node {
	described := client.Node{Name: n.object.Name, Allocatable: written(n.object.Status.Allocatable)}
	others := corev1.ResourceList{}
	for _, p := range n.pods {
		if p.job == nil {
			add(others, requests(p.object))
		}
	}
	if len(others) > 0 {
		described.UsedByOthers = written(others)
	}
	if n.object.Spec.Unschedulable {
		described.Unschedulable = &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED}
	}
	return described
}

// describe returns a job with its pods, grouped by request and nodes.
func (l *loop) describe(j *job) (client.Job, error) {
	described := client.Job{
		UID: j.id, Name: j.name, Namespace: j.namespace, Queue: j.queue, MinAvailable: uint32(j.least),
		Phase: apportionv1.JobPhase_JOB_PHASE_PENDING,
	}
	pods := slices.SortedFunc(maps.Values(j.pods), byName)
	if j.admitted {
		described.Phase = apportionv1.JobPhase_JOB_PHASE_INQUEUE
	}
	if j.bound() > 0 {
		described.Phase = apportionv1.JobPhase_JOB_PHASE_RUNNING
		if j.definition == "" {
			// A pod of its own is no gang, which the plugin gang would protect once it runs. While it waits, it lacks its minimum and may
			// claim.
			described.MinAvailable = 0
		}
	}
	type key struct{ request, set string }
	at, least := map[key]int{}, corev1.ResourceList{}
	for i, p := range pods {
		list := requests(p.object)
		if i < j.least {
			add(least, list)
		}
		request := written(list)
		set, err := l.sets.set(l.model.nodes, p.shape, j.id, j.refused)
		if err != nil {
			return client.Job{}, err
		}
		k := key{request.String(), set}
		position, ok := at[k]
		if !ok {
			position = len(described.Groups)
			at[k] = position
			described.Groups = append(described.Groups, client.Group{Request: request, NodeSet: set})
		}
		status, where := p.status()
		priority := schedulinghelper.PodPriority(p.object)
		_, spared := l.model.spared[p.object.UID]
		group := &described.Groups[position]
		group.Tasks = append(group.Tasks, client.Task{
			UID: string(p.object.UID), Name: p.object.Name, Status: status, Node: where, Priority: &priority,
			NotPreemptable: spared,
			PriorityClass:  p.object.Spec.PriorityClassName, Unjudged: unjudged(p.object), Created: p.object.CreationTimestamp.Time,
		})
		described.Priority = max(described.Priority, priority)
		if created := p.object.CreationTimestamp.Time; described.Created.IsZero() || created.Before(described.Created) {
			described.Created = created
		}
	}
	delete(least, corev1.ResourcePods)
	described.MinResources = written(least)
	return described, nil
}

func byName(a, b *pod) int { return cmp.Compare(a.object.Name, b.object.Name) }

func requests(p *corev1.Pod) corev1.ResourceList {
	list := resource.PodRequests(p, resource.PodResourcesOptions{})
	list[corev1.ResourcePods] = one
	return list
}

func add(to, list corev1.ResourceList) {
	for name, quantity := range list {
		sum := to[name]
		sum.Add(quantity)
		to[name] = sum
	}
}

func written(list corev1.ResourceList) client.Resources {
	resources := client.Resources{}
	for name, quantity := range list {
		resources[string(name)] = quantity.String()
	}
	return resources
}

// reload begins a new mirror with the queues of the file.
func (l *loop) reload() error {
	snapshot, data, err := readQueues(l.arguments.Queues)
	if err != nil {
		return err
	}
	mirror := client.NewMirror(l.decide)
	if err := mirror.Replace(snapshot); err != nil {
		return errors.New("queues: " + client.Describe(err))
	}
	l.mirror, l.sets, l.told, l.file = mirror, newNodeSets(mirror), map[string]bool{}, data
	m := l.model
	m.Lock()
	defer m.Unlock()
	clear(m.queues)
	for _, q := range snapshot.GetQueues() {
		m.queues[q.GetName()] = true
	}
	for name, n := range m.nodes {
		if n.object != nil {
			m.dirtyNodes[name] = true
		}
	}
	for _, j := range m.jobs {
		j.known = false
		m.judge(j)
		m.touch(j)
	}
	m.wake()
	return nil
}
