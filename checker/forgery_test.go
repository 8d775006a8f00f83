package checker_test

import (
	"slices"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var forgeries = []forgery{
	{"deserved, share, overused and standing grow together", func(f *forged) bool {
		return f.plugins(func(shares *apportionv1.SharesAnswer, p *apportionv1.PluginShares) bool {
			if len(p.GetQueues()) == 0 {
				return false
			}
			q := p.GetQueues()[f.pick(len(p.GetQueues()))]
			for i := range q.GetDeserved().GetAmount() {
				q.Deserved.Amount[i] = q.Deserved.Amount[i]*2 + 1000
			}
			for _, r := range p.GetProportion().GetRounds() {
				for _, s := range r.GetShares() {
					if s.GetQueue() == q.GetQueue() {
						s.Deserved, s.Requested, s.Capped = q.GetDeserved(), q.GetDeserved(), q.GetDeserved()
					}
				}
			}
			for _, l := range p.GetCapacity().GetLevels() {
				if l.GetQueue() == q.GetQueue() {
					l.Deserved, l.WrittenDeserved = q.GetDeserved(), q.GetDeserved()
				}
			}
			restate(shares, p.GetPlugin(), q)
			return true
		})
	}},
	{"allocated, share, overused and standing fall together", func(f *forged) bool {
		return f.plugins(func(shares *apportionv1.SharesAnswer, p *apportionv1.PluginShares) bool {
			if len(p.GetQueues()) == 0 {
				return false
			}
			q := p.GetQueues()[f.pick(len(p.GetQueues()))]
			for i := range q.GetAllocated().GetAmount() {
				q.Allocated.Amount[i] /= 2
			}
			restate(shares, p.GetPlugin(), q)
			return true
		})
	}},
	{"every amount of a queue a little more", func(f *forged) bool {
		return f.plugins(func(_ *apportionv1.SharesAnswer, p *apportionv1.PluginShares) bool {
			if len(p.GetQueues()) == 0 {
				return false
			}
			everyAmount(p.GetQueues()[f.pick(len(p.GetQueues()))].ProtoReflect(), func(x float64) float64 { return x * (1 + 1e-12) })
			return true
		})
	}},
	{"the accounts of two queues exchanged", func(f *forged) bool {
		return f.plugins(func(_ *apportionv1.SharesAnswer, p *apportionv1.PluginShares) bool {
			if len(p.GetQueues()) < 2 {
				return false
			}
			i := f.pick(len(p.GetQueues()) - 1)
			exchange(p.GetQueues()[i], p.GetQueues()[i+1], "queue", "name")
			return true
		})
	}},
	{"order of queues and ranks permuted with their shares", func(f *forged) bool {
		done, l, r := false, uint32(0), uint32(0)
		for _, a := range f.response.GetAnswers() {
			if sorted := a.GetOrder().GetSorted(); len(sorted) > 1 {
				i := f.pick(len(sorted) - 1)
				l, r = sorted[i], sorted[i+1]
				sorted[i], sorted[i+1] = r, l
				for _, p := range a.GetOrder().GetPairs() {
					if p.GetLeft() == l && p.GetRight() == r || p.GetLeft() == r && p.GetRight() == l {
						p.Less, p.Compare = !p.GetLess(), -p.GetCompare()
					}
				}
				done = true
			}
		}
		if !done {
			return false
		}
		return f.plugins(func(shares *apportionv1.SharesAnswer, p *apportionv1.PluginShares) bool {
			of := func(q uint32) func(*apportionv1.QueueShare) bool {
				return func(s *apportionv1.QueueShare) bool { return s.GetQueue() == q }
			}
			i, k := slices.IndexFunc(p.GetQueues(), of(l)), slices.IndexFunc(p.GetQueues(), of(r))
			if i >= 0 && k >= 0 {
				a, b := p.GetQueues()[i], p.GetQueues()[k]
				a.Share, b.Share, a.Dominant, b.Dominant = b.Share, a.Share, b.Dominant, a.Dominant
			}
			for _, s := range shares.GetStandings() {
				for _, t := range shares.GetStandings() {
					if s.GetQueue() == l && t.GetQueue() == r {
						s.Rank, t.Rank = t.Rank, s.Rank
					}
				}
			}
			return true
		})
	}},
	{"a victim exchanged for an equal task", func(f *forged) bool {
		kinds, uids := f.described()
		return f.victims(func(v *apportionv1.VictimsAnswer) bool {
			for _, victim := range v.GetVictims() {
				for t, kind := range kinds {
					was := victim.GetTask()
					if uint32(t) == was || kind != kinds[was] || slices.Contains(v.GetEvictionOrder(), uint32(t)) {
						continue
					}
					victim.Task = uint32(t)
					if victim.GetUid() != "" {
						victim.Uid = uids[t]
					}
					put := func(list []uint32) {
						for i := range list {
							if list[i] == was {
								list[i] = uint32(t)
							}
						}
					}
					put(v.GetEvictionOrder())
					for _, p := range v.GetByPlugin() {
						put(p.GetVictims())
					}
					return true
				}
			}
			return false
		})
	}},
	{"a made plan denied", func(f *forged) bool {
		return f.victims(func(v *apportionv1.VictimsAnswer) bool {
			if !v.GetPlan().GetMade() {
				return false
			}
			v.Plan, v.Victims, v.EvictionOrder, v.Spared = &apportionv1.ReclaimPlan{Refusal: &apportionv1.Reason{
				Plugin: "fair", Code: apportionv1.ReasonCode_REASON_CODE_NO_PLAN,
			}}, nil, nil, nil
			for _, p := range v.GetByPlugin() {
				if p.GetPlugin() == "fair" {
					p.Victims, p.Vote = nil, apportionv1.Vote_VOTE_REJECT
				}
			}
			return true
		})
	}},
	{"a denied plan made", func(f *forged) bool {
		return f.victims(func(v *apportionv1.VictimsAnswer) bool {
			if v.GetPlan() == nil || v.GetPlan().GetMade() || len(v.GetSpared()) == 0 {
				return false
			}
			s := v.GetSpared()[0]
			v.Plan = &apportionv1.ReclaimPlan{Made: true, Line: apportionv1.FairLine_FAIR_LINE_ENTITLEMENT}
			v.Victims, v.EvictionOrder = []*apportionv1.Victim{{Task: s.GetTask(), Uid: s.GetUid()}}, []uint32{s.GetTask()}
			v.Spared = v.GetSpared()[1:]
			for _, p := range v.GetByPlugin() {
				if p.GetPlugin() == "fair" {
					p.Victims, p.Vote = []uint32{s.GetTask()}, apportionv1.Vote_VOTE_PERMIT
				}
			}
			return true
		})
	}},
	{"a plan moved to another node", func(f *forged) bool {
		done, nodes := false, f.request.GetInput().GetSnapshot().GetNodes()
		for _, a := range f.response.GetAnswers() {
			for _, p := range a.GetPlan().GetPlacements() {
				to := f.pick(len(nodes))
				done = done || uint32(to) != p.GetNode()
				p.Node, p.NodeName = uint32(to), nodes[to].GetName()
			}
		}
		return done
	}},
	{"a plan without its victims", func(f *forged) bool {
		done := false
		for _, a := range f.response.GetAnswers() {
			if p := a.GetPlan(); len(p.GetVictims()) > 0 {
				p.Victims, p.Freed, p.Fall, p.Rise = nil, nil, nil, nil
				done = true
			}
		}
		return done
	}},
	{"a victim of a plan exchanged for a task that may not be evicted", func(f *forged) bool {
		_, uids := f.described()
		s, number, done := f.request.GetInput().GetSnapshot(), uint32(0), false
		queues := map[string]uint32{}
		for i, q := range s.GetQueues() {
			queues[q.GetName()] = uint32(i)
		}
		for _, j := range s.GetJobs() {
			for _, g := range j.GetGroups() {
				for _, t := range g.GetTasks() {
					may := t.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_RUNNING && (t.GetDetail() == nil || t.Detail.Preemptable == nil)
					for _, a := range f.response.GetAnswers() {
						if p := a.GetPlan(); !done && !may && t.Node != nil && len(p.GetVictims()) > 0 {
							v := p.GetVictims()[0]
							v.Task, v.Uid, v.Queue, v.Node = number, uids[number], queues[j.GetQueue()], t.Node
							v.NodeName, v.Freed = s.GetNodes()[t.GetNode()].GetName(), g.GetRequest()
							p.Freed = nil
							for _, v := range p.GetVictims() {
								p.Freed = proto.CloneOf(v.GetFreed())
							}
							done = true
						}
					}
					number++
				}
			}
		}
		return done
	}},
	{"a plan that says that it frees something", func(f *forged) bool {
		done := false
		for _, a := range f.response.GetAnswers() {
			if p := a.GetPlan(); p != nil {
				p.Freed, done = &apportionv1.Resource{Dimension: []uint32{0}, Amount: []float64{12345}}, true
			}
		}
		return done
	}},
	{"the certificate of another snapshot", func(f *forged) bool {
		for i, a := range f.other.GetAnswers() {
			if a.GetShares() != nil && i < len(f.response.GetAnswers()) {
				f.response.Answers[i] = proto.CloneOf(a)
				return true
			}
		}
		return false
	}},
	{"two answers exchanged", func(f *forged) bool {
		n := len(f.response.GetAnswers())
		if n < 2 {
			return false
		}
		i, k := f.pick(n), f.pick(n)
		f.response.Answers[i], f.response.Answers[k] = f.response.Answers[k], f.response.Answers[i]
		return true
	}},
	{"the verdicts of two tasks exchanged", func(f *forged) bool {
		done := false
		for _, a := range f.response.GetAnswers() {
			for _, list := range [][]*apportionv1.TaskVerdict{a.GetAllocatable().GetTasks(), a.GetPreemptive().GetTasks()} {
				if len(list) > 1 {
					exchange(list[0], list[len(list)-1], "task")
					done = true
				}
			}
			if list := a.GetEnqueue().GetJobs(); len(list) > 1 {
				exchange(list[0], list[len(list)-1], "job", "uid")
				done = true
			}
		}
		return done
	}},
	{"a refusal made a permit, with its checks", func(f *forged) bool {
		done := false
		for _, a := range f.response.GetAnswers() {
			for _, v := range slices.Concat(a.GetAllocatable().GetTasks(), a.GetPreemptive().GetTasks()) {
				if v.GetVerdict().GetVote() == apportionv1.Vote_VOTE_REJECT {
					v.Verdict, v.Checks, done = &apportionv1.Verdict{Vote: apportionv1.Vote_VOTE_PERMIT}, nil, true
				}
			}
		}
		return done
	}},
	{"every answer an error", func(f *forged) bool {
		for i := range f.response.GetAnswers() {
			f.response.Answers[i] = &apportionv1.Answer{Answer: &apportionv1.Answer_Error{Error: &status.Status{Code: 3}}}
		}
		return true
	}},
	{"two fields at once", func(f *forged) bool {
		for range 2 {
			list := mutants(f.response.ProtoReflect(), "")
			list[f.pick(len(list))].do()
		}
		return true
	}},
}
