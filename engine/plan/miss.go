package plan

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// lacking says what a plan lacks.
func (p *planner) lacking() (*Miss, error) {
	miss := p.missed
	if p.question.Quick {
		return &Miss{Check: judge.CheckEviction, Task: model.None, Node: model.None}, nil
	}
	if miss == nil {
		miss = &Miss{Task: model.None, Node: model.None}
		p.pool.sortByNode(p.View())
		if _, err := p.greedy(false, miss); err != nil {
			return nil, err
		}
	}
	if miss.Check == judge.CheckNodes && !p.reclaim && !p.preempt && p.refusedBy == judge.CheckEviction {
		miss.Reasons = p.refused
	}
	if miss.Check == 0 {
		// There is room, but the policy does not let all tasks in its way be evicted.
		miss.Check, miss.Reasons, miss.Placed = judge.CheckEviction, p.refused, 0
	}
	return miss, nil
}

// lack is what a node lacks for a task after all possible evictions there.
type lack struct {
	node  model.NodeID
	rank  int
	short resource.Row
	// ratio sums what is short in proportion to what is asked for.
	ratio float64
}

// miss finds the node on which a task lacks least, if it is requested.
func (s *stall) miss(t model.TaskID, miss *Miss) error {
	if miss == nil {
		return nil
	}
	miss.Check, miss.Task = judge.CheckNodes, t
	var lacks []lack
	var why policy.Reasons
	var counts place.NodeCounts
	for i, n := range s.View().NodeOrder {
		if s.View().Stopped(i) {
			return policy.ErrStopped
		}
		why.List = why.List[:0]
		if !s.FitsWhen(t, n, true, &why) {
			s.Future(n, &s.row)
			counts.Refused(s.View(), t, n, why.List, resource.Covers(s.row, s.request) && !s.View().OtherRole(t, n))
			continue
		}
		s.list = s.candidates(n, s.list[:0])
		l := s.lack(n, i, s.list)
		lacks = append(lacks, l)
		if l.short.Has == 0 {
			counts.Add(place.NodeCount{Code: policy.NotPreemptable})
		} else {
			counts.Lacking(s.row, s.View().Nodes[n].Allocatable, s.request)
		}
	}
	miss.NodeCounts = counts.List()
	slices.SortFunc(lacks, func(l, r lack) int { return cmp.Or(cmp.Compare(l.ratio, r.ratio), cmp.Compare(l.rank, r.rank)) })
	rest := s.together(t)
	best := -1
	for i := range lacks {
		if best >= 0 && lacks[best].ratio <= lacks[i].ratio || i == planEvaluations {
			break
		}
		s.list = s.candidates(lacks[i].node, s.list[:0])
		slices.SortFunc(s.list, s.compareByStay)
		lacks[i] = s.lack(lacks[i].node, lacks[i].rank, s.consented(t, rest, s.list, lacks[i].node))
		if best < 0 || lacks[i].ratio < lacks[best].ratio {
			best = i
		}
	}
	if best >= 0 {
		miss.Node, miss.Short = lacks[best].node, lacks[best].short
		miss.Protected, miss.Counts = s.protected(t, rest, lacks[best].node)
	}
	return nil
}

// lack returns what a node lacks without some tasks.
func (s *stall) lack(n model.NodeID, rank int, without []model.TaskID) lack {
	s.Future(n, &s.row)
	l := lack{node: n, rank: rank, short: resource.NewRow(s.View().Dims.Len())}
	for _, c := range without {
		s.row.Add(s.View().Request(c))
	}
	for m := resource.Uncovered(s.row, s.request); m != 0; m = m.Rest() {
		d := m.First()
		l.short.Set(d, s.request.V[d]-s.row.V[d])
		l.ratio += l.short.V[d] / s.request.V[d]
	}
	return l
}

// protected counts what keeps tasks on a node: the rules of the frame, and those of the policy. Of reasons that differ in their numbers
// alone, those of the first stand for all.
func (s *stall) protected(t model.TaskID, rest []model.TaskID, n model.NodeID) ([]policy.Reason, []int) {
	var held protections
	for _, j := range s.View().Present() {
		job := s.View().Jobs.At(j)
		own := job.Queue == s.queue
		for c := job.FirstTask; c < job.EndTask; c++ {
			if s.View().NodeOf(c) != n || s.View().Status(c) != model.Running || s.View().Tasks.At(c).Job == s.question.Job {
				continue
			}
			if reason, eligible := s.VictimsOf(own && s.preempt).Eligible(t, c); !eligible {
				held.add(reason)
			}
		}
	}
	for _, own := range []bool{true, false} {
		list := slices.DeleteFunc(slices.Clone(s.list), func(c model.TaskID) bool { return (s.View().QueueOf(c) == s.queue) != own })
		if len(list) == 0 {
			continue
		}
		claim := &policy.Claim{Tasks: []model.TaskID{t}, Candidates: list}
		if !own && s.Reclaim().Plans() {
			claim.Tasks, claim.Room = rest, policy.Room{Kind: policy.OneNode, Node: n}
		}
		choice := s.VictimsOf(own).Choose(claim, false)
		protected := choice.Protections(s.View())
		for _, c := range list {
			if check := protected[c]; check != nil {
				held.add(check.Reason)
			}
		}
	}
	return held.most()
}

// protections counts reasons; their numbers, queues and dimensions do not tell them apart. Those of the first stand for all that are of one
// queue and dimension.
type protections struct {
	judge.Frequency

	first map[policy.Reason]policy.Reason
}

func (p *protections) add(reason policy.Reason) {
	kind := reason
	kind.Have, kind.Need, kind.Limit, kind.Queue, kind.Dimension = 0, 0, 0, model.None, -1
	if p.first == nil {
		p.first = make(map[policy.Reason]policy.Reason)
	}
	switch first, known := p.first[kind]; {
	case !known:
		p.first[kind] = reason
	case first.Queue != reason.Queue || first.Dimension != reason.Dimension:
		p.first[kind] = kind
	}
	p.Add([]policy.Reason{kind}, 1)
}

func (p *protections) most() ([]policy.Reason, []int) {
	reasons, counts := p.Most()
	for i := range reasons {
		reasons[i] = p.first[reasons[i]]
	}
	return reasons, counts
}
