package generate

import (
	"strconv"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Crowd has one queue and jobs of tasks each, with names that are not in order.
func Crowd(jobs, tasks int) *apportionv1.Snapshot {
	snapshot := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"},
		Nodes:      []*apportionv1.Node{{Name: "n"}}, Queues: []*apportionv1.Queue{{Name: "q"}},
	}
	for j := range jobs {
		group := &apportionv1.TaskGroup{Role: "worker"}
		for k := range tasks {
			uid := strconv.Itoa((j*tasks+k)*7919%1_000_003) + "-" + strconv.Itoa(j) + "-" + strconv.Itoa(k)
			group.Tasks = append(group.Tasks, &apportionv1.Task{Uid: uid})
		}
		snapshot.Jobs = append(snapshot.Jobs, &apportionv1.Job{
			Uid: strconv.Itoa(j*7919%1_000_003) + "-" + strconv.Itoa(j), Queue: "q", Groups: []*apportionv1.TaskGroup{group},
		})
	}
	return snapshot
}
