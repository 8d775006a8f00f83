package volcano

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// cluster returns a snapshot of all objects read, or the problems found.
func (r *reader) cluster() (*Cluster, error) {
	r.Found.Append(&r.Clashes)
	if err := r.Found.Err(); err != nil {
		return nil, err
	}
	if r.Lenient {
		r.roomForPlaces()
	}
	r.leftOut = r.kindsNotRead()
	priorities := r.priorities()
	jobs := r.keptJobs(priorities)
	r.writeClasses(priorities)
	r.placePods(jobs)
	r.miss(jobs)
	snapshot := &apportionv1.Snapshot{AsOf: r.asOf, Cluster: r.label}
	var present []*job
	for i := range r.jobs {
		if j := &r.jobs[i]; jobs[j.identity()] == j {
			present = append(present, j)
		}
	}
	if r.forgetPreferences(present); r.Lenient {
		present = r.roomForJobs(present)
	}
	r.guard(snapshot, present)
	r.tell(jobs)
	r.restrictVolumes(present)
	r.restrict(snapshot, usedPlacements(present))
	r.relate(snapshot, present)
	origins, started := make([]objects.Origin, 0, len(present)), make([]int64, 0, len(present))
	placed := make([][][]placed, 0, len(present))
	for _, j := range present {
		j.ending.set(j.message)
		started = append(started, j.ending.started)
		r.shareRequests(j)
		j.shareUnstated()
		j.message.MinResources = r.dimensions.message(j.minResources)
		j.restrictTasks()
		snapshot.Jobs = append(snapshot.Jobs, j.message)
		origins, placed = append(origins, j.written), append(placed, j.placed)
	}
	snapshot.LeftOuts = r.leftOut
	cluster := &Cluster{
		Account: r.Account, Snapshot: snapshot, Warnings: r.Warnings.All(), Nothing: len(r.given) == 0,
		Started: started, HasPods: len(r.pods) > 0 || r.Listed[podKind] || len(r.Faulty) > 0,
		jobs: origins, placed: placed,
	}
	for i := range r.queues {
		q := &r.queues[i]
		q.add(snapshot, &r.dimensions)
		cluster.queues = append(cluster.queues, q.written)
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		n.add(snapshot, &r.dimensions)
		cluster.nodes, cluster.candidates = append(cluster.nodes, n.written), append(cluster.candidates, n.candidate)
	}
	r.useByOthers()
	snapshot.Dimensions = r.dimensions.finish()
	return cluster, nil
}

// keptJobs gives priorities to the jobs whose queue exists, by namespace and name, and warns of the others.
func (r *reader) keptJobs(priorities *priorities) map[objects.Identity]*job {
	queues := make(map[string]bool, len(r.queues))
	for i := range r.queues {
		queues[r.queues[i].message.GetName()] = true
	}
	kept := make(map[objects.Identity]*job, len(r.jobs))
	for i := range r.jobs {
		j := &r.jobs[i]
		if !queues[j.message.Queue] {
			r.Warnings.Add(apportionv1.WarningCode_WARNING_CODE_DROPPED, j.queue.String,
				"PodGroup %s/%s is left out with its pods: there is no queue %q", j.message.Namespace, j.message.Name, j.message.Queue)
			r.leftOut = append(r.leftOut, &apportionv1.LeftOut{
				Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNKNOWN_QUEUE, Namespace: j.message.Namespace, Name: j.message.Name,
				Queue: j.message.Queue,
			})
			continue
		}
		j.message.Priority = priorities.of(j.priorityClass)
		kept[j.identity()] = j
	}
	return kept
}

// writeClasses writes into pods what the API server takes from their PriorityClasses: the priority, and that no task is evicted for them.
func (r *reader) writeClasses(priorities *priorities) {
	never := map[string]bool{}
	for _, class := range r.classes {
		if class.never && class.name != "" {
			never[class.name] = true
		}
	}
	for i := range r.pods {
		p := &r.pods[i]
		if never[p.task.GetDetail().GetPriorityClass()] && !p.policy && !p.terminated {
			p.task.Detail.NeverPreempts = true
		}
		if p.priority == nil && !p.ranked && !r.unopened {
			p.task.Priority = priorities.written(p.task)
		}
	}
}

// placePods makes each pod a task of its job, or usage of its node if it has no job in the snapshot.
func (r *reader) placePods(jobs map[objects.Identity]*job) {
	nodes := make(map[string]uint32, len(r.nodes))
	for i := range r.nodes {
		nodes[r.nodes[i].message.GetName()] = uint32(i)
	}
	groups := make(map[objects.Identity]bool, len(r.jobs))
	for i := range r.jobs {
		groups[r.jobs[i].identity()] = true
	}
	uids := make(map[string]bool, len(r.pods))
	var orphans, astray []*pod
	for i := range r.pods {
		p := &r.pods[i]
		group := objects.Identity{Namespace: p.namespace, Name: p.group}
		node, placed := nodes[p.node]
		if r.leaveOut(p, groups[group]) && p.foreign(r.schedulers) {
			continue
		}
		if p.node != "" && !placed && !p.terminated {
			astray = append(astray, p)
		}
		r.useClaims(p)
		if j := jobs[group]; j != nil && p.group != "" {
			uid := p.task.GetUid()
			if !r.Lenient || !uids[uid] {
				if placed {
					p.task.Node = &node
				}
				uids[uid] = uid != ""
				j.add(p)
				continue
			}
			of := objects.Identity{Kind: podKind, Namespace: p.namespace, Name: p.task.GetName()}
			r.Leave(of, p.written, "the uid %q is that of another pod", uid).Entity = p
		}
		if p.group != "" && !groups[group] {
			orphans = append(orphans, p)
		}
		if placed && !p.terminated {
			r.nodes[node].use(p.request)
			r.nodes[node].host(p.placed, p.task)
		}
	}
	r.warnOrphans(orphans)
	r.warnAstray(astray)
}

// leaveOut reports whether a waiting pod is not considered, and records it. hasGroup says whether its PodGroup exists. Volcano's
// cache drops waiting pods of other schedulers before they become tasks (the filter of its pod informer: responsibleForPod, or a node is
// set).
func (r *reader) leaveOut(p *pod, hasGroup bool) bool {
	if p.node != "" || p.task.GetStatus() != apportionv1.TaskStatus_TASK_STATUS_PENDING {
		return false
	}
	left := &apportionv1.LeftOut{Namespace: p.namespace, Name: p.task.GetName()}
	switch {
	case p.foreign(r.schedulers) || p.group == "" && p.scheduler == "":
		left.Cause, left.Job = apportionv1.LeftOutCause_LEFT_OUT_CAUSE_OTHER_SCHEDULER, p.group
		left.Scheduler = cmp.Or(p.scheduler, corev1.DefaultSchedulerName)
	case p.group == "":
		left.Cause = apportionv1.LeftOutCause_LEFT_OUT_CAUSE_NO_JOB
	case !hasGroup:
		left.Cause, left.Job = apportionv1.LeftOutCause_LEFT_OUT_CAUSE_MISSING_JOB, p.group
	default:
		return false
	}
	r.leftOut = append(r.leftOut, left)
	return true
}

// foreign reports whether a pod names a scheduler that is not among the given ones.
func (p *pod) foreign(schedulers []string) bool {
	return p.scheduler != "" && !slices.Contains(schedulers, p.scheduler)
}

// warnOrphans warns of pods whose PodGroup is not in the input.
func (r *reader) warnOrphans(orphans []*pod) {
	if len(orphans) == 0 {
		return
	}
	are, their := "pods are", "their PodGroups are"
	if len(orphans) == 1 {
		are, their = "pod is", "its PodGroup is"
	}
	first := orphans[0]
	r.Warnings.Add(apportionv1.WarningCode_WARNING_CODE_DROPPED, first.written.String,
		"%d %s left out because %s not in the input; the first is %s/%s", len(orphans), are, their, first.namespace, first.task.Name)
}

// warnAstray tells of pods on nodes that are not in the input although others are: their queues hold what the total does not contain.
func (r *reader) warnAstray(astray []*pod) {
	if len(astray) == 0 || len(r.nodes) == 0 {
		return
	}
	are := "pods are on nodes that are"
	if len(astray) == 1 {
		are = "pod is on a node that is"
	}
	first := astray[0]
	r.Warnings.Add(apportionv1.WarningCode_WARNING_CODE_TASKS_OFF_NODE, first.written.String,
		"%d %s not in the input; the first is %s/%s on node %s", len(astray), are, first.namespace, first.task.Name, first.node)
}

// add makes a pod a task of the group of its role.
func (j *job) add(p *pod) {
	group := j.group(p.role)
	group.Tasks = append(group.Tasks, p.task)
	i := j.groups[p.role]
	j.requests[i] = append(j.requests[i], p.request)
	j.placed[i] = append(j.placed[i], p.placed)
	j.unstated[i] = append(j.unstated[i], p.unstated)
	j.ending.add(p.run)
	if name := p.task.GetName(); p.owner != "" && (j.message.Owner == "" || j.charged != "" && name < j.charged) {
		j.message.Owner, j.charged = p.owner, name
	}
}

// shareUnstated says of each group what the containers of most of its tasks leave open; the other tasks say it themselves.
func (j *job) shareUnstated() {
	message := func(u unstatedCount) *apportionv1.Unstated {
		return &apportionv1.Unstated{Cpu: uint32(u.cpu), Memory: uint32(u.memory)}
	}
	for i, group := range j.message.Groups {
		var living []unstatedCount
		for k, u := range j.unstated[i] {
			if !ended(group.Tasks[k].GetStatus()) {
				living = append(living, u)
			}
		}
		shared := commonest(living)
		if shared != (unstatedCount{}) {
			group.Unstated = message(shared)
		}
		for k, u := range j.unstated[i] {
			if u == shared || ended(group.Tasks[k].GetStatus()) {
				continue
			}
			task := group.Tasks[k]
			if task.Detail == nil {
				task.Detail = &apportionv1.TaskDetail{}
			}
			task.Detail.Unstated = message(u)
		}
	}
}

// shareRequests gives each group the request that most of its tasks have, the earliest of several; the other tasks keep their own.
func (r *reader) shareRequests(j *job) {
	for i, group := range j.message.Groups {
		shared := commonest(j.requests[i])
		group.Request = r.dimensions.message(shared)
		for k, request := range j.requests[i] {
			if request == shared {
				continue
			}
			task := group.Tasks[k]
			if task.Detail == nil {
				task.Detail = &apportionv1.TaskDetail{}
			}
			task.Detail.Request = r.dimensions.message(request)
		}
	}
}
