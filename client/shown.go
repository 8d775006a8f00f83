package client

import (
	"context"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// shown returns what the caller may see of a snapshot that the service maintains; nil: nothing.
func (c *Client) shown(ctx context.Context, name string) (*Upload, *apportionv1.SnapshotView) {
	inspect := &apportionv1.InspectStep{Nodes: true, Queues: true, Jobs: true, Tasks: true}
	response, err := again(ctx, c, KindUpload, func() (*apportionv1.SimulateResponse, error) {
		return c.remote.Simulate(ctx, &apportionv1.SimulateRequest{
			Input: &apportionv1.Input{
				Source: &apportionv1.Input_SnapshotName{SnapshotName: name}, Rule: &apportionv1.Input_Policy{Policy: &apportionv1.Policy{}},
			},
			Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Inspect{Inspect: inspect}}},
		})
	})
	if err != nil || len(response.GetAnswers()) != 1 || response.GetAnswers()[0].GetInspect() == nil {
		return nil, nil
	}
	seen := response.GetAnswers()[0].GetInspect()
	snapshot := &apportionv1.Snapshot{Dimensions: response.GetBasis().GetDimensions(), Total: seen.GetTotal(), Memory: seen.GetMemory()}
	for _, n := range seen.GetNodes() {
		snapshot.Nodes = put(snapshot.Nodes, n.GetNode(), &apportionv1.Node{
			Name: n.GetName(), Allocatable: n.GetAllocatable(), Group: n.Group, Unschedulable: n.GetUnschedulable(),
			UsedByOthers: n.GetUsed(),
		})
	}
	for _, q := range seen.GetQueues() {
		snapshot.Queues = put(snapshot.Queues, q.GetQueue(), q.GetSettings())
	}
	for _, j := range seen.GetJobs() {
		snapshot.Jobs = put(snapshot.Jobs, j.GetJob(), &apportionv1.Job{
			Uid: j.GetUid(), Name: j.GetName(), Namespace: j.GetNamespace(), Queue: nameAt(snapshot.GetQueues(), j.GetQueue()),
			Priority: j.GetPriority(), Phase: j.GetPhase(), MinAvailable: j.GetMinAvailable(), MinResources: j.GetMinResources(),
		})
	}
	for _, t := range seen.GetTasks() {
		if int(t.GetJob()) < len(snapshot.GetJobs()) {
			job := snapshot.GetJobs()[t.GetJob()]
			job.Groups = append(job.Groups, &apportionv1.TaskGroup{Role: t.GetRole(), Request: t.GetRequest(), Tasks: []*apportionv1.Task{
				{Uid: t.GetUid(), Name: t.GetName(), Status: t.GetStatus(), Node: t.Node, Priority: new(t.GetPriority())},
			}})
		}
	}
	return &Upload{snapshot: snapshot, digest: response.GetBasis().GetSnapshotDigest()}, response.GetBasis().GetView()
}

// furthest bounds the positions that an answer may name.
const furthest = 1 << 20

// put sets an entry at its position; those before it that are not known are empty.
func put[A any](list []*A, position uint32, entry *A) []*A {
	if position >= furthest {
		return list
	}
	for int(position) >= len(list) {
		list = append(list, new(A))
	}
	list[position] = entry
	return list
}

func nameAt(queues []*apportionv1.Queue, position uint32) string {
	if int(position) < len(queues) {
		return queues[position].GetName()
	}
	return ""
}
