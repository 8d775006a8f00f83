package decode

import (
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// queue, job and node return what a reference means; false: there is no reference, or no such object.
func (r *editReader) queue(ref *apportionv1.Ref, field string) (model.QueueID, bool) {
	return refer(r, ref, field, len(r.m.Queues), r.m.Queue, r.m.HasQueue, func(q model.QueueID) string { return r.m.Queues[q].Name })
}

func (r *editReader) job(ref *apportionv1.Ref, field string) (model.JobID, bool) {
	return refer(r, ref, field, r.m.Jobs.Len(), r.m.Job, r.m.HasJob, func(j model.JobID) string { return r.m.Jobs.At(j).UID })
}

func (r *editReader) node(ref *apportionv1.Ref, field string) (model.NodeID, bool) {
	return refer(r, ref, field, len(r.m.Nodes), r.m.Node, r.m.HasNode, func(n model.NodeID) string { return r.m.Nodes[n].Name })
}

// refer returns the object of a reference by its position or its name, which agree if both are given. A fault names the part that is wrong.
func refer[ID ~int32](
	r *editReader, ref *apportionv1.Ref, field string, n int, find func(string) (ID, bool), has func(ID) bool, name func(ID) string,
) (ID, bool) {
	if ref == nil {
		r.fault(field, "the kind needs a %s", field)
		return model.None, false
	}
	if ref.Index == nil {
		id, ok := find(ref.GetName())
		if !ok {
			r.fault(field+".name", "there is no %q", Cut(ref.GetName(), MaxText))
			return model.None, false
		}
		return id, true
	}
	if int64(ref.GetIndex()) >= int64(n) || !has(ID(ref.GetIndex())) {
		r.fault(field+".index", "there is none at %d, there are %d", ref.GetIndex(), n)
		return model.None, false
	}
	id := ID(ref.GetIndex())
	if ref.GetName() != "" && ref.GetName() != name(id) {
		r.fault(field+".name", "%q is not that at %d", Cut(ref.GetName(), MaxText), ref.GetIndex())
		return model.None, false
	}
	return id, true
}
