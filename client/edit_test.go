package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// TestEveryCallTakesEdits asks about edits of a snapshot and about the snapshot that they make.
func TestEveryCallTakesEdits(t *testing.T) {
	edited := twoTeams(t)
	weight := &apportionv1.Edit{
		Kind: apportionv1.EditKind_EDIT_KIND_WEIGHT, Object: &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Name: "ml"}}, Amount: new(7.0),
	}
	open := &apportionv1.Edit{
		Kind: apportionv1.EditKind_EDIT_KIND_OPEN, Object: &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Name: "attic"}},
	}
	for _, q := range edited.GetQueues() {
		switch q.GetName() {
		case "ml":
			q.Weight = new(uint32(7))
		case "attic":
			q.State = apportionv1.QueueState_QUEUE_STATE_OPEN
		}
	}
	for _, c := range ways(t) {
		t.Run(c.name, func(t *testing.T) {
			with := client.Input{Snapshot: twoTeams(t), Policy: proportional(t), Edits: []*apportionv1.Edit{weight, open}}
			of := client.Input{Snapshot: edited, Policy: proportional(t)}
			upload, err := c.Upload(t.Context(), with.Snapshot)
			require.NoError(t, err)
			held := with
			held.Snapshot, held.Upload = nil, upload
			for _, in := range []client.Input{with, held} {
				got, err := c.Shares(t.Context(), in, client.SharesQuestion{Explain: true})
				require.NoError(t, err)
				want, err := c.Shares(t.Context(), of, client.SharesQuestion{Explain: true})
				require.NoError(t, err)
				require.True(t, proto.Equal(want.Answer, got.Answer))
				require.Len(t, got.Basis.GetWarnings(), len(want.Basis.GetWarnings()))

				admissions, err := c.Enqueue(t.Context(), in, client.EnqueueQuestion{Jobs: []string{"attic/old"}})
				require.NoError(t, err)
				require.True(t, admissions.Jobs[0].Permitted)

				session, err := c.OpenSession(t.Context(), in)
				require.NoError(t, err)
				answers, err := session.Do(t.Context(), &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Queues: true}}})
				require.NoError(t, err)
				require.Contains(t, answers[0].String(), "weight:7")
				require.NoError(t, session.Close())
			}
			bare := with
			bare.Edits = nil
			after, err := c.Enqueue(t.Context(), bare, client.EnqueueQuestion{Jobs: []string{"attic/old"}})
			require.NoError(t, err)
			require.False(t, after.Jobs[0].Permitted, "edits are of one call")
		})
	}
}

// TestAnEditThatCannotBeMadeFailsTheCall names the edit by its path.
func TestAnEditThatCannotBeMadeFailsTheCall(t *testing.T) {
	wrong := &apportionv1.Edit{
		Kind: apportionv1.EditKind_EDIT_KIND_WEIGHT, Object: &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Name: "ml"}}, Amount: new(-1.0),
	}
	for _, c := range ways(t) {
		t.Run(c.name, func(t *testing.T) {
			in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t), Edits: []*apportionv1.Edit{wrong}}
			_, err := c.Simulate(t.Context(), in)
			require.Equal(t, "input.edits[0].amount", violation(t, err))
			_, err = c.OpenSession(t.Context(), in)
			require.Contains(t, violation(t, err), "input.edits[0].amount")
		})
	}
}

// violation is the path of the first field that an error names.
func violation(t *testing.T, err error) string {
	t.Helper()
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			return bad.GetFieldViolations()[0].GetField()
		}
	}
	require.Fail(t, "no field is named", "%v", err)
	return ""
}
