package kueue

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Name is the name of the plugin.
const Name = "kueue"

// Plugin is the policy. Queues and workloads of its cluster have the positions of the model's queues and jobs.
type Plugin struct {
	Settings

	// Cluster returns the cluster of a model, or a *model.Error for what is wrong with it.
	Cluster func(*model.Model) (*Cluster, error)
	// Admitted returns what is read of a job once its workload is admitted. Nil: later models do not have the admission.
	Admitted func(m *model.Model, j model.JobID, a *Admission) *model.Extra
}

// Name returns the name of the plugin.
func (p Plugin) Name() string { return Name }

// Excludes names the plugin backfill: Kueue admits by quota, of which it keeps none for a later time.
func (p Plugin) Excludes(other string) string {
	if other == "backfill" {
		return "kueue admits by quota and looks at no node, so no room would be kept"
	}
	return ""
}

// Open compiles the cluster of the view's model.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	cluster, err := p.Cluster(v.Model)
	if err != nil {
		return nil, err
	}
	if err := v.Work.Spend(cluster.compiling(&p.Settings), 1); err != nil {
		return nil, err
	}
	for j := range cluster.Workloads {
		if w := &cluster.Workloads[j]; w.Admission == nil && v.Phase(model.JobID(j)) == model.PhaseCompleted {
			w.Parked = true
		}
	}
	compiled, err := compile(cluster, p.Settings, v.Work)
	if large, ok := errors.AsType[*SizeError](err); ok {
		faults := &model.Error{}
		faults.Add("kueue", "%s", large)
		return nil, faults
	}
	if err != nil {
		return nil, err
	}
	session := compiled.NewSession()
	session.view = v
	return &State{Session: session, cluster: cluster, bytes: session.bytes(cluster), judged: none, admitted: p.Admitted}, nil
}

// State is the opened plugin. A workload that it permits is booked, and judged as one that holds quota from then on.
type State struct {
	*Session

	cluster *Cluster
	// bytes is about what the state takes when it is opened.
	bytes    int
	last     Nomination
	judged   int32
	admitted func(*model.Model, model.JobID, *Admission) *model.Extra
}

// Judge returns what would be done with a job, and whether it was judged: it waits in an active queue and is not booked.
func (s *State) Judge(j model.JobID) (Nomination, bool) {
	id := int32(j)
	if s.booked[id] || !s.Session.judged(&s.workloads[id]) {
		return Nomination{}, false
	}
	s.last, s.judged = s.Nominate(id), id
	return s.last, true
}

// Last returns the latest nomination, if it is that of a job.
func (s *State) Last(j model.JobID) (Nomination, bool) {
	return s.last, s.judged == int32(j) && s.last.PodSets != nil
}

// Enqueueable permits a job that fits now, and books it.
func (s *State) Enqueueable(j model.JobID, why *policy.Reasons) policy.Vote {
	w := &s.workloads[j]
	s.last, s.judged = Nomination{}, int32(j)
	refuse := func(code policy.Code, have float64) policy.Vote {
		r := policy.Because(Name, code, s.view.Jobs.At(j).Queue)
		r.Have = have
		why.Add(r)
		return policy.Reject
	}
	if w.Withheld != "" || w.holds || s.booked[int32(j)] {
		return refuse(policy.NotNominated, 0)
	}
	n, ok := s.Judge(j)
	switch {
	case !ok:
		return refuse(policy.NotNominated, 0)
	case n.Mode == NoFit:
		return refuse(policy.NoFlavor, 0)
	case n.Mode != Fit:
		return refuse(policy.QuotaInUse, float64(len(n.Victims)))
	case !s.spend(1, 1):
		return policy.Reject
	}
	s.Book(j, &n.Assignment)
	return policy.Permit
}

// Booking reports whether the usage of a pending workload is counted already.
func (s *State) Booking() bool { return s.bookings > 0 }

// Book adds the usage of an assignment.
func (s *State) Book(j model.JobID, a *Assignment) {
	id := int32(j)
	if !s.spend(s.depth(s.workloads[id].queue), 1+len(a.Usage)) {
		return
	}
	undo := s.saved(s.workloads[id].queue, a.Usage)
	s.addAll(s.workloads[id].queue, a.Usage)
	undo = slices.Clone(slices.DeleteFunc(undo, func(c cell) bool { return s.usage[c.at] == c.usage }))
	s.booked[id] = true
	s.bookings++
	if s.admitted != nil {
		m := s.view.Model
		s.view.SetExtra(j, func() *model.Extra { return s.admitted(m, j, s.Admission(id, a)) })
	}
	const cellBytes = 16
	s.view.Journal.UndoHolding(cellBytes*len(undo), func() {
		for _, c := range undo {
			s.usage[c.at], s.known[c.node] = c.usage, false
		}
		s.booked[id] = false
		s.bookings--
	})
}

// cell is an amount of a node that a booking changes.
type cell struct {
	node, at int32
	usage    Amount
}

// saved returns the amounts that a booking may change, as they are before; none if no change needs to be undone. The result is valid until
// the next call.
func (s *State) saved(queue int32, uses []Use) []cell {
	list := s.scratch.cells[:0]
	if !s.view.Journal.Recording() {
		return nil
	}
	for n := queue; n != none; n = s.nodes[n].parent {
		for _, u := range uses {
			at := s.nodes[n].row + u.FR
			list = append(list, cell{n, at, s.usage[at]})
		}
	}
	s.scratch.cells = list
	return list
}

// Admission returns an assignment as the admission of its workload.
func (s *Session) Admission(id int32, a *Assignment) *Admission {
	w := &s.workloads[id]
	name, _, _ := s.Node(w.queue)
	out := &Admission{Queue: name}
	for i := range a.PodSets {
		p := &a.PodSets[i]
		// Usage is that of the pods that still need quota.
		count := min(p.Count, max(0, w.PodSets[i].Count-w.PodSets[i].Reclaimable))
		if !s.settings.ReclaimablePods {
			count = p.Count
		}
		set := AdmittedPodSet{Name: p.Name, Count: &count}
		for _, f := range p.Flavors {
			set.Usage = append(set.Usage, FlavoredUsage{
				Resource: s.ResourceName(f.Resource), Flavor: s.FlavorName(f.Flavor), Used: true, Amount: f.Amount,
			})
		}
		out.PodSets = append(out.PodSets, set)
	}
	return out
}

// CompareJobs orders jobs as they are served: those of one queue by the usage of the local queue, all by priority, time and uid.
func (s *State) CompareJobs(l, r model.JobID) int {
	a, b := &s.workloads[l], &s.workloads[r]
	usage := 0
	if a.queue == b.queue {
		usage = s.compareLocal(a, b)
	}
	return cmp.Or(usage, cmp.Compare(b.priority, a.priority), cmp.Compare(a.since, b.since), strings.Compare(a.UID, b.UID))
}

// Share returns the weighted share of a queue that takes part.
func (s *State) Share(q model.QueueID) (policy.Share, bool) {
	_, _, in := s.Node(int32(q))
	if !in {
		return policy.Share{}, false
	}
	return policy.Share{Weight: 1, Share: s.Session.Share(int32(q)).Weighted, Dominant: -1}, true
}
