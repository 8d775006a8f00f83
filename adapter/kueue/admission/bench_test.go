package admission

import (
	"fmt"
	"log/slog"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

// largeCluster is a cluster of queues with five flavors of their own each and 9 CPUs of quota on them, which nine Workloads use and a tenth
// one waits for, in cohorts of 20.
type largeCluster struct {
	c    *Controller
	made int
}

const largeVersion = group + "/v1beta2"

// put makes an object known.
func (l *largeCluster) put(kind, namespace, name string, spec, status map[string]any) {
	l.made++
	meta := map[string]any{
		"name": name, "uid": "u-" + name, "resourceVersion": strconv.Itoa(l.made), "creationTimestamp": morning.Format(time.RFC3339),
	}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": largeVersion, "kind": kind, "metadata": meta}}
	if spec != nil {
		u.Object["spec"] = spec
	}
	if status != nil {
		u.Object["status"] = status
	}
	l.c.cluster.put(kind, largeVersion, u)
}

func flavorOf(queue, i int) string { return "flavor-" + strconv.Itoa(5*queue+i) }

func (l *largeCluster) queue(q int) {
	var flavors []any
	for i, quota := range []string{"2", "2", "2", "2", "1"} {
		l.put("ResourceFlavor", "", flavorOf(q, i), nil, nil)
		flavors = append(flavors, map[string]any{
			"name": flavorOf(q, i), "resources": []any{map[string]any{"name": "cpu", "nominalQuota": quota}},
		})
	}
	name := "queue-" + strconv.Itoa(q)
	l.put("ClusterQueue", "", name, map[string]any{
		"cohortName": "cohort-" + strconv.Itoa(q/20), "namespaceSelector": map[string]any{},
		"admissionChecksStrategy": map[string]any{"admissionChecks": []any{map[string]any{"name": "apportion"}}},
		"resourceGroups":          []any{map[string]any{"coveredResources": []any{"cpu"}, "flavors": flavors}},
	}, nil)
	l.put("LocalQueue", name, "main", map[string]any{"clusterQueue": name}, nil)
}

// workload makes a Workload of a CPU. state is that of its check; "": Kueue has reserved no quota for it.
func (l *largeCluster) workload(q, i int, state string) {
	queue := "queue-" + strconv.Itoa(q)
	spec := map[string]any{"queueName": "main", "priority": int64(i % 3), "podSets": []any{map[string]any{
		"name": "main", "count": int64(1), "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}},
		}}},
	}}}
	at, status := morning.Format(time.RFC3339), map[string]any{}
	if state != "" {
		status = map[string]any{
			"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "True", "lastTransitionTime": at}},
			"admission": map[string]any{"clusterQueue": queue, "podSetAssignments": []any{map[string]any{
				"name": "main", "count": int64(1), "flavors": map[string]any{"cpu": flavorOf(q, i%5)}, "resourceUsage": map[string]any{"cpu": "1"},
			}}},
			"admissionChecks": []any{map[string]any{"name": "apportion", "state": state, "message": "", "lastTransitionTime": at}},
		}
	}
	l.put(workloadKind, queue, fmt.Sprintf("workload-%d-%d", q, i), spec, status)
}

// large returns a cluster of queues.
func large(b *testing.B, queues int) *largeCluster {
	b.Helper()
	s, err := ReadSettings(nil)
	require.NoError(b, err)
	clients := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "events.k8s.io", Version: "v1", Resource: "events"}: "EventList",
	})
	c, err := New(s, nil, clients, slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	c.version = "v1beta2"
	c.now = func() time.Time { return morning }
	l := &largeCluster{c: c}
	l.put("AdmissionCheck", "", "apportion", map[string]any{"controllerName": ControllerName}, map[string]any{
		"conditions": []any{map[string]any{"type": "Active", "status": "True", "observedGeneration": int64(0)}},
	})
	for q := range queues {
		l.queue(q)
		for i := range 9 {
			l.workload(q, i, stateReady)
		}
		l.workload(q, 9, "")
	}
	return l
}

// BenchmarkDecision decides in a cluster of 5,000 flavors, 1,000 queues and 10,000 Workloads, of which 1,000 wait: after one has come or
// gone, and where nothing has changed, as every two seconds while some wait.
func BenchmarkDecision(b *testing.B) {
	l := large(b, 1000)
	gone := false
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"change", func() {
			if gone = !gone; gone {
				l.c.cluster.remove(workloadKind, "queue-7/workload-7-3")
			} else {
				l.workload(7, 3, stateReady)
			}
		}},
		{"nothing", func() {}},
	} {
		b.Run(c.name, func(b *testing.B) {
			decide := func() {
				c.change()
				waits, err := l.c.once(b.Context())
				require.NoError(b, err)
				require.True(b, waits)
			}
			decide()
			before := processorTime()
			for b.Loop() {
				decide()
			}
			b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
