package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
)

// A version that takes more memory than there is would be refused, and the last one would stay until the tenant deletes pods.
func TestLargePodsOfATenantDoNotEndTheVersions(t *testing.T) {
	server, err := service.New(service.Options{Overload: admission.Options{Memory: setting.Bytes(8 << 20)}})
	require.NoError(t, err)
	held, kept := &volcanoStore{Objects: volcano.NewObjects()}, server.Keep("c", "", func(*apportionv1.SnapshotView) {})
	put := func(kind, format string, args ...any) {
		list := followed[kind]
		object, err := held.Read(list.Newest(), fmt.Appendf(nil, format, args...))
		require.NoError(t, err)
		held.Put(object)
	}
	put("queues", `{"metadata": {"name": "q"}}`)
	for i := range 4000 {
		namespace, role := "evil", fmt.Sprint(i, strings.Repeat("r", 4000))
		if i%100 == 0 {
			namespace, role = "good", "worker"
		}
		put("podgroups", `{"metadata": {"name": "j%d", "namespace": %q}, "spec": {"queue": "q"}}`, i, namespace)
		put("pods", `{"metadata": {"name": "p%d", "namespace": %q, "uid": "%d", "annotations": {"scheduling.k8s.io/group-name": "j%d",
			"volcano.sh/task-spec": %q}}, "spec": {"schedulerName": "volcano"}}`, i, namespace, i, i, role)
	}
	c, data, err := held.within([]volcano.Option{volcano.WithAsOf(time.Unix(1, 0))}, kept.Most(), nil)
	require.NoError(t, err)
	require.NoError(t, kept.Put(context.Background(), data, &apportionv1.SnapshotView{}))
	jobs := map[string]int{}
	for _, j := range c.Snapshot.GetJobs() {
		jobs[j.GetNamespace()]++
	}
	require.Equal(t, 40, jobs["good"])
	require.Greater(t, jobs["evil"], 600, "most of the memory is used")
	require.Len(t, c.Faulty, 4000-40-jobs["evil"])
}
