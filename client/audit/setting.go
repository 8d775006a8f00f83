package audit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// The rules about settings and jobs.
var (
	guaranteesDoNotFit = Rule{
		"guarantees-do-not-fit", Error, "The guarantees of sibling queues are more together than there is.",
		"Lower guarantees until they fit, or add nodes.",
	}
	deservedDoesNotFit = Rule{
		"deserved-does-not-fit", Warning, "Sibling queues deserve more together, by their settings, than there is.",
		"Lower spec.deserved until the queues fit, or add nodes: otherwise each may be within its share while all starve.",
	}
	guaranteeAboveCapability = Rule{
		"guarantee-above-capability", Error, "A queue is guaranteed more than its capability allows it to use.",
		"Raise spec.capability or lower spec.guarantee.",
	}
	deservedAboveCapability = Rule{
		"deserved-above-capability", Warning, "A queue deserves more than its capability allows it to use.",
		"Raise spec.capability or lower spec.deserved.",
	}
	deservedBelowGuarantee = Rule{
		"deserved-below-guarantee", Note, "A queue deserves less, by its settings, than it is guaranteed. The guarantee counts.",
		"Raise spec.deserved to spec.guarantee at least.",
	}
	capabilityAboveParent = Rule{
		"capability-above-parent", Warning, "A queue may use more than its parent, which can therefore never happen.",
		"Lower spec.capability, or raise that of the parent.",
	}
	capabilityMissesResource = Rule{
		"capability-misses-resource", Error,
		"Jobs of a queue ask for a resource that its capability does not name, and so may use none of it.",
		"Name the resource in spec.capability, also if it is not to be limited.",
	}
	zeroWeight = Rule{
		"zero-weight", Warning, "A queue with waiting jobs has weight 0, and gets nothing by weight.",
		"Set spec.weight to 1 at least.",
	}
	notReclaimable = Rule{
		"over-share-and-not-reclaimable", Warning, "A queue uses more than it deserves, and nothing may be taken back from it.",
		"Set spec.reclaimable to true, or give the queue what it uses.",
	}
	closedQueue = Rule{
		"queue-not-open", Warning, "Jobs wait in a queue that is not open.",
		"Open the queue, or submit the jobs to another one.",
	}
	noMinResources = Rule{
		"no-min-resources", Note, "Jobs wait without minResources: they enter their queue regardless of free resources.",
		"Set minResources, so that a queue admits no more than it can run.",
	}
	minResourcesTooSmall = Rule{
		"min-resources-too-small", Warning,
		"The minimum of a job's tasks requests more than its minResources: it may enter and never start.",
		"Set minResources to what minMember tasks request.",
	}
	neverFitsNode = Rule{
		"larger-than-any-node", Error, "A task requests more than any node has that it may use, even if the node were empty.",
		"Request less for each task, or add larger nodes.",
	}
	neverFitsQueue = Rule{
		"larger-than-its-queue", Error, "A job needs more than its queue could ever have.",
		"Raise the queue's capability (or its parent's), lower the guarantees of others, or make the job smaller.",
	}
	treeRefused = Rule{
		"queue-tree-refused", Error, "The policy refuses the queue tree: no job is admitted and no task is allocated.",
		"Give every queue a parent that exists, without circles, and move jobs to queues that have no children.",
	}
	gangTooLarge = Rule{
		"larger-than-the-cluster", Error, "A gang has no room on all nodes together, even if nothing else were on them.",
		"Lower the minimum or the requests, add nodes, or change the selectors, affinities or tolerations that keep its tasks from nodes.",
	}
	otherScheduler = Rule{
		"other-scheduler", Note, "Waiting pods without a PodGroup are left to another scheduler: nothing is said about them.",
		"If this scheduler should place them, set spec.schedulerName of the pods, or name their scheduler with --scheduler.",
	}
	leftOut = Rule{
		"not-considered", Warning, "The scheduler does not consider a job or a pod.",
		"Correct the name of the queue or of the scheduler, or give the pod a PodGroup.",
	}
)

var settingRules = []Rule{
	guaranteesDoNotFit, deservedDoesNotFit, guaranteeAboveCapability, deservedAboveCapability, deservedBelowGuarantee,
	capabilityAboveParent, capabilityMissesResource, zeroWeight, notReclaimable, closedQueue, noMinResources, minResourcesTooSmall,
	neverFitsNode, neverFitsQueue,
	leftOut, treeRefused, gangTooLarge, otherScheduler,
}

// checker gathers findings.
type checker struct {
	*auditor

	// accounts are those of the last plugin that divides among queues, by queue.
	accounts map[string]*apportionv1.QueueShare
	found    []Finding
	policy   configuration
	// noNode are the jobs, by name, a task of which no node could hold.
	noNode map[string]bool
}

func (c *checker) say(rule Rule, f Finding, format string, args ...any) {
	f.Rule, f.Severity, f.Help, f.Witness = rule.ID, rule.Severity, rule.Help, text.Sentence(fmt.Sprintf(format, args...))
	c.found = append(c.found, f)
}

// settings looks at each queue by itself, and at siblings together.
func (c *checker) settings() {
	waiting := map[string]int{}
	for _, task := range c.snapshot.Tasks {
		if task.Pending() {
			waiting[task.Job.GetQueue()]++
		}
	}
	for _, q := range c.snapshot.GetQueues() {
		c.bounds(q)
		at := Finding{Queue: q.GetName()}
		if n := waiting[q.GetName()]; n > 0 && q.Weight != nil && q.GetWeight() == 0 && c.policy.weighs() {
			c.say(zeroWeight, at, "%s in queue %s, whose weight is 0", waitingWords(n), q.GetName())
		} else if n > 0 && q.GetState() > apportionv1.QueueState_QUEUE_STATE_OPEN {
			c.say(closedQueue, at, "%s in queue %s, which is %s", waitingWords(n), q.GetName(),
				strings.ToLower(strings.TrimPrefix(q.GetState().String(), "QUEUE_STATE_")))
		}
		c.reclaimable(q)
	}
	c.siblings()
}

func waitingWords(n int) string {
	if n == 1 {
		return "1 task waits"
	}
	return text.Count(n, "task") + " wait"
}

// bounds compares the amounts of a queue with each other and with its parent's.
func (c *checker) bounds(q *apportionv1.Queue) {
	parent := c.queueNamed(q.GetParent())
	for d, name := range c.names.Dimensions {
		at := Finding{Queue: q.GetName(), Resource: name}
		guarantee, _ := amountOf(q.GetGuarantee(), d)
		deserved, named := amountOf(q.GetDeserved(), d)
		capability, limited := amountOf(q.GetCapability(), d)
		if limited && capability > 0 && guarantee > capability {
			c.say(guaranteeAboveCapability, at, "queue %s is guaranteed %s of %s and may use %s",
				q.GetName(), c.short(d, guarantee), name, c.short(d, capability))
		}
		if limited && capability > 0 && deserved > capability {
			c.say(deservedAboveCapability, at, "queue %s deserves %s of %s and may use %s",
				q.GetName(), c.short(d, deserved), name, c.short(d, capability))
		}
		if named && deserved < guarantee {
			c.say(deservedBelowGuarantee, at, "queue %s deserves %s of %s and is guaranteed %s",
				q.GetName(), c.short(d, deserved), name, c.short(d, guarantee))
		}
		if above, set := amountOf(parent.GetCapability(), d); set && limited && capability > above && above > 0 {
			c.say(capabilityAboveParent, at, "queue %s may use %s of %s, its parent %s only %s",
				q.GetName(), c.short(d, capability), name, parent.GetName(), c.short(d, above))
		}
	}
}

// amountOf returns the amount of a dimension, and whether it is named. Answers number the dimensions of a snapshot as it does.
func amountOf(r *apportionv1.Resource, dimension int) (float64, bool) {
	for i, d := range r.GetDimensions() {
		if int(d) == dimension && i < len(r.GetAmounts()) {
			return r.GetAmounts()[i], true
		}
	}
	return 0, false
}

// siblings compares the sum of what the queues of one parent are promised with the amount that is divided among them.
func (c *checker) siblings() {
	children := map[string][]*apportionv1.Queue{}
	for _, q := range c.snapshot.GetQueues() {
		if q.GetName() != rootQueue {
			children[parentOf(q)] = append(children[parentOf(q)], q)
		}
	}
	for _, parent := range slices.Sorted(maps.Keys(children)) {
		for d, name := range c.names.Dimensions {
			var guarantee, deserved float64
			for _, q := range children[parent] {
				g, _ := amountOf(q.GetGuarantee(), d)
				x, _ := amountOf(q.GetDeserved(), d)
				guarantee, deserved = guarantee+g, deserved+x
			}
			bound, whose := c.total[d], "the cluster has"
			if c.report.Unjudged {
				bound = math.Inf(1)
			}
			if limit, set := amountOf(c.queueNamed(parent).GetCapability(), d); set && limit > 0 && limit < bound {
				bound, whose = limit, "their parent "+parent+" may use"
			}
			at := Finding{Resource: name}
			if parent != rootQueue {
				at.Queue = parent
			}
			if guarantee > bound {
				c.say(guaranteesDoNotFit, at, "queues are guaranteed %s of %s together, %s %s",
					c.short(d, guarantee), name, whose, c.short(d, bound))
			}
			if deserved > bound {
				c.say(deservedDoesNotFit, at, "queues deserve %s of %s together, %s %s",
					c.short(d, deserved), name, whose, c.short(d, bound))
			}
		}
	}
}

const rootQueue = "root"

func parentOf(q *apportionv1.Queue) string {
	if q.GetParent() == "" {
		return rootQueue
	}
	return q.GetParent()
}

// reclaimable finds a queue that keeps what it should give back.
func (c *checker) reclaimable(q *apportionv1.Queue) {
	share := c.accounts[q.GetName()]
	if q.Reclaimable == nil || q.GetReclaimable() || share == nil || len(share.GetChildren()) > 0 {
		return
	}
	allocated, deserved := c.row(share.GetAllocated()), c.row(share.GetDeserved())
	for d, name := range c.names.Dimensions {
		if allocated[d] > deserved[d] && name != pods {
			c.say(notReclaimable, Finding{Queue: q.GetName(), Resource: name},
				"queue %s uses %s of %s, deserves %s, and is not reclaimable",
				q.GetName(), c.short(d, allocated[d]), name, c.short(d, deserved[d]))
			return
		}
	}
}

// jobs looks at jobs that wait.
func (c *checker) jobs() {
	others := map[string]int{}
	for _, l := range c.snapshot.GetLeftOuts() {
		switch l.GetCause() {
		case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD:
			continue
		default:
		}
		if l.GetCause() == apportionv1.LeftOutCause_LEFT_OUT_CAUSE_OTHER_SCHEDULER && l.GetJob() == "" {
			others[l.GetScheduler()]++
			continue
		}
		name := strings.Trim(l.GetNamespace()+"/"+l.GetName(), "/")
		c.say(leftOut, Finding{Job: name}, "%s", text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l}))
	}
	for _, scheduler := range slices.Sorted(maps.Keys(others)) {
		c.say(otherScheduler, Finding{}, "%s left to scheduler %s", text.Are(others[scheduler], "waiting pod"), scheduler)
	}
	unknown := map[string]int{}
	for _, job := range c.snapshot.GetJobs() {
		if job.GetPhase() > apportionv1.JobPhase_JOB_PHASE_PENDING {
			c.sizes(job, false)
			continue
		}
		if job.GetMinResources() == nil && len(job.GetGroups()) > 0 {
			unknown[job.GetQueue()]++
		}
		c.sizes(job, true)
	}
	for _, queue := range slices.Sorted(maps.Keys(unknown)) {
		c.say(noMinResources, Finding{Queue: queue}, "%s of queue %s without minResources",
			text.Count(unknown[queue], "waiting job"), queue)
	}
}

// sizes compares a job with what its queue and the nodes could ever hold.
func (c *checker) sizes(job *apportionv1.Job, waits bool) {
	name := lookup.JobName(job)
	minimum := make([]float64, len(c.names.Dimensions))
	counted := uint32(0)
	for _, group := range job.GetGroups() {
		request := c.row(group.GetRequest())
		pending := pendingOf(group)
		if pending > 0 {
			c.node(job, request)
		}
		size := pending + len(group.GetTasks())
		take := min(uint32(size), job.GetMinAvailable()-min(counted, job.GetMinAvailable()))
		counted += take
		for d := range minimum {
			minimum[d] += float64(take) * request[d]
		}
	}
	if !waits || job.GetMinResources() == nil {
		return
	}
	asked := c.row(job.GetMinResources())
	share := c.accounts[job.GetQueue()]
	limit := c.row(share.GetRealCapability())
	for d, dimension := range c.names.Dimensions {
		at := Finding{Queue: job.GetQueue(), Job: name, Resource: dimension}
		_, named := amountOf(c.queueNamed(job.GetQueue()).GetCapability(), d)
		switch {
		case share != nil && asked[d] > limit[d] && limit[d] == 0 && !named && c.queueNamed(job.GetQueue()).GetCapability() != nil:
			c.say(capabilityMissesResource, at, "job %s asks for %s of %s, which the capability of queue %s does not name",
				name, c.short(d, asked[d]), dimension, job.GetQueue())
		case share != nil && asked[d] > limit[d] && share.GetRealCapability() != nil:
			c.say(neverFitsQueue, at, "job %s asks for %s of %s, queue %s could have %s at most",
				name, c.short(d, asked[d]), dimension, job.GetQueue(), c.short(d, limit[d]))
		case dimension != pods && singleRole(job) && minimum[d] > asked[d]:
			c.say(minResourcesTooSmall, at, "%s of job %s %s %s of %s, its minResources are %s",
				text.Count(int(job.GetMinAvailable()), "task"), name,
				text.Verb(int(job.GetMinAvailable()), "requests", "request"), c.short(d, minimum[d]), dimension, c.short(d, asked[d]))
		}
	}
}

// singleRole reports whether all tasks of a job are alike, so that it is known what its minimum requests.
func singleRole(job *apportionv1.Job) bool { return len(job.GetGroups()) == 1 }

// pendingOf counts the tasks of a group that wait.
func pendingOf(group *apportionv1.TaskGroup) int {
	n := 0
	for _, task := range group.GetTasks() {
		if task.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING {
			n++
		}
	}
	for _, count := range group.GetCounts() {
		if count.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING {
			n += int(count.GetCount())
		}
	}
	return n
}

// node finds a request that no node could hold.
func (c *checker) node(job *apportionv1.Job, request []float64) {
	if len(c.snapshot.GetNodes()) == 0 {
		return
	}
	most := make([]float64, len(request))
	for _, n := range c.snapshot.GetNodes() {
		allocatable := c.row(n.GetAllocatable())
		fits := true
		for d := range request {
			most[d] = max(most[d], allocatable[d])
			fits = fits && request[d] <= allocatable[d]
		}
		if fits {
			return
		}
	}
	name := lookup.JobName(job)
	c.noNode[name] = true
	for d, dimension := range c.names.Dimensions {
		if request[d] > most[d] {
			c.say(neverFitsNode, Finding{Queue: job.GetQueue(), Job: name, Resource: dimension},
				"a task of job %s requests %s of %s, the largest node has %s", name, c.short(d, request[d]), dimension, c.short(d, most[d]))
			return
		}
	}
	c.say(neverFitsNode, Finding{Queue: job.GetQueue(), Job: name}, "no node has all at once that a task of job %s requests", name)
}
