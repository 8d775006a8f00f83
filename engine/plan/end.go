package plan

import (
	"math/big"

	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// conclude makes a draft that passed the checks the plan.
func (p *planner) conclude(d *draft) error {
	end := p.returns
	if p.question.Quick {
		end = func(*carried) {}
	}
	c, err := p.carryOut(d, end)
	if err != nil {
		return err
	}
	if c == nil {
		// It passed before, and no input of the checks has changed.
		p.plan.Outcome, p.plan.Least = NotFound, false
		p.plan.Miss = &Miss{Check: judge.CheckEviction, Reasons: p.refused, Task: model.None, Node: model.None}
		return nil
	}
	p.plan.Outcome, p.plan.Nodes, p.plan.Released = Made, d.nodes, c.released
	p.plan.Victims, p.plan.Ready = c.victims, c.ready
	if c.plan != nil {
		fall, rise := c.plan.Potential()
		p.plan.Fall, p.plan.Rise = &fall, &rise
	}
	return nil
}

// potential returns the potential of the policy where it must be compared: before tasks of the own queue are evicted.
func (p *planner) potential(d *draft) *[3]*big.Rat {
	if len(p.others(d.victims)) == len(d.victims) {
		return nil
	}
	for _, plugin := range p.Plugins() {
		if planner, ok := plugin.State.(policy.Planner); ok {
			potential := planner.Potential()
			return &potential
		}
	}
	return nil
}

// calm reports whether the potential has not risen, and has fallen if tasks of other queues were evicted too: then no sequence of plans
// goes in circles, because preemption alone goes from higher to lower priority.
func (p *planner) calm(d *draft, before *[3]*big.Rat) bool {
	if before == nil {
		return true
	}
	after := p.potential(d)
	for i := range before {
		if c := after[i].Cmp(before[i]); c != 0 {
			return c < 0
		}
	}
	return len(p.others(d.victims)) == 0
}

// returns finds out which victims could get their place back at once. It is called with the plan carried out.
func (p *planner) returns(c *carried) {
	for i := range c.victims {
		e := &c.victims[i]
		if p.takesBack(e) {
			e.Returns = TakesBack
		}
	}
	for _, t := range p.tasks {
		p.Unbook(t, model.Pending)
	}
	for i := range c.victims {
		if e := &c.victims[i]; e.Returns == NoReturn && p.servedFirst(e) {
			e.Returns = ServedFirst
		}
	}
}

// servedFirst reports whether a victim is served before the job, now that it is gone and the job is not placed yet.
func (p *planner) servedFirst(e *Evicted) bool {
	v := p.View()
	j, q := v.Tasks.At(e.Task).Job, v.QueueOf(e.Task)
	if e.Own {
		if !p.Order().CompareJobs(j, p.question.Job).Less {
			return false
		}
	} else if !p.Order().CompareQueues(q, p.queue).Less {
		return false
	}
	return !p.IsOverused(q, nil) && p.Allocatable([]model.TaskID{e.Task}, policy.InSession, nil, nil)
}

// takesBack reports whether a victim may evict tasks of the job on the node where it ran, once they run, and then has room there.
func (p *planner) takesBack(e *Evicted) bool {
	v := p.View()
	j := v.Tasks.At(e.Task).Job
	if !p.VictimsOf(e.Own).Asks(j, nil) || !e.Own && !p.Preemptive([]model.TaskID{e.Task}, nil, nil) {
		return false
	}
	taken := false
	err := p.Tried(func() error {
		var candidates []model.TaskID
		for _, t := range p.tasks {
			if v.NodeOf(t) != e.Node {
				continue
			}
			p.SetStatus(t, model.Running)
			if _, eligible := p.VictimsOf(e.Own).Eligible(e.Task, t); eligible {
				candidates = append(candidates, t)
			}
		}
		if len(candidates) == 0 {
			return nil
		}
		claim := &policy.Claim{Tasks: []model.TaskID{e.Task}, Candidates: candidates}
		if e.Node != model.None {
			claim.Room = policy.Room{Kind: policy.OneNode, Node: e.Node}
		}
		choice := p.VictimsOf(e.Own).Choose(claim, false)
		if choice.Plan != nil {
			taken = choice.Plan.Made && len(choice.Plan.Victims) > 0
			return nil
		}
		for _, t := range choice.Victims {
			p.Unbook(t, model.Pending)
		}
		taken = len(choice.Victims) > 0 && (e.Node == model.None || p.roomy(e.Node, []model.TaskID{e.Task})) &&
			p.Allocatable([]model.TaskID{e.Task}, policy.InSession, nil, nil)
		return nil
	})
	return err == nil && taken
}
