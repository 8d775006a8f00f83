// Package comparison finds what another policy, or another cluster, would change, queue by queue and job by job.
package comparison

import (
	"cmp"
	"maps"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// Plan contains the questions to both policies.
type Plan struct {
	snapshot *lookup.Snapshot
	// claimants contains one waiting task of each job, for which others may be evicted; the first of each queue come first.
	claimants []uint32
}

const (
	// leastConsidered and consideredPerTask are how many tasks one question about evictions considers as victims, each as often as it is:
	// the larger of the two, the second for each task of the cluster. Policies to which claimants are alike consider each task about once.
	leastConsidered   = 2_000_000
	consideredPerTask = 20
	// mostQuestions limits the questions about evictions.
	mostQuestions = 4
)

// New plans a comparison about a snapshot.
func New(snapshot *lookup.Snapshot) *Plan {
	p := &Plan{snapshot: snapshot}
	seen, turns := map[*apportionv1.Job]bool{}, map[uint32]int{}
	perQueue := map[string]int{}
	for _, task := range snapshot.Tasks {
		if !task.Pending() || seen[task.Job] {
			continue
		}
		seen[task.Job] = true
		p.claimants = append(p.claimants, task.Number)
		turns[task.Number] = perQueue[task.Job.GetQueue()]
		perQueue[task.Job.GetQueue()]++
	}
	slices.SortStableFunc(p.claimants, func(l, r uint32) int { return cmp.Compare(turns[l], turns[r]) })
	return p
}

// The positions of the answers.
const (
	sharesAt = iota
	explainAt
)

// Steps returns the questions about queues, and about the jobs that wait: each is judged as a whole, alone.
func Steps() []*apportionv1.Step {
	return []*apportionv1.Step{
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
		{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{}}},
	}
}

// Evictable asks which tasks may be evicted for waiting jobs, and sets them in the outcome. It returns the jobs, by name, that it did not
// ask about because that would have taken too long: it begins with the first job of each queue. About jobs in except it does not ask.
func (p *Plan) Evictable(o *Outcome, except map[string]bool, ask func(*apportionv1.Step) (*apportionv1.Answer, error)) ([]string, error) {
	for _, q := range o.Queues {
		q.Evictable = maps.Clone(q.victims)
	}
	jobName := func(claimant uint32) string { return lookup.JobName(p.snapshot.Tasks[claimant].Job) }
	claimants := slices.DeleteFunc(slices.Clone(p.claimants), func(c uint32) bool { return except[jobName(c)] })
	limit := uint64(max(leastConsidered, consideredPerTask*len(p.snapshot.Tasks)))
	for questions := 0; len(claimants) > 0 && (questions < mostQuestions || len(except) > 0); questions++ {
		answer, err := ask(&apportionv1.Step{Step: &apportionv1.Step_Evictable{Evictable: &apportionv1.EvictableStep{
			Claimants: &apportionv1.Selector{Indices: claimants}, Limit: limit,
		}}})
		if err != nil {
			return nil, err
		}
		found := answer.GetEvictable()
		for _, t := range slices.Concat(found.GetReclaimVictims(), found.GetPreemptVictims()) {
			task := p.snapshot.Tasks[t]
			o.Queues[task.Job.GetQueue()].Evictable[task.Name()] = true
		}
		claimants = found.GetLeftClaimants()
	}
	var left []string
	for _, c := range claimants {
		left = append(left, jobName(c))
	}
	return left, nil
}

// dividing returns the queues of the first plugin that divides among queues.
func dividing(a *apportionv1.SharesAnswer) []*apportionv1.QueueShare {
	for _, p := range a.GetPlugins() {
		if len(p.GetQueues()) > 0 {
			return p.GetQueues()
		}
	}
	return nil
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
