package shadow_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
	"github.com/apportion/apportion/service/shadow"
)

// output is a log that may be read while it is written.
type output struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.Buffer.Write(data)
}

func (o *output) text() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.String()
}

type trial struct {
	*servicetest.Replica

	shadow *shadow.Shadow
	log    *output
}

func start(t *testing.T, o shadow.Options) *trial {
	t.Helper()
	log := &output{}
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	s, err := shadow.New(o)
	require.NoError(t, err)
	r := servicetest.Start(t, service.Options{
		Policies:  map[string]*apportionv1.Policy{"cluster": servicetest.Proportion(), "other": servicetest.Proportion()},
		Observers: []service.Observer{s},
	})
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	return &trial{r, s, log}
}

// counts are the counters of a shadow, by name and labels.
func (r *trial) counts(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.shadow.Collectors()...)
	families, err := registry.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			if v := m.GetCounter().GetValue(); v > 0 {
				out[key] = v
			}
		}
	}
	return out
}

func (r *trial) eventually(t *testing.T, want map[string]float64) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.Equal(c, want, r.counts(t)) }, 5*time.Second, 5*time.Millisecond)
}

func shares(policy string) *apportionv1.EvaluateSharesRequest {
	return &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), policy)}
}

func TestTheSamePolicyDecidesTheSame(t *testing.T) {
	r := start(t, shadow.Options{Policy: servicetest.Proportion(), Settings: setting.Shadow{Of: "cluster", OneIn: 1}})
	_, err := r.EvaluateShares(t.Context(), shares("cluster"))
	require.NoError(t, err)
	_, err = r.EvaluateShares(t.Context(), shares("other"))
	require.NoError(t, err)
	r.eventually(t, map[string]float64{"apportion_shadow_decisions_total shares same": 1})
	require.Empty(t, r.log.text())
}

func TestAnotherPolicyIsToldOfAndChangesNoAnswer(t *testing.T) {
	r := start(t, shadow.Options{Policy: servicetest.Capacity(), Settings: setting.Shadow{Policy: "candidate", Of: "cluster", OneIn: 1}})
	got, err := r.EvaluateShares(t.Context(), shares("cluster"))
	require.NoError(t, err)
	without, err := r.EvaluateShares(t.Context(), shares("other"))
	require.NoError(t, err)
	require.True(t, proto.Equal(without, got))
	r.eventually(t, map[string]float64{"apportion_shadow_decisions_total shares different": 1})
	require.Contains(t, r.log.text(), "the shadow policy decides otherwise")
	require.Contains(t, r.log.text(), "shares.plugins[0]")
	require.Contains(t, r.log.text(), "shadow=candidate")
}

func TestSessionsAndHeldSnapshotsAreDecidedBeside(t *testing.T) {
	r := start(t, shadow.Options{Policy: servicetest.Proportion(), Settings: setting.Shadow{OneIn: 1}})
	digest := r.Upload(t, servicetest.Snapshot(3))
	steps := servicetest.Steps()
	r.Converse(t, digest, "cluster", steps[:3], steps[3:5])
	_, err := r.CheckEnqueue(t.Context(), &apportionv1.CheckEnqueueRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: "cluster"},
	}})
	require.NoError(t, err)
	r.eventually(t, map[string]float64{
		"apportion_shadow_decisions_total shares same": 1, "apportion_shadow_decisions_total jobs same": 1,
		"apportion_shadow_decisions_total change same": 1, "apportion_shadow_decisions_total enqueue same": 3,
	})
}

func TestMoreSessionsThanAllowedAreNotDecidedBeside(t *testing.T) {
	r := start(t, shadow.Options{Policy: servicetest.Proportion(), Settings: setting.Shadow{OneIn: 1, Sessions: 1}})
	digest := r.Upload(t, servicetest.Snapshot(3))
	stream, err := r.RunSession(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{Input: &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: "cluster"},
	}}}}))
	_, err = stream.Recv()
	require.NoError(t, err)
	r.Converse(t, digest, "cluster", servicetest.Steps()[:1])
	r.eventually(t, map[string]float64{"apportion_shadow_dropped_total session": 2})
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.Error(t, err)
	// After one has ended, another may begin.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		r.Converse(t, digest, "cluster", servicetest.Steps()[:1])
		require.Positive(c, r.counts(t)["apportion_shadow_decisions_total shares same"])
	}, 5*time.Second, 5*time.Millisecond)
}

func TestACallTooLargeForTheQueueIsDropped(t *testing.T) {
	r := start(t, shadow.Options{Policy: servicetest.Proportion(), Settings: setting.Shadow{OneIn: 1, WaitingBytes: 2000}})
	_, err := r.EvaluateShares(t.Context(), shares("cluster"))
	require.NoError(t, err)
	r.eventually(t, map[string]float64{"apportion_shadow_dropped_total oversize": 1})
}

func TestAShadowThatIsTooSlowIsGivenUp(t *testing.T) {
	r := start(t, shadow.Options{Policy: servicetest.Proportion(), Settings: setting.Shadow{OneIn: 1, Time: time.Nanosecond}})
	many := make([]*apportionv1.Step, 2000)
	for i := range many {
		many[i] = &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{}}}
	}
	_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{
		Input: servicetest.Named(servicetest.Snapshot(1), "cluster"), Steps: many,
	})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.Contains(c, r.log.text(), "could not decide the same")
	}, 5*time.Second, 5*time.Millisecond)
}

func TestAFaultyPolicyIsRefused(t *testing.T) {
	_, err := shadow.New(shadow.Options{Policy: &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{{}}}}}})
	require.Error(t, err)
}
