package shadow

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

func TestAPanicStaysWithTheShadow(t *testing.T) {
	var log bytes.Buffer
	s, err := New(Options{Policy: &apportionv1.Policy{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	j := &job{decision: service.Decision{
		Method: "EvaluateShares", Basis: &apportionv1.Basis{},
		Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Shares{}}}, Answers: []*apportionv1.Answer{{}},
	}, release: func() {}}
	// To ask a session that does not exist panics.
	answers, err := s.ask(nil, &j.decision)
	require.ErrorIs(t, err, errPanicked)
	s.compare(j, answers, err)
	require.InDelta(t, 1, testutil.ToFloat64(s.panics), 0)
	require.InDelta(t, 1, testutil.ToFloat64(s.decisions.WithLabelValues("shares", failed)), 0)
	require.Contains(t, log.String(), "the shadow policy panicked")
	require.NoError(t, s.Close(t.Context()))
}
