package kueue

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// QueueOf returns what Kueue has of a queue, nil for none.
func QueueOf(m *model.Model, q model.QueueID) *apportionv1.KueueQueue {
	return Extra[*apportionv1.KueueQueue](m.Queues[q].Extra)
}

// HasCohort reports whether a snapshot has a cohort with a name, and no queue.
func HasCohort(m *model.Model, name string) bool {
	_, queue := m.Queue(name)
	return !queue && cohortIn(Extra[*apportionv1.KueueSnapshot](m.Extra), name) != nil
}

func cohortIn(s *apportionv1.KueueSnapshot, name string) *apportionv1.KueueCohort {
	for _, c := range s.GetCohorts() {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// HasFlavor reports whether a snapshot has a flavor with a name.
func HasFlavor(m *model.Model, name string) bool {
	is := func(f *apportionv1.KueueFlavor) bool { return f.GetName() == name }
	return slices.ContainsFunc(Extra[*apportionv1.KueueSnapshot](m.Extra).GetFlavors(), is)
}

// HasPodSet reports whether a job is a workload with a pod set.
func HasPodSet(m *model.Model, j model.JobID, name string) bool {
	return podSetIn(Extra[*apportionv1.KueueWorkload](m.Jobs.At(j).Extra), name) != nil
}

func podSetIn(w *apportionv1.KueueWorkload, name string) *apportionv1.KueuePodSet {
	for _, p := range w.GetPodSets() {
		if p.GetName() == name {
			return p
		}
	}
	return nil
}

// FlavorOf returns the flavor of the quota of a resource of a queue or, if it is model.None, a cohort: the one given, or the only one. fault
// says what is wrong.
func FlavorOf(m *model.Model, q model.QueueID, cohort, flavor, resource string) (found, fault string) {
	groups := cohortIn(Extra[*apportionv1.KueueSnapshot](m.Extra), cohort).GetGroups()
	if q != model.None {
		groups = QueueOf(m, q).GetGroups()
	}
	var list []string
	eachQuota(groups, func(f string, quota *apportionv1.KueueQuota) {
		if quota.GetName() == resource && (flavor == "" || f == flavor) {
			list = append(list, f)
		}
	})
	switch {
	case len(list) == 0:
		return "", "there is no quota of " + resource + " in flavor " + flavor
	case len(list) > 1:
		return "", "several flavors have " + resource + ": " + strings.Join(list, ", ")
	}
	return list[0], ""
}

// eachQuota calls do for each quota with its flavor.
func eachQuota(groups []*apportionv1.KueueResourceGroup, do func(flavor string, quota *apportionv1.KueueQuota)) {
	for _, g := range groups {
		for _, f := range g.GetFlavors() {
			for _, quota := range f.GetResources() {
				do(f.GetName(), quota)
			}
		}
	}
}

// Edits makes edits of what a model keeps for Kueue.
type Edits struct{}

// Queue returns what Kueue has of a queue after an edit.
func (Edits) Queue(e *edit.Edit, was *model.Extra) *model.Extra {
	message := Extra[*apportionv1.KueueQueue](was)
	if message == nil {
		return was
	}
	is := proto.CloneOf(message)
	switch e.Kind { //nolint:exhaustive // The others are not Kueue's.
	case edit.Weight:
		is.Weight = new(e.Amount)
	case edit.Open, edit.Close:
		is.Stopped = e.Kind == edit.Close
	case edit.Parent:
		is.Cohort = e.Text
	case edit.Nominal, edit.BorrowingLimit, edit.LendingLimit:
		setQuotas(is.GetGroups(), e)
	default:
		return was
	}
	return Kept(is)
}

// setQuotas sets the quota of an edit.
func setQuotas(groups []*apportionv1.KueueResourceGroup, e *edit.Edit) {
	amount := new(int64(e.Amount))
	if e.None {
		amount = nil
	}
	eachQuota(groups, func(flavor string, quota *apportionv1.KueueQuota) {
		switch {
		case flavor != e.Flavor || quota.GetName() != e.Resource:
		case e.Kind == edit.Nominal:
			quota.Nominal = *amount
		case e.Kind == edit.BorrowingLimit:
			quota.BorrowingLimit = amount
		default:
			quota.LendingLimit = amount
		}
	})
}

// Job returns what Kueue has of a job after an edit of a pod set, whose name is its text.
func (Edits) Job(e *edit.Edit, was *model.Extra) *model.Extra {
	message := Extra[*apportionv1.KueueWorkload](was)
	if message == nil || podSetIn(message, e.Text) == nil {
		return was
	}
	is := proto.CloneOf(message)
	set := podSetIn(is, e.Text)
	switch e.Kind { //nolint:exhaustive // The others are not Kueue's.
	case edit.Minimum:
		set.MinCount = new(int32(e.Amount))
	case edit.Request:
		for _, request := range set.GetRequests() {
			if request.GetName() == e.Resource {
				request.Amount = min(request.GetAmount(), int64(e.Amount))
			}
		}
	default:
		return was
	}
	return Kept(is)
}

// Snapshot returns what Kueue has of a snapshot after an edit of a flavor, or of a cohort, whose name is its text.
func (Edits) Snapshot(e *edit.Edit, was *model.Extra) *model.Extra {
	message := Extra[*apportionv1.KueueSnapshot](was)
	is := &apportionv1.KueueSnapshot{}
	if message != nil {
		is = proto.CloneOf(message)
	}
	switch e.Kind { //nolint:exhaustive // The others are not about flavors and cohorts.
	case edit.Flavor:
		is.Flavors = append(is.Flavors, &apportionv1.KueueFlavor{Name: e.Flavor})
	case edit.Nominal, edit.BorrowingLimit, edit.LendingLimit:
		if e.Queue != model.None {
			return was
		}
		setQuotas(cohortIn(is, e.Text).GetGroups(), e)
	default:
		return was
	}
	return Kept(is)
}
