// Package nodegroup binds queues to groups of nodes by their affinity: Volcano's plugin nodegroup
// (pkg/scheduler/plugins/nodegroup/nodegroup.go).
package nodegroup

import (
	"fmt"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Name is the plugin's name in a configuration.
const Name = "nodegroup"

// Plugin holds the settings.
type Plugin struct {
	// Strict refuses nodes without a group even to queues without an affinity.
	Strict bool
	// PreferredOrder scores preferred groups by their position in the list.
	PreferredOrder bool
	// Hierarchical lets queues without an affinity inherit the affinity of their nearest ancestor.
	Hierarchical bool
}

// Default returns the default settings.
func Default() Plugin { return Plugin{Strict: true} }

// Name returns "nodegroup".
func (Plugin) Name() string { return Name }

// Open returns a policy.Predicater that scores nodes as well. It is a policy.NodeBounder if queues have limits and the release knows them.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	s := &state{view: v, strict: p.Strict, groups: make([]groupID, len(v.Nodes)), ruleOf: make([]ruleID, len(v.Queues))}
	known := names{}
	for n := range v.Nodes {
		s.groups[n] = unlabelled
		if node := &v.Nodes[n]; node.Labelled {
			s.groups[n] = known.id(node.Group)
		}
	}
	for q := range v.Queues {
		if v.Stopped(q) {
			return nil, policy.ErrStopped
		}
		s.ruleOf[q] = s.compile(model.QueueID(q), known, p.PreferredOrder)
	}
	if p.Hierarchical {
		inherit(v.Model, s.ruleOf)
	}
	for q, rule := range s.ruleOf {
		if rule == unset {
			s.ruleOf[q] = free
		}
	}
	if v.Release < policy.V116 {
		return s, nil
	}
	return s.limited(known), nil
}

// compile returns the rule that a queue itself writes.
func (s *state) compile(q model.QueueID, known names, ordered bool) ruleID {
	affinity := s.view.Queues[q].Affinity
	if affinity == nil {
		return unset
	}
	terms, some := compile(affinity, known, ordered)
	if !some {
		return free
	}
	s.rules = append(s.rules, rule{queue: q, terms: terms})
	return ruleID(len(s.rules) - 1)
}

type state struct {
	view   *policy.View
	strict bool
	groups []groupID
	ruleOf []ruleID
	rules  []rule
	// limits is nil if no queue has limits that count.
	limits *limits
}

var (
	_ policy.Predicater = (*state)(nil)
	_ policy.NodeScorer = (*state)(nil)
	_ policy.Warner     = (*state)(nil)
)

// Fits reports whether the affinity of the task's queue admits the node's group. A queue without an affinity admits no group; a node
// without a group fits only such queues, and these only if the plugin is not strict. Where the affinity admits the group, the limit of the
// task's own queue for it must leave room for the task; limits that could not be read admit no node at all.
func (s *state) Fits(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	queue := s.view.QueueOf(t)
	if s.limits != nil && s.view.Queues[queue].NodeLimits.Unreadable() {
		why.Add(policy.Because(Name, policy.NodeGroupLimitsInvalid, queue))
		return false
	}
	id, group := s.ruleOf[queue], s.groups[n]
	if id >= 0 {
		queue = s.rules[id].queue
	}
	switch {
	case group == unlabelled && (s.strict || id >= 0):
		why.Add(policy.Because(Name, policy.NodeGroupMissing, queue))
		return false
	case group == unlabelled:
		return true
	case id < 0:
		why.Add(policy.Because(Name, policy.NodeGroupNotInAffinity, queue))
		return false
	}
	found := s.rules[id].find(group)
	switch {
	case found == nil:
		why.Add(policy.Because(Name, policy.NodeGroupNotInAffinity, queue))
	case !found.admits:
		why.Add(policy.Because(Name, policy.NodeGroupAntiAffinity, queue))
	default:
		return s.limits.takes(t, n, why)
	}
	return false
}

// ScoreNodes sets out[i] to what the affinity of the task's queue gives the group of nodes[i]: 100 for a required group, up to 50 more for
// a preferred one, -1 for a group to avoid, and 0 for all other nodes, with or without a group.
func (s *state) ScoreNodes(t model.TaskID, nodes []model.NodeID, out []float64) {
	id := s.ruleOf[s.view.QueueOf(t)]
	if id < 0 {
		clear(out[:len(nodes)])
		return
	}
	rule := &s.rules[id]
	for i, n := range nodes {
		out[i] = 0
		if found := rule.find(s.groups[n]); found != nil {
			out[i] = found.score
		}
	}
}

// Warnings names the queues that no node fits: those with jobs and without an affinity where the plugin is strict, and those whose
// affinity says what to stay away from and admits nothing else.
func (s *state) Warnings(add func(policy.Warning)) {
	for _, r := range s.rules {
		queue := &s.view.Queues[r.queue]
		if anti := queue.Affinity.AntiAffinity; anti == nil || len(anti.Required) == 0 || r.admitsSome() {
			continue
		}
		add(policy.Warning{
			Code:  policy.AntiAffinityAdmitsNothing,
			Path:  fmt.Sprintf("queues[%d].node_group_affinity.anti_affinity.required", r.queue),
			Text:  fmt.Sprintf("queue %q stays away from node groups and admits no other, so no node fits its tasks", queue.Name),
			Queue: r.queue,
		})
	}
	if s.strict {
		s.warnOfFree(add)
	}
	if s.view.Release < policy.V116 {
		s.warnOfLimits(add)
	}
}

// warnOfLimits names the queues with limits, which have no effect before policy.V116.
func (s *state) warnOfLimits(add func(policy.Warning)) {
	for _, q := range s.view.QueueOrder {
		if queue := &s.view.Queues[q]; queue.NodeLimits != nil {
			add(policy.Warning{
				Code: policy.SettingIgnored, Path: fmt.Sprintf("queues[%d].node_group_limits", q), Queue: q,
				Text: fmt.Sprintf("queue %q has limits for node groups, which only Volcano 1.16 respects", queue.Name),
			})
		}
	}
}

func (s *state) warnOfFree(add func(policy.Warning)) {
	busy := make([]bool, len(s.view.Queues))
	for _, j := range s.view.Present() {
		busy[s.view.Jobs.At(j).Queue] = true
	}
	for _, q := range s.view.QueueOrder {
		if busy[q] && s.ruleOf[q] < 0 {
			add(policy.Warning{
				Code: policy.NoAffinityFitsNothing, Path: fmt.Sprintf("queues[%d].node_group_affinity", q), Queue: q,
				Text: fmt.Sprintf("queue %q has no node-group affinity and the plugin is strict, so no node fits its tasks",
					s.view.Queues[q].Name),
			})
		}
	}
}
