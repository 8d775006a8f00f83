package kubescheduler

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = "Apportion"

// Plugin carries out in Kubernetes' scheduler what Apportion decides. It is safe for concurrent use.
type Plugin struct {
	arguments *Arguments
	handle    fwk.Handle
	model     *model
	evictor   *evictor
}

var (
	_ fwk.QueueSortPlugin   = (*Plugin)(nil)
	_ fwk.PreEnqueuePlugin  = (*Plugin)(nil)
	_ fwk.EnqueueExtensions = (*Plugin)(nil)
	_ fwk.PreFilterPlugin   = (*Plugin)(nil)
	_ fwk.PostFilterPlugin  = (*Plugin)(nil)
	_ fwk.ReservePlugin     = (*Plugin)(nil)
	_ fwk.PermitPlugin      = (*Plugin)(nil)
)

// New returns the plugin, whose loop runs until ctx ends. Faulty arguments are an error that names the fields.
func New(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	arguments, err := readArguments(args)
	if err != nil {
		return nil, err
	}
	decide, input, err := arguments.Connect()
	if err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	m := newModel(arguments.QueueLabel, arguments.QueueFrom, handle.ProfileName())
	logger := klog.FromContext(ctx)
	l := &loop{
		arguments: arguments, decide: decide, input: input, model: m, log: slog.New(logrSlog(logger)),
		activate: func(pods map[string]*corev1.Pod) { handle.Activate(logger, pods) },
	}
	if err := l.reload(); err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	if err := follow(ctx, handle, m); err != nil {
		return nil, err
	}
	s := &speaker{loop: l, clients: handle.ClientSet(), events: handle.EventRecorder()}
	go func() {
		defer func() { _ = decide.Close() }()
		if handle.SharedInformerFactory() != nil {
			handle.SharedInformerFactory().WaitForCacheSync(ctx.Done())
		}
		go s.run(ctx)
		l.run(ctx)
	}()
	e := &evictor{clients: handle.ClientSet(), events: handle.EventRecorder()}
	return &Plugin{arguments: arguments, handle: handle, model: m, evictor: e}, nil
}

// Name returns Name.
func (*Plugin) Name() string { return Name }

// Less puts pods without a queue first, in the order of Kubernetes' scheduler, and then those with a place in the order of the decisions.
func (p *Plugin) Less(a, b fwk.QueuedPodInfo) bool {
	first, second := a.GetPodInfo().GetPod(), b.GetPodInfo().GetPod()
	seqOfFirst, ofQueueFirst := p.model.position(first)
	seqOfSecond, ofQueueSecond := p.model.position(second)
	switch {
	case ofQueueFirst != ofQueueSecond:
		return ofQueueSecond
	case ofQueueFirst:
		return seqOfFirst < seqOfSecond
	}
	if x, y := schedulinghelper.PodPriority(first), schedulinghelper.PodPriority(second); x != y {
		return x > y
	}
	return a.GetTimestamp().Before(b.GetTimestamp())
}

// position is the position of the decision about a pod, and whether the pod belongs to a queue.
func (m *model) position(object *corev1.Pod) (uint64, bool) {
	m.Lock()
	defer m.Unlock()
	if p := m.pods[object.UID]; p != nil {
		return p.seq, p.job != nil
	}
	return 0, m.queue(object) != ""
}

// EventsToRegister registers nothing: the loop activates pods that have got a place.
func (*Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// PreEnqueue keeps pods of queues out of the scheduler's queue until they have a place.
func (p *Plugin) PreEnqueue(_ context.Context, object *corev1.Pod) *fwk.Status {
	return p.model.may(object)
}

// may returns nil for a pod without a queue, for a pod with a place, and without decisions for each pod that the model has: one that it has
// not seen yet may belong to a gang, of which no part may start. It is activated once the model has it.
func (m *model) may(object *corev1.Pod) *fwk.Status {
	m.Lock()
	defer m.Unlock()
	q := m.pods[object.UID]
	switch {
	case m.open && q != nil, q == nil && m.queue(object) == "", q != nil && (q.job == nil || q.planned != "" || q.node != ""):
		return nil
	case q != nil && q.job.fault != "":
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, q.job.fault)
	case m.closed != "":
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, m.closed)
	case q != nil && q.said.text != "":
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, q.said.text)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waits for a decision of Apportion")
}

// PreFilter leaves the planned node only.
func (p *Plugin) PreFilter(_ context.Context, _ fwk.CycleState, object *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if node := p.model.planned(object.UID); node != "" {
		return &fwk.PreFilterResult{NodeNames: sets.New(node)}, nil
	}
	if refusal := p.model.may(object); refusal != nil {
		return nil, refusal
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

func (m *model) planned(uid types.UID) string {
	m.Lock()
	defer m.Unlock()
	if q := m.pods[uid]; q != nil {
		return q.planned
	}
	return ""
}

// PreFilterExtensions returns nil: a planned node does not depend on single pods.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// PostFilter evicts the victims of the pod's plan and nominates its node. A pod whose node was refused without victims loses its place.
func (p *Plugin) PostFilter(
	ctx context.Context, _ fwk.CycleState, object *corev1.Pod, statuses fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	managed, node, victims, sentence := p.model.claim(object.UID)
	if !managed {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	if node == "" {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	if len(victims) > 0 {
		if refused, err := p.evict(ctx, object, victims, sentence); err != nil {
			p.reject(p.model.spare(object.UID, refused, time.Now()), "the eviction of a pod of the gang's plan was refused")
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
		}
		return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatedNodeName: node, NominatingMode: fwk.ModeOverride}}, nil
	}
	why := "it has no room"
	if status := statuses.Get(node); status != nil {
		why = status.Message()
	}
	p.model.Lock()
	var held []types.UID
	if q := p.model.pods[object.UID]; q != nil {
		held = p.model.refuse(q, node, time.Now())
	}
	p.model.Unlock()
	p.reject(held, "another pod of the gang lost its node")
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node %s, which was planned, is refused: %s", node, why))
}

// evict evicts the victims of a plan that still run, after asking whether each may be evicted: a disruption budget that protects one of
// them costs no other. With the error it returns the pods that the API server refused to evict.
func (p *Plugin) evict(ctx context.Context, claimant *corev1.Pod, victims []*corev1.Pod, sentence string) (refused []types.UID, err error) {
	victims = slices.DeleteFunc(victims, func(v *corev1.Pod) bool { return v.DeletionTimestamp != nil })
	for _, v := range victims {
		if no := p.evictor.may(ctx, v); no != nil {
			refused, err = append(refused, v.UID), cmp.Or(err, fmt.Errorf("eviction of %s: %w", key(v), no))
		}
	}
	if err != nil {
		return refused, err
	}
	for _, v := range victims {
		if err := p.evictor.evict(ctx, v, claimant, sentence); err != nil {
			return []types.UID{v.UID}, fmt.Errorf("eviction of %s: %w", key(v), err)
		}
	}
	return nil, nil
}

// claim returns the plan of a pod with the victims that still exist.
func (m *model) claim(uid types.UID) (managed bool, node string, victims []*corev1.Pod, sentence string) {
	m.Lock()
	defer m.Unlock()
	q := m.pods[uid]
	if q == nil || q.job == nil || m.open && q.planned == "" {
		return false, "", nil, ""
	}
	for _, v := range q.victims {
		if victim := m.pods[v]; victim != nil {
			victims = append(victims, victim.object)
		}
	}
	return true, q.planned, victims, q.sentence
}

// spare withdraws a plan, and keeps pods that could not be evicted from being victims for a while.
func (m *model) spare(claimant types.UID, refused []types.UID, now time.Time) []types.UID {
	m.Lock()
	defer m.Unlock()
	for _, victim := range refused {
		m.spared[victim] = now.Add(sparing)
	}
	if claim := m.pods[claimant]; claim != nil {
		return m.withdraw(claim)
	}
	return nil
}

// Reserve has nothing to do: a place is counted from the moment it is planned.
func (*Plugin) Reserve(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status { return nil }

// Unreserve takes a gang's places back that was not released as a whole. Pods that may be bound keep their place and are tried again.
func (p *Plugin) Unreserve(_ context.Context, _ fwk.CycleState, object *corev1.Pod, _ string) {
	p.model.Lock()
	var held []types.UID
	if q := p.model.pods[object.UID]; q != nil && q.job != nil && !q.released && q.reserved {
		held = p.model.withdraw(q)
	}
	p.model.Unlock()
	p.reject(held, "another pod of the gang lost its node")
}

func (p *Plugin) reject(held []types.UID, why string) {
	for _, uid := range held {
		if w := p.handle.GetWaitingPod(uid); w != nil {
			w.Reject(Name, why)
		}
	}
}

// Permit holds the pods of a gang until enough of them have a node.
func (p *Plugin) Permit(_ context.Context, _ fwk.CycleState, object *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	free, others := p.model.hold(object.UID)
	if !free {
		return fwk.NewStatus(fwk.Wait), p.arguments.PermitTimeout.Duration
	}
	for _, uid := range others {
		if w := p.handle.GetWaitingPod(uid); w != nil {
			w.Allow(Name)
		}
	}
	return nil, 0
}

// hold reserves the node of a pod. If the gang is complete, it releases all its pods and returns the others.
func (m *model) hold(uid types.UID) (free bool, others []types.UID) {
	m.Lock()
	defer m.Unlock()
	q := m.pods[uid]
	if q == nil || q.job == nil {
		return true, nil
	}
	q.reserved = true
	if q.job.holding() < q.job.least {
		return false, nil
	}
	for other, o := range q.job.pods {
		if o.reserved && !o.released {
			o.released = true
			if other != uid {
				others = append(others, other)
			}
		}
	}
	return true, others
}
