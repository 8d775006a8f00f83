package generate

import (
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Change returns a change that sets that many jobs of a snapshot, chosen by the seed: tasks that run finish, and tasks that wait run. The
// snapshot becomes the result, whose jobs the change shares.
func Change(s *apportionv1.Snapshot, jobs int, seed uint64) *apportionv1.Change {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: the same change for the same seed.
	chosen := random.Perm(len(s.GetJobs()))[:min(jobs, len(s.GetJobs()))]
	slices.Sort(chosen)
	change := &apportionv1.Change{}
	for _, i := range chosen {
		job := proto.CloneOf(s.GetJobs()[i])
		for _, g := range job.GetGroups() {
			for _, t := range g.GetTasks() {
				move(t, len(s.GetNodes()), random)
			}
		}
		s.Jobs[i] = job
		change.Jobs = append(change.Jobs, job)
	}
	return change
}

// move advances the status of a task by one step, or leaves it unchanged.
func move(t *apportionv1.Task, nodes int, random *rand.Rand) {
	if random.IntN(2) == 0 {
		return
	}
	switch t.GetStatus() {
	case apportionv1.TaskStatus_TASK_STATUS_RUNNING:
		t.Status = apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED
	case apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED, apportionv1.TaskStatus_TASK_STATUS_FAILED:
		t.Status, t.Node = apportionv1.TaskStatus_TASK_STATUS_PENDING, nil
	default:
		if nodes > 0 {
			t.Status, t.Node = apportionv1.TaskStatus_TASK_STATUS_RUNNING, new(uint32(random.IntN(nodes)))
		}
	}
}
