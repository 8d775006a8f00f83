package kueue

import (
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Admitted returns the message of a job whose workload is admitted at the time of a model: it holds quota from then on.
func Admitted(m *model.Model, j model.JobID, a *kueue.Admission) *model.Extra {
	out := proto.CloneOf(Extra[*apportionv1.KueueWorkload](m.Jobs.At(j).Extra))
	out.ReserveTime, out.Evicted, out.Admitted = new(m.AsOf), false, true
	position := func(resource string) uint32 {
		d, _ := m.Dims.Index(resource)
		return uint32(m.Dims.Position(d))
	}
	for i := range a.PodSets {
		// An admission has the pod sets of its workload.
		p, set := &a.PodSets[i], out.PodSets[i]
		set.AdmittedCount, set.Uses = p.Count, nil
		for _, u := range p.Usage {
			used := UseOf(set, u.Flavor).GetUsed()
			used.Dimensions, used.Amounts = append(used.Dimensions, position(u.Resource)), append(used.Amounts, Wire(u.Resource, u.Amount))
		}
	}
	return Kept(out)
}
