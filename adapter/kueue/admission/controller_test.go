package admission

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

var morning = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// story is a controller on objects that the test makes as Kueue would.
type story struct {
	*Controller

	t       *testing.T
	clients *fake.FakeDynamicClient
	clock   time.Time
	made    int
}

// tell begins a story with three queues of 4 CPUs in a cohort.
func tell(t *testing.T, settings string) *story {
	t.Helper()
	s, err := ReadSettings([]byte(settings))
	require.NoError(t, err)
	clients := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "events.k8s.io", Version: "v1", Resource: "events"}: "EventList",
	})
	c, err := New(s, nil, clients, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	c.version = "v1beta2"
	l := &story{Controller: c, t: t, clients: clients, clock: morning}
	c.now = func() time.Time { return l.clock }
	l.object("ResourceFlavor", "resourceflavors", "", "default", nil, nil)
	l.object("AdmissionCheck", "admissionchecks", "", "apportion", map[string]any{"controllerName": ControllerName}, map[string]any{
		"conditions": []any{map[string]any{"type": "Active", "status": "True", "observedGeneration": int64(0)}},
	})
	for _, name := range []string{"a", "b", "c"} {
		l.queue(name)
	}
	return l
}

// object makes an object.
func (l *story) object(kind, resource, namespace, name string, spec, status map[string]any) {
	l.t.Helper()
	l.made++
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1beta2", "kind": kind, "metadata": map[string]any{
			"name": name, "uid": "u-" + name, "resourceVersion": strconv.Itoa(l.made),
			"creationTimestamp": morning.Add(time.Duration(l.made) * time.Second).Format(time.RFC3339),
		},
	}}
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	if spec != nil {
		u.Object["spec"] = spec
	}
	if status != nil {
		u.Object["status"] = status
	}
	of := schema.GroupVersionResource{Group: group, Version: "v1beta2", Resource: resource}
	require.NoError(l.t, l.clients.Tracker().Create(of, u, namespace))
	l.cluster.put(kind, group+"/v1beta2", u)
}

func (l *story) queue(name string) {
	quota := map[string]any{"name": "cpu", "nominalQuota": "4"}
	l.object("ClusterQueue", "clusterqueues", "", name, map[string]any{
		"cohortName": "all", "namespaceSelector": map[string]any{},
		"admissionChecksStrategy": map[string]any{"admissionChecks": []any{map[string]any{"name": "apportion"}}},
		"resourceGroups": []any{map[string]any{"coveredResources": []any{"cpu"}, "flavors": []any{
			map[string]any{"name": "default", "resources": []any{quota}},
		}}},
	}, nil)
	l.object("LocalQueue", "localqueues", "team-"+name, "main", map[string]any{"clusterQueue": name}, nil)
}

// workload makes a Workload of pods with a CPU each. state is that of its check; "": Kueue has reserved no quota for it.
func (l *story) workload(name, queue string, pods int64, state string) {
	l.t.Helper()
	spec := map[string]any{"queueName": "main", "podSets": []any{map[string]any{
		"name": "main", "count": pods, "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}},
		}}},
	}}}
	status := map[string]any{}
	if at := morning.Format(time.RFC3339); state != "" {
		status = map[string]any{
			"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "True", "lastTransitionTime": at}},
			"admission": map[string]any{"clusterQueue": queue, "podSetAssignments": []any{map[string]any{
				"name": "main", "count": pods, "flavors": map[string]any{"cpu": "default"},
				"resourceUsage": map[string]any{"cpu": strconv.FormatInt(pods, 10)},
			}}},
			"admissionChecks": []any{
				map[string]any{"name": "other", "state": "Ready", "message": "", "lastTransitionTime": morning.Format(time.RFC3339)},
				map[string]any{"name": "apportion", "state": state, "message": "", "lastTransitionTime": morning.Format(time.RFC3339)},
			},
		}
	}
	l.object(workloadKind, "workloads", "team-"+queue, name, spec, status)
}

// decide lets the controller decide once, and returns the state of the check of each Workload with quota.
func (l *story) decide() map[string]string {
	l.t.Helper()
	_, err := l.once(l.t.Context())
	require.NoError(l.t, err)
	return l.states()
}

func (l *story) states() map[string]string {
	states := map[string]string{}
	for _, w := range l.cluster.workloads {
		if len(w.Status.Checks) > 0 {
			states[w.Metadata.Name] = w.Status.Checks[1].State
		}
	}
	return states
}

// said is the message of the check of a Workload of queue a.
func (l *story) said(name string) string {
	return l.cluster.workloads["team-a/"+name].Status.Checks[1].Message
}

func TestWorkloadsWithinTheirShareAreAdmittedAndTheOthersLearnWhy(t *testing.T) {
	l := tell(t, "")
	// a asks for all 12; b and c want their 4 each, for which Kueue has not reserved quota yet.
	for i := range 6 {
		l.workload(fmt.Sprint("a", i), "a", 2, statePending)
	}
	l.workload("b0", "b", 4, "")
	l.workload("c0", "c", 4, "")
	require.Equal(t, map[string]string{
		"a0": "Ready", "a1": "Ready", "a2": "Pending", "a3": "Pending", "a4": "Pending", "a5": "Pending",
	}, l.decide())
	require.Contains(t, l.said("a0"), "team-a/a0")
	require.Contains(t, l.said("a2"), "team-a/a2 waits")
	require.Equal(t, "Ready", l.cluster.workloads["team-a/a2"].Status.Checks[0].State, "the check of another controller is left alone")
	before := l.cluster.workloads["team-a/a2"].Status.Checks[1]
	l.decide()
	require.Equal(t, before, l.cluster.workloads["team-a/a2"].Status.Checks[1], "nothing is written again")

	// Kueue cannot reserve quota for b0 and c0 while a's Workloads that wait hold it.
	l.clock = morning.Add(patience)
	require.Equal(t, map[string]string{
		"a0": "Ready", "a1": "Ready", "a2": "Retry", "a3": "Retry", "a4": "Retry", "a5": "Retry",
	}, l.decide())
	require.Contains(t, l.said("a2"), "gives up its quota, which team-b/b0 needs")
}

func TestAWorkloadThatIsEntitledEvictsByTheCheckOfItsVictims(t *testing.T) {
	l := tell(t, "retryAfter: 90s")
	for i := range 6 {
		l.workload(fmt.Sprint("a", i), "a", 2, stateReady)
	}
	l.workload("b0", "b", 4, "")
	states := l.decide()
	victims := 0
	for name, state := range states {
		if state == stateRetry {
			victims++
			require.Contains(t, l.said(name), "leaves for team-b/b0: The 4 tasks that team-b/b0 needs can be placed")
		}
	}
	require.Equal(t, 2, victims, "%v", states)
	require.Equal(t, states, l.decide(), "none leaves twice for one Workload")
	events, err := l.clients.Tracker().List(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"},
		schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, "team-a")
	require.NoError(t, err)
	list, ok := events.(*unstructured.UnstructuredList)
	require.True(t, ok)
	require.Len(t, list.Items, 2)

	none := tell(t, "evict: none")
	for i := range 6 {
		none.workload(fmt.Sprint("a", i), "a", 2, stateReady)
	}
	none.workload("b0", "b", 4, "")
	for name, state := range none.decide() {
		require.Equal(t, stateReady, state, name)
	}
}

func TestAWorkloadThatLeavesIsEvictedAtOnceAndItsCheckWaitsAgainWithoutQuota(t *testing.T) {
	l := tell(t, "retryAfter: 90s")
	for i := range 6 {
		l.workload(fmt.Sprint("a", i), "a", 2, stateReady)
	}
	l.workload("b0", "b", 4, "")
	var left string
	for name, state := range l.decide() {
		if state == stateRetry {
			left = name
		}
	}
	status := l.status("team-a", left)
	conditions, _, err := unstructured.NestedSlice(status, "conditions")
	require.NoError(t, err)
	require.Len(t, conditions, 2)
	evicted, ok := conditions[1].(map[string]any)
	require.True(t, ok)
	require.Equal(t, "Evicted", evicted["type"])
	require.Equal(t, "True", evicted["status"])
	require.Equal(t, "AdmissionCheck", evicted["reason"], "Kueue holds it back until the time of the check")
	require.Contains(t, evicted["message"], "leaves for team-b/b0")

	// Kueue gives the quota back.
	again := l.clock.Add(90 * time.Second)
	l.change("team-a", left, func(status map[string]any) { delete(status, "admission"); status["conditions"] = []any{evicted} })
	require.Equal(t, stateRetry, l.decide()[left], "Kueue has yet to read until when it is held back")
	l.change("team-a", left, func(status map[string]any) {
		status["requeueState"] = map[string]any{"requeueAt": again.UTC().Format(time.RFC3339)}
	})
	require.Equal(t, statePending, l.decide()[left])
	require.Equal(t, 1, l.cluster.workloads["team-a/"+left].Status.Checks[1].RetryCount, "by which it is rejected in the end")
}

func TestACheckWaitsAgainEvenIfKueueNeverReadItsTime(t *testing.T) {
	l := tell(t, "retryAfter: 90s")
	l.workload("a0", "a", 2, stateRetry)
	l.change("team-a", "a0", func(status map[string]any) {
		delete(status, "admission")
		delete(status, "conditions")
		check, ok := status["admissionChecks"].([]any)[1].(map[string]any)
		require.True(t, ok)
		check["requeueAfterSeconds"] = int64(90)
	})
	l.clock = morning.Add(89 * time.Second)
	require.Equal(t, stateRetry, l.decide()["a0"])
	l.clock = morning.Add(90 * time.Second)
	require.Equal(t, statePending, l.decide()["a0"])
}

// status is that of a Workload.
func (l *story) status(namespace, name string) map[string]any {
	l.t.Helper()
	u, err := l.clients.Tracker().Get(workloadResource, namespace, name)
	require.NoError(l.t, err)
	object, ok := u.DeepCopyObject().(*unstructured.Unstructured)
	require.True(l.t, ok)
	status, ok := object.Object["status"].(map[string]any)
	require.True(l.t, ok)
	return status
}

// change changes the status of a Workload as Kueue does.
func (l *story) change(namespace, name string, edit func(status map[string]any)) {
	l.t.Helper()
	u, err := l.clients.Tracker().Get(workloadResource, namespace, name)
	require.NoError(l.t, err)
	object, ok := u.DeepCopyObject().(*unstructured.Unstructured)
	require.True(l.t, ok)
	status := l.status(namespace, name)
	edit(status)
	object.Object["status"] = status
	l.made++
	object.SetResourceVersion(strconv.Itoa(l.made))
	require.NoError(l.t, l.clients.Tracker().Update(workloadResource, object, namespace))
	l.cluster.put(workloadKind, group+"/v1beta2", object)
}

func TestAWorkloadToWhichKueueGivesNoQuotaKeepsOthersWaitingForAWhileOnly(t *testing.T) {
	l := tell(t, "quotaTimeout: 10s\nhold: 1h")
	l.workload("a0", "a", 12, statePending)
	l.workload("b0", "b", 4, "")
	require.Equal(t, "Pending", l.decide()["a0"])
	l.clock = morning.Add(11 * time.Second)
	l.decide()
	require.Equal(t, "Ready", l.decide()["a0"], "b0 is left out")
}

func TestAWorkloadThatIsRefusedForLongIsRetriedAndThenRejected(t *testing.T) {
	l := tell(t, "hold: 1m\nrejectAfter: 2")
	l.workload("b0", "b", 4, stateReady)
	l.workload("c0", "c", 4, stateReady)
	l.workload("a0", "a", 6, statePending)
	l.workload("a1", "a", 7, statePending)
	require.Equal(t, "Pending", l.decide()["a0"])
	l.cluster.workloads["team-a/a1"].Status.Checks[1].RetryCount = 2
	l.clock = morning.Add(time.Minute)
	states := l.decide()
	require.Equal(t, "Retry", states["a0"])
	require.Equal(t, "Rejected", states["a1"])
}

func TestWithoutAServerTheControllerFailsAsItIsSet(t *testing.T) {
	for fallback, state := range map[string]string{"closed": "Pending", "open": "Ready", "engine": "Ready"} {
		l := tell(t, "server: 127.0.0.1:1\nplaintext: true\ndeadline: 300ms\nfallback: "+fallback)
		l.workload("a0", "a", 4, statePending)
		_, err := l.once(t.Context())
		require.Equal(t, fallback == "engine", err == nil, "%s: %v", fallback, err)
		require.Equal(t, state, l.states()["a0"], fallback)
		if fallback != "engine" {
			require.Contains(t, l.said("a0"), "Apportion does not answer", fallback)
		}
	}
}

func TestWhatTheControllerWroteCountsBeforeItIsWatched(t *testing.T) {
	l := tell(t, "")
	l.workload("a0", "a", 4, statePending)
	key := "team-a/a0"
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1beta2", "kind": workloadKind,
		"metadata": map[string]any{"name": "a0", "namespace": "team-a", "uid": "u-a0", "resourceVersion": "1"},
	}}
	l.cluster.put(workloadKind, group+"/v1beta2", old)
	require.Equal(t, "Ready", l.decide()["a0"], "the older object is ignored")
	old.SetUID("another")
	l.cluster.put(workloadKind, group+"/v1beta2", old)
	require.Empty(t, l.cluster.workloads[key].Status.Checks, "one that was made again under this name is not")
	l.cluster.replace(workloadKind, group+"/v1beta2", nil)
	require.Empty(t, l.cluster.workloads)
}

func TestALongSentenceIsCutOnce(t *testing.T) {
	long := short(strings.Repeat("sätze ", 1000))
	require.LessOrEqual(t, len(long), 1000)
	require.True(t, utf8.ValidString(long))
	require.Equal(t, long, short(long), "or it would be written again and again")
}

func TestFaultySettingsAreNamed(t *testing.T) {
	for text, fault := range map[string]string{
		"evict: some":              `evict: "some" is none of all, reclaim, preempt, none`,
		"hold: -1s":                "hold: -1s is negative",
		"retryAfter: soon":         "soon",
		"retryAfter: 2s":           "retryAfter: 2s is less than 3s, in which Kueue tries the Workloads for which others left",
		"lease: one":               `lease: "one" is not NAMESPACE/NAME`,
		"rejectAfter: -1":          "rejectAfter: -1 is negative",
		"fallback: never":          `fallback: "never" is none of engine, closed, open`,
		"policyName: x":            "policyName: needs server",
		"server: x\nkey: z":        "certificate, key: one needs the other",
		"quota: 1":                 `unknown field "quota"`,
		"{":                        "unexpected EOF",
		"hold: -1s\ninterval: -1s": "hold: -1s is negative; interval: -1s is negative",
	} {
		_, err := ReadSettings([]byte(text))
		require.ErrorContains(t, err, fault, text)
	}
	for text, fault := range map[string]string{
		"policy: fairr": `policy: "fairr" is neither a preset`,
		"policy: kueue": "policy: kueue decides as Kueue itself does",
		"server: x\nca: /absent\ncertificate: /absent\nkey: /absent": "ca, certificate, key: ",
	} {
		s, err := ReadSettings([]byte(text))
		require.NoError(t, err)
		_, err = New(s, nil, nil, nil)
		require.ErrorContains(t, err, fault, text)
	}
}
