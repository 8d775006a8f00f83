package client_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
)

// mirrored returns a mirror of so many tasks and the uids of all that run, each with its node.
func mirrored(b *testing.B, tasks int) (m *client.Mirror, uids, nodes []string, whole *apportionv1.Snapshot) {
	b.Helper()
	shape := generate.Standard()
	shape.Jobs, shape.Tasks, shape.UIDs = tasks/10, tasks, true
	whole = generate.Snapshot(shape)
	m = client.NewMirror(client.InProcess())
	require.NoError(b, m.Replace(whole))
	for _, job := range whole.GetJobs() {
		for _, group := range job.GetGroups() {
			for _, task := range group.GetTasks() {
				if task.GetUid() != "" && task.Node != nil {
					uids, nodes = append(uids, task.GetUid()), append(nodes, whole.GetNodes()[task.GetNode()].GetName())
				}
			}
		}
	}
	return m, uids, nodes, whole
}

// What a mirror pays for 100 tasks that changed: setting them, taking a State, and encoding the change of the State before; beside that the
// encoding of the whole.
func BenchmarkMirrorOfHundredTasksChanged(b *testing.B) {
	for _, tasks := range []int{10_000, 100_000, 1_000_000} {
		m, uids, nodes, whole := mirrored(b, tasks)
		b.Run(fmt.Sprintf("change/tasks=%d", tasks), func(b *testing.B) {
			b.ReportAllocs()
			var bytes int
			state := m.State()
			_, at := state.Encode()
			statuses := []apportionv1.TaskStatus{apportionv1.TaskStatus_TASK_STATUS_RELEASING, apportionv1.TaskStatus_TASK_STATUS_RUNNING}
			n := 0
			for b.Loop() {
				for i := range 100 {
					k := i * (len(uids) / 100)
					if err := m.SetTask(uids[k], statuses[n%2], nodes[k]); err != nil {
						b.Fatal(err)
					}
				}
				n++
				next := m.State()
				bytes = len(next.Change(state, at))
				state = next
			}
			b.ReportMetric(float64(bytes), "change-B")
		})
		b.Run(fmt.Sprintf("whole/tasks=%d", tasks), func(b *testing.B) {
			b.ReportAllocs()
			var bytes int
			for b.Loop() {
				data, _ := m.State().Encode()
				bytes = len(data)
			}
			b.ReportMetric(float64(bytes), "whole-B")
		})
		b.Run(fmt.Sprintf("proto.Marshal/tasks=%d", tasks), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := proto.Marshal(whole); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a mirror keeps for a task.
func BenchmarkMirrorMemory(b *testing.B) {
	const tasks = 100_000
	for b.Loop() {
		_, _, _, whole := mirrored(b, tasks)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := client.NewMirror(client.InProcess())
		require.NoError(b, m.Replace(whole))
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/tasks, "B/task")
		runtime.KeepAlive(m)
		runtime.KeepAlive(whole)
	}
}
