// Package comparison finds what another policy, or another cluster, would change, queue by queue and job by job.
package comparison

import (
	"maps"
	"slices"
	"strconv"

	"github.com/apportion/apportion/client/lookup"
	"github.com/apportion/apportion/client/text"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Change is one thing that would be otherwise.
type Change struct {
	// Queue or Job is who it is for; Job is namespace/name.
	Queue string `json:"queue,omitempty"`
	Job   string `json:"job,omitempty"`
	// What is asked: deserved, overused, rank, enqueue, allocatable, reclaim or preempt.
	What string `json:"what"`
	// Was and Is are the two policies' words, Reason what the second gives for its own.
	Was    string `json:"was"`
	Is     string `json:"is"`
	Reason string `json:"reason,omitempty"`
	// Spared and Taken are tasks that only the first, or only the second, would evict.
	Spared []string `json:"spared,omitempty"`
	Taken  []string `json:"taken,omitempty"`
}

// Deserved is the What of what a queue deserves.
const Deserved = "deserved"

// Plan is what both policies are asked.
type Plan struct {
	snapshot *lookup.Snapshot
	// claimants are tasks that wait, one of each job.
	claimants []uint32
	// Omitted is how many jobs wait beyond those that are asked about.
	Omitted int
}

// maxClaimants bounds the jobs whose evictions are compared.
const maxClaimants = 500

// New plans a comparison about a snapshot.
func New(snapshot *lookup.Snapshot) *Plan {
	p := &Plan{snapshot: snapshot}
	seen := map[*apportionv1.Job]bool{}
	for _, task := range snapshot.Tasks {
		if !task.Pending() || seen[task.Job] {
			continue
		}
		seen[task.Job] = true
		if len(p.claimants) == maxClaimants {
			p.Omitted++
			continue
		}
		p.claimants = append(p.claimants, task.Number)
	}
	return p
}

// The positions of the answers.
const (
	sharesAt = iota
	_
	enqueueAt
	_
	allocatableAt
	firstClaimantAt
)

// Needed is the number of the first steps without whose answers nothing can be compared.
const Needed = enqueueAt + 2

// Steps are the questions.
func (p *Plan) Steps() []*apportionv1.Step {
	steps := []*apportionv1.Step{
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
		{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}},
		{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}},
		{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: &apportionv1.Tasks{Index: p.claimants}}}},
	}
	for _, task := range p.claimants {
		claimant := &apportionv1.Tasks{Index: []uint32{task}}
		steps = append(steps,
			&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: claimant, OmitNames: true}}},
			&apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{Claimant: claimant, OmitNames: true}}})
	}
	return steps
}

// Changes holds the second policy's answers against the first's.
func (p *Plan) Changes(was, is []*apportionv1.Answer, names text.Names) []Change {
	c := &changes{Plan: p, names: names}
	c.deserved(was[sharesAt].GetShares(), is[sharesAt].GetShares())
	c.standings(was[sharesAt].GetShares(), is[sharesAt].GetShares())
	c.admissions(was[enqueueAt].GetEnqueue(), is[enqueueAt].GetEnqueue())
	c.allowances(was[allocatableAt], is[allocatableAt])
	for i, task := range p.claimants {
		at := firstClaimantAt + 2*i
		c.victims("reclaim", task, was[at], is[at])
		c.victims("preempt", task, was[at+1], is[at+1])
	}
	return c.found
}

type changes struct {
	*Plan

	names text.Names
	found []Change
}

func (c *changes) add(change Change) {
	if change.Was != change.Is || len(change.Spared)+len(change.Taken) > 0 {
		c.found = append(c.found, change)
	}
}

// deserved compares what queues deserve in the plugins that divide.
func (c *changes) deserved(was, is *apportionv1.SharesAnswer) {
	before := map[uint32]*apportionv1.Resource{}
	for _, q := range dividing(was) {
		before[q.GetQueue()] = q.GetDeserved()
	}
	for _, q := range dividing(is) {
		c.add(Change{
			Queue: c.names.Queue(q.GetQueue()), What: Deserved,
			Was: render.Amounts(c.names, before[q.GetQueue()]), Is: render.Amounts(c.names, q.GetDeserved()),
		})
	}
}

// dividing are the queues of the first plugin that divides among them.
func dividing(a *apportionv1.SharesAnswer) []*apportionv1.QueueShare {
	for _, p := range a.GetPlugins() {
		if len(p.GetQueues()) > 0 {
			return p.GetQueues()
		}
	}
	return nil
}

func (c *changes) standings(was, is *apportionv1.SharesAnswer) {
	before := map[uint32]*apportionv1.QueueStanding{}
	for _, s := range was.GetStandings() {
		before[s.GetQueue()] = s
	}
	for _, s := range is.GetStandings() {
		old, name := before[s.GetQueue()], c.names.Queue(s.GetQueue())
		c.add(Change{
			Queue: name, What: "overused", Was: yesOrNo(old.GetOverused()), Is: yesOrNo(s.GetOverused()),
			Reason: text.Reasons(c.names, s.GetReasons()),
		})
		c.add(Change{Queue: name, What: "rank", Was: rankOf(old), Is: rankOf(s)})
	}
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func rankOf(s *apportionv1.QueueStanding) string {
	if s == nil || s.Rank == nil {
		return "none"
	}
	return strconv.Itoa(int(s.GetRank()) + 1)
}

func (c *changes) admissions(was, is *apportionv1.EnqueueAnswer) {
	before := map[uint32]*apportionv1.Verdict{}
	for _, job := range was.GetJobs() {
		before[job.GetJob()] = job.GetVerdict()
	}
	for _, job := range is.GetJobs() {
		c.verdicts(Change{Job: c.snapshot.JobName(job.GetJob()), What: "enqueue"}, before[job.GetJob()], job.GetVerdict())
		delete(before, job.GetJob())
	}
	for _, job := range slices.Sorted(maps.Keys(before)) {
		c.verdicts(Change{Job: c.snapshot.JobName(job), What: "enqueue"}, before[job], nil)
	}
}

func (c *changes) verdicts(change Change, was, is *apportionv1.Verdict) {
	change.Was, change.Is = wordOf(was), wordOf(is)
	change.Reason = text.Reasons(c.names, is.GetReasons())
	c.add(change)
}

// wordOf is a verdict in a word. To abstain is to permit.
func wordOf(v *apportionv1.Verdict) string {
	switch {
	case v == nil:
		return "not asked"
	case v.GetVote() == apportionv1.Vote_VOTE_REJECT:
		return "no"
	default:
		return "yes"
	}
}

func (c *changes) allowances(was, is *apportionv1.Answer) {
	for i, task := range c.claimants {
		change := Change{Job: lookup.JobName(c.snapshot.Tasks[task].Job), What: "allocatable"}
		c.verdicts(change, verdictAt(was, i), verdictAt(is, i))
	}
}

func verdictAt(a *apportionv1.Answer, i int) *apportionv1.Verdict {
	if tasks := a.GetAllocatable().GetTasks(); i < len(tasks) {
		return tasks[i].GetVerdict()
	}
	return nil
}

func (c *changes) victims(what string, claimant uint32, was, is *apportionv1.Answer) {
	answer := func(a *apportionv1.Answer) *apportionv1.VictimsAnswer {
		if what == "reclaim" {
			return a.GetReclaim()
		}
		return a.GetPreempt()
	}
	before, after := victimsOf(answer(was)), victimsOf(answer(is))
	c.add(Change{
		Job: lookup.JobName(c.snapshot.Tasks[claimant].Job), What: what, Was: countOf(was, before), Is: countOf(is, after),
		Spared: c.tasksIn(before, after), Taken: c.tasksIn(after, before),
	})
}

func victimsOf(a *apportionv1.VictimsAnswer) map[uint32]bool {
	out := make(map[uint32]bool, len(a.GetVictims()))
	for _, v := range a.GetVictims() {
		out[v.GetTask()] = true
	}
	return out
}

func countOf(a *apportionv1.Answer, victims map[uint32]bool) string {
	switch {
	case a.GetError() != nil:
		return "an error"
	case len(victims) == 1:
		return "1 victim"
	default:
		return strconv.Itoa(len(victims)) + " victims"
	}
}

// tasksIn names the tasks that are in one set and not in the other.
func (c *changes) tasksIn(these, without map[uint32]bool) []string {
	var out []string
	for _, task := range slices.Sorted(maps.Keys(these)) {
		if !without[task] {
			out = append(out, c.snapshot.TaskName(task))
		}
	}
	return out
}
