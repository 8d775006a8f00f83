package kubescheduler

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/apportion/apportion/adapter/connection"
)

const queueLabel = "apportion.dev/queue"

// testLoop returns a loop on nodes of 8 CPUs and the queues a and b, which decides in process.
func testLoop(t *testing.T, nodes int) *loop {
	t.Helper()
	file := filepath.Join(t.TempDir(), "queues.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: a}
spec: {weight: 1, reclaimable: true}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: b}
spec: {weight: 1, reclaimable: true}
`), 0o600))
	arguments := &Arguments{Queues: file}
	arguments.complete()
	decide, in, err := arguments.Connect()
	require.NoError(t, err)
	l := &loop{
		arguments: arguments, decide: decide, input: in, model: newModel(queueLabel, fromNamespace, "default-scheduler"),
		log: slog.New(slog.DiscardHandler), activate: func(map[string]*corev1.Pod) {},
	}
	require.NoError(t, l.reload())
	for i := range nodes {
		l.model.setNode(testNode(fmt.Sprintf("n%d", i)))
	}
	return l
}

func testNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"),
	}}}
}

func testPod(name, queue, cpu, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{}},
		Spec: corev1.PodSpec{SchedulerName: "default-scheduler", NodeName: node, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}},
	}
	if queue != "" {
		p.Labels[queueLabel] = queue
	}
	if node != "" {
		p.Status.Phase = corev1.PodRunning
	}
	return p
}

func inGang(p *corev1.Pod, name string, least int) *corev1.Pod {
	p.Labels[groupLabel], p.Labels[minimumLabel] = name, fmt.Sprint(least)
	return p
}

// places returns the planned node of each pod that has one.
func (l *loop) places() map[string]string {
	places := map[string]string{}
	for uid, p := range l.model.pods {
		if p.planned != "" {
			places[string(uid)] = p.planned
		}
	}
	return places
}

func TestAPodOfAQueueGetsAPlaceAndOneWithoutAQueueIsLeftAlone(t *testing.T) {
	l := testLoop(t, 1)
	l.model.setPod(testPod("one", "a", "1", ""))
	l.model.setPod(testPod("free", "", "1", ""))
	require.NotNil(t, l.model.may(testPod("one", "a", "1", "")), "it waits for a decision")
	require.NoError(t, l.once(t.Context()))
	require.Equal(t, map[string]string{"one": "n0"}, l.places())
	require.Nil(t, l.model.may(testPod("one", "a", "1", "")))
	require.Nil(t, l.model.may(testPod("free", "", "1", "")))
}

func TestAGangGetsItsPlacesTogetherOrNone(t *testing.T) {
	l := testLoop(t, 2)
	for i := range 8 {
		l.model.setPod(inGang(testPod(fmt.Sprintf("x-%d", i), "a", "2", ""), "x", 8))
		l.model.setPod(inGang(testPod(fmt.Sprintf("y-%d", i), "b", "2", ""), "y", 8))
	}
	require.NoError(t, l.once(t.Context()))
	require.Len(t, l.places(), 8, "one of the two fits")
	var first *pod
	for _, p := range l.model.pods {
		if p.planned != "" {
			first = p
			break
		}
	}
	for uid := range first.job.pods {
		free, others := l.model.hold(uid)
		last := first.job.holding() == 8
		require.Equal(t, last, free, "only the last releases the gang")
		if last {
			require.Len(t, others, 7)
		}
	}
}

func TestAGangThatLosesANodeBeforeItBeganLosesAllPlaces(t *testing.T) {
	l := testLoop(t, 2)
	for i := range 8 {
		l.model.setPod(inGang(testPod(fmt.Sprintf("x-%d", i), "a", "2", ""), "x", 8))
	}
	require.NoError(t, l.once(t.Context()))
	require.Len(t, l.places(), 8)
	l.model.hold("x-0")
	held := l.model.withdraw(l.model.pods["x-1"])
	require.Equal(t, []types.UID{"x-0"}, held, "the pod that holds a node is rejected")
	require.Empty(t, l.places())

	require.NoError(t, l.once(t.Context()))
	require.Len(t, l.places(), 8, "it is planned again")
	for i := range 8 {
		l.model.hold(types.UID(fmt.Sprintf("x-%d", i)))
	}
	bound := inGang(testPod("x-0", "a", "2", "n0"), "x", 8)
	l.model.setPod(bound)
	l.model.removeNode("n1")
	require.Len(t, l.model.pods, 8)
	require.Len(t, l.places(), 3, "a gang that has begun keeps its other places")
}

func TestReclaimHasAPlanWithVictims(t *testing.T) {
	l := testLoop(t, 1)
	for i := range 8 {
		l.model.setPod(testPod(fmt.Sprintf("a-%d", i), "a", "1", "n0"))
	}
	for i := range 4 {
		l.model.setPod(inGang(testPod(fmt.Sprintf("b-%d", i), "b", "1", ""), "g", 4))
	}
	require.NoError(t, l.once(t.Context()))
	require.Len(t, l.places(), 4)
	managed, node, victims, sentence := l.model.claim("b-0")
	require.True(t, managed)
	require.Equal(t, "n0", node)
	require.Len(t, victims, 4)
	require.NotEmpty(t, sentence)

	held := l.model.spare("b-0", []types.UID{victims[0].UID}, l.model.pods["b-0"].object.CreationTimestamp.Time)
	require.Empty(t, held)
	require.Empty(t, l.places(), "an eviction that is refused withdraws the plan")
	require.False(t, l.model.pods[victims[1].UID].releasing)

	require.NoError(t, l.once(t.Context()))
	require.Len(t, l.places(), 4)
	l.model.removeNode("n0")
	require.Empty(t, l.places())
	for _, v := range victims {
		require.False(t, l.model.pods[v.UID].releasing, "nothing is evicted for a place that is gone")
	}
}

func TestAPodMayBeEvictedOnceItRuns(t *testing.T) {
	l := testLoop(t, 1)
	for i := range 8 {
		p := testPod(fmt.Sprintf("a-%d", i), "a", "1", "n0")
		p.Status.Phase = corev1.PodPending
		l.model.setPod(p)
	}
	l.model.setPod(testPod("b-0", "b", "1", ""))
	require.NoError(t, l.once(t.Context()))
	require.Empty(t, l.places(), "a bound pod that does not run yet is no victim")
	l.model.setPod(testPod("a-0", "a", "1", "n0"))
	require.NoError(t, l.once(t.Context()))
	require.Equal(t, map[string]string{"b-0": "n0"}, l.places())
}

func TestAnUnknownQueueAndAGangWithoutADefinitionSaySo(t *testing.T) {
	l := testLoop(t, 1)
	l.model.setPod(testPod("one", "none", "1", ""))
	p := testPod("two", "a", "1", "")
	p.Labels[groupLabel] = "g"
	l.model.setPod(p)
	require.NoError(t, l.once(t.Context()))
	require.Contains(t, l.model.may(testPod("one", "none", "1", "")).Message(), `queue "none" does not exist; there are a, b`)
	require.Contains(t, l.model.may(p).Message(), "gang default/g is not defined")
	l.model.setGang(groupID("default", "g"), 1)
	require.NoError(t, l.once(t.Context()))
	require.Nil(t, l.model.may(p))
}

func TestNodesThatAPodMayNotUseAreLeftOut(t *testing.T) {
	l := testLoop(t, 2)
	labelled := testNode("n2")
	labelled.Labels = map[string]string{"disk": "ssd"}
	l.model.setNode(labelled)
	p := testPod("one", "a", "1", "")
	p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	l.model.setPod(p)
	require.NoError(t, l.once(t.Context()))
	require.Equal(t, map[string]string{"one": "n2"}, l.places())

	l.model.refuse(l.model.pods["one"], "n2", l.model.pods["one"].object.CreationTimestamp.AddDate(3000, 0, 0))
	require.NoError(t, l.once(t.Context()))
	require.Empty(t, l.places(), "a node that another plugin refused is left out")
	require.Len(t, l.sets.less, 1)

	l.model.pods["one"].job.refused["n2"] = l.model.pods["one"].object.CreationTimestamp.Time
	require.True(t, l.waits())
	require.NoError(t, l.once(t.Context()))
	require.Equal(t, map[string]string{"one": "n2"}, l.places(), "after a while it counts again")
	require.Empty(t, l.sets.less)
}

func TestACordonedNodeTakesPodsThatTolerateIt(t *testing.T) {
	l := testLoop(t, 1)
	cordoned := testNode("cordoned")
	cordoned.Spec.Unschedulable, cordoned.Labels = true, map[string]string{"disk": "ssd"}
	l.model.setNode(cordoned)
	for name, tolerations := range map[string][]corev1.Toleration{
		"one": nil, "two": {{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}},
	} {
		p := testPod(name, "a", "1", "")
		p.Spec.NodeSelector, p.Spec.Tolerations = cordoned.Labels, tolerations
		l.model.setPod(p)
	}
	require.NoError(t, l.once(t.Context()))
	require.Equal(t, map[string]string{"two": "cordoned"}, l.places())
}

func TestPodsAreTriedWhenTheirPlanIsMade(t *testing.T) {
	l := testLoop(t, 2)
	var tried []int
	l.activate = func(pods map[string]*corev1.Pod) { tried = append(tried, len(pods)) }
	for i := range 3 {
		l.model.setPod(testPod(fmt.Sprintf("one-%d", i), "a", "1", ""))
		l.model.setPod(inGang(testPod(fmt.Sprintf("g-%d", i), "b", "1", ""), "g", 3))
	}
	require.NoError(t, l.once(t.Context()))
	require.ElementsMatch(t, []int{1, 1, 1, 3}, tried, "each job when it has its plan, and a gang as a whole")
}

func TestAnOpenFallbackLetsPodsThroughAndAClosedOneKeepsThem(t *testing.T) {
	l := testLoop(t, 1)
	p := testPod("one", "a", "1", "")
	l.model.setPod(p)
	l.arguments.Fallback = connection.FallbackClosed
	l.suspend(os.ErrDeadlineExceeded)
	require.Contains(t, l.model.may(p).Message(), "Apportion does not answer")
	l.arguments.Fallback = connection.FallbackOpen
	l.suspend(os.ErrDeadlineExceeded)
	require.Nil(t, l.model.may(p))
	unseen := testPod("two", "a", "1", "")
	require.NotNil(t, l.model.may(unseen), "it may be of a gang, which the model does not know")
	l.model.setPod(unseen)
	require.Nil(t, l.model.may(unseen))
}

func TestTheFileOfQueuesIsReadAgain(t *testing.T) {
	l := testLoop(t, 1)
	p := testPod("one", "late", "1", "")
	l.model.setPod(p)
	require.NoError(t, l.once(t.Context()))
	require.Empty(t, l.places())
	require.NoError(t, os.WriteFile(l.arguments.Queues, []byte("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: late}\n"), 0o600))
	require.NoError(t, l.reload())
	require.NoError(t, l.once(t.Context()))
	require.Equal(t, map[string]string{"one": "n0"}, l.places())

	require.NoError(t, os.WriteFile(l.arguments.Queues, []byte("kind: [1]"), 0o600))
	require.ErrorContains(t, l.reload(), "queues: ")
	require.True(t, l.model.queues["late"], "the queues stay as they were")
}

func TestANamespaceNamesTheQueueOfItsPods(t *testing.T) {
	l := testLoop(t, 1)
	p := testPod("one", "", "1", "")
	l.model.setPod(p)
	require.NoError(t, l.once(t.Context()))
	require.Empty(t, l.places())
	l.model.setNamespace("default", "a")
	require.NotNil(t, l.model.may(p))
	require.NoError(t, l.once(t.Context()))
	require.Equal(t, map[string]string{"one": "n0"}, l.places())
}

func TestTheQueueOfANamespaceOutranksThatOfItsPodsUnlessTheArgumentsSaySo(t *testing.T) {
	for from, want := range map[string]string{fromNamespace: "a", fromPod: "b"} {
		m := newModel(queueLabel, from, "default-scheduler")
		require.Equal(t, "b", m.queue(testPod("one", "b", "1", "")), "its namespace names none")
		m.setNamespace("default", "a")
		require.Equal(t, want, m.queue(testPod("one", "b", "1", "")), from)
		require.Equal(t, "a", m.queue(testPod("one", "", "1", "")), "it names none")
	}
}

func TestAPodWithoutAQueueTakesRoom(t *testing.T) {
	l := testLoop(t, 2)
	l.model.setPod(testPod("free", "", "8", "n0"))
	l.model.setPod(testPod("one", "a", "1", ""))
	require.NoError(t, l.once(t.Context()))
	require.Equal(t, map[string]string{"one": "n1"}, l.places())
}
