// Package dominant keeps the dominant share of every job: the largest part that it holds of any dimension of the cluster (Ghodsi et al.,
// Dominant Resource Fairness, NSDI 2011). Both drf and hierarchical drf use it.
package dominant

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/scratch"
	"github.com/apportion/apportion/engine/resource"
)

// Name is Volcano's name of the plugin, with and without hierarchy.
const Name = "drf"

// delta is the tolerance for equal shares when victims are chosen (Volcano's shareDelta).
const delta = 0.000001

// Jobs is the account of every job.
type Jobs struct {
	view *policy.View
	// base are the dimensions of which the cluster has a positive amount, `pods` included.
	base resource.Mask
	// allocated are rows of the model until a task of the job changes. Removed jobs have none.
	allocated []resource.Row
	share     []float64
	// gained is the claimant's account with its request; left holds the accounts of candidates' jobs without the candidates.
	gained resource.Row
	left   scratch.Values[model.JobID, resource.Row]
}

// Open returns the accounts of the jobs in the session, or policy.ErrStopped.
func Open(v *policy.View) (*Jobs, error) {
	s := &Jobs{
		view:      v,
		base:      v.Total.AtLeastThreshold(),
		allocated: make([]resource.Row, v.Jobs.Len()),
		share:     make([]float64, v.Jobs.Len()),
		gained:    resource.NewAccount(v.Dims.Len()),
		left:      scratch.New[model.JobID, resource.Row](v.Jobs.Len()),
	}
	for i, j := range v.Present() {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		account := v.Account(j)
		if s.allocated[j] = account.Allocated; account != v.Accounts.At(j) {
			s.allocated[j] = account.Allocated.Clone()
		}
		s.share[j], _ = s.Of(s.allocated[j])
	}
	return s, nil
}

// Base returns the dimensions of which the cluster has a positive amount, in which shares are computed.
func (s *Jobs) Base() resource.Mask { return s.base }

// Of returns the dominant share of an account and its dimension, -1 if the share is 0. Of equal shares the first dimension is dominant;
// Volcano's choice between two scalars varies.
func (s *Jobs) Of(account resource.Row) (share float64, dimension int) {
	return resource.DominantShare(account, s.view.Total, s.base)
}

// Allocated returns a job's account, which changes with its events.
func (s *Jobs) Allocated(j model.JobID) *resource.Row { return &s.allocated[j] }

// Share returns a job's dominant share.
func (s *Jobs) Share(j model.JobID) float64 { return s.share[j] }

// JobShare returns a job's account as answers show it.
func (s *Jobs) JobShare(j model.JobID) (policy.JobShare, bool) {
	if !s.view.HasJob(j) {
		return policy.JobShare{Dominant: -1}, false
	}
	_, dimension := s.Of(s.allocated[j])
	return policy.JobShare{Share: s.share[j], Dominant: dimension, Allocated: s.allocated[j]}, true
}

// CompareJobs puts the job of the smaller share first, without tolerance.
func (s *Jobs) CompareJobs(l, r model.JobID) int {
	switch lShare, rShare := s.share[l], s.share[r]; {
	case lShare < rShare:
		return -1
	case lShare > rShare:
		return 1
	}
	return 0
}

// Allocate books a task on its job.
func (s *Jobs) Allocate(t model.TaskID) {
	j := s.save(t)
	s.allocated[j].Add(s.view.Request(t))
	s.share[j], _ = s.Of(s.allocated[j])
}

// Deallocate undoes Allocate.
func (s *Jobs) Deallocate(t model.TaskID) {
	j := s.save(t)
	s.allocated[j].SubWithin(s.view.Request(t))
	s.share[j], _ = s.Of(s.allocated[j])
}

func (s *Jobs) save(t model.TaskID) model.JobID {
	j := s.view.Tasks.At(t).Job
	if &s.allocated[j].V[0] == &s.view.Accounts.At(j).Allocated.V[0] {
		s.allocated[j] = s.allocated[j].Clone()
	}
	s.view.Journal.Row(&s.allocated[j])
	s.view.Journal.Float(&s.share[j])
	return j
}

// Preemptable permits a task if the share of the claimant's job with the claimant is not larger than that of the task's job without the
// task. Refused candidates are subtracted too, before the next candidate of the same job is judged, because Volcano subtracts before it
// compares.
func (s *Jobs) Preemptable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	s.gained.CopyFrom(s.allocated[s.view.Tasks.At(claimant).Job])
	s.gained.Add(s.view.Request(claimant))
	have, _ := s.Of(s.gained)
	for i, t := range candidates {
		s.view.Yield(i)
		left := s.without(t)
		limit, _ := s.Of(*left)
		switch {
		case !(have < limit || math.Abs(have-limit) <= delta):
			g.Protect(t, higher(have, limit))
			continue
		case g.Explains():
			g.Pass(t, higher(have, limit))
		}
		dst = append(dst, t)
	}
	s.left.Clear()
	return dst, policy.Permit
}

// without subtracts a candidate from the remaining account of its job, and returns the account.
func (s *Jobs) without(t model.TaskID) *resource.Row {
	j := s.view.Tasks.At(t).Job
	left, first := s.left.At(j)
	if first {
		if left.Absent() {
			*left = resource.NewRow(s.view.Dims.Len())
		}
		left.CopyFrom(s.allocated[j])
	}
	left.SubWithin(s.view.Request(t))
	return left
}

func higher(have, limit float64) policy.Reason {
	because := policy.Because(Name, policy.ShareNotHigher, model.None)
	because.Have, because.Limit = have, limit
	return because
}
