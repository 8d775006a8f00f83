package service_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

// textOf returns the text of the first reason of a job that may not enter.
func textOf(answer *apportionv1.EnqueueAnswer) (text string, refused bool) {
	for _, job := range answer.GetJobs() {
		if reasons := job.GetVerdict().GetReasons(); len(reasons) > 0 {
			return reasons[0].GetText(), true
		}
	}
	return "", false
}

func TestReasonsCarryTextsInEveryKindOfCall(t *testing.T) {
	r := servicetest.Start(t, service.Options{Policies: map[string]*apportionv1.Policy{"p": servicetest.Proportion()}})
	snapshot := servicetest.Snapshot(1)
	digest := r.Upload(t, snapshot)
	byDigest := func(texts bool) *apportionv1.Input {
		return &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: "p"}, Texts: texts,
		}
	}
	inline := servicetest.Named(snapshot, "p")
	inline.Texts = true
	for name, c := range map[string]struct {
		input *apportionv1.Input
		texts bool
	}{
		"inline": {inline, true}, "by digest": {byDigest(true), true}, "without, after one with": {byDigest(false), false},
	} {
		for range 2 { // the second call by digest gets the session of the first
			answered, err := r.CheckEnqueue(t.Context(), &apportionv1.CheckEnqueueRequest{Input: c.input})
			require.NoError(t, err, name)
			text, refused := textOf(answered.GetEnqueue())
			require.True(t, refused, name)
			require.Equal(t, c.texts, text != "", name)
		}
	}

	stream, err := r.RunSession(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{
		Open: &apportionv1.OpenSession{Input: byDigest(true)},
	}}))
	_, err = stream.Recv()
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &apportionv1.StepBatch{
		Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{}}}},
	}}}))
	answered, err := stream.Recv()
	require.NoError(t, err)
	text, refused := textOf(answered.GetAnswers().GetAnswers()[0].GetEnqueue())
	require.True(t, refused)
	require.NotEmpty(t, text)
	require.NoError(t, stream.CloseSend())
}
