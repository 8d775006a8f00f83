package service_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// watcher keeps what it observes, or panics.
type watcher struct {
	mutex  sync.Mutex
	wants  string
	panics bool
	told   []service.Decision
}

func (w *watcher) Wants(_ context.Context, method, _ string) bool {
	return w.wants == "" || w.wants == method
}

func (w *watcher) Observe(_ context.Context, d *service.Decision) {
	if w.panics {
		panic("an observer's own trouble")
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.told = append(w.told, *d)
}

func TestObserversAreToldWhatTheyWant(t *testing.T) {
	all, shares := &watcher{}, &watcher{wants: "EvaluateShares"}
	r := start(t, service.Options{Observers: []service.Observer{all, shares}})
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)})
	require.NoError(t, err)
	_, err = r.CheckEnqueue(t.Context(), &apportionv1.CheckEnqueueRequest{Input: inputOf(t)})
	require.NoError(t, err)
	_, err = r.Simulate(t.Context(), &apportionv1.SimulateRequest{})
	require.Error(t, err)
	require.Len(t, shares.told, 1)
	require.Len(t, all.told, 3)
	require.Equal(t, "CheckEnqueue", all.told[1].Method)
	require.Len(t, all.told[1].Steps, 1)
	require.Len(t, all.told[1].Answers, 1)
	require.Positive(t, all.told[1].Took)
	require.Positive(t, all.told[1].AnswerBytes)
	require.Positive(t, all.told[1].Snapshot.Size())
	require.Equal(t, err.Error(), all.told[2].Err.Error(), "what was sent")
}

func TestAnObserverThatPanicsChangesNoAnswer(t *testing.T) {
	r := start(t, service.Options{Observers: []service.Observer{&watcher{panics: true}}})
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)})
	require.NoError(t, err)
}

func TestDecisionsAreCountedByWhatWasDecidedAndWhy(t *testing.T) {
	r := start(t, service.Options{})
	in := inputOf(t)
	in.GetSnapshot().Jobs[1].MinResources.Amounts[0] = 11000
	for range 3 {
		_, err := r.CheckEnqueue(t.Context(), &apportionv1.CheckEnqueueRequest{Input: in})
		require.NoError(t, err)
	}
	_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: in, Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Reclaim{
		Reclaim: &apportionv1.ReclaimStep{Claimant: &apportionv1.Selector{Names: []string{"absent"}}},
	}}}})
	require.NoError(t, err)
	count := func(labels ...string) float64 { return metric(t, r, "apportion_decisions_total", labels...) }
	require.Equal(t, 3.0, count("question", "enqueue", "verdict", "reject", "plugin", "proportion", "reason", "ABOVE_REAL_CAPABILITY"))
	require.Equal(t, 1.0, count("question", "reclaim", "verdict", "error", "reason", "INVALID_STEP"))
	require.Equal(t, 3.0, metric(t, r, "apportion_decision_duration_seconds", "method", "CheckEnqueue"))
	require.Equal(t, 4.0, metric(t, r, "apportion_model_compile_seconds"))
}
