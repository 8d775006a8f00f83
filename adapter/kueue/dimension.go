package kueue

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/policy/kueue"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/room"
)

// dimensions are the names of the resources of an object, to which the amounts of its message refer.
type dimensions struct {
	names   []string
	numbers map[string]uint32
}

// number returns the number of a name, which is added if it is new.
func (d *dimensions) number(name string) uint32 {
	n, known := d.numbers[name]
	if !known {
		if d.numbers == nil {
			d.numbers = map[string]uint32{}
		}
		n = uint32(len(d.names))
		d.numbers[name], d.names = n, append(d.names, name)
	}
	return n
}

// put adds an amount in Kueue's units to a Resource, which is made if there is none.
func (r *reader) put(to **apportionv1.Resource, name string, amount int64, path string) {
	if name == "" {
		r.Fault(path, "the name of a resource is needed")
		return
	}
	wire := wirekueue.Wire(name, kueue.Amount(amount))
	if back, exact := wirekueue.Amount(name, wire); !exact || int64(back) != amount {
		r.Fault(path, "%d is too large to be judged exactly", amount)
		return
	}
	if *to == nil {
		*to = &apportionv1.Resource{}
	}
	(*to).Dimensions, (*to).Amounts = append((*to).Dimensions, r.number(name)), append((*to).Amounts, wire)
}

// renumbered returns a copy of a message whose amounts refer to the dimensions of a snapshot.
func renumbered[M proto.Message](m M, names []string, position map[string]uint32) M {
	out := proto.CloneOf(m)
	wirekueue.Renumber(out, func(d uint32) uint32 { return position[names[d]] })
	return out
}

// listDimensions returns cpu, memory, and all other resources of the objects by name.
func (r *reader) listDimensions() []string {
	all := map[string]bool{}
	for _, list := range r.named() {
		for _, name := range list {
			all[name] = true
		}
	}
	for _, w := range r.workloads {
		for _, name := range w.names {
			all[name] = true
		}
	}
	delete(all, "cpu")
	delete(all, "memory")
	return append([]string{"cpu", "memory"}, slices.Sorted(maps.Keys(all))...)
}

// named returns the resources of each queue and cohort.
func (r *reader) named() map[objects.Identity][]string {
	out := map[objects.Identity][]string{}
	for name, q := range r.queues {
		out[objects.Identity{Kind: queueKind, Name: name}] = q.names
	}
	for name, c := range r.cohorts {
		out[objects.Identity{Kind: cohortKind, Name: name}] = c.names
	}
	for _, q := range r.localQueues {
		if of := r.queues[q.queue]; of != nil && of.message.GetKueue().GetUsageBased() {
			at := objects.Identity{Kind: queueKind, Name: q.queue}
			out[at] = append(slices.Clip(out[at]), q.names...)
		}
	}
	return out
}

// leaveNames leaves out queues, cohorts and workloads until all resources are as many as a snapshot names. Quotas come before requests, and
// each namespace gets an equal part of what is left.
func (r *reader) leaveNames() {
	named, given := r.named(), map[string]bool{"cpu": true, "memory": true}
	share := func(names []string, share func(string, int64)) int64 {
		for _, name := range names {
			share(name, 1)
		}
		return 0
	}
	quotas := room.Limit[objects.Identity, string]{
		Most: resource.MaxDimensions, Given: maps.Clone(given),
		Takes: func(of objects.Identity, each func(string, int64)) int64 { return share(named[of], each) },
	}
	owners := slices.SortedFunc(maps.Keys(named), func(a, b objects.Identity) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	for _, at := range slices.Backward(quotas.Exceeding(owners)) {
		r.leave(owners[at], tooManyNames, resource.MaxDimensions)
		owners = slices.Delete(owners, at, at+1)
	}
	for _, of := range owners {
		for _, name := range named[of] {
			given[name] = true
		}
	}
	requests := room.Limit[*workload, string]{
		Most: resource.MaxDimensions, Given: given, Namespace: func(w *workload) string { return w.message.GetNamespace() },
		Takes: func(w *workload, each func(string, int64)) int64 { return share(w.names, each) },
	}
	workloads := byName(r.workloads)
	for _, at := range requests.Exceeding(workloads) {
		m := workloads[at].message
		r.leave(objects.Identity{Kind: workloadKind, Namespace: m.GetNamespace(), Name: m.GetName()}, tooManyNames, resource.MaxDimensions)
	}
}

const tooManyNames = "with it there would be more than %d resources"
