package reference

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func valueOf(on bool) protoreflect.Value { return protoreflect.ValueOfBool(on) }

// kueueForm is the answers of a case on their way into the recorded form.
type kueueForm struct {
	*kueue.Session

	snapshot *apportionv1.Snapshot
}

// answers asks everything that is recorded.
func (c *kueueCase) answers() (any, error) {
	settings, err := c.settings()
	if err != nil {
		return absent{}, err
	}
	snapshot, err := c.snapshot()
	if err != nil {
		return absent{}, err
	}
	session, err := c.session(snapshot, settings)
	if err != nil {
		return absent{}, err
	}
	f := kueueForm{session, snapshot}
	if c.Profile == cycleProfile {
		return f.cycle(), nil
	}
	return object{
		"clusterQueues": f.queues(), "cohorts": f.cohorts(), "workloads": f.workloads(c.Profile == "victims"),
	}, nil
}

func (f *kueueForm) key(workload int32) string {
	w := f.WorkloadAt(workload)
	return w.Namespace + "/" + w.Name
}

func (f *kueueForm) keys(workloads []int32) any {
	if len(workloads) == 0 {
		return nil
	}
	var keys []string
	for _, w := range workloads {
		keys = append(keys, f.key(w))
	}
	slices.Sort(keys)
	var out []any
	for _, key := range keys {
		out = append(out, key)
	}
	return out
}

func (f *kueueForm) share(node int32) object {
	s := f.Share(node)
	return object{
		"unweighted": s.Unweighted, "weight": s.Weight, "weighted": weighted(s.Weighted), "resource": s.Resource, "borrowing": s.Borrowing,
	}
}

func (f *kueueForm) queues() object {
	out := object{}
	for i := range int32(f.Queues()) {
		if f.NodeOf(i) != i {
			continue // It stands for a cohort.
		}
		name, _, in := f.Node(i)
		reason, _ := f.Inactivity(i)
		q := object{"active": reason == kueue.Active, "reason": reason.String(), "inSnapshot": in}
		out[name] = q
		if !in {
			continue
		}
		q["workloads"], q["share"] = f.keys(f.Holders(i)), f.share(i)
		resources := object{}
		for _, a := range f.Accounts(i) {
			account := object{
				usageKey: kueueAmount(a.Usage), "available": kueueAmount(a.Available), "potentialAvailable": kueueAmount(a.Potential),
				"borrowing": a.Borrowing,
			}
			if a.HasNominal {
				account["nominal"] = kueueAmount(a.Nominal)
			}
			put(resources, a.Flavor, a.Resource, account)
		}
		q["resources"] = resources
	}
	return out
}

// put sets a value by flavor and resource.
func put(o object, flavor, resource string, v any) {
	below, ok := o[flavor].(object)
	if !ok {
		below = object{}
		o[flavor] = below
	}
	below[resource] = v
}

func (f *kueueForm) cohorts() object {
	out := object{}
	for i := int32(f.Queues()); i < int32(f.Queues()+f.Cohorts()); i++ {
		name, parent, in := f.Node(i)
		if !in {
			continue
		}
		resources := object{}
		for _, a := range f.Accounts(i) {
			if a.Listed || a.Usage != 0 {
				put(resources, a.Flavor, a.Resource, object{
					"subtreeQuota": kueueAmount(a.Subtree), usageKey: kueueAmount(a.Usage), "borrowing": a.Borrowing,
					"available": kueueAmount(a.Available), "potentialAvailable": kueueAmount(a.Potential),
				})
			}
		}
		cohort := object{"share": f.share(i), "resources": resources}
		if out[name] = cohort; parent != "" {
			cohort["parent"] = parent
		}
	}
	return out
}

func (f *kueueForm) workloads(victims bool) object {
	out := object{}
	for _, l := range f.snapshot.GetLeftOuts() {
		out[l.GetNamespace()+"/"+l.GetName()] = object{clusterQueueKey: l.GetQueue(), "skipped": "notFound"}
	}
	for i := range int32(f.Workloads()) {
		if f.Holds(i) {
			continue
		}
		queue := f.QueueOf(i)
		name, _, in := f.Node(queue)
		w := object{clusterQueueKey: name}
		out[f.key(i)] = w
		if !in {
			w["skipped"] = "inactive"
			continue
		}
		if f.WorkloadAt(i).Withheld == kueue.WithheldNamespace {
			w["inadmissible"] = "namespaceMismatch"
		}
		a := f.Assign(i, nil)
		w["assignment"] = f.assignment(i, &a, victims)
		if victims {
			w["final"] = f.final(i)
		}
	}
	return out
}

func (f *kueueForm) assignment(workload int32, a *kueue.Assignment, victims bool) object {
	queue := f.QueueOf(workload)
	o := object{
		modeKey: a.Mode.String(), "borrows": float64(a.Borrows), usageKey: f.usage(queue, a.Usage), "noFitReason": a.Cause.String(),
		"podSets": f.podSets(a.PodSets, true),
	}
	if a.Mode != kueue.NoFit {
		fits := true
		accounts := map[[2]string]kueue.Account{}
		for _, account := range f.Accounts(queue) {
			accounts[[2]string{account.Flavor, account.Resource}] = account
		}
		for _, u := range a.Usage {
			flavor, resource := f.FlavorResource(queue, u.FR)
			fits = fits && u.Amount <= accounts[[2]string{flavor, resource}].Available
		}
		o["fits"] = fits
	}
	if a.Resumable() {
		next := f.Assign(workload, a)
		o["next"] = object{modeKey: next.Mode.String(), "borrows": float64(next.Borrows), "podSets": f.podSets(next.PodSets, false)}
	}
	if victims && a.Mode == kueue.Preempt {
		o["targets"] = f.targets(f.Victims(workload, a))
	}
	return o
}

func (f *kueueForm) usage(queue int32, uses []kueue.Use) object {
	out := object{}
	for _, u := range uses {
		flavor, resource := f.FlavorResource(queue, u.FR)
		put(out, flavor, resource, kueueAmount(u.Amount))
	}
	return out
}

func (f *kueueForm) podSets(sets []kueue.PodSetAssignment, attempts bool) []any {
	out := []any{}
	for _, p := range sets {
		flavors := object{}
		for _, choice := range p.Flavors {
			flavors[f.ResourceName(choice.Resource)] = object{
				"flavor": f.FlavorName(choice.Flavor), modeKey: choice.Mode.String(), "triedFlavorIdx": float64(choice.Tried),
			}
		}
		o := object{"name": p.Name, "count": float64(p.Count), modeKey: p.Mode.String(), "flavors": flavors}
		if attempts {
			o["attempts"] = f.attempts(p.Attempts)
		}
		out = append(out, o)
	}
	return out
}

func (f *kueueForm) attempts(attempts []kueue.Attempt) any {
	if len(attempts) == 0 {
		return nil
	}
	var out []any
	for _, a := range attempts {
		o := object{"flavor": f.FlavorName(a.Flavor), modeKey: a.Mode.String(), "borrow": float64(a.Borrow)}
		if a.Possibility != kueue.NotSearched {
			o["possibility"] = a.Possibility.String()
		}
		if a.Cause != kueue.NoCause {
			o["noFitReason"] = a.Cause.String()
		}
		out = append(out, o)
	}
	return out
}

func (f *kueueForm) targets(victims []kueue.Victim) []any {
	out := []any{}
	for _, v := range victims {
		name, _, _ := f.Node(f.QueueOf(v.Workload))
		out = append(out, object{"workload": f.key(v.Workload), clusterQueueKey: name, "reason": v.Reason.String()})
	}
	return out
}

func (f *kueueForm) final(workload int32) object {
	n := f.Nominate(workload)
	counts := []any{}
	for _, p := range n.PodSets {
		counts = append(counts, float64(p.Count))
	}
	return object{
		modeKey: n.Mode.String(), "borrows": float64(n.Borrows), "counts": counts, "partial": n.Partial, "targets": f.targets(n.Victims),
		usageKey: f.usage(f.QueueOf(workload), n.Usage),
	}
}

// cycle is one cycle in the recorded form.
func (f *kueueForm) cycle() object {
	decisions := f.Cycle()
	if len(decisions) == 0 {
		return object{"idle": true}
	}
	order, byRoot := []any{}, object{}
	said, admitted, preempted := object{}, object{}, []object{}
	for i := range decisions {
		d := &decisions[i]
		key := f.key(d.Workload)
		queue, _, _ := f.Node(d.Queue)
		status := ""
		switch {
		case d.Verdict == kueue.Admitted:
			status = "assumed"
			admitted[key] = f.admission(queue, d)
		case d.Verdict.Skipped():
			status = "skipped"
		}
		said[key] = object{"status": status, clusterQueueKey: queue}
		if d.Verdict == kueue.NotNominated {
			continue
		}
		order = append(order, key)
		root, _, _ := f.Node(f.Root(d.Queue))
		if f.Root(d.Queue) == d.Queue {
			root = "-" + root
		}
		list, _ := byRoot[root].([]any)
		byRoot[root] = append(list, key)
		for _, v := range d.Evicts {
			preempted = append(preempted, object{"by": key, "victim": f.key(v.Workload), "reason": v.Reason.String()})
		}
	}
	slices.SortFunc(preempted, func(a, b object) int {
		return cmp.Or(cmp.Compare(text(a["by"]), text(b["by"])), cmp.Compare(text(a["victim"]), text(b["victim"])))
	})
	victims := []any{}
	for _, p := range preempted {
		victims = append(victims, p)
	}
	return object{
		"order": order, "orderByRoot": byRoot, "decisions": said, "admitted": admitted, "preempted": victims,
		"usageAfter": f.usageAfter(decisions),
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func (f *kueueForm) admission(queue string, d *kueue.Decision) object {
	sets := []any{}
	for _, p := range d.PodSets {
		flavors := object{}
		for _, choice := range p.Flavors {
			flavors[f.ResourceName(choice.Resource)] = f.FlavorName(choice.Flavor)
		}
		sets = append(sets, object{"name": p.Name, "count": float64(p.Count), "flavors": flavors})
	}
	return object{clusterQueueKey: queue, "podSets": sets}
}

func (f *kueueForm) usageAfter(decisions []kueue.Decision) object {
	out := object{}
	for i := range int32(f.Queues()) {
		name, _, in := f.Node(i)
		if !in {
			continue
		}
		out[name] = f.usage(i, f.UsageAfter(i, decisions))
	}
	return out
}
