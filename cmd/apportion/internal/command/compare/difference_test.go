package compare

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/comparison"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/variation"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

var differenceClusters = flag.Int("differences", 0, "compare what diff, explain and whatif say on so many clusters beside those of rapid")

// standing says in words what an explanation says of a job: that it may not enter, or what else it waits for.
func standing(e *apportionv1.Explanation) string {
	switch {
	case e == nil:
		return "does not wait"
	case e.Blocking != nil && e.GetFindings()[e.GetBlocking()].GetCheck() == apportionv1.CheckKind_CHECK_KIND_ADMISSION:
		return "outside"
	case e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED:
		return "no"
	case e.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_UNDETERMINED:
		return "not known"
	}
	return "yes"
}

// expected is the plain twin of the effects on jobs: what differs between two answers of explain.
func expected(name string, was, is *apportionv1.Explanation) []string {
	before, after := standing(was), standing(is)
	say := func(kind comparison.Kind, from, to string) []string {
		return []string{fmt.Sprintf("%s %s: %s to %s: %s", name, kind, from, to, text.Found(is))}
	}
	switch {
	case before == "no" && after == "no" && text.Fares(was) != text.Fares(is):
		return say(comparison.BlockedOtherwise, text.Fares(was), text.Fares(is))
	case before == after:
		return nil
	case after == "outside":
		return say(comparison.NoLongerAdmitted, "yes", "no")
	case before == "outside":
		return say(comparison.Admitted, "no", "yes")
	case after == "no" || before == "yes":
		return say(comparison.NoLongerAllocated, before, after)
	}
	return say(comparison.Allocated, before, after)
}

// byName are the explanations of an answer.
func byName(a *apportionv1.ExplainAnswer) map[string]*apportionv1.Explanation {
	found := map[string]*apportionv1.Explanation{}
	for _, e := range a.GetJobs() {
		found[e.GetName()] = e
	}
	return found
}

// changed returns a snapshot in which something is different.
func changed(s *apportionv1.Snapshot, by func(*apportionv1.Snapshot)) *apportionv1.Snapshot {
	out := proto.CloneOf(s)
	by(out)
	return out
}

// withCPU returns amounts with another amount of cpu, the first dimension.
func withCPU(of *apportionv1.Resource, cores int) *apportionv1.Resource {
	out := &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1000 * float64(cores)}}
	for i, d := range of.GetDimensions() {
		if d != 0 {
			out.Dimensions, out.Amounts = append(out.Dimensions, d), append(out.Amounts, of.GetAmounts()[i])
		}
	}
	return out
}

// TestDiffSaysWhatExplainAndWhatIfSay on random clusters and random changes: diff names the jobs about which explain says something else
// before and after, and whatif with the same change says what explain says after.
func TestDiffSaysWhatExplainAndWhatIfSay(t *testing.T) {
	seen := map[string]int{}
	try := func(t *rapid.T) {
		cluster := generate.Snapshot(generate.Shape{
			Queues: rapid.IntRange(2, 6).Draw(t, "queues"), Jobs: rapid.IntRange(6, 20).Draw(t, "jobs"), Tasks: rapid.IntRange(20, 120).Draw(t, "tasks"),
			Nodes: rapid.IntRange(1, 3).Draw(t, "nodes"), Depth: rapid.IntRange(0, 2).Draw(t, "depth"), Dimensions: 2,
			Seed: rapid.Uint64().Draw(t, "seed"), UIDs: true,
		})
		name := rapid.SampledFrom([]string{"proportion", "capacity", "fair"}).Draw(t, "policy")
		rules, ok := client.Preset(name)
		require.True(t, ok)
		require.Equal(t, "cpu", cluster.GetDimensions()[0])
		q, j := rapid.IntRange(0, len(cluster.GetQueues())-1).Draw(t, "queue"), rapid.IntRange(0, len(cluster.GetJobs())-1).Draw(t, "job")
		n, amount := rapid.IntRange(0, len(cluster.GetNodes())-1).Draw(t, "node"), rapid.SampledFrom([]int{1, 4, 16, 64, 1000}).Draw(t, "amount")
		queue, job, node := cluster.GetQueues()[q].GetName(), lookup.JobName(cluster.GetJobs()[j]), cluster.GetNodes()[n].GetName()
		ways := map[string]func(*apportionv1.Snapshot){
			fmt.Sprintf("queue/%s.weight=%d", queue, amount): func(s *apportionv1.Snapshot) { s.Queues[q].Weight = new(uint32(amount)) },
			fmt.Sprintf("queue/%s.capability.cpu=%d", queue, amount): func(s *apportionv1.Snapshot) {
				s.Queues[q].Capability = withCPU(s.GetQueues()[q].GetCapability(), amount)
			},
			fmt.Sprintf("queue/%s.guarantee.cpu=%d", queue, amount): func(s *apportionv1.Snapshot) {
				s.Queues[q].Guarantee = withCPU(s.GetQueues()[q].GetGuarantee(), amount)
			},
			fmt.Sprintf("queue/%s.state=closed", queue): func(s *apportionv1.Snapshot) {
				s.Queues[q].State = apportionv1.QueueState_QUEUE_STATE_CLOSED
			},
			fmt.Sprintf("job/%s.priority=%d", job, amount): func(s *apportionv1.Snapshot) { s.Jobs[j].Priority = int32(amount) },
			fmt.Sprintf("node/%s.allocatable.cpu=%d", node, amount): func(s *apportionv1.Snapshot) {
				s.Nodes[n].Allocatable = withCPU(s.GetNodes()[n].GetAllocatable(), amount)
			},
		}
		set := rapid.SampledFrom(slices.Sorted(maps.Keys(ways))).Draw(t, "set")
		made, err := (&variation.Variation{Set: []string{set}}).Of(lookup.Of(cluster), nil)
		if err != nil {
			t.Skip(err)
		}
		decider := client.InProcess()
		of := func(s *apportionv1.Snapshot) *side {
			return &side{Question: &question.Question{
				Asking:  &question.Asking{Answering: cli.Answering{Streams: cli.Streams{Out: io.Discard, Err: io.Discard}}},
				Loaded:  &question.Loaded{Input: client.Input{Snapshot: s, Policy: rules}, Lookup: lookup.Of(s)},
				Decider: decider,
			}}
		}
		sides := [2]*side{of(cluster), of(changed(cluster, ways[set]))}
		var explained [2]map[string]*apportionv1.Explanation
		for i, s := range sides {
			answer, err := decider.Simulate(t.Context(), s.Input, question.ExplainStep(nil))
			if err == nil && answer.Answers[0].GetError() != nil {
				t.Skip(answer.Answers[0].GetError())
			}
			require.NoError(t, err)
			explained[i] = byName(answer.Answers[0].GetExplain())
		}
		_, err = decideBoth(t.Context(), sides, "a", "b")
		require.NoError(t, err)
		// The way back is a change too.
		for _, way := range [][2]int{{0, 1}, {1, 0}} {
			was, is := way[0], way[1]
			var want, got []string
			for _, j := range cluster.GetJobs() {
				name := lookup.JobName(j)
				want = append(want, expected(name, explained[was][name], explained[is][name])...)
			}
			for _, e := range comparison.Effects(sides[was].outcome, sides[is].outcome, func(string) bool { return true }) {
				if e.Job != "" {
					got = append(got, fmt.Sprintf("%s %s: %s to %s: %s", e.Job, e.Kind, e.Was, e.Is, e.Why))
					seen[string(e.Kind)]++
				}
			}
			require.ElementsMatch(t, want, got, set)
		}

		_, before, after, err := compared(t.Context(), of(cluster).Question, made, nil)
		require.NoError(t, err)
		for i, waiting := range []*apportionv1.ExplainAnswer{before.Waiting, after.Waiting} {
			said := byName(waiting)
			for _, j := range cluster.GetJobs() {
				name := lookup.JobName(j)
				require.Equal(t, standing(explained[i][name]), standing(said[name]), "%s: %s", set, name)
				require.Equal(t, text.Found(explained[i][name]), text.Found(said[name]), "%s: %s", set, name)
			}
		}
	}
	rapid.Check(t, try)
	for range *differenceClusters / 100 {
		rapid.Check(t, try)
	}
	t.Log(seen)
	if !testing.Short() {
		require.NotEmpty(t, seen, "a fifth of the clusters, as with -short, can be alike on both sides")
	}
}
