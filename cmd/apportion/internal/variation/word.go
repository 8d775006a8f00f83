package variation

import (
	"iter"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/spelling"
)

// meantField returns the field that a part of NAME.FIELD probably refers to.
func meantField(rest string, known fields) string {
	for part := range strings.SplitSeq(rest, ".") {
		for field := range known {
			if like := spelling.Suggestion(part, slices.Values([]string{strings.TrimSuffix(field, ".")})); like != "" {
				return like
			}
		}
	}
	return ""
}

func list(names iter.Seq[string]) string { return strings.Join(slices.Sorted(names), ", ") }

// described lists fields as they are written.
func described(known fields) string {
	var names []string
	for field := range known {
		names = append(names, written(field, []string{"ROLE"}, []string{"RESOURCE"})...)
	}
	return list(slices.Values(names))
}

// written returns how a field is written for roles and resources.
func written(field string, roles, resources []string) []string {
	if !strings.HasSuffix(field, ".") {
		return []string{field}
	}
	if field != "role." {
		return after(field, resources)
	}
	var out []string
	for _, name := range roles {
		out = append(out, field+name+minimum)
		out = append(out, after(field+name+request, resources)...)
	}
	return out
}

// after returns the texts that begin with one and continue with each of others.
func after(begin string, others []string) []string {
	out := make([]string, len(others))
	for i := range others {
		out[i] = begin + others[i]
	}
	return out
}

// Completions returns the completions of --set for the shell.
func Completions(cluster *lookup.Snapshot) []string {
	var out []string
	add := func(kind, name string, roles ...string) {
		for field := range kinds[kind] {
			for _, one := range written(field, roles, cluster.GetDimensions()) {
				out = append(out, kind+"/"+name+"."+one+"=")
			}
		}
	}
	for _, queue := range cluster.GetQueues() {
		add("queue", queue.GetName())
		if queue.GetKueue() == nil || queue.GetKueue().GetCohort() {
			continue
		}
		for field := range clusterQueue {
			for _, one := range written(field, nil, quotas(cluster, queue.GetKueue())) {
				out = append(out, "clusterqueue/"+queue.GetName()+"."+one+"=")
			}
		}
	}
	for _, job := range cluster.GetJobs() {
		roles := names(job.GetGroups(), (*apportionv1.TaskGroup).GetRole)
		add("job", lookup.JobName(job), roles...)
		for _, one := range written("role.", roles, cluster.GetDimensions()) {
			out = append(out, "job/"+lookup.JobName(job)+strings.TrimPrefix(one, "role")+"=")
		}
	}
	for _, node := range cluster.GetNodes() {
		add("node", node.GetName())
	}
	slices.Sort(out)
	return out
}

// quotas returns what a ClusterQueue has quota of: RESOURCE, and RESOURCE@FLAVOR where several flavors have it.
func quotas(cluster *lookup.Snapshot, q *apportionv1.KueueQueue) []string {
	flavors := map[string][]string{}
	for _, o := range q.GetQuotas() {
		for _, d := range o.GetNominal().GetDimensions() {
			name := cluster.GetDimensions()[d]
			flavors[name] = append(flavors[name], name+"@"+o.GetNodeSet())
		}
	}
	var out []string
	for resource, of := range flavors {
		if len(of) == 1 {
			of = []string{resource}
		}
		out = append(out, of...)
	}
	return out
}

func names[T any](of []*T, name func(*T) string) []string {
	list := make([]string, len(of))
	for i := range of {
		list[i] = name(of[i])
	}
	slices.Sort(list)
	return list
}
