package lookup_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

func snapshot() *apportionv1.Snapshot {
	return &apportionv1.Snapshot{
		Queues: []*apportionv1.Queue{{Name: "research"}},
		Jobs: []*apportionv1.Job{
			{Name: "train", Namespace: "a", Groups: []*apportionv1.TaskGroup{{Tasks: []*apportionv1.Task{{Name: "train-0", Uid: "u0"}, {}}}}},
			{Name: "train", Namespace: "b", Groups: []*apportionv1.TaskGroup{{Tasks: []*apportionv1.Task{{Name: "only"}}}}},
		},
	}
}

func TestThingsAreFoundByEveryNameThatIsTheirs(t *testing.T) {
	s := lookup.Of(snapshot())
	for name, number := range map[string]uint32{"u0": 0, "a/train-0": 0, "train-0": 0, "b/only": 2, "only": 2} {
		found, err := s.Task(name)
		require.NoError(t, err, name)
		require.Equal(t, number, found, name)
	}
	require.Equal(t, "#1", s.TaskName(1), "a task without a name has its number")
	_, err := s.Job("train")
	require.EqualError(t, err, `more than one job is called "train": write namespace/name`)
	job, err := s.Job("b/train")
	require.NoError(t, err)
	require.Equal(t, uint32(1), job)
	require.Len(t, s.TasksOf(1), 1)
}

func TestANameThatIsNearlyRightIsOffered(t *testing.T) {
	s := lookup.Of(snapshot())
	_, err := s.Queue("reserch")
	require.EqualError(t, err, `no queue "reserch"; did you mean "research"?`)
	_, err = s.Queue("web")
	require.EqualError(t, err, `no queue "web"; queues are research`)
	_, err = s.Job("nope")
	require.EqualError(t, err, `no job "nope"; jobs are a/train, b/train`)
	_, err = lookup.Of(&apportionv1.Snapshot{}).Node("n")
	require.EqualError(t, err, `no node "n"; nodes are none`)
	_, err = s.Queue("")
	require.EqualError(t, err, "the name of the queue is missing")
}

func TestAnAddedJobLeavesTheFormerSnapshotAlone(t *testing.T) {
	before := lookup.Of(snapshot())
	after, index := before.With(&apportionv1.Job{Name: "new", Groups: []*apportionv1.TaskGroup{{Tasks: []*apportionv1.Task{{Name: "new-0"}}}}})
	require.Equal(t, uint32(2), index)
	number, err := after.Task("new-0")
	require.NoError(t, err)
	require.Equal(t, uint32(3), number)
	require.Equal(t, "new", after.JobName(2))
	_, err = before.Task("new-0")
	require.Error(t, err)
	require.Equal(t, "#2", before.JobName(2))
}

func TestANameOfWhichOnlyAPartIsKnownIsOffered(t *testing.T) {
	s := lookup.Of(snapshot())
	_, err := s.Queue("sear")
	require.EqualError(t, err, `no queue "sear"; did you mean "research"?`)
	_, err = s.Queue("se")
	require.EqualError(t, err, `no queue "se"; queues are research`)
}
