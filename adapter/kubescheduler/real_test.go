//go:build cluster

package kubescheduler_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha1 "k8s.io/api/scheduling/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/apportion/apportion/adapter/test/apiserver"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var (
	scaleNodes = flag.Int("nodes", 500, "nodes of the measurement")
	scalePods  = flag.Int("pods", 1000, "pods of the measurement")
)

const (
	gangLabel    = "scheduling.x-k8s.io/pod-group"
	minimumLabel = "pod-group.scheduling.sigs.k8s.io/min-available"
	whole        = 10 * time.Second
)

func gang(name, queue, cpu string, size int) (pods []*corev1.Pod) {
	for i := range size {
		pods = append(pods, podOf(fmt.Sprintf("%s-%d", name, i), queue, cpu, gangLabel, name, minimumLabel, fmt.Sprint(size)))
	}
	return pods
}

// watchGangs returns a function that ends the watch and returns the gangs that were partly bound for longer than it takes to bind a gang.
func (c *realCluster) watchGangs(size map[string]int) func() []string {
	ctx, cancel := context.WithCancel(c.t.Context())
	done, partly, since := make(chan struct{}), []string{}, map[string]time.Time{}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			bound := c.bound(gangLabel) //nolint:contextcheck // It ends with the test.
			for name, least := range size {
				switch {
				case bound[name] == 0 || bound[name] >= least:
					delete(since, name)
				case since[name].IsZero():
					since[name] = time.Now()
				case time.Since(since[name]) > whole:
					partly = append(partly, fmt.Sprintf("%s: %d of %d", name, bound[name], least))
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() []string {
		cancel()
		<-done
		return partly
	}
}

func TestRealSchedulerStartsGangsWhole(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(3)
	c.schedule(map[string]any{"queues": c.queues(map[string]int{"a": 1, "b": 1}), "evict": "none", "permitTimeout": "5s"})
	size := map[string]int{}
	for i := range 3 {
		for _, g := range []struct {
			name, queue, cpu string
			size             int
		}{{fmt.Sprintf("eight-%d", i), "a", "2", 8}, {fmt.Sprintf("sixteen-%d", i), "b", "1", 16}} {
			size[g.name] = g.size
			c.create(gang(g.name, g.queue, g.cpu, g.size)...)
		}
	}
	_, err := c.clients.SchedulingV1alpha1().Workloads("default").Create(t.Context(), &schedulingv1alpha1.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "native"},
		Spec: schedulingv1alpha1.WorkloadSpec{PodGroups: []schedulingv1alpha1.PodGroup{{
			Name: "workers", Policy: schedulingv1alpha1.PodGroupPolicy{Gang: &schedulingv1alpha1.GangSchedulingPolicy{MinCount: 8}},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	size["native"] = 8
	for i := range 8 {
		p := podOf(fmt.Sprintf("native-%d", i), "a", "2", gangLabel, "native")
		p.Spec.WorkloadRef = &corev1.WorkloadReference{Name: "native", PodGroup: "workers"}
		c.create(p)
	}
	c.create(podOf("free", "", "1"))

	partly := c.watchGangs(size)
	ran := map[string]bool{}
	require.Eventually(t, func() bool {
		bound := c.bound(gangLabel)
		for name, least := range size {
			if bound[name] < least {
				continue
			}
			// It has run: it ends and leaves its room.
			ran[name] = true
			zero := int64(0)
			for _, p := range c.pods() {
				if p.Labels[gangLabel] == name {
					_ = c.clients.CoreV1().Pods("default").Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
				}
			}
		}
		return len(ran) == len(size)
	}, time.Minute, 100*time.Millisecond, "%v", ran)
	require.Empty(t, partly())
	require.Equal(t, map[string]int{"": 1}, c.bound(gangLabel), "the pod without a queue runs")
}

func TestRealSchedulerGivesQueuesTheirShares(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(30)
	weights := map[string]int{"a": 1, "b": 2, "c": 3}
	snapshot := client.NewSnapshot()
	for i := range 30 {
		snapshot.Node(client.Node{Name: fmt.Sprintf("n%d", i), Allocatable: client.Resources{"cpu": "8", "memory": "64Gi", "pods": "110"}})
	}
	var pods []*corev1.Pod
	for name, weight := range weights {
		snapshot.Queue(client.Queue{Name: name, Weight: uint32(weight)})
		for i := range map[string]int{"a": 166, "b": 167, "c": 167}[name] {
			pods = append(pods, podOf(fmt.Sprintf("%s-%d", name, i), name, "1"))
			snapshot.Job(client.Job{
				Name: fmt.Sprintf("%s-%d", name, i), Queue: name, Phase: apportionv1.JobPhase_JOB_PHASE_INQUEUE, MinAvailable: 1,
				Groups: []client.Group{{Request: client.Resources{"cpu": "1", "pods": "1"}, Tasks: []client.Task{{}}}},
			})
		}
	}
	policy, ok := client.Preset("fair")
	require.True(t, ok)
	built, err := snapshot.Build()
	require.NoError(t, err)
	shares, err := client.InProcess().Shares(t.Context(), client.Input{Snapshot: built, Policy: policy}, client.SharesQuestion{})
	require.NoError(t, err)

	c.create(pods...)
	c.schedule(map[string]any{"queues": c.queues(weights)})
	want := map[string]int{}
	for name := range weights {
		share, ok := shares.Queue(name)
		require.True(t, ok)
		amount := resource.MustParse(share.Deserved["cpu"])
		want[name] = int(amount.Value())
	}
	require.Eventually(t, func() bool { return maps.Equal(want, c.bound("apportion.dev/queue")) }, time.Minute, 200*time.Millisecond)
	time.Sleep(3 * time.Second)
	require.Equal(t, want, c.bound("apportion.dev/queue"), "the cluster is at rest")
	t.Logf("bound by queue, as fair divides: %v", want)

	t.Run("a pod that waits says why", func(t *testing.T) {
		require.Eventually(t, func() bool {
			list, err := c.clients.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return false
			}
			for _, e := range list.Items {
				if strings.HasPrefix(e.InvolvedObject.Name, "a-") && strings.Contains(e.Message, "waits") {
					t.Log(e.Reason, e.Message)
					return true
				}
			}
			return false
		}, 30*time.Second, time.Second)
		conditions := 0
		for _, p := range c.pods() {
			for _, condition := range p.Status.Conditions {
				if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Message != "" {
					conditions++
				}
			}
		}
		require.Positive(t, conditions)
	})
}

func TestRealSchedulerReclaimsByPlan(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(2)
	c.schedule(map[string]any{"queues": c.queues(map[string]int{"a": 1, "b": 1})})
	var pods []*corev1.Pod
	for i := range 16 {
		pods = append(pods, podOf(fmt.Sprintf("a-%d", i), "a", "1"))
	}
	c.create(pods...)
	require.Eventually(t, func() bool { return c.bound("apportion.dev/queue")["a"] == 16 }, time.Minute, 100*time.Millisecond)
	c.create(gang("claim", "b", "1", 8)...)
	partly := c.watchGangs(map[string]int{"claim": 8})
	require.Eventually(t, func() bool { return c.bound("apportion.dev/queue")["b"] == 8 }, time.Minute, 100*time.Millisecond)
	require.Empty(t, partly())
	require.Equal(t, map[string]int{"a": 8, "b": 8}, c.bound("apportion.dev/queue"), "no more pods are evicted than needed")
	require.Eventually(t, func() bool {
		list, err := c.clients.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		said := 0
		for _, e := range list.Items {
			if e.Reason == "Preempted" {
				said++
				t.Log(e.InvolvedObject.Name, e.Message)
			}
		}
		return said == 8
	}, 20*time.Second, time.Second)
}

// serve starts the service of Apportion.
func (c *realCluster) serve(address string) *exec.Cmd {
	c.t.Helper()
	return apiserver.Begin(c.t, c.Directory, program(c.t, "APPORTION"), "serve", "--listen", address)
}

func TestRealSchedulerGoesOnAfterEverythingWasKilled(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.nodes(20)
	address := "127.0.0.1:" + apiserver.Port(t)
	service := c.serve(address)
	arguments := map[string]any{
		"queues": c.queues(map[string]int{"a": 1, "b": 1}), "server": address, "plaintext": true, "fallback": "closed", "deadline": "2s",
	}
	c.schedule(arguments)
	size := map[string]int{}
	more := func(round int) {
		for i := range 4 {
			name := fmt.Sprintf("g%d-%d", round, i)
			size[name] = 4
			c.create(gang(name, []string{"a", "b"}[i%2], "1", 4)...)
		}
		for i := range 10 {
			c.create(podOf(fmt.Sprintf("s%d-%d", round, i), []string{"a", "b"}[i%2], "1"))
		}
	}
	placed := map[string]string{}
	check := func() int {
		count := 0
		for _, p := range c.pods() {
			if p.Spec.NodeName != "" {
				count++
				if before := placed[p.Name]; before != "" && before != p.Spec.NodeName {
					t.Errorf("%s was bound to %s and to %s", p.Name, before, p.Spec.NodeName)
				}
				placed[p.Name] = p.Spec.NodeName
			}
		}
		return count
	}
	all := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool { return check() == want }, 2*time.Minute, 100*time.Millisecond)
		for name, least := range size {
			require.Equal(t, least, c.bound(gangLabel)[name], name)
		}
		use := map[string]int{}
		for _, node := range placed {
			use[node]++
		}
		for node, pods := range use {
			require.LessOrEqual(t, pods, 8, node)
		}
	}
	more(0)
	time.Sleep(150 * time.Millisecond)
	apiserver.Kill(t, c.Process)
	time.Sleep(2 * time.Second)
	c.BeginServer(t)
	all(26)
	t.Log("the API server was killed while pods were bound: all run")

	apiserver.Kill(t, service)
	more(1)
	time.Sleep(4 * time.Second)
	require.Equal(t, 26, check(), "closed: nothing is placed without a decision")
	service = c.serve(address)
	all(52)
	t.Log("Apportion was killed and came back: all run")

	more(2)
	time.Sleep(250 * time.Millisecond)
	apiserver.Kill(t, c.scheduler)
	apiserver.Kill(t, c.Process)
	apiserver.Kill(t, service)
	c.BeginServer(t)
	c.serve(address)
	c.schedule(arguments)
	all(78)
	t.Log("all three were killed: all run")
}

func TestRealSchedulerRefusesABadConfiguration(t *testing.T) {
	c := startCluster(t)
	c.schedule(map[string]any{"fallback": "maybe"})
	require.Error(t, c.scheduler.Wait())
	require.Contains(t, strings.ReplaceAll(c.said(), `\`, ""),
		`queues: the path of a file of Queue manifests is required; fallback: "maybe" is none of engine, closed, open`)
}

// TestRealSchedulerMeasured compares pods per second with and without the plugin: pods that all fit wait when the scheduler starts.
func TestRealSchedulerMeasured(t *testing.T) {
	for _, with := range []bool{false, true} {
		t.Run(fmt.Sprintf("plugin=%v", with), func(t *testing.T) {
			c := startCluster(t)
			c.nodes(*scaleNodes)
			var pods []*corev1.Pod
			for i := range *scalePods {
				pods = append(pods, podOf(fmt.Sprintf("p%d", i), fmt.Sprintf("q%d", i%10), "1"))
			}
			c.create(pods...)
			var arguments map[string]any
			if with {
				weights := map[string]int{}
				for i := range 10 {
					weights[fmt.Sprintf("q%d", i)] = 1
				}
				arguments = map[string]any{"queues": c.queues(weights)}
			}
			c.schedule(arguments)
			var first time.Time
			start := time.Now()
			require.Eventually(t, func() bool {
				bound := 0
				for _, count := range c.bound("") {
					bound += count
				}
				if bound > 0 && first.IsZero() {
					first = time.Now()
				}
				return bound == *scalePods
			}, 10*time.Minute, 250*time.Millisecond)
			took := time.Since(start)
			usage := c.scheduler
			_ = usage.Process.Signal(os.Interrupt)
			_ = usage.Wait()
			t.Logf("%d nodes, %d pods: %.1f s from the start of the scheduler (first pod bound after %.1f s), %.0f pods/s; processor time of the scheduler %.1f s",
				*scaleNodes, *scalePods, took.Seconds(), first.Sub(start).Seconds(), float64(*scalePods)/took.Seconds(),
				(usage.ProcessState.UserTime() + usage.ProcessState.SystemTime()).Seconds())
		})
	}
}
