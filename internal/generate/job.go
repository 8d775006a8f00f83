package generate

import (
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// addJobs adds jobs of one to three roles each. Most are small, and most run.
func (c *cluster) addJobs() {
	sizes := c.sizes()
	w := newWriter(c)
	c.out.Jobs = make([]*apportionv1.Job, len(sizes))
	for i, tasks := range sizes {
		c.out.Jobs[i] = w.job(i, tasks)
	}
}

// sizes returns how many tasks each job has; together they are all.
func (c *cluster) sizes() []int {
	r := c.random(sizePart)
	upTo := make([]int64, c.shape.Jobs)
	sum := int64(0)
	for i := range upTo {
		weight := r.between(2, 8)
		if r.chance(50) {
			weight *= 10
		}
		sum += int64(weight)
		upTo[i] = sum
	}
	sizes, given := make([]int, len(upTo)), int64(0)
	for i, x := range upTo {
		end := int64(c.shape.Tasks) * x / sum
		sizes[i] = int(end - given)
		given = end
	}
	return sizes
}

// writer writes jobs.
type writer struct {
	*cluster
	jobs, tasks, uids *source
	// unit is the request of a task of size 1.
	unit vector
	// pool and onNode store tasks and their nodes.
	pool   []apportionv1.Task
	onNode []uint32
}

// meanSize is the mean of the sizes of tasks that size draws.
const meanSize = 3

// newWriter returns a writer whose tasks, all running, would fill seven tenths of the cluster.
func newWriter(c *cluster) *writer {
	w := &writer{
		cluster: c, jobs: c.random(jobPart), tasks: c.random(taskPart), uids: c.random(uidPart),
		unit: vector{500, 2048 * mebibyte}, pool: make([]apportionv1.Task, c.shape.Tasks), onNode: make([]uint32, c.shape.Tasks),
	}
	if c.shape.Nodes > 0 && c.shape.Tasks > 0 {
		for d := range w.unit {
			x := c.total[d] / 10 * 7 / int64(c.shape.Tasks*meanSize)
			w.unit[d] = max(x/grain(d), 1) * grain(d)
		}
	}
	return w
}

// role is a task group in the making.
type role struct {
	name    string
	tasks   int
	request vector
}

func (w *writer) job(i, tasks int) *apportionv1.Job {
	r := w.jobs
	queue := w.leaves[r.below(len(w.leaves))]
	if r.chance(200) {
		queue = w.leaves[r.below(len(w.leaves)/20+1)]
	}
	job := &apportionv1.Job{
		Name: fmt.Sprintf("job-%06d", i), Namespace: fmt.Sprintf("team-%02d", queue%32), Queue: w.out.Queues[queue].Name,
		Phase: phase(r), CreateTime: asOf - int64(r.between(60, 600_000))*second,
	}
	if r.chance(5) {
		job.Namespace = "kube-system"
	}
	if r.chance(300) {
		job.Priority = []int32{100, 1000, 10_000}[r.below(3)]
	}
	roles := w.roles(tasks)
	w.minimum(job, roles)
	job.Groups = make([]*apportionv1.TaskGroup, len(roles))
	// Those that the gang needs come first, in all roles together, and run if the job does.
	needed := int(job.GetMinAvailable())
	perRole := r.chance(300)
	for k, role := range roles {
		first := min(needed, role.tasks)
		needed -= first
		group := &apportionv1.TaskGroup{Role: role.name, Request: role.request.resource()}
		if perRole {
			least := uint32(first)
			group.MinAvailable = &least
		}
		w.group(group, role, job, first)
		job.Groups[k] = group
	}
	return job
}

func phase(r *source) apportionv1.JobPhase {
	switch x := r.below(100); {
	case x < 82:
		return apportionv1.JobPhase_JOB_PHASE_RUNNING
	case x < 87:
		return apportionv1.JobPhase_JOB_PHASE_INQUEUE
	case x < 95:
		return apportionv1.JobPhase_JOB_PHASE_PENDING
	case x < 97:
		return apportionv1.JobPhase_JOB_PHASE_UNKNOWN
	default:
		return apportionv1.JobPhase_JOB_PHASE_COMPLETED
	}
}

// roles divides a job's tasks among its roles.
func (w *writer) roles(tasks int) []role {
	r := w.jobs
	accelerated := r.chance(120)
	worker := role{"worker", tasks, w.request(r, accelerated)}
	kind := r.below(10)
	switch {
	case kind < 6 || tasks < 4:
		return []role{worker}
	case kind < 9:
		worker.tasks--
		return []role{{"master", 1, w.request(r, false)}, worker}
	default:
		servers := tasks / 4
		worker.tasks -= servers + 1
		return []role{{"ps", servers, w.request(r, false)}, worker, {"evaluator", 1, w.request(r, accelerated)}}
	}
}

// request draws what a role asks for; a few ask for nothing.
func (w *writer) request(r *source, accelerated bool) vector {
	v := none(w.shape.Dimensions)
	size := int64([]int{1, 1, 2, 2, 2, 2, 4, 4, 4, 8}[r.below(10)])
	if r.chance(15) {
		return v
	}
	for d, unit := range w.unit {
		x := size * unit
		if w.largest != nil {
			x = min(x, max(w.largest[d]/grain(d)*grain(d), grain(d)))
		}
		v[d] = x
	}
	v.set(pods, 1)
	if accelerated && len(w.accelerated) > 0 {
		v.set(gpu, int64(1000<<r.below(3)))
	}
	if r.chance(50) {
		v.set(storage, int64(r.between(1, 20))*1024*mebibyte)
	}
	if n := len(v) - device; n > 0 && r.chance(100) {
		v[device+r.below(n)] = 1000
	}
	return v
}

// minimum draws how many tasks a job needs, and writes what these ask for.
func (w *writer) minimum(job *apportionv1.Job, roles []role) {
	r, tasks := w.jobs, 0
	for _, role := range roles {
		tasks += role.tasks
	}
	switch x := r.below(10); {
	case x < 2:
	case x < 7:
		job.MinAvailable = uint32(tasks)
	default:
		job.MinAvailable = uint32(r.between(min(tasks, 1), tasks))
	}
	if r.chance(150) {
		return
	}
	sum, left := none(w.shape.Dimensions), int(job.GetMinAvailable())
	sum.set(cpu, 0)
	for _, role := range roles {
		n := min(left, role.tasks)
		left -= n
		if n > 0 {
			sum.add(role.request, int64(n))
		}
	}
	job.MinResources = sum.resource()
}
