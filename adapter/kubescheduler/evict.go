package kubescheduler

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
)

// evictor evicts pods by the API, which considers disruption budgets.
type evictor struct {
	clients kubernetes.Interface
	events  events.EventRecorder
}

// may returns an error if the API server would refuse the eviction of a pod now.
func (e *evictor) may(ctx context.Context, victim *corev1.Pod) error {
	return e.ask(ctx, victim, metav1.DryRunAll)
}

// evict evicts a pod for another one. Its condition DisruptionTarget has the reason of Kubernetes' scheduler and Apportion's sentence.
func (e *evictor) evict(ctx context.Context, victim, claimant *corev1.Pod, sentence string) error {
	err := setCondition(ctx, e.clients, victim, &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, Message: sentence,
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err = e.ask(ctx, victim); err == nil {
		e.events.Eventf(victim, claimant, corev1.EventTypeNormal, "Preempted", "Preempting", "%s", short(sentence))
	}
	return err
}

// ask asks the API server to evict a pod; one that has gone needs no eviction.
func (e *evictor) ask(ctx context.Context, victim *corev1.Pod, dryRun ...string) error {
	err := e.clients.CoreV1().Pods(victim.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: victim.Name, Namespace: victim.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &victim.UID}, DryRun: dryRun},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// setCondition writes a condition of a pod.
func setCondition(ctx context.Context, clients kubernetes.Interface, p *corev1.Pod, condition *corev1.PodCondition) error {
	condition.LastTransitionTime = metav1.NewTime(time.Now())
	status := map[string]any{"conditions": []any{condition}}
	if condition.Type == corev1.PodScheduled && p.Status.NominatedNodeName != "" {
		// The scheduler nominates the node of a pod that waits in Permit, and would keep its room there after the pod lost its place.
		status["nominatedNodeName"] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = clients.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// short cuts a text to what the message of an event may have.
func short(text string) string {
	const limit = 1000
	if len(text) > limit {
		return text[:limit] + " …"
	}
	return text
}
