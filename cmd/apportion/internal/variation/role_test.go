package variation

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// TestTheWordRoleMayBeLeftOut where the job has the role.
func TestTheWordRoleMayBeLeftOut(t *testing.T) {
	cluster := &named{
		queues: [2]string{"queue-1", "queue-2"}, jobs: [2]string{"job.1", "job-2"}, roles: [2]string{"worker.1", "request"},
		nodes: [2]string{"node-1", "node-2"}, dimensions: [2]string{"example.com/a", "example.com/b"},
	}
	for _, field := range []string{
		"worker.1.request.cpu=1", "worker.1.minAvailable=1", "request.request.example.com/a=2", `"worker.1".request.cpu=1`,
	} {
		want, err := of(t, []string{"--set", "job/job.1.role." + field}).Of(cluster.cluster(), nil)
		require.NoError(t, err, field)
		got, err := of(t, []string{"--set", "job/ns/job.1." + field}).Of(cluster.cluster(), nil)
		require.NoError(t, err, field)
		require.True(t, proto.Equal(want.Change, got.Change), field)
	}
	for _, field := range []string{"worker.2.request.cpu=1", "worker.1.request=1", "worker.1.=1", "=1", ".=1"} {
		_, err := of(t, []string{"--set", "job/job.1." + field}).Of(cluster.cluster(), nil)
		require.ErrorContains(t, err, "a job has no such field", field)
	}
}
