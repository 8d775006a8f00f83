package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

// tide is a policy of this test alone: it admits no job while the tide is high.
type tide struct{ level float64 }

func (tide) Name() string { return "tide" }

// Normal: below 2 the level counts as 2.
func (p tide) Normal() tide {
	p.level = max(p.level, 2)
	return p
}

func (p tide) Open(*policy.View) (policy.State, error) { return p, nil }

// Share: every queue is under water.
func (tide) Share(model.QueueID) (policy.Share, bool) {
	return policy.Share{Dominant: -1, Overused: true}, true
}

func (tide) Enqueueable(_ model.JobID, why *policy.Reasons) policy.Vote {
	why.Add(policy.Because("tide", policy.AboveOvercommit, model.None))
	return policy.Reject
}

// addTide puts a row into the catalogue until the test ends. A test cannot add a message to the contract, so it borrows Overcommit, and
// the row takes the place of that plugin's.
func addTide(t *testing.T) {
	t.Helper()
	before := catalogue.Policies
	t.Cleanup(func() { catalogue.Policies = before })
	catalogue.Policies = append(slices.DeleteFunc(slices.Clone(before), func(row catalogue.Policy) bool { return row.Name == "overcommit" }),
		catalogue.Policy{
			Name: "tide",
			Settings: catalogue.SettingsOf(
				func(m *apportionv1.Overcommit, _ catalogue.Fault) tide { return tide{m.GetFactor()} },
				func(p tide) *apportionv1.Overcommit { return &apportionv1.Overcommit{Factor: &p.level} }),
			Decisions: engine.DecisionsOf(engine.JobEnqueued, engine.Reclaimable),
			Sums:      catalogue.SumsForEnqueue,
			Levels:    func(p policy.Plugin) bool { return p == policy.Plugin(tide{5}) },
			Derive: catalogue.DerivationOf(func(s *apportionv1.PluginShares, p tide, _ []model.QueueID, answer catalogue.Answer) error {
				s.Proportion = &apportionv1.ProportionDerivation{Rounds: []*apportionv1.ProportionRound{{TotalWeight: uint64(p.level)}}}
				answer.Count(1)
				return answer.Check()
			}),
			Terms: catalogue.Terms{Deserved: "afloat", Would: "would be afloat", Overused: "under water"},
			Forms: []catalogue.Form{
				{Name: "tide", Settings: &apportionv1.Overcommit{Factor: new(1.0)}, Preset: [][]string{{"gang"}, {"tide", "proportion"}}},
			},
		})
}

// TestANewPolicyIsOneRow shows that nothing but the catalogue names policies: one more row, and the client, digests, metrics, limits,
// derivations and the command line know it.
func TestANewPolicyIsOneRow(t *testing.T) {
	addTide(t)

	chosen, err := client.Policy(client.Tier{"gang"}, client.Tier{"tide", "proportion"})
	require.NoError(t, err, "the client")
	_, err = client.Policy(client.Tier{"ebb"})
	require.ErrorContains(t, err, "tide")
	require.Contains(t, client.Presets(), "tide")
	preset, ok := client.Preset("tide")
	require.True(t, ok)

	require.Equal(t, 2.0, decode.Canonical(chosen).GetTiers()[1].GetPlugins()[0].GetOvercommit().GetFactor(), "the digest")
	require.Equal(t, decode.PolicyDigest(preset), decode.PolicyDigest(chosen))

	r := servicetest.Start(t, service.Options{Policies: map[string]*apportionv1.Policy{"sea": chosen}})
	response, err := r.CheckEnqueue(t.Context(), &apportionv1.CheckEnqueueRequest{
		Input: servicetest.Named(pendingJob(), "sea"),
	}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Equal(t, "tide", response.GetEnqueue().GetJobs()[0].GetVerdict().GetCauses()[0].GetPlugin())
	require.NoError(t, testutil.GatherAndCompare(r.Server.Registry(), strings.NewReader(`
# HELP apportion_decisions_total Decisions by kind of question, verdict, and the plugin and reason named first.
# TYPE apportion_decisions_total counter
apportion_decisions_total{plugin="tide",question="enqueue",reason="ABOVE_OVERCOMMIT",verdict="reject"} 1
`), "apportion_decisions_total"), "the metrics")

	enqueue := []*apportionv1.Step{{Step: &apportionv1.Step_Enqueue{}}}
	require.True(t, wire.OnlySums(chosen, enqueue), "sums of tasks")
	require.EqualValues(t, 3, decode.ExtentOf(compiled(t, pendingJob()), chosen).Voters, "memory for victims")
	deep := &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Overcommit{Overcommit: &apportionv1.Overcommit{Factor: new(5.0)}}}
	chosen.Tiers[1].Plugins[0] = deep
	require.NoError(t, enqueueWithin(t, preset, 100), "work at one level")
	require.ErrorContains(t, enqueueWithin(t, chosen, 100), "costs more than is allowed", "work at each level")

	require.Regexp(t, `(?m)^tide +job enqueued, reclaimable$`, outputOf(t, cli.ExitYes, "version", "--policies"), "the command line")
	require.Regexp(t, `(?m)^tide +gang; tide, proportion$`, outputOf(t, cli.ExitYes, "version", "--policies"))
	require.Contains(t, outputOf(t, cli.ExitYes, "shares", "--help"), "drf-hierarchical, fair, kueue, tide")
	require.Contains(t, outputOf(t, cli.ExitNo, "decide", "enqueue", "-f", "testdata/cluster.yaml", "--policy", "tide"), "(tide)")
	shares := outputOf(t, cli.ExitYes, "shares", "-f", "testdata/cluster.yaml", "--policy", "tide", "--explain")
	require.Contains(t, shares, "AFLOAT", "the words of its numbers")
	require.Contains(t, shares, "(under water)")
	require.Contains(t, shares, "by weights of 2 in all", "how it came by its numbers")
}

func compiled(t *testing.T, snapshot *apportionv1.Snapshot) *model.Model {
	t.Helper()
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	return m
}

// enqueueWithin asks ten times whether a job in a queue at the fourth level may be enqueued, for a bounded amount of work.
func enqueueWithin(t *testing.T, p *apportionv1.Policy, work int64) error {
	t.Helper()
	snapshot := pendingJob()
	snapshot.Queues = []*apportionv1.Queue{{Name: "root"}, {Name: "a", Parent: "root"}, {Name: "b", Parent: "a"}, {Name: "q", Parent: "b"}}
	session, err := wire.Open(compiled(t, snapshot), p, wire.Options{Work: work})
	require.NoError(t, err)
	_, err = session.Ask(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
		Jobs: &apportionv1.Selector{Indices: make([]uint32, 10)},
	}}})
	return err
}

// pendingJob is a cluster with one job that waits.
func pendingJob() *apportionv1.Snapshot {
	return &apportionv1.Snapshot{
		Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "q"}},
		Jobs: []*apportionv1.Job{{Uid: "j", Queue: "q", MinResources: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1}}}},
	}
}

// outputOf runs the command line and returns what it prints.
func outputOf(t *testing.T, code int, args ...string) string {
	t.Helper()
	out, got := answerOf(t, args...)
	require.Equal(t, code, got, out)
	return out
}

// answerOf returns what a command line prints, and its exit code. What it writes to standard error is logged.
func answerOf(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var answer, problems bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &answer, &problems)
	if problems.Len() > 0 {
		t.Log(problems.String())
	}
	return answer.String(), code
}
