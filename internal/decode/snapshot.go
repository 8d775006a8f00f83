package decode

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// Compile returns the model of a snapshot, or a *Fault with every violation by path (snapshot.jobs[17].queue). The model retains only the
// snapshot's strings.
func Compile(snapshot *apportionv1.Snapshot) (*model.Model, error) {
	c := compiler{b: model.NewBuilder(snapshot.GetAsOf()).Loader(), borrowed: true}
	c.b.Dimensions(snapshot.GetDimensions())
	c.b.Total(c.total.of(snapshot.GetTotal()))
	c.memory(snapshot.GetMemory())
	c.podRules(snapshot.GetPods())
	for i, n := range snapshot.GetNodes() {
		c.node(i, n)
	}
	for i, q := range snapshot.GetQueues() {
		c.queue(i, q)
	}
	for _, s := range snapshot.GetNodeSets() {
		c.nodeSet(s)
	}
	for i, l := range snapshot.GetLeftOuts() {
		c.leftOut(i, l)
	}
	for _, budget := range snapshot.GetDisruptionBudgets() {
		c.budget(0, budget)
	}
	for _, quota := range snapshot.GetQuotas() {
		c.quota(quota)
	}
	for i, j := range snapshot.GetJobs() {
		c.job(i, j)
	}
	m, err := c.b.Build()
	if err != nil {
		return nil, InvalidSnapshot(err)
	}
	return m, nil
}

// InvalidSnapshot is the *Fault of violations of a snapshot; other errors it returns as they are.
func InvalidSnapshot(err error) error {
	var violations *model.Error
	if !errors.As(err, &violations) {
		return err
	}
	return Invalid(apportionv1.ErrorReason_ERROR_REASON_INVALID_SNAPSHOT, Prefixed(violations, "snapshot."))
}

// amounts lends a Resource to a Builder, which copies it.
type amounts struct{ model.Amounts }

// of returns nil for an absent Resource.
func (a *amounts) of(r *apportionv1.Resource) *model.Amounts {
	if r == nil {
		return nil
	}
	a.Dimension, a.Amount = r.Dimensions, r.Amounts
	return &a.Amounts
}

// compiler feeds a Builder.
type compiler struct {
	b                     model.Loader
	total, one, two, more amounts
	detail                model.Detail
	rare                  model.RareSpec
	unstated              model.Unstated
	closed                model.Unschedulable
	pods                  model.NodePods
	hierarchy             model.Hierarchy
	limits                Limits
	// borrowed: messages are the caller's, and what is kept of them must be copied.
	borrowed bool
	// longest is the longest text that is too long.
	longest int64
}

// extra returns what the policy kueue reads of a message; nil if there is none.
func extra[M interface {
	comparable
	proto.Message
}](c *compiler, m M) *model.Extra {
	var none M
	if m == none {
		return nil
	}
	kept := proto.Message(m)
	if c.borrowed {
		kept = proto.Clone(m)
	}
	if number := c.b.Renumbered(); number != nil {
		wirekueue.Renumber(kept, number)
	}
	return wirekueue.Kept(kept)
}

// node feeds the node at position i.
func (c *compiler) node(i int, n *apportionv1.Node) {
	c.text(n.GetName())
	c.text(n.GetGroup())
	c.text(n.GetRevocableZone())
	c.b.Node(model.NodeSpec{
		Name: n.GetName(), Allocatable: c.one.of(n.GetAllocatable()), UsedByOthers: c.two.of(n.GetUsedByOthers()),
		Group: n.GetGroup(), Labelled: n != nil && n.Group != nil, Unschedulable: c.unschedulable(i, n.GetUnschedulable()),
		Pods: c.nodePods(n), Reservations: c.reservations(n.GetReservations()), RevocableZone: n.GetRevocableZone(),
	})
}

func (c *compiler) queue(i int, q *apportionv1.Queue) {
	spec := model.QueueSpec{
		Name: q.GetName(), Parent: q.GetParent(), Weight: 1, Priority: q.GetPriority(), Reclaimable: true,
		Capability: c.one.of(q.GetCapability()), Guarantee: c.two.of(q.GetGuarantee()), Deserved: c.more.of(q.GetDeserved()),
		CreateTime: q.GetCreateTime(), Memory: c.queueMemory(q), NodeLimits: c.nodeLimits(q), Extra: extra(c, q.GetKueue()),
	}
	if q != nil && q.Weight != nil {
		spec.Weight = *q.Weight
	}
	if q != nil && q.Reclaimable != nil {
		spec.Reclaimable = *q.Reclaimable
	}
	c.text(q.GetName())
	c.text(q.GetParent())
	var known bool
	if spec.State, known = QueueStateOf(q.GetState()); !known {
		c.b.Fault(fmt.Sprintf("queues[%d].state", i), "no state %d", q.GetState())
	}
	if a := q.GetNodeGroupAffinity(); a != nil {
		c.termTexts(a.GetAffinity())
		c.termTexts(a.GetAntiAffinity())
		spec.Affinity = &model.NodeAffinity{Affinity: terms(a.GetAffinity()), AntiAffinity: terms(a.GetAntiAffinity())}
	}
	if h := q.GetFairShareHierarchy(); h != nil {
		c.text(h.GetPath())
		c.text(h.GetWeights())
		c.hierarchy = model.Hierarchy{Path: h.GetPath(), Weights: h.GetWeights()}
		spec.Hierarchy = &c.hierarchy
	}
	c.b.Queue(spec)
}

// nodeLimits returns a queue's limits for groups of nodes, nil if it has none.
func (c *compiler) nodeLimits(q *apportionv1.Queue) *model.NodeLimitsSpec {
	limits := q.GetNodeGroupLimits()
	if limits == nil {
		return nil
	}
	spec := &model.NodeLimitsSpec{Groups: make([]model.NodeLimitSpec, 0, len(limits.GetGroups())), Invalid: limits.GetInvalid()}
	for _, l := range limits.GetGroups() {
		c.text(l.GetGroup())
		limit := &amounts{}
		spec.Groups = append(spec.Groups, model.NodeLimitSpec{Group: l.GetGroup(), Limit: limit.of(l.GetLimit())})
	}
	return spec
}

func terms(t *apportionv1.NodeGroupTerms) *model.Terms {
	if t == nil {
		return nil
	}
	return &model.Terms{Required: t.GetRequiredGroups(), Preferred: t.GetPreferredGroups()}
}

// job feeds the job at position i with its groups and tasks.
func (c *compiler) job(i int, j *apportionv1.Job) {
	c.b.Job(c.jobSpec(i, j))
	for g, group := range j.GetGroups() {
		c.b.Group(c.groupSpec(i, g, group))
		for k, t := range group.GetTasks() {
			c.task(position{i, g, k}, t)
		}
		for k, count := range group.GetCounts() {
			c.count(position{i, g, k}, count)
		}
	}
}

// jobSpec returns a job without its groups.
func (c *compiler) jobSpec(i int, j *apportionv1.Job) model.JobSpec {
	for _, s := range [...]string{j.GetUid(), j.GetName(), j.GetNamespace(), j.GetQueue(), j.GetCondition(), j.GetOwner()} {
		c.text(s)
	}
	phase, known := PhaseOf(j.GetPhase())
	if !known {
		c.b.Fault(fmt.Sprintf("jobs[%d].phase", i), "no phase %d", j.GetPhase())
	}
	return model.JobSpec{
		UID: j.GetUid(), Name: j.GetName(), Namespace: j.GetNamespace(), Queue: j.GetQueue(), Priority: j.GetPriority(), Phase: phase,
		MinAvailable: j.GetMinAvailable(), MinResources: c.one.of(j.GetMinResources()), CreateTime: j.GetCreateTime(),
		Condition: j.GetCondition(), ExpectedEnd: j.GetExpectedEnd(), Extra: extra(c, j.GetKueue()), EndIsDeadline: j.GetEndIsDeadline(),
		Owner: j.GetOwner(), ExpectedRuntime: j.GetExpectedRuntime(), Detail: c.jobDetail(i, j.GetDetail()),
	}
}

// groupSpec returns the group at position i of the newest job, which is at position job, without its tasks.
func (c *compiler) groupSpec(job, i int, g *apportionv1.TaskGroup) model.GroupSpec {
	c.text(g.GetRole())
	c.text(g.GetNodeSet())
	return model.GroupSpec{
		Role: g.GetRole(), Request: c.one.of(g.GetRequest()), MinAvailable: g.GetMinAvailable(), HasMin: g != nil && g.MinAvailable != nil,
		NodeSet: g.GetNodeSet(), PodClass: g.GetPodClass(),
		Unstated: c.unstatedOf(g.GetUnstated(), func(field string) string {
			return fmt.Sprintf("jobs[%d].groups[%d].unstated.%s", job, i, field)
		}),
		Unjudged: constraints(g.GetUnjudgedConstraints(), func(k int, format string, args ...any) {
			c.b.Fault(fmt.Sprintf("jobs[%d].groups[%d].unjudged_constraints[%d]", job, i, k), format, args...)
		}),
	}
}

// position is where a task, or a count of tasks, stands: the positions of its job, its group and itself.
type position struct{ job, group, at int }

// path puts the path of a field of list together, which only faults need.
func (p position) path(list, field string) string {
	return fmt.Sprintf("jobs[%d].groups[%d].%s[%d].%s", p.job, p.group, list, p.at, field)
}

func (c *compiler) count(at position, count *apportionv1.TaskCount) {
	status, known := StatusOf(count.GetStatus())
	if !known {
		c.b.Fault(at.path("counts", "status"), "no status %d", count.GetStatus())
	}
	gate, known := GateOf(count.GetGate())
	if !known {
		c.b.Fault(at.path("counts", "gate"), "no gate %d", count.GetGate())
	}
	c.b.Count(status, gate, count.GetCount())
}

// task feeds a task of the newest group.
func (c *compiler) task(at position, t *apportionv1.Task) {
	spec := model.TaskSpec{
		UID: t.GetUid(), Name: t.GetName(), Node: model.None, Priority: 1, Index: -1, CreateTime: t.GetCreateTime(), Preemptable: true,
	}
	c.text(spec.UID)
	c.text(spec.Name)
	var known bool
	if spec.Status, known = StatusOf(t.GetStatus()); !known {
		c.b.Fault(at.path("tasks", "status"), "no status %d", t.GetStatus())
	}
	if t != nil && t.Node != nil {
		spec.Node = model.NodeID(min(*t.Node, math.MaxInt32))
	}
	if t != nil && t.Priority != nil {
		spec.Priority = *t.Priority
	}
	if t != nil && t.Index != nil {
		if *t.Index > math.MaxInt32 {
			c.b.Fault(at.path("tasks", "index"), "%d is above %d", *t.Index, math.MaxInt32)
		}
		spec.Index = int32(min(*t.Index, math.MaxInt32))
	}
	if d := t.GetDetail(); d != nil {
		c.details(at, &spec, d)
	}
	c.b.Task(&spec)
}

func (c *compiler) details(at position, spec *model.TaskSpec, d *apportionv1.TaskDetail) {
	var known bool
	if spec.Gate, known = GateOf(d.GetGate()); !known {
		c.b.Fault(at.path("tasks", "detail.gate"), "no gate %d", d.GetGate())
	}
	if d.Preemptable != nil {
		spec.Preemptable = *d.Preemptable
	}
	c.text(d.GetPriorityClass())
	spec.Request = c.one.of(d.GetRequest())
	c.detail = model.Detail{
		PriorityClass: d.GetPriorityClass(), ScheduleTime: d.GetScheduleTime(), Cooldown: d.GetCooldown(),
		HasScheduleTime: d.ScheduleTime != nil, HasCooldown: d.Cooldown != nil, Condition: d.GetCondition(),
		NeverPreempts: d.GetNeverPreempts(), Unlabelled: d.GetUnlabelled(),
		Unjudged: constraints(d.GetUnjudgedConstraints(), func(k int, format string, args ...any) {
			c.b.Fault(at.path("tasks", fmt.Sprintf("detail.unjudged_constraints[%d]", k)), format, args...)
		}),
	}
	c.text(d.GetCondition())
	c.text(d.GetNodeSet())
	spec.NodeSet = d.GetNodeSet()
	spec.PodClass = d.GetPodClass()
	spec.Rare = c.rareOf(at, d)
	if spec.NodeSet != "" || spec.PodClass != 0 || spec.Rare != nil || c.detail != (model.Detail{}) {
		spec.Detail = &c.detail
	}
}

// leftOut feeds the builder.
func (c *compiler) leftOut(_ int, l *apportionv1.LeftOut) {
	for _, text := range []string{l.GetNamespace(), l.GetName(), l.GetQueue(), l.GetJob(), l.GetScheduler(), l.GetKind(), l.GetDetail()} {
		c.text(text)
	}
	c.b.LeftOut(model.LeftOut{
		// The model keeps these texts, and a slot lends them.
		Cause: model.LeftOutCause(min(max(l.GetCause(), 0), 255)), Namespace: strings.Clone(l.GetNamespace()),
		Name: strings.Clone(l.GetName()), Queue: strings.Clone(l.GetQueue()), Job: strings.Clone(l.GetJob()),
		Scheduler: strings.Clone(l.GetScheduler()), Kind: strings.Clone(l.GetKind()), Detail: strings.Clone(l.GetDetail()),
	})
}

// shortestText is a bound below which texts are never refused, so that the tasks read in one loop need no look.
const shortestText = 128

// text notes a text that is longer than allowed.
func (c *compiler) text(s string) {
	if limit := c.limits.TextBytes; limit > 0 && int64(len(s)) > max(limit, shortestText) {
		c.longest = max(c.longest, int64(len(s)))
	}
}

// isText reports whether bytes are a text that is not too long.
func (c *compiler) isText(b []byte) bool {
	if limit := c.limits.TextBytes; len(b) > shortestText && limit > 0 && int64(len(b)) > limit {
		return false
	}
	return isASCII(b) || utf8.Valid(b)
}

func (c *compiler) termTexts(t *apportionv1.NodeGroupTerms) {
	for _, s := range t.GetRequiredGroups() {
		c.text(s)
	}
	for _, s := range t.GetPreferredGroups() {
		c.text(s)
	}
}

// exceeded returns a *Fault if a text was too long.
func (c *compiler) exceeded() error {
	if c.longest == 0 {
		return nil
	}
	maximum := max(c.limits.TextBytes, shortestText)
	return Exceeded("text_bytes", c.longest, maximum,
		"a name or uid has "+strconv.FormatInt(c.longest, 10)+" bytes, at most "+strconv.FormatInt(maximum, 10)+" are taken")
}
