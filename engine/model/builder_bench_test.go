package model_test

import (
	"fmt"
	"testing"

	"github.com/apportion/apportion/engine/model"
)

// BenchmarkBuild builds a cluster of 1,000 queues, 10,000 jobs and 100,000 tasks on 5,000 nodes, strings made beforehand.
func BenchmarkBuild(b *testing.B) {
	const queues, jobs, tasks, nodes = 1000, 10_000, 10, 5000
	var queueNames, jobNames, nodeNames, uids []string
	for i := range queues {
		queueNames = append(queueNames, fmt.Sprintf("queue-%04d", i))
	}
	for i := range jobs {
		jobNames = append(jobNames, fmt.Sprintf("job-%05d", i))
	}
	for i := range nodes {
		nodeNames = append(nodeNames, fmt.Sprintf("node-%04d", i))
	}
	for i := range jobs * tasks {
		uids = append(uids, fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761, i))
	}
	dims := []string{"cpu", "memory", "pods", "nvidia.com/gpu"}
	all := []uint32{0, 1, 2, 3}
	b.ReportAllocs()
	builder := model.NewBuilder(0)
	for b.Loop() {
		builder.Loader().Reset(0)
		builder.Dimensions(dims)
		for i := range nodes {
			builder.Node(model.NodeSpec{Name: nodeNames[i], Allocatable: &model.Amounts{Dimension: all, Amount: []float64{64000, 256 << 30, 110, 8000}}})
		}
		for i := range queues {
			builder.Queue(model.QueueSpec{Name: queueNames[i], Weight: uint32(i%7 + 1), Capability: &model.Amounts{Dimension: all[:2], Amount: []float64{1e6, 1e15}}})
		}
		for i := range jobs {
			builder.Job(model.JobSpec{Name: jobNames[i], Namespace: "team", Queue: queueNames[i%queues], MinAvailable: 1, MinResources: &model.Amounts{Dimension: all, Amount: []float64{1000, 1 << 30, 1, 0}}})
			builder.Group(model.GroupSpec{Role: "worker", Request: &model.Amounts{Dimension: all, Amount: []float64{float64(i%16) * 500, 1 << 30, 1, 1000}}})
			for k := range tasks {
				builder.Task(&model.TaskSpec{UID: uids[i*tasks+k], Status: model.Running, Node: model.NodeID((i*tasks + k) % nodes), Priority: 1, Index: int32(k), Preemptable: true})
			}
		}
		if _, err := builder.Build(); err != nil {
			b.Fatal(err)
		}
	}
}
