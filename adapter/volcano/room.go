package volcano

import (
	"cmp"
	"maps"
	"slices"
	"unique"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/room"
)

// Each function below leaves out objects that a snapshot has no room for. Nodes and queues come before jobs, and each namespace gets an
// equal part of a limit, so that objects of one tenant do not displace those of others.

// maxNames returns how many resource names a snapshot may have, cpu and memory included.
func (r *reader) maxNames() int {
	if most := r.Limits.Dimensions; most > 0 {
		return int(min(most, resource.MaxDimensions))
	}
	return resource.MaxDimensions
}

// roomForPlaces leaves out queues and nodes.
func (r *reader) roomForPlaces() {
	r.queues = kept(r.queues, r.Limits.Queues, func(q *queue, format string, args ...any) {
		r.Leave(objects.Identity{Kind: queueKind, Name: q.message.GetName()}, q.written, format, args...)
	}, "more than %d queues")
	r.nodes = kept(r.nodes, r.Limits.Nodes, func(n *node, format string, args ...any) {
		r.Leave(objects.Identity{Kind: nodeKind, Name: n.message.GetName()}, n.written, format, args...)
	}, "more than %d nodes")
	r.roomForDepth()
	names := r.placeNames()
	if len(names) <= r.maxNames() {
		return
	}
	// Those with few names come first: the others are left out.
	names = baseNames()
	fits := func(of ...*amounts) bool {
		with := maps.Clone(names)
		addNames(with, of...)
		if len(with) > r.maxNames() {
			return false
		}
		names = with
		return true
	}
	order := func(n int, size func(i int) int) []int {
		list := make([]int, n)
		for i := range list {
			list[i] = i
		}
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(size(a), size(b)) })
		return list
	}
	out := map[string]bool{}
	for _, i := range order(len(r.queues), func(i int) int { return r.queues[i].names() }) {
		if q := &r.queues[i]; !fits(q.capability, q.guarantee, q.deserved) {
			out[q.message.GetName()] = true
			r.Leave(objects.Identity{Kind: queueKind, Name: q.message.GetName()}, q.written, tooManyNames, r.maxNames())
		}
	}
	r.queues = slices.DeleteFunc(slices.Clone(r.queues), func(q queue) bool { return out[q.message.GetName()] })
	clear(out)
	for _, i := range order(len(r.nodes), func(i int) int { return len(r.nodes[i].allocatable.entries) }) {
		if n := &r.nodes[i]; !fits(n.allocatable) {
			out[n.message.GetName()] = true
			r.Leave(objects.Identity{Kind: nodeKind, Name: n.message.GetName()}, n.written, tooManyNames, r.maxNames())
		}
	}
	r.nodes = slices.DeleteFunc(slices.Clone(r.nodes), func(n node) bool { return out[n.message.GetName()] })
}

const tooManyNames = "with its resource names the snapshot would have more than %d"

func (q *queue) names() int {
	names := map[any]bool{}
	addNames(names, q.capability, q.guarantee, q.deserved)
	return len(names)
}

// kept returns the first of a list, as many as are allowed.
func kept[T any](list []T, most int64, leave func(of *T, format string, args ...any), format string) []T {
	if most <= 0 || int64(len(list)) <= most {
		return list
	}
	for i := range list[most:] {
		leave(&list[int(most)+i], format, most)
	}
	return list[:most]
}

// roomForDepth leaves out queues that are nested too deeply. A queue that is its own ancestor has no depth.
func (r *reader) roomForDepth() {
	most := int(r.Limits.QueueDepth)
	if most == 0 || len(r.queues) <= most {
		return
	}
	at := make(map[string]int, len(r.queues))
	for i := range r.queues {
		at[r.queues[i].message.GetName()] = i
	}
	levels := decode.Levels(len(r.queues), func(i int) (int, bool) {
		q := r.queues[i].message
		parent, ok := at[q.GetParent()]
		return parent, ok && q.GetName() != hierarchy.Root
	})
	fit := make([]queue, 0, len(r.queues))
	for i := range r.queues {
		if q := &r.queues[i]; levels[i] <= most {
			fit = append(fit, *q)
		} else {
			r.Leave(objects.Identity{Kind: queueKind, Name: q.message.GetName()}, q.written, "nested more than %d deep", most)
		}
	}
	r.queues = fit
}

// baseNames are those that every snapshot has.
func baseNames() map[any]bool {
	return map[any]bool{unique.Make(string(corev1.ResourceCPU)): true, unique.Make(string(corev1.ResourceMemory)): true}
}

// placeNames returns the resource names that nodes offer or queues name.
func (r *reader) placeNames() map[any]bool {
	names := baseNames()
	for i := range r.queues {
		addNames(names, r.queues[i].capability, r.queues[i].guarantee, r.queues[i].deserved)
	}
	for i := range r.nodes {
		addNames(names, r.nodes[i].allocatable)
	}
	return names
}

func addNames(to map[any]bool, of ...*amounts) {
	for _, a := range of {
		if a == nil {
			continue
		}
		for _, e := range a.entries {
			to[e.name] = true
		}
	}
}

// jobLimit bounds what all jobs use together.
type jobLimit = room.Limit[*job, any]

// limited are the limits of the jobs of a snapshot. Of a namespace the older jobs come first.
func (r *reader) limited() []jobLimit {
	l, conditions := &r.Limits, max(matches/int64(max(len(r.nodes), 1)), 1)
	limits := []jobLimit{
		{What: "jobs", Most: l.Jobs, Takes: func(*job, func(any, int64)) int64 { return 1 }},
		{What: "groups", Most: l.Groups, Takes: func(j *job, _ func(any, int64)) int64 { return int64(len(j.message.GetGroups())) }},
		{What: "tasks", Most: l.Tasks, Takes: func(j *job, _ func(any, int64)) int64 { return j.tasks() }},
		{What: "rules of placement", Most: l.NodeSets, Takes: func(j *job, share func(any, int64)) int64 {
			j.eachPlacement(func(p *placement) { share(p, 1) })
			return 0
		}},
		{What: "conditions of placement", Most: conditions, Takes: func(j *job, share func(any, int64)) int64 {
			j.eachPlacement(func(p *placement) { share(p, p.conditions()) })
			return 0
		}},
		{What: "resource names", Most: int64(r.maxNames()), Given: r.placeNames(), Takes: func(j *job, share func(any, int64)) int64 {
			each := func(a *amounts) {
				for _, e := range a.entries {
					share(e.name, 1)
				}
			}
			if j.minResources != nil {
				each(j.minResources)
			}
			for _, group := range j.requests {
				for i, request := range group {
					if i == 0 || request != group[i-1] {
						each(request)
					}
				}
			}
			return 0
		}},
		{What: "Mi of a resource", Most: room.MostAmount, Takes: func(j *job, _ func(any, int64)) int64 { return j.largestAmount() }},
		// The last, because it looks for the nodes of each rule of placement.
		{What: "bytes in memory", Most: r.memory, Takes: func(j *job, share func(any, int64)) int64 {
			j.eachPlacement(func(p *placement) {
				a := r.allowedOnce(p)
				set := decode.Size{NodeSets: 1, Bytes: int64(len(a.rule)), NodeSetBytes: int64(bytesOfNode * len(a.nodes))}
				for _, e := range a.exclusions {
					set.ExtraParts++
					set.NodeSetBytes += int64(len(e.GetRule()) + bytesOfNode*len(e.GetNodes()))
				}
				for _, p := range a.preferences {
					set.ExtraParts++
					set.NodeSetBytes += int64(bytesOfNode * len(p.GetNodes()))
				}
				share(p, set.Memory())
			})
			return decode.Size{
				Bytes: int64(proto.Size(j.message)), Jobs: 1, Groups: int64(len(j.message.GetGroups())), Tasks: j.tasks(),
				Entries: int64(min(len(r.budgets)+len(r.quotas), 1)),
			}.Memory()
		}},
	}
	for i := range limits {
		limits[i].Namespace = func(j *job) string { return j.message.GetNamespace() }
		limits[i].Before = func(a, b *job) int { return cmp.Compare(a.message.GetCreateTime(), b.message.GetCreateTime()) }
	}
	return limits
}

const (
	// bytesOfNode is about what a node of a node set takes in a snapshot.
	bytesOfNode = 2
	// matches bounds how often a node is held against a condition of a rule of placement, so that looking for the nodes of all rules takes
	// a few seconds of processor time at most.
	matches = 16 << 20
)

// largestAmount returns how much of a resource all tasks of a job request and it states as its minimum together, in Mi of the contract's
// unit, of the one with the most.
func (j *job) largestAmount() int64 {
	sums, most := map[resourceName]float64{}, 0.0
	add := func(a *amounts, times int) {
		if a == nil {
			return
		}
		for _, e := range a.entries {
			sums[e.name] += e.amount * float64(times)
			most = max(most, sums[e.name])
		}
	}
	add(j.minResources, 1)
	for _, group := range j.requests {
		for from, i := 0, 1; i <= len(group); i++ {
			if i == len(group) || group[i] != group[from] {
				add(group[from], i-from)
				from = i
			}
		}
	}
	return room.Mi(most)
}

// tasks returns the number of tasks that are listed.
func (j *job) tasks() (n int64) {
	for _, group := range j.message.GetGroups() {
		n += int64(len(group.GetTasks()))
	}
	return n
}

// eachPlacement calls f for the placements of all tasks, once for several in a row.
func (j *job) eachPlacement(f func(*placement)) {
	for _, group := range j.placed {
		for i := range group {
			if i == 0 || group[i].placement != group[i-1].placement {
				f(group[i].placement)
			}
		}
	}
}

// roomForJobs returns the jobs for which a snapshot has room.
func (r *reader) roomForJobs(jobs []*job) []*job {
	for _, l := range r.limited() {
		if l.Most <= 0 {
			continue
		}
		out := l.Exceeding(jobs)
		for _, at := range out {
			r.leaveJob(jobs[at], &l)
		}
		if len(out) > 0 {
			kept := make([]*job, 0, len(jobs)-len(out))
			for i, j := range jobs {
				if _, left := slices.BinarySearch(out, i); !left {
					kept = append(kept, j)
				}
			}
			jobs = kept
		}
	}
	return jobs
}

// leaveJob leaves out a job. The amounts that its tasks use on nodes count as used by others.
func (r *reader) leaveJob(j *job, l *jobLimit) {
	f := r.Leave(objects.Identity{Kind: podGroupKind, Namespace: j.message.GetNamespace(), Name: j.message.GetName()}, j.written,
		"with it the snapshot would have more than %d %s", l.Most, l.What)
	f.Queue = j.message.GetQueue()
	for i, group := range j.message.GetGroups() {
		for k, task := range group.GetTasks() {
			ended := task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED ||
				task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_FAILED
			if task.Node != nil && !ended {
				r.nodes[task.GetNode()].use(j.requests[i][k])
				r.nodes[task.GetNode()].host(j.placed[i][k], task)
			}
		}
	}
}

// use adds what a task uses that is not in the snapshot.
func (n *node) use(request *amounts) {
	if n.others == nil {
		n.others = &amounts{}
	}
	n.others.plus(request)
}

// host adds a pod that is not in the snapshot.
func (n *node) host(p placed, task *apportionv1.Task) {
	n.otherPods = append(n.otherPods, otherPod{p, task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_RELEASING})
}

// useByOthers sets what tasks outside of the snapshot use on the nodes. Names that only they use are left out if there are too many names,
// because these have no effect.
func (r *reader) useByOthers() {
	used := baseNames()
	for name := range r.dimensions.byName {
		used[name] = true
	}
	for i := range r.nodes {
		addNames(used, r.nodes[i].others)
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.others != nil && len(used) > r.maxNames() {
			n.others.entries = slices.DeleteFunc(n.others.entries, func(e entry) bool {
				_, named := r.dimensions.byName[e.name]
				return !named
			})
		}
		n.message.UsedByOthers = r.dimensions.message(n.others)
	}
}
