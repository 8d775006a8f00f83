package submission

import (
	"fmt"
	"strconv"
)

// plainGroup is the PodGroup that Volcano's podgroup controller makes for the pods of one owner (buildPodGroupFromPod): at least one pod,
// or as many as the owner's annotation says, in the queue that the pods' annotation names.
func plainGroup(name string, owner metadata, replicas int32, t *template) *group {
	minimum := int32(1)
	if n, err := strconv.ParseInt(owner.Annotations[minMemberKey], 10, 32); err == nil && n >= 0 {
		minimum = int32(n)
	}
	class, _ := t.Spec["priorityClassName"].(string)
	return &group{
		name: name, namespace: owner.Namespace, queue: t.Metadata.Annotations[queueKey], priorityClass: class, minMember: minimum,
		sets: []podSet{{
			role: t.Metadata.Annotations[roleKey], name: name, replicas: replicas, template: *t, counted: minimum,
		}},
	}
}

// replicas reads a Deployment, ReplicaSet or StatefulSet. A Deployment hands its annotations on to its ReplicaSet.
func (w *workload) replicas() ([]*group, error) {
	w.unscheduled = true
	var d struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			Replicas *int32   `json:"replicas"`
			Template template `json:"template"`
		} `json:"spec"`
	}
	if err := w.decode(&d, &d.Metadata); err != nil {
		return nil, err
	}
	replicas := or(d.Spec.Replicas, 1)
	if err := w.replicasAt("spec.replicas", replicas); err != nil {
		return nil, err
	}
	if err := w.needTemplate("spec.template", &d.Spec.Template); err != nil {
		return nil, err
	}
	return []*group{plainGroup(d.Metadata.Name, d.Metadata, replicas, &d.Spec.Template)}, nil
}

// jobSpec contains the fields of the specification of a Job of Kubernetes that are read.
type jobSpec struct {
	Parallelism *int32   `json:"parallelism"`
	Completions *int32   `json:"completions"`
	Template    template `json:"template"`
}

// atOnce returns the number of pods of a Job that run at the same time.
func (s *jobSpec) atOnce() int32 {
	parallel := or(s.Parallelism, 1)
	return min(parallel, or(s.Completions, parallel))
}

// check finds faults of a Job's specification, whose path is given.
func (s *jobSpec) check(w *workload, path string) error {
	for _, n := range []struct {
		key   string
		value *int32
	}{{"parallelism", s.Parallelism}, {"completions", s.Completions}} {
		if err := w.replicasAt(path+"."+n.key, or(n.value, 0)); err != nil {
			return err
		}
	}
	return w.needTemplate(path+".template", &s.Template)
}

// batchJob reads a Job of Kubernetes.
func (w *workload) batchJob() ([]*group, error) {
	w.unscheduled = true
	var job struct {
		Metadata metadata `json:"metadata"`
		Spec     jobSpec  `json:"spec"`
	}
	if err := w.decode(&job, &job.Metadata); err != nil {
		return nil, err
	}
	if err := job.Spec.check(w, "spec"); err != nil {
		return nil, err
	}
	return []*group{plainGroup(job.Metadata.Name, job.Metadata, job.Spec.atOnce(), &job.Spec.Template)}, nil
}

// jobSet reads a JobSet, which makes Jobs of Kubernetes: each has a PodGroup of its own.
func (w *workload) jobSet() ([]*group, error) {
	w.unscheduled = true
	var set struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			ReplicatedJobs []struct {
				Name     string `json:"name"`
				Replicas *int32 `json:"replicas"`
				Template struct {
					Metadata metadata `json:"metadata"`
					Spec     jobSpec  `json:"spec"`
				} `json:"template"`
			} `json:"replicatedJobs"`
		} `json:"spec"`
	}
	if err := w.decode(&set, &set.Metadata); err != nil {
		return nil, err
	}
	var groups []*group
	for i := range set.Spec.ReplicatedJobs {
		replicated := &set.Spec.ReplicatedJobs[i]
		path := fmt.Sprintf("spec.replicatedJobs[%d]", i)
		if err := replicated.Template.Spec.check(w, path+".template.spec"); err != nil {
			return nil, err
		}
		replicas := or(replicated.Replicas, 1)
		if replicas < 0 || int(replicas)+len(groups) > maxGroups {
			return nil, w.fault(path+".replicas", "more than %d Jobs, or fewer than 0", maxGroups)
		}
		owner := metadata{Namespace: set.Metadata.Namespace, Annotations: replicated.Template.Metadata.Annotations}
		for k := range replicas {
			name := fmt.Sprintf("%s-%s-%d", set.Metadata.Name, replicated.Name, k)
			groups = append(groups, plainGroup(name, owner, replicated.Template.Spec.atOnce(), &replicated.Template.Spec.Template))
		}
	}
	if len(groups) == 0 {
		return nil, w.fault("spec.replicatedJobs", "no Job is in it")
	}
	return groups, nil
}
