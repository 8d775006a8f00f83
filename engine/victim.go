package engine

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Ballot is one plugin's own choice of victims.
type Ballot struct {
	Plugin  string
	Tier    int
	Vote    policy.Vote
	Victims []model.TaskID
}

// Choice is the decision which tasks a claimant may evict.
type Choice struct {
	// Decided: some plugin voted in a consulted tier. False: no plugin has an opinion.
	Decided bool
	// Tier that decided, -1 for none.
	Tier    int
	Victims []model.TaskID
	// Ballots of all plugins that take part, whether or not their tier was reached.
	Ballots []Ballot
	// Spared has an entry for each protection, in order of plugins and candidates. It is valid until the session's next such choice.
	Spared []policy.Check
	// Checks has every check; nil unless requested.
	Checks []policy.Check
	// Plan of the plugin whose tier decided; nil if it is not a policy.Planner. Victims are then the plan's.
	Plan *policy.Plan
}

// Victims answers which tasks one of Volcano's two actions that evict may take.
type Victims struct {
	s       *Session
	preempt bool
}

// Reclaim returns the questions about tasks of other queues, which the reclaim action evicts.
func (s *Session) Reclaim() Victims { return s.Host().VictimsOf(false) }

// Preempt returns the questions about tasks of the claimant's own queue, which the preempt action evicts.
func (s *Session) Preempt() Victims { return s.Host().VictimsOf(true) }

// VictimsOf returns the questions about the tasks that one of the two actions evicts.
func (h Host) VictimsOf(preempt bool) Victims { return Victims{h.Session, preempt} }

func (a Victims) voters() []voter {
	if a.preempt {
		return a.s.by.preempt
	}
	return a.s.by.reclaim
}

// Voters returns the number of plugins that choose.
func (a Victims) Voters() int { return len(a.voters()) }

// Asks reports whether the action asks for a job at all. As in Volcano's actions, only a job that lacks tasks evicts, and reclaim passes
// over queues; a policy that plans without plugins that say who lacks tasks decides by its plans.
func (a Victims) Asks(j model.JobID, why *policy.Reasons) bool {
	s := a.s
	if (len(s.by.starving) > 0 || !s.Reclaim().Plans()) && !s.Job(j).Starving(why) {
		return false
	}
	q := s.view.Jobs.At(j).Queue
	if a.preempt || !s.reclaimPassesOver(q) {
		return true
	}
	s.IsOverused(q, why)
	return false
}

// Choose decides which candidates a claimant may evict. Plugins without plans consider the claimant's first task.
func (a Victims) Choose(c *policy.Claim, explain bool) Choice {
	return a.s.choose(a.voters(), c, explain)
}

// Plans reports whether some plugin chooses by plans, which support several tasks and a room.
func (a Victims) Plans() bool {
	return slices.ContainsFunc(a.voters(), func(v voter) bool { return v.planner != nil })
}

func (s *Session) choose(voters []voter, c *policy.Claim, explain bool) Choice {
	g := policy.Grounds{Spared: policy.Checks{List: s.spared[:0]}}
	if explain {
		g.Checks = &policy.Checks{}
	}
	choice := s.chooseOn(voters, c, &g, nil)
	if explain {
		choice.Checks = g.Checks.List
	}
	s.spared = g.Spared.List
	choice.Spared = s.spared
	return choice
}

// chooseOn is choose that records in g, unless it is nil, what protects candidates. It calls relied, unless it is nil, with each list of
// tasks on which the outcome would be another if it were empty.
func (s *Session) chooseOn(voters []voter, c *policy.Claim, g *policy.Grounds, relied func([]model.TaskID)) Choice {
	choice := Choice{Tier: -1, Ballots: make([]Ballot, len(voters))}
	victims := make([]model.TaskID, 0, len(voters)*len(c.Candidates))
	planning := -1
	for i, voter := range voters {
		choice.Ballots[i] = Ballot{Plugin: voter.name, Tier: voter.tier}
		if voter.planner != nil {
			planning = i
			continue
		}
		from, since := len(victims), g.Extent()
		victims, choice.Ballots[i].Vote = voter.choose(c.Tasks[0], c.Candidates, victims, g)
		choice.Ballots[i].Victims = victims[from:len(victims):len(victims)]
		g.SetTier(since, voter.tier)
	}
	var plan policy.Plan
	if planning >= 0 {
		since := g.Extent()
		plan = planAmong(&choice, voters, planning, c, g)
		g.SetTier(since, voters[planning].tier)
	}
	if planning < 0 {
		s.walk(&choice, relied)
		return choice
	}
	tier := voters[planning].tier
	whole := choice.Ballots
	choice.Ballots = whole[:slices.IndexFunc(whole, func(b Ballot) bool { return b.Tier == tier })]
	s.walk(&choice, relied)
	choice.Ballots = whole
	if choice.Tier < 0 {
		choice.Decided, choice.Tier, choice.Plan, choice.Victims = true, tier, &plan, plan.Victims
	}
	return choice
}

// planAmong calls a planner with the candidates that every other plugin of its tier permits.
func planAmong(choice *Choice, voters []voter, planning int, c *policy.Claim, g *policy.Grounds) policy.Plan {
	claim := *c
	for i := range choice.Ballots {
		ballot := &choice.Ballots[i]
		if i != planning && ballot.Tier == voters[planning].tier && ballot.Vote != policy.Abstain {
			claim.Candidates = intersect(slices.Clone(claim.Candidates), ballot.Victims)
		}
	}
	plan := voters[planning].planner.Plan(&claim, g)
	ballot := &choice.Ballots[planning]
	ballot.Vote, ballot.Victims = policy.Reject, plan.Victims
	if plan.Made {
		ballot.Vote = policy.Permit
	}
	return plan
}

// walk combines the ballots as the policy says.
func (s *Session) walk(c *Choice, relied func([]model.TaskID)) {
	if s.policy.Walk == Volcano {
		walkAsVolcano(c, relied)
		return
	}
	walkStrictly(c)
}

// walkStrictly combines the ballots: within a tier the victims are those that every plugin that voted chose; the first tier in which a
// plugin voted has decided.
func walkStrictly(c *Choice) {
	for _, ballot := range c.Ballots {
		switch {
		case ballot.Vote == policy.Abstain:
		case !c.Decided:
			c.Decided, c.Tier, c.Victims = true, ballot.Tier, slices.Clone(ballot.Victims)
		case ballot.Tier == c.Tier:
			c.Victims = intersect(c.Victims, ballot.Victims)
		}
	}
}

// walkAsVolcano combines the ballots as Session.Reclaimable of Volcano does: an empty intersection counts as no opinion, so the next plugin
// of the tier starts afresh; a plugin without victims ends its tier; a tier without victims leaves the decision to the next.
func walkAsVolcano(c *Choice, relied func([]model.TaskID)) {
	rely := func(tasks []model.TaskID) {
		if relied != nil && len(tasks) > 0 {
			relied(tasks)
		}
	}
	for i := 0; i < len(c.Ballots); {
		tier := c.Ballots[i].Tier
		var victims []model.TaskID
		ended := false
		for ; i < len(c.Ballots) && c.Ballots[i].Tier == tier; i++ {
			ballot := &c.Ballots[i]
			if ended || ballot.Vote == policy.Abstain {
				continue
			}
			c.Decided = true
			rely(ballot.Victims)
			switch {
			case len(ballot.Victims) == 0:
				victims, ended = victims[:0], true
			case len(victims) == 0:
				victims = slices.Clone(ballot.Victims)
			default:
				victims = intersect(victims, ballot.Victims)
				rely(victims)
			}
		}
		if len(victims) > 0 {
			c.Tier, c.Victims = tier, victims
			return
		}
	}
}

// taskSet is a set of tasks: a bit for each number.
type taskSet []uint64

func newTaskSet(tasks int) taskSet { return make(taskSet, (tasks+63)/64) }

func (s taskSet) add(t model.TaskID) { s[t/64] |= 1 << uint(t%64) }

func (s taskSet) has(t model.TaskID) bool { return int(t/64) < len(s) && s[t/64]>>uint(t%64)&1 != 0 }

// setOf returns the set of some tasks; nil if a map takes less memory.
func setOf(tasks []model.TaskID) taskSet {
	const bitsOfEntry = 128
	most := model.TaskID(0)
	for _, t := range tasks {
		most = max(most, t)
	}
	if int(most) >= bitsOfEntry*len(tasks) {
		return nil
	}
	set := newTaskSet(int(most) + 1)
	for _, t := range tasks {
		set.add(t)
	}
	return set
}

// intersect keeps of list what is also in other, in the order of list.
func intersect(list, other []model.TaskID) []model.TaskID {
	if in := setOf(other); in != nil {
		return slices.DeleteFunc(list, func(t model.TaskID) bool { return !in.has(t) })
	}
	in := make(map[model.TaskID]struct{}, len(other))
	for _, t := range other {
		in[t] = struct{}{}
	}
	return slices.DeleteFunc(list, func(t model.TaskID) bool { _, ok := in[t]; return !ok })
}

// Candidates lists the tasks that the action considers for a claimant: job by job in the order of their uids, within a job the newest
// first, those of the same age by uid or namespace/name, and those without either by number. It returns policy.ErrStopped if it is stopped.
func (a Victims) Candidates(claimant model.TaskID) ([]model.TaskID, error) {
	return a.candidates(claimant, a.s.view.QueueOf(claimant))
}

// candidates lists the candidates for a claimant as if it were of queue mine; to reclaim for no queue lists those of all queues.
func (a Victims) candidates(claimant model.TaskID, mine model.QueueID) ([]model.TaskID, error) {
	return a.candidatesOf(a.s.view.Present(), claimant, mine)
}

// candidatesOf is candidates among the tasks of jobs.
func (a Victims) candidatesOf(jobs []model.JobID, claimant model.TaskID, mine model.QueueID) ([]model.TaskID, error) {
	v := a.s.view
	var candidates []model.TaskID
	looked := 0
	for _, j := range jobs {
		from, job := len(candidates), v.Jobs.At(j)
		if theirs := job.Queue; a.preempt != (theirs == mine) || !a.preempt && !v.Queues[theirs].Reclaimable {
			continue
		}
		for t := job.FirstTask; t < job.EndTask; t++ {
			if looked++; v.Stopped(looked) {
				return nil, policy.ErrStopped
			}
			if _, eligible := a.eligible(claimant, t, mine); eligible {
				candidates = append(candidates, t)
			}
		}
		slices.SortFunc(candidates[from:], func(l, r model.TaskID) int {
			return cmp.Or(cmp.Compare(v.Tasks.At(r).CreateTime, v.Tasks.At(l).CreateTime), v.CompareTasks(l, r))
		})
	}
	return candidates, nil
}

// Eligible reports whether the action considers a candidate for a claimant, and if not, why (pkg/scheduler/actions/reclaim and preempt).
func (a Victims) Eligible(claimant, candidate model.TaskID) (policy.Reason, bool) {
	return a.eligible(claimant, candidate, a.s.view.QueueOf(claimant))
}

// eligible is Eligible for a claimant as if it were of queue mine.
func (a Victims) eligible(claimant, candidate model.TaskID, mine model.QueueID) (policy.Reason, bool) {
	v, preempt := a.s.view, a.preempt
	task := v.Tasks.At(candidate)
	theirs := v.QueueOf(candidate)
	var code policy.Code
	switch {
	case v.Status(candidate) != model.Running:
		code = policy.NotRunning
	case !task.Preemptable:
		code = policy.NotPreemptable
	case v.BestEffort(v.Request(candidate)) && !(preempt && v.BestEffort(v.Request(claimant))):
		code = policy.BestEffortVictim
	case preempt && mine != theirs:
		code = policy.OtherQueue
	case preempt && v.Tasks.At(claimant).Job == task.Job:
		code = policy.SameJob
	case !preempt && mine == theirs:
		code = policy.SameQueue
	case !preempt && !v.Queues[theirs].Reclaimable:
		code = policy.QueueNotReclaimable
	default:
		return policy.Reason{}, true
	}
	return policy.Because("", code, theirs), false
}

// Protections maps each candidate to the reasons of the first plugin that protects it: of the deciding tier, or of any tier if none
// decided.
func (c *Choice) Protections(v *policy.View) map[model.TaskID]*policy.Check {
	protected := make(map[model.TaskID]*policy.Check, len(c.Spared))
	for i := range c.Spared {
		v.Yield(i)
		check := &c.Spared[i]
		if _, known := protected[check.Task]; !known && (c.Tier < 0 || check.Tier == c.Tier) {
			protected[check.Task] = check
		}
	}
	return protected
}
