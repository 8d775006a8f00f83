package model_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

func TestExtensionsOfExtensionsFindTheirNamesAndKeepNothingElse(t *testing.T) {
	b := model.NewBuilder(0)
	b.Queue(model.QueueSpec{Name: "q"})
	addJob(b, "first", 100_000)
	m, err := b.Build()
	require.NoError(t, err)
	for i := range 100 {
		b := m.Change(nil)
		addJob(&b.Builder, "more-"+strconv.Itoa(i), 1)
		m, err = b.Build()
		require.NoError(t, err)
	}
	for uid, want := range map[string]model.JobID{"first": 0, "more-0": 1, "more-99": 100} {
		j, ok := m.Job(uid)
		require.True(t, ok, uid)
		require.Equal(t, want, j)
		task, ok := m.TaskOf(uid + "-0")
		require.True(t, ok, uid)
		require.Equal(t, m.Jobs.At(j).FirstTask, task)
	}
	_, ok := m.Job("more-100")
	require.False(t, ok)

	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	require.Less(t, memory.HeapAlloc, uint64(100<<20), "a hundred copies of a hundred thousand tasks would be a gigabyte")
	runtime.KeepAlive(m)

	twice := m.Change(nil)
	addJob(&twice.Builder, "more-3", 1)
	twice.RemoveJob("more-3")
	_, err = twice.Build()
	require.ErrorContains(t, err, `jobs[0].uid: job "more-3" is remove_jobs[0] already`)
}

func addJob(b *model.Builder, uid string, tasks int) {
	b.Job(model.JobSpec{UID: uid, Queue: "q"})
	b.Group(model.GroupSpec{})
	for i := range tasks {
		b.Task(&model.TaskSpec{UID: uid + "-" + strconv.Itoa(i), Node: model.None, Index: -1})
	}
}

func TestTasksOfAJobThatIsSetAgainShareTheirTexts(t *testing.T) {
	b := model.NewBuilder(0)
	b.Queue(model.QueueSpec{Name: "q"})
	addJob(b, "again", 1000)
	addJob(b, "new", 1)
	m, err := b.Build()
	require.NoError(t, err)
	own := func(from *model.Model, tasks int) int {
		b := from.Change(nil)
		addJob(&b.Builder, "again", tasks)
		addJob(&b.Builder, "new", 2)
		next, err := b.Build()
		require.NoError(t, err)
		for _, uid := range []string{"again-0", "again-" + strconv.Itoa(tasks-1), "new-0", "new-1"} {
			task, ok := next.TaskOf(uid)
			require.True(t, ok, uid)
			require.Equal(t, uid, next.TaskUID(task))
			require.True(t, next.HasTask(task))
		}
		return next.Own.Bytes
	}
	// Each uid that is new takes about 10 bytes.
	require.Less(t, own(m, 1000), own(m, 2000)-10_000)
}
