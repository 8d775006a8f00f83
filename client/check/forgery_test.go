package check_test

import (
	"slices"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var forgeries = []forgery{
	{"deserved grows with its line", func(f *forged) bool {
		return f.plugins(func(p *apportionv1.PluginShares) bool {
			if len(p.GetQueues()) == 0 {
				return false
			}
			q := p.GetQueues()[f.pick(len(p.GetQueues()))]
			for i := range q.GetDeserved().GetAmounts() {
				q.Deserved.Amounts[i] = q.Deserved.Amounts[i]*2 + 1000
			}
			for _, d := range p.GetFair().GetDivisions() {
				for _, child := range d.GetChildren() {
					if child.GetQueue() == q.GetQueue() {
						child.Share = child.GetShare()*2 + 1
					}
				}
			}
			return true
		})
	}},
	{"allocated and share fall together", func(f *forged) bool {
		return f.plugins(func(p *apportionv1.PluginShares) bool {
			if len(p.GetQueues()) == 0 {
				return false
			}
			q := p.GetQueues()[f.pick(len(p.GetQueues()))]
			for i := range q.GetAllocated().GetAmounts() {
				q.Allocated.Amounts[i] /= 2
			}
			q.Share /= 2
			return true
		})
	}},
	{"every amount of a queue a little more", func(f *forged) bool {
		return f.plugins(func(p *apportionv1.PluginShares) bool {
			if len(p.GetQueues()) == 0 {
				return false
			}
			everyAmount(p.GetQueues()[f.pick(len(p.GetQueues()))].ProtoReflect(), func(x float64) float64 { return x * (1 + 1e-12) })
			return true
		})
	}},
	{"the accounts of two queues exchanged", func(f *forged) bool {
		return f.plugins(func(p *apportionv1.PluginShares) bool {
			if len(p.GetQueues()) < 2 {
				return false
			}
			i := f.pick(len(p.GetQueues()) - 1)
			exchange(p.GetQueues()[i], p.GetQueues()[i+1], "queue", "name")
			return true
		})
	}},
	{"a victim exchanged for an equal task", func(f *forged) bool {
		kinds, uids := f.described()
		return f.victims(func(v *apportionv1.VictimsAnswer) bool {
			for _, victim := range v.GetVictims() {
				for t, kind := range kinds {
					was := victim.GetTask()
					if uint32(t) == was || kind != kinds[was] || slices.Contains(v.GetEvictions(), uint32(t)) {
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
					put(v.GetEvictions())
					for _, p := range v.GetPlugins() {
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
			v.Plan, v.Victims, v.Evictions, v.Protections = &apportionv1.ReclaimPlan{Refusal: &apportionv1.Cause{
				Plugin: "fair", Code: apportionv1.CauseCode_CAUSE_CODE_NO_PLAN,
			}}, nil, nil, nil
			for _, p := range v.GetPlugins() {
				if p.GetPlugin() == "fair" {
					p.Victims, p.Vote = nil, apportionv1.Vote_VOTE_REJECT
				}
			}
			return true
		})
	}},
	{"a denied plan made", func(f *forged) bool {
		return f.victims(func(v *apportionv1.VictimsAnswer) bool {
			if v.GetPlan() == nil || v.GetPlan().GetMade() || len(v.GetProtections()) == 0 {
				return false
			}
			s := v.GetProtections()[0]
			v.Plan = &apportionv1.ReclaimPlan{Made: true, Line: apportionv1.FairLine_FAIR_LINE_ENTITLEMENT}
			v.Victims, v.Evictions = []*apportionv1.Victim{{Task: s.GetTask(), Uid: s.GetUid()}}, []uint32{s.GetTask()}
			v.Protections = v.GetProtections()[1:]
			for _, p := range v.GetPlugins() {
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
	{"a plan that says that it frees something", func(f *forged) bool {
		done := false
		for _, a := range f.response.GetAnswers() {
			if p := a.GetPlan(); p != nil {
				p.Freed, done = &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{12345}}, true
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
