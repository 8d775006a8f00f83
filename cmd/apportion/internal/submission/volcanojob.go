package submission

import "fmt"

// volcanoJob reads a Job of Volcano, whose controller makes a PodGroup of the same name.
func (w *workload) volcanoJob() ([]*group, error) {
	var job struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			Queue             string `json:"queue"`
			MinAvailable      *int32 `json:"minAvailable"`
			PriorityClassName string `json:"priorityClassName"`
			Tasks             []struct {
				Name         string   `json:"name"`
				Replicas     *int32   `json:"replicas"`
				MinAvailable *int32   `json:"minAvailable"`
				Template     template `json:"template"`
			} `json:"tasks"`
		} `json:"spec"`
	}
	if err := w.decode(&job, &job.Metadata); err != nil {
		return nil, err
	}
	g := &group{
		name: job.Metadata.Name, namespace: job.Metadata.Namespace, queue: job.Spec.Queue, priorityClass: job.Spec.PriorityClassName,
	}
	total := int32(0)
	for i := range job.Spec.Tasks {
		t := &job.Spec.Tasks[i]
		if t.Name == "" {
			t.Name = fmt.Sprintf("default%d", i)
		}
		set := podSet{role: t.Name, name: g.name + "-" + t.Name, replicas: or(t.Replicas, 1), template: t.Template}
		if err := w.replicasAt(fmt.Sprintf("spec.tasks[%d].replicas", i), set.replicas); err != nil {
			return nil, err
		}
		set.minimum = new(or(t.MinAvailable, set.replicas))
		g.sets = append(g.sets, set)
		total += set.replicas
	}
	g.minMember = or(job.Spec.MinAvailable, total)
	g.countTasks()
	return []*group{g}, nil
}

// countTasks counts the pods whose resources Volcano's controller writes as the minimum: those of each task's minimum, then further pods in
// the order of the tasks until the job's minimum is reached; or just the job's first pods if the tasks' minima are more than the job's.
func (g *group) countTasks() {
	total := int32(0)
	for i := range g.sets {
		total += *g.sets[i].minimum
	}
	left := g.minMember
	if left >= total {
		for i := range g.sets {
			g.sets[i].counted = *g.sets[i].minimum
			left -= g.sets[i].counted
		}
	}
	g.countFirst(left)
}

// countFirst counts this number of further pods, in the order of the sets.
func (g *group) countFirst(left int32) {
	for i := range g.sets {
		set := &g.sets[i]
		more := max(0, min(left, set.replicas-set.counted))
		set.counted += more
		left -= more
	}
}
