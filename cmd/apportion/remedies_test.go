package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/variation"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// variationOf reads arguments of whatif.
func variationOf(t *testing.T, arguments []string) *variation.Variation {
	t.Helper()
	v, flags := &variation.Variation{}, pflag.NewFlagSet("whatif", pflag.ContinueOnError)
	v.Flags(flags)
	require.NoError(t, flags.Parse(arguments))
	return v
}

// tryRemedies asks for the remedies of a job and makes each change as whatif does: the job then has a place. It returns the kinds.
func tryRemedies(t *testing.T, in *question.Loaded, job string) []string {
	t.Helper()
	decider := client.InProcess()
	found, err := decider.Remedies(t.Context(), in.Input, client.RemediesQuestion{Job: job})
	require.NoError(t, err)
	var kinds []string
	for _, remedy := range found.Answer.GetRemedies() {
		kinds = append(kinds, strings.TrimPrefix(remedy.GetKind().String(), "REMEDY_KIND_"))
		if remedy.GetKind() == apportionv1.RemedyKind_REMEDY_KIND_EVICTION {
			continue
		}
		made, err := variationOf(t, remedy.GetWhatifArguments()).Of(in.Lookup, nil)
		require.NoError(t, err, "%s", remedy.GetWhatifArguments())
		varied := in.Input
		varied.Snapshot = made.Base.Snapshot
		answered, err := decider.Simulate(t.Context(), varied,
			&apportionv1.Step{Step: &apportionv1.Step_Change{Change: &apportionv1.ChangeStep{Change: made.Change}}},
			&apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: &apportionv1.RemediesStep{
				Job: &apportionv1.Selector{Names: []string{job}}, Kinds: []apportionv1.RemedyKind{apportionv1.RemedyKind_REMEDY_KIND_OPEN},
			}}})
		require.NoError(t, err)
		require.NoError(t, answered.Err(0), "%s", remedy.GetWhatifArguments())
		require.Equal(t, apportionv1.RemedyOutcome_REMEDY_OUTCOME_RUNS_NOW, answered.Answers[1].GetRemedies().GetOutcome(),
			"%s: %s", remedy.GetText(), remedy.GetWhatifArguments())
	}
	return kinds
}

// flagsOf returns the flags that name the input of a cause.
func flagsOf(c *cause) question.InputFlags {
	var flags question.InputFlags
	flags.Files, flags.AsOf = []string{filepath.Join(c.folder, "dump.yaml")}, c.headers["as-of"]
	if config := filepath.Join(c.folder, "volcano-scheduler.conf"); exists(config) {
		flags.Policy = config
	}
	return flags
}

// TestWhatIfMakesEachRemedyOfACauseTrue tries the remedies of every cause in testdata/pending, and of the sample cluster.
func TestWhatIfMakesEachRemedyOfACauseTrue(t *testing.T) {
	kinds := map[string]int{}
	for name, c := range causes(t) {
		if c.headers["check"] == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			flags := flagsOf(c)
			in, err := flags.Load(t.Context(), cli.Streams{In: strings.NewReader(""), Err: io.Discard})
			require.NoError(t, err)
			for _, kind := range tryRemedies(t, in, jobOf(in, c.headers["job"])) {
				kinds[kind]++
			}
		})
	}
	t.Run("sample", func(t *testing.T) {
		flags := question.InputFlags{Files: []string{filepath.Join("..", "..", "examples", "clusters", "research")}}
		in, err := flags.Load(t.Context(), cli.Streams{In: strings.NewReader(""), Err: io.Discard})
		require.NoError(t, err)
		for _, job := range []string{"language/pretrain-7b", "robotics/grasp-train", "robotics/grasp-eval"} {
			for _, kind := range tryRemedies(t, in, jobOf(in, job)) {
				kinds[kind]++
			}
		}
	})
	t.Log(kinds)
	for _, kind := range []string{
		"MINIMUM", "REQUEST", "QUEUE", "OPEN", "CAPABILITY", "WEIGHT", "NODES", "UNCORDON", "COMBINED", "JOBS_END", "EVICTION",
		"OTHER_NODES",
	} {
		require.Positive(t, kinds[kind], kind)
	}
}

// TestNoRemedyIsListedThatRulesPrevent asks about jobs that wait because of rules on other pods, or of volumes. A new node joins the zone of
// the one that it is like, has the pods that every node has, and no volume of another node.
func TestNoRemedyIsListedThatRulesPrevent(t *testing.T) {
	for name, want := range map[string][]string{
		"pod-anti-affinity": {"NODES n1", "JOBS_END"}, "topology-spread": {"REQUEST", "NODES b1", "JOBS_END"}, "port-of-every-node": nil,
		"volume-in-a-full-zone": {"REQUEST", "NODES a1", "JOBS_END"}, "volume-on-a-full-node": {"REQUEST", "JOBS_END"}, "claim-missing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			flags := question.InputFlags{Files: []string{filepath.Join("..", "..", "testdata", "pending", name, "dump.yaml")}}
			in, err := flags.Load(t.Context(), cli.Streams{In: strings.NewReader(""), Err: io.Discard})
			require.NoError(t, err)
			found, err := client.InProcess().Remedies(t.Context(), in.Input, client.RemediesQuestion{Job: jobOf(in, "ml/train")})
			require.NoError(t, err)
			var got []string
			for _, remedy := range found.Answer.GetRemedies() {
				kind := strings.TrimPrefix(remedy.GetKind().String(), "REMEDY_KIND_")
				if kind == "NODES" {
					kind += " " + remedy.GetEdits()[0].GetNodeName()
				}
				got = append(got, kind)
			}
			require.Equal(t, want, got)
		})
	}
}

// TestAForecastRespectsRulesOnOtherPodsAndVolumes: the end of a job counts where it frees what rules and volumes leave to the waiting one.
func TestAForecastRespectsRulesOnOtherPodsAndVolumes(t *testing.T) {
	for name, ends := range map[string][]string{
		"pod-anti-affinity": {"serve", "more"}, "topology-spread": {"other"}, "volume-on-a-full-node": {"other"}, "volume-in-a-full-zone": {"other"},
	} {
		for _, job := range ends {
			t.Run(name+"/"+job, func(t *testing.T) {
				dump, err := os.ReadFile(filepath.Join("..", "..", "testdata", "pending", name, "dump.yaml"))
				require.NoError(t, err)
				group := "metadata: {name: " + job + ", namespace: ml"
				require.Contains(t, string(dump), group+"}")
				file := filepath.Join(t.TempDir(), "dump.yaml")
				annotated := strings.Replace(string(dump), group, group+", annotations: {apportion.dev/expected-end: 2026-03-02T13:00:00Z}", 1)
				require.NoError(t, os.WriteFile(file, []byte(annotated), 0o600))
				said := unwrapped(outputOf(t, cli.ExitNo, "explain", "ml/train", "--no-remedies", "-f", file, "--as-of", "2026-03-02T12:00:00Z"))
				require.Contains(t, said, "ml/train could start at 2026-03-02 13:00:00 UTC")
			})
		}
	}
}
