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
	out.ReserveTime, out.Evicted, out.Admission = new(m.AsOf), false, &apportionv1.KueueAdmission{}
	for i := range a.PodSets {
		p := &a.PodSets[i]
		set := &apportionv1.KueueAdmittedPodSet{Name: p.Name, Count: p.Count}
		for _, u := range p.Usage {
			set.Usages = append(set.Usages, &apportionv1.KueueFlavoredUsage{
				Resource: u.Resource, Flavor: u.Flavor, Amount: new(int64(u.Amount)),
			})
		}
		out.Admission.PodSets = append(out.Admission.PodSets, set)
	}
	return Kept(out)
}
