package kueue

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// QueueOf returns what Kueue has of a queue, nil for none.
func QueueOf(m *model.Model, q model.QueueID) *apportionv1.KueueQueue {
	return Extra[*apportionv1.KueueQueue](m.Queues[q].Extra)
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

// FlavorOf returns the flavor of the quota of a dimension of a queue: the one given, or the only one. fault says what is wrong.
func FlavorOf(m *model.Model, q model.QueueID, flavor string, dimension int) (found, fault string) {
	var list []string
	for _, quota := range QueueOf(m, q).GetQuotas() {
		has := slices.Contains(quota.GetNominal().GetDimensions(), uint32(m.Dims.Position(dimension)))
		if has && (flavor == "" || quota.GetNodeSet() == flavor) {
			list = append(list, quota.GetNodeSet())
		}
	}
	resource := m.Dims.Name(dimension)
	switch {
	case len(list) == 0:
		return "", "there is no quota of " + resource + " in flavor " + flavor
	case len(list) > 1:
		return "", "several flavors have " + resource + ": " + strings.Join(list, ", ")
	}
	return list[0], ""
}

// Edits makes edits of what a model keeps for Kueue.
type Edits struct {
	// Dims are those of the model.
	Dims resource.Dimensions
}

// Flavor returns what Kueue has of a new flavor.
func (Edits) Flavor() *model.Extra { return Kept(&apportionv1.KueueFlavor{}) }

// Queue returns what Kueue has of a queue after an edit.
func (x Edits) Queue(e *edit.Edit, was *model.Extra) *model.Extra {
	message := Extra[*apportionv1.KueueQueue](was)
	if message == nil {
		return was
	}
	is := proto.CloneOf(message)
	switch e.Kind {
	case edit.Weight:
		is.Weight = new(e.Amount)
	case edit.Open, edit.Close:
		is.Stopped = e.Kind == edit.Close
	case edit.Nominal, edit.BorrowingLimit, edit.LendingLimit:
		for _, quota := range is.GetQuotas() {
			if quota.GetNodeSet() == e.Flavor {
				x.set(map[edit.Kind]**apportionv1.Resource{
					edit.Nominal: &quota.Nominal, edit.BorrowingLimit: &quota.BorrowingLimit, edit.LendingLimit: &quota.LendingLimit,
				}[e.Kind], e)
			}
		}
	default:
		return was
	}
	return Kept(is)
}

// set sets the amount of an edit, or removes it.
func (x Edits) set(of **apportionv1.Resource, e *edit.Edit) {
	if *of == nil {
		*of = &apportionv1.Resource{}
	}
	r, d := *of, uint32(x.Dims.Position(e.Dimension))
	at := slices.Index(r.GetDimensions(), d)
	switch {
	case at >= 0 && e.None:
		r.Dimensions, r.Amounts = slices.Delete(r.Dimensions, at, at+1), slices.Delete(r.Amounts, at, at+1)
	case at >= 0:
		r.Amounts[at] = e.Amount
	case !e.None:
		r.Dimensions, r.Amounts = append(r.Dimensions, d), append(r.Amounts, e.Amount)
	}
}

// Job returns what Kueue has of a job after an edit of a pod set, whose name is its text.
func (x Edits) Job(e *edit.Edit, was *model.Extra) *model.Extra {
	message := Extra[*apportionv1.KueueWorkload](was)
	if message == nil || podSetIn(message, e.Text) == nil {
		return was
	}
	is := proto.CloneOf(message)
	set := podSetIn(is, e.Text)
	switch e.Kind {
	case edit.Minimum:
		set.MinCount = new(int32(e.Amount))
	case edit.Request:
		if at := slices.Index(set.GetRequest().GetDimensions(), uint32(x.Dims.Position(e.Dimension))); at >= 0 {
			set.Request.Amounts[at] = min(set.Request.Amounts[at], e.Amount)
		}
	default:
		return was
	}
	return Kept(is)
}
