package checker

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// verdict is a decision of fair with its reason; nil: a plain permit.
type verdict struct {
	permitted bool
	reason    *apportionv1.Reason
}

// message is the verdict as answers have it.
func (v verdict) message() *apportionv1.Verdict {
	m := &apportionv1.Verdict{Vote: apportionv1.Vote_VOTE_REJECT}
	if v.permitted {
		m.Vote = apportionv1.Vote_VOTE_PERMIT
	}
	if v.reason != nil {
		m.Reasons = []*apportionv1.Reason{v.reason}
	}
	return m
}

// because is a reason of fair without numbers.
func because(code apportionv1.ReasonCode, q int) *apportionv1.Reason {
	r := &apportionv1.Reason{Plugin: ofFair, Code: code}
	if q != root {
		r.Queue = new(uint32(q))
	}
	return r
}

// compared is a reason of fair with the numbers that were compared.
func compared(code apportionv1.ReasonCode, q, d int, have, need, limit int64) *apportionv1.Reason {
	r := because(code, q)
	r.Dimension, r.Have, r.Need, r.Limit = new(uint32(d)), float64(have), float64(need), float64(limit)
	return r
}

// served is a queue with what is asked for it.
type served struct {
	queue   int
	request []int64
}

// notServed returns why a queue serves no jobs: it is set aside, or has children; nil if it serves them.
func (c *check) notServed(q int) *apportionv1.Reason {
	fault := c.refused[q]
	if fault == 0 && len(c.kids[q]) > 0 {
		fault = apportionv1.HierarchyFault_HIERARCHY_FAULT_JOB_ON_INNER_QUEUE
	}
	if fault == 0 {
		return nil
	}
	r := because(apportionv1.ReasonCode_REASON_CODE_HIERARCHY_REFUSED, q)
	r.HierarchyFault = fault
	return r
}

// allocatable decides as docs/fair.md does under Verdicts: an open queue may use what is within its limits, and within its entitlement or
// idle and claimed by no other queue.
func (c *check) allocatable(s served, simulation bool) verdict {
	if refusal := c.notServed(s.queue); refusal != nil {
		return verdict{false, refusal}
	}
	if !c.open[s.queue] && !simulation {
		return verdict{false, because(apportionv1.ReasonCode_REASON_CODE_QUEUE_NOT_OPEN, s.queue)}
	}
	return c.permit(s.queue, s.request)
}

func (c *check) permit(q int, request []int64) verdict {
	for _, a := range c.path(q) {
		for d, x := range request {
			if x > 0 && c.capability[a][d] != unlimited && c.held[a][d]+x > c.capability[a][d] {
				return verdict{false, compared(apportionv1.ReasonCode_REASON_CODE_ABOVE_LIMIT, a, d, c.held[a][d], x, c.capability[a][d])}
			}
		}
	}
	beyond := c.unentitled(q, request, c.remembered)
	if beyond < 0 {
		return verdict{true, because(apportionv1.ReasonCode_REASON_CODE_ENTITLED, q)}
	}
	for d, x := range request {
		if free := c.free[root][d]; x > 0 && x > free-c.left[q][d] {
			return verdict{false, compared(apportionv1.ReasonCode_REASON_CODE_NOT_IDLE, q, d, c.left[q][d], x, free)}
		}
	}
	return verdict{true, c.aboveLine(apportionv1.ReasonCode_REASON_CODE_BORROWED, q, beyond, request, c.remembered)}
}

// unentitled returns the first dimension in which a queue may not hold that much more under a line; -1 if there is none.
func (c *check) unentitled(q int, request []int64, line func(q, d int) int64) int {
	for _, d := range c.byDimension {
		if request[d] > 0 && c.held[q][d]+request[d] > line(q, d)*c.unit[d] {
			return d
		}
	}
	return -1
}

func (c *check) aboveLine(
	code apportionv1.ReasonCode, q, d int, request []int64, line func(q, d int) int64,
) *apportionv1.Reason {
	return compared(code, q, d, c.held[q][d], request[d], line(q, d)*c.unit[d])
}

// remembered is the line with memory of a queue.
func (c *check) remembered(q, d int) int64 { return c.lines[q][d][withMemory] }

// preemptive decides whether a queue may take from others: it is open and entitled to what it asks for.
func (c *check) preemptive(s served) verdict {
	refusal := c.notServed(s.queue)
	if refusal == nil && !c.open[s.queue] {
		refusal = because(apportionv1.ReasonCode_REASON_CODE_QUEUE_NOT_OPEN, s.queue)
	}
	if refusal == nil {
		d := c.unentitled(s.queue, s.request, c.taking)
		if d < 0 {
			return verdict{permitted: true}
		}
		refusal = c.aboveLine(apportionv1.ReasonCode_REASON_CODE_NOT_ENTITLED, s.queue, d, s.request, c.taking)
	}
	return verdict{false, refusal}
}

// overused returns what stands against the first block of a queue that waits for something and would be permitted nothing of it; nil if the
// queue is not such.
func (c *check) overused(q int) *apportionv1.Reason {
	var against *apportionv1.Reason
	for _, job := range c.blocks[q] {
		for _, block := range job {
			v := c.permit(q, sum(block, len(c.dims)))
			if v.permitted {
				return nil
			}
			if against == nil {
				against = v.reason
			}
		}
	}
	return against
}

// aboutTasks is a question about tasks that their queues decide.
type aboutTasks interface {
	proto.Message
	GetTasks() *apportionv1.Tasks
	GetJointly() bool
	GetExplain() bool
}

// taskVerdicts checks the verdicts about tasks, each or all together; false if other plugins than fair vote.
func (c *check) taskVerdicts(
	path string, step aboutTasks, got []*apportionv1.TaskVerdict, decide func(served) verdict,
) bool {
	if !c.alone(ofProportion, ofCapacity) {
		return false
	}
	tasks, ok := c.tasksOf(step.GetTasks())
	if !ok {
		c.wrong("%s answers a question about tasks that the snapshot does not have", path)
		return true
	}
	asked := [][]*task{tasks}
	if !step.GetJointly() {
		asked = nil
		for i := range tasks {
			asked = append(asked, tasks[i:i+1])
		}
	}
	if len(got) != len(asked) || step.GetJointly() && len(tasks) == 0 {
		c.wrong("%s.tasks has %d entries, not %d", path, len(got), len(asked))
		return true
	}
	for i, list := range asked {
		v := decide(served{c.jobs[list[0].job].queue, sum(list, len(c.dims))})
		want := &apportionv1.TaskVerdict{Verdict: v.message()}
		if !step.GetJointly() {
			want.Task = new(uint32(list[0].number))
		}
		if step.GetExplain() {
			reason := v.reason
			if reason == nil {
				reason = because(apportionv1.ReasonCode_REASON_CODE_ENTITLED, c.jobs[list[0].job].queue)
			}
			want.Checks = []*apportionv1.AccountCheck{{Passed: v.permitted, Reason: reason}}
		}
		c.compare(fmt.Sprintf("%s.tasks[%d]", path, i), got[i], want, c.sentences())
	}
	return true
}

// tasksOf returns the tasks of a selection by number or name; false if some are not in the snapshot.
func (c *check) tasksOf(tasks *apportionv1.Tasks) (list []*task, ok bool) {
	for _, i := range tasks.GetIndex() {
		if int(i) >= len(c.tasks) {
			return nil, false
		}
		list = append(list, c.tasks[i])
	}
	for _, name := range tasks.GetUid() {
		at := slices.IndexFunc(c.tasks, func(t *task) bool { return t.name == name })
		if at < 0 || name == "" {
			return nil, false
		}
		list = append(list, c.tasks[at])
	}
	return list, true
}

// enqueue checks which jobs may enter, each after those before it; false if other plugins than fair vote or the plugins are not asked.
func (c *check) enqueue(path string, step *apportionv1.EnqueueStep, got *apportionv1.EnqueueAnswer) bool {
	action := step.GetMode() == apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION
	jobs, ok := c.chosenJobs(step.GetJobs())
	if !c.alone(ofProportion, ofCapacity, "overcommit") || !ok || step.GetMode() > apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION {
		return false
	}
	if action && step.GetJobs() == nil {
		jobs = nil
		c.omit(path+".jobs.job", "only the engine can order jobs; the verdicts are checked in the order given")
		for _, v := range got.GetJobs() {
			if int(v.GetJob()) < len(c.jobs) {
				jobs = append(jobs, int(v.GetJob()))
			}
		}
		var pending []int
		for i := range c.jobs {
			if c.pending(i) {
				pending = append(pending, i)
			}
		}
		if given := slices.Sorted(slices.Values(jobs)); !slices.Equal(given, pending) {
			c.wrong("%s.jobs does not list each pending job once", path)
			return true
		}
	}
	want := &apportionv1.EnqueueAnswer{}
	for _, i := range jobs {
		j := c.jobs[i]
		v := c.enters(i)
		switch {
		case action && !c.pending(i):
			v = verdict{false, &apportionv1.Reason{Code: apportionv1.ReasonCode_REASON_CODE_JOB_NOT_PENDING}}
		case action && j.message.GetMinResources() == nil:
			v = verdict{true, &apportionv1.Reason{Code: apportionv1.ReasonCode_REASON_CODE_NO_MIN_RESOURCES}}
		}
		if action && v.permitted {
			c.admitted[i], c.lacking = true, nil
		}
		out := &apportionv1.EnqueueVerdict{Job: uint32(i), Verdict: v.message()}
		if !step.GetOmitNames() {
			out.Uid = nameOf(j.message)
		}
		want.Jobs = append(want.Jobs, out)
	}
	c.compare(path, got, want, c.sentences())
	return true
}

func (c *check) pending(i int) bool {
	return c.jobs[i].message.GetPhase() <= apportionv1.JobPhase_JOB_PHASE_PENDING && !c.admitted[i]
}

// chosenJobs are the jobs of a selection; all without one.
func (c *cluster) chosenJobs(selection *apportionv1.Jobs) (list []int, ok bool) {
	if selection == nil {
		for i := range c.jobs {
			list = append(list, i)
		}
		return list, true
	}
	for _, i := range selection.GetIndex() {
		if int(i) >= len(c.jobs) {
			return nil, false
		}
		list = append(list, int(i))
	}
	for _, name := range selection.GetUid() {
		i := slices.IndexFunc(c.jobs, func(j *job) bool { return nameOf(j.message) == name })
		if i < 0 {
			return nil, false
		}
		list = append(list, i)
	}
	return list, true
}

// enters decides whether a job may enter: its queue is open, enough of its tasks could ever run, and its minimum is within the total and,
// with what the queue and its ancestors hold and have admitted, within their limits.
func (c *check) enters(i int) verdict {
	j := c.jobs[i]
	if refusal := c.notServed(j.queue); refusal != nil {
		return verdict{false, refusal}
	}
	if !c.open[j.queue] {
		return verdict{false, because(apportionv1.ReasonCode_REASON_CODE_QUEUE_NOT_OPEN, j.queue)}
	}
	need := min(int64(len(j.tasks))+j.counted, max(1, int64(j.message.GetMinAvailable())))
	if len(j.tasks) > 0 && j.fitting+j.counted < need {
		refusal := because(apportionv1.ReasonCode_REASON_CODE_NEVER_FITS, j.queue)
		refusal.Have, refusal.Limit = float64(j.fitting+j.counted), float64(need)
		return verdict{false, refusal}
	}
	if j.message.GetMinResources() == nil {
		return verdict{permitted: true}
	}
	minimum := c.minimum(j)
	for d, x := range minimum {
		if x > c.all[d] {
			refusal := compared(apportionv1.ReasonCode_REASON_CODE_ABOVE_TOTAL, j.queue, d, 0, x, c.all[d])
			return verdict{false, refusal}
		}
	}
	for _, a := range c.path(j.leaf) {
		entered := c.inqueue(a, j)
		for d, x := range minimum {
			have := c.held[a][d] + entered[d]
			if limit := c.capability[a][d]; x > 0 && limit != unlimited && have+x > limit {
				return verdict{false, compared(apportionv1.ReasonCode_REASON_CODE_ABOVE_LIMIT, a, d, have, x, limit)}
			}
		}
	}
	return verdict{permitted: true}
}

// inqueue is what the admitted jobs below a queue, but one, lack of their minimum.
func (c *check) inqueue(q int, but *job) []int64 {
	if c.lacking == nil {
		c.lacking = map[int][]int64{}
		for i, j := range c.jobs {
			if lack := c.jobLack(i, j); lack != nil {
				for _, a := range c.path(j.leaf) {
					c.lacking[a] = append(c.lacking[a], make([]int64, len(c.dims)-min(len(c.dims), len(c.lacking[a])))...)
					add(c.lacking[a], lack, 1)
				}
			}
		}
	}
	row := make([]int64, len(c.dims))
	add(row, c.lacking[q], 1)
	if i := slices.Index(c.jobs, but); i >= 0 {
		add(row, c.jobLack(i, but), -1)
	}
	return row
}

// jobLack is what an admitted job lacks of its minimum; nil if it is not admitted, names no minimum, or none of its tasks could ever run.
func (c *check) jobLack(i int, j *job) []int64 {
	entered := j.message.GetPhase() == apportionv1.JobPhase_JOB_PHASE_INQUEUE || c.admitted[i]
	if j.leaf == aside || !entered || j.message.GetMinResources() == nil || len(j.tasks) > 0 && j.fitting == 0 {
		return nil
	}
	row := c.minimum(j)
	for d := range row {
		row[d] = max(0, row[d]-j.heldRow[d])
	}
	return row
}
