package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

func TestWarningsAreThoseOfTheSnapshotWhateverStepsMakeOfIt(t *testing.T) {
	request := &apportionv1.SimulateRequest{}
	require.NoError(t, prototext.Unmarshal([]byte(`
		input {
		  policy { tiers { plugins { proportion {} } } }
		  snapshot { dimensions: "cpu" dimensions: "gpu" nodes { name: "n" allocatable { dimension: 0 amount: 1000 } } queues { name: "q" }
		    jobs { uid: "j" queue: "q" min_resources { dimension: 0 amount: 1 } } }
		}
		steps { add_job { job { uid: "more" queue: "q" min_resources { dimension: 1 amount: 1 } } } }`), request))
	in := client.Input{Snapshot: request.GetInput().GetSnapshot(), Policy: request.GetInput().GetPolicy()}
	remote, err := dialAll(t, []*replica{startReplica(t, service.Options{})}).Simulate(t.Context(), in, request.GetSteps()...)
	require.NoError(t, err)
	local, err := client.InProcess().Simulate(t.Context(), in, request.GetSteps()...)
	require.NoError(t, err)
	require.NotNil(t, local.Answers[0].GetAddJob())
	require.Empty(t, remote.Basis.GetWarnings())
	require.Equal(t, prototext.Format(remote.Basis), prototext.Format(local.Basis))
}

func TestAnAnswerThatIsMissingIsAnError(t *testing.T) {
	s := &client.Simulation{Answers: []*apportionv1.Answer{{}}}
	require.NoError(t, s.Err(0))
	require.ErrorContains(t, s.Err(1), "no answer to step 1")
	require.ErrorContains(t, s.Err(-1), "no answer to step -1")
}
