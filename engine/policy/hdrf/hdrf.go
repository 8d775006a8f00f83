// Package hdrf is drf with an order of queues: by their places in a weighted tree in which each node's share is made of its children's,
// scaled to the least among them (Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads, SoCC 2013; Volcano's
// pkg/scheduler/plugins/drf with enableHierarchy).
package hdrf

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/dominant"
	"github.com/apportion/apportion/engine/resource"
)

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name is Volcano's name of the plugin, with and without hierarchy.
func (Plugin) Name() string { return dominant.Name }

// Open returns a *State, policy.ErrStopped, or an *model.Error that names the paths and weights it cannot work with.
func (Plugin) Open(v *policy.View) (policy.State, error) {
	t, err := plant(v)
	if err != nil {
		return nil, err
	}
	jobs, err := dominant.Open(v)
	if err != nil {
		return nil, err
	}
	s := &State{
		Jobs: jobs, view: v, tree: t, undo: map[int32]func(){},
		used:   resource.NewAccount(v.Dims.Len()),
		none:   resource.NewAccount(v.Dims.Len()),
		gained: resource.NewAccount(v.Dims.Len()),
		left:   resource.NewAccount(v.Dims.Len()),
	}
	for _, j := range v.Present() {
		s.used.Add(*jobs.Allocated(j))
	}
	s.now = newValues(v, t, jobs, s.request)
	return s, nil
}

// State is the accounts of jobs and the tree above them.
type State struct {
	*dominant.Jobs
	view *policy.View
	tree *tree
	// used is the sum of all jobs' accounts.
	used resource.Row
	// now is the tree as it is; trial, made when first needed, is the tree while victims are chosen.
	now, trial *values
	// undo holds, for leaves that changed while a mark stood, the function that reports to the tree that they were put back.
	undo map[int32]func()
	// none is the request of an inner node; gained and left are the accounts of the claimant's and the candidate's job in a trial.
	none, gained, left resource.Row
}

func (s *State) request(leaf int32) resource.Row { return s.view.Account(s.tree.nodes[leaf].job).Total }

// Allocate books a task on its job and on the tree.
func (s *State) Allocate(t model.TaskID) {
	leaf := s.save(t)
	s.Jobs.Allocate(t)
	s.used.Add(s.view.Request(t))
	s.restore(leaf)
}

// Deallocate takes a task off its job and off the tree.
func (s *State) Deallocate(t model.TaskID) {
	leaf := s.save(t)
	s.Jobs.Deallocate(t)
	s.used.SubWithin(s.view.Request(t))
	s.restore(leaf)
}

// save makes sure that a rollback, which restores the numbers saved later, reaches the tree, and returns the leaf of a task's job.
func (s *State) save(t model.TaskID) int32 {
	leaf := s.tree.leaf[s.view.Tasks.At(t).Job]
	if s.view.Journal.Recording() && leaf != missing {
		put, ok := s.undo[leaf]
		if !ok {
			put = func() { s.restore(leaf) }
			s.undo[leaf] = put
		}
		s.view.Journal.Undo(put)
	}
	s.view.Journal.Row(&s.used)
	return leaf
}

// restore gives a leaf the account of its job.
func (s *State) restore(leaf int32) {
	if leaf == missing {
		return
	}
	j := s.tree.nodes[leaf].job
	s.now.place(leaf, s.Allocated(j), s.Share(j))
	if s.trial != nil {
		s.trial.place(leaf, s.Allocated(j), s.Share(j))
	}
}

// settled returns the tree as it is, up to date.
func (s *State) settled() *values {
	s.now.settle(s.demanding(s.none, s.none))
	return s.now
}

// demanding returns the dimensions of which the cluster would have something left if more were used and less were not.
func (s *State) demanding(more, less resource.Row) resource.Mask {
	var left resource.Mask
	for m := s.Base(); m != 0; m = m.Rest() {
		if d := m.First(); s.used.V[d]+more.V[d]-less.V[d] < s.view.Total.V[d] {
			left = left.With(d)
		}
	}
	return left
}

// Nodes lists the tree, each node before its children.
func (s *State) Nodes() []policy.TreeNode {
	v := s.settled()
	list := make([]policy.TreeNode, len(s.tree.nodes))
	for i := range list {
		n := &s.tree.nodes[i]
		request := s.none
		if n.job != model.None {
			request = s.request(int32(i))
		}
		_, dimension := s.Of(*v.account[i])
		list[i] = policy.TreeNode{
			Parent: int(n.parent), Name: n.name, Weight: n.weight, Share: v.share[i], Saturated: v.saturated[i],
			Request: request, Allocated: *v.account[i], Job: n.job, Dominant: dimension,
		}
	}
	return list
}

// Warnings names weights that do not count as written.
func (s *State) Warnings(add func(policy.Warning)) {
	for _, w := range s.tree.warnings {
		add(w)
	}
}
