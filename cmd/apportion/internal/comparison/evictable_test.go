package comparison_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/comparison"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// TestEvictionsOfJobsThatAreLeftAreNamed with a policy that looks at one claimant for each question: the first of each queue comes first,
// and jobs that are excepted are not asked about.
func TestEvictionsOfJobsThatAreLeftAreNamed(t *testing.T) {
	b := client.NewSnapshot().Queue(client.Queue{Name: "a"}, client.Queue{Name: "b"})
	for _, job := range []string{"a1", "a2", "a3", "b1", "b2", "b3"} {
		b.Job(client.Job{Namespace: "ns", Name: job, Queue: job[:1], Groups: []client.Group{{Tasks: []client.Task{{Name: job + "-0"}}}}})
	}
	snapshot, err := b.Build()
	require.NoError(t, err)
	found := lookup.Of(snapshot)
	plan := comparison.New(found)
	answers := make([]*apportionv1.Answer, 2)
	outcome := plan.OutcomeOf(answers, found.Names(nil))
	ask := func(step *apportionv1.Step) (*apportionv1.Answer, error) {
		claimants := step.GetEvictable().GetClaimants().GetIndices()
		return &apportionv1.Answer{Answer: &apportionv1.Answer_Evictable{Evictable: &apportionv1.EvictableAnswer{
			ReclaimVictims: claimants[:1], LeftClaimants: claimants[1:],
		}}}, nil
	}
	left, err := plan.Evictable(outcome, nil, ask)
	require.NoError(t, err)
	require.Equal(t, []string{"ns/a3", "ns/b3"}, left)
	require.Equal(t, map[string]bool{"ns/a1-0": true, "ns/a2-0": true}, outcome.Queues["a"].Evictable)
	left, err = plan.Evictable(outcome, map[string]bool{"ns/a2": true, "ns/a3": true, "ns/b3": true}, ask)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, map[string]bool{"ns/a1-0": true}, outcome.Queues["a"].Evictable)
	require.Equal(t, map[string]bool{"ns/b1-0": true, "ns/b2-0": true}, outcome.Queues["b"].Evictable)
}
