package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

// withTurns sets the turns of plugin fair in a request's policy.
func withTurns(r *apportionv1.SimulateRequest) {
	for _, tier := range r.GetInput().GetPolicy().GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if plugin.GetFair() != nil {
				plugin.GetFair().Turns = &apportionv1.FairTurns{}
			}
		}
	}
}

// TestTurnsThatNoQueueEarnsAreChecked: where nothing says what queues were entitled to, answers are those without turns, and checked like them.
func TestTurnsThatNoQueueEarnsAreChecked(t *testing.T) {
	raced.Skip(t)
	checked := 0
	eachRemembered(t, 5, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		plain, err := check.Response(r, answered(t, r))
		require.NoError(t, err)
		withTurns(r)
		report, err := check.Response(r, answered(t, r))
		require.NoError(t, err)
		require.Empty(t, report.Faults)
		require.Equal(t, plain.Checked, report.Checked)
		require.Equal(t, plain.Unchecked, report.Unchecked)
		checked++
	})
	require.Positive(t, checked)
}

// TestAnswersUnderTurnsAreCheckedInPartAndSaySo: the divisions are checked, and each answer is named as not checked beyond that.
func TestAnswersUnderTurnsAreCheckedInPartAndSaySo(t *testing.T) {
	raced.Skip(t)
	reserved, forged := 0, 0
	eachRemembered(t, 5, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		withTurns(r)
		s := r.GetInput().GetSnapshot()
		for _, q := range s.GetQueues() {
			q.Usage, q.Entitled = &apportionv1.Usage{}, &apportionv1.Usage{}
		}
		for _, j := range s.GetJobs() {
			j.CreateTime = 1
		}
		response := answered(t, r)
		report, err := check.Response(r, response)
		require.NoError(t, err)
		require.Empty(t, report.Faults)
		for i, a := range response.GetAnswers() {
			if a.GetError() == nil && !says(report.Unchecked, "turns") {
				require.Fail(t, "an answer is not said to be unchecked", "%d: %v", i, report.Unchecked)
			}
			for _, p := range a.GetShares().GetPlugins() {
				if p.GetFair().GetReservation() != nil {
					reserved++
				}
			}
		}
		wrong, ok := proto.Clone(response).(*apportionv1.SimulateResponse)
		require.True(t, ok)
		for _, a := range wrong.GetAnswers() {
			for _, p := range a.GetShares().GetPlugins() {
				for _, d := range p.GetFair().GetDivisions() {
					for _, child := range d.GetChildren() {
						child.Share++
					}
				}
			}
		}
		if report, err = check.Response(r, wrong); len(report.Faults) > 0 {
			forged++
		}
		require.NoError(t, err)
	})
	require.Positive(t, reserved)
	require.Positive(t, forged, "a changed share is found")
}

func says(unchecked []check.Unchecked, word string) bool {
	return slices.ContainsFunc(unchecked, func(u check.Unchecked) bool { return strings.Contains(u.Why, word) })
}
