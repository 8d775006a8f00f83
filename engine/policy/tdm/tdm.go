// Package tdm lends nodes for some hours of the day to tasks that may be evicted: Volcano's plugin tdm (pkg/scheduler/plugins/tdm). The
// clock is the snapshot's, in UTC.
package tdm

import (
	"maps"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Name is the plugin's name in a configuration.
const Name = "tdm"

// lent is the score of a node that is lent to a task (Kubernetes' MaxNodeScore).
const lent = 100

// Plugin holds the settings.
type Plugin struct {
	// Zones are the zones of nodes that are lent; of a repeated name the last one counts.
	Zones []Zone
}

// Zone says when the nodes of a zone are lent.
type Zone struct {
	Name string
	// Period is a time of day and another, such as `10:00-21:00`. Anything else: never.
	Period string
}

// Name returns "tdm".
func (Plugin) Name() string { return Name }

// Normal returns settings of the same meaning, with each zone once, by name.
func (p Plugin) Normal() Plugin {
	last := make(map[string]string, len(p.Zones))
	for _, z := range p.Zones {
		last[z.Name] = z.Period
	}
	var zones []Zone
	for _, name := range slices.Sorted(maps.Keys(last)) {
		zones = append(zones, Zone{name, last[name]})
	}
	return Plugin{zones}
}

// Open returns a *State.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	s := &State{view: v, open: make(map[string]bool, len(p.Zones))}
	for _, z := range p.Zones {
		s.open[z.Name] = covers(z.Period, v.AsOf)
	}
	for i := range v.Nodes {
		v.Yield(i)
		s.lends = s.lends || v.ZoneOf(model.NodeID(i)) != ""
	}
	return s, nil
}

// State reads the model, and the statuses of tasks in the view.
type State struct {
	view *policy.View
	// open says of each zone that is configured whether its nodes are lent now.
	open map[string]bool
	// lends: some node is in a zone.
	lends bool
}

// Fits refuses a node of a zone that is not lent now, and one that is to tasks that may use no such node.
func (s *State) Fits(t model.TaskID, n model.NodeID, why *policy.Reasons) bool {
	if !s.lends {
		return true
	}
	zone, code := s.view.ZoneOf(n), policy.RevocableZoneClosed
	switch {
	case zone == "":
		return true
	case s.open[zone] && s.view.RevocableZone(t) != "":
		return true
	case s.open[zone]:
		code = policy.RevocableZoneForbidden
	}
	reason := policy.Because(Name, code, model.None)
	reason.Detail = zone
	why.Add(reason)
	return false
}

// ScoreNodes sets out[i] to 100 for a node that is lent to tasks such as this one, and to 0 for any other.
func (s *State) ScoreNodes(t model.TaskID, nodes []model.NodeID, out []float64) {
	clear(out[:len(nodes)])
	if !s.lends || s.view.RevocableZone(t) == "" {
		return
	}
	for i, n := range nodes {
		if s.open[s.view.ZoneOf(n)] {
			out[i] = lent
		}
	}
}

// preemptable reports how a job itself is marked; one that is not marked is not preemptable.
func (s *State) preemptable(j model.JobID) bool {
	d := s.view.Jobs.At(j).Detail
	return d != nil && d.Preemptable != nil && *d.Preemptable
}

// CompareJobs puts jobs first that are not preemptable.
func (s *State) CompareJobs(l, r model.JobID) int {
	switch left := s.preemptable(l); {
	case left == s.preemptable(r):
		return 0
	case left:
		return 1
	}
	return -1
}

// Starving reports whether a job that is not preemptable has pending tasks.
func (s *State) Starving(j model.JobID, why *policy.Reasons) bool {
	if !s.preemptable(j) && s.view.Account(j).Tasks[model.Pending] > 0 {
		return true
	}
	a := s.view.Account(j)
	reason := policy.Because(Name, policy.NotStarving, model.None)
	reason.Have, reason.Limit = float64(a.Ready()+a.Tasks[model.Pipelined]), float64(a.AllTasks())
	if s.preemptable(j) {
		reason = policy.Because(Name, policy.ClaimantPreemptable, model.None)
	}
	why.Add(reason)
	return false
}

// Pipelined permits a job of which enough tasks run, need nothing or wait for resources being released, and rejects any other. Minima of
// roles do not count.
func (s *State) Pipelined(j model.JobID, why *policy.Reasons) policy.Vote {
	a, limit := s.view.Account(j), s.view.Jobs.At(j).MinAvailable
	have := a.Ready() + a.PendingBestEffort + a.Tasks[model.Pipelined]
	if have >= limit {
		return policy.Permit
	}
	reason := policy.Because(Name, policy.NotPipelined, model.None)
	reason.Have, reason.Limit = float64(have), float64(limit)
	why.Add(reason)
	return policy.Reject
}

// Steadily is true: how jobs are marked does not change.
func (*State) Steadily() bool { return true }
