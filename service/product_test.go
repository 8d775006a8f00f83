package service_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
)

// TestWhatMultipliesIsBookedBeforeItIsTaken asks about a cohort of many queues, of which one has many flavors: 60 KB that become 75 MB.
func TestWhatMultipliesIsBookedBeforeItIsTaken(t *testing.T) {
	s, wide := &apportionv1.Snapshot{Dimensions: []string{"cpu"}}, &apportionv1.KueueQueue{}
	for i := range 1000 {
		wide.Quotas = append(wide.Quotas, &apportionv1.Quota{
			NodeSet: fmt.Sprint("f", i), Nominal: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{0}},
		})
	}
	for i := range 1000 {
		s.Queues = append(s.Queues, &apportionv1.Queue{Name: fmt.Sprint("q", i), Parent: "all", Kueue: &apportionv1.KueueQueue{}})
	}
	s.Queues[0].Kueue = wide
	in := &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: s},
		Rule:   &apportionv1.Input_Policy{Policy: parse(t, &apportionv1.Policy{}, `tiers { plugins { kueue {} } }`)},
	}
	ask := func(r *replica) error {
		_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in, Shares: &apportionv1.SharesStep{Queues: &apportionv1.Selector{Indices: []uint32{1}}}})
		return err
	}
	require.NoError(t, ask(start(t, service.Options{})))
	small := start(t, service.Options{Overload: admission.Options{Memory: 64 << 20}})
	fields, _ := requireFault(t, ask(small), codes.OutOfRange, "LIMIT_EXCEEDED")
	require.Equal(t, "overload.memory", fields["limit"])

	session, err := small.RunSession(t.Context())
	require.NoError(t, err)
	require.NoError(t, session.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{Input: in}}}))
	_, err = session.Recv()
	fields, _ = requireFault(t, err, codes.OutOfRange, "LIMIT_EXCEEDED")
	require.Equal(t, "overload.memory", fields["limit"])
}
