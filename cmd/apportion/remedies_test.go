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
	"github.com/apportion/apportion/internal/editing"
	"github.com/apportion/apportion/internal/text"
)

// variationOf reads arguments of whatif.
func variationOf(t *testing.T, arguments []string) *variation.Variation {
	t.Helper()
	v, flags := &variation.Variation{}, pflag.NewFlagSet("whatif", pflag.ContinueOnError)
	v.Flags(flags)
	require.NoError(t, flags.Parse(arguments))
	return v
}

// kindOf is the means of a remedy, or the kind of its edits.
func kindOf(r *apportionv1.Remedy) string {
	if kind := text.EditsOf(r); kind != apportionv1.EditKind_EDIT_KIND_UNSPECIFIED {
		return strings.TrimPrefix(kind.String(), "EDIT_KIND_")
	}
	return strings.TrimPrefix(r.GetMeans().String(), "REMEDY_MEANS_")
}

// whatIf returns the arguments of whatif that make a remedy.
func whatIf(in *question.Loaded, r *apportionv1.Remedy) []string {
	names := in.Lookup.Names(&apportionv1.Basis{Dimensions: in.Lookup.GetDimensions()})
	names.Job, names.Node = in.Lookup.JobName, in.Lookup.NodeName
	return editing.Arguments(names, r)
}

// tryRemedies asks for the remedies of a job and makes each change as whatif does: the job then has a place. It returns the kinds.
func tryRemedies(t *testing.T, in *question.Loaded, job string) []string {
	t.Helper()
	decider := client.InProcess()
	found, err := decider.Remedies(t.Context(), in.Input, client.RemediesQuestion{Job: job})
	require.NoError(t, err)
	var kinds []string
	for _, remedy := range found.Answer.GetRemedies() {
		kinds = append(kinds, kindOf(remedy))
		if remedy.GetMeans() == apportionv1.RemedyMeans_REMEDY_MEANS_EVICTION {
			continue
		}
		arguments := whatIf(in, remedy)
		made, err := variationOf(t, arguments).Of(in.Lookup, nil)
		require.NoError(t, err, "%s", arguments)
		answered, err := decider.Simulate(t.Context(), made.After(in.Input),
			&apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: &apportionv1.RemediesStep{
				Job: &apportionv1.Selector{Names: []string{job}}, Kinds: []apportionv1.EditKind{apportionv1.EditKind_EDIT_KIND_OPEN},
			}}})
		require.NoError(t, err)
		require.NoError(t, answered.Err(0), "%s", arguments)
		require.Equal(t, apportionv1.RemedyOutcome_REMEDY_OUTCOME_RUNS_NOW, answered.Answers[0].GetRemedies().GetOutcome(),
			"%s: %s", remedy.GetText(), arguments)
	}
	return kinds
}

// flagsOf returns the flags that name the input of a cause.
func flagsOf(c *cause) question.InputFlags {
	var flags question.InputFlags
	flags.Files, flags.AsOf = []string{filepath.Join(c.folder, "dump.yaml")}, c.headers["as-of"]
	flags.Policy = c.preset()
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
		flags := question.InputFlags{Files: []string{filepath.Join("..", "..", "examples", "clusters", "research")}, Policy: "proportion"}
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
		"MINIMUM", "REQUEST", "QUEUE", "OPEN", "CAPABILITY", "WEIGHT", "NODES_LIKE", "UNCORDON", "COMBINED", "END", "EVICTION",
		"ALLOWED_NODE",
	} {
		require.Positive(t, kinds[kind], kind)
	}
}

// TestNoRemedyIsListedThatRulesPrevent asks about jobs that wait because of rules on other pods, or of volumes. A new node joins the zone of
// the one that it is like, has the pods that every node has, and no volume of another node.
func TestNoRemedyIsListedThatRulesPrevent(t *testing.T) {
	for name, want := range map[string][]string{
		"pod-anti-affinity": {"NODES_LIKE n1", "END"}, "topology-spread": {"REQUEST", "NODES_LIKE b1", "END"}, "port-of-every-node": nil,
		"volume-in-a-full-zone": {"REQUEST", "NODES_LIKE a1", "END"}, "volume-on-a-full-node": {"REQUEST", "END"}, "claim-missing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			flags := question.InputFlags{Files: []string{filepath.Join("..", "..", "testdata", "pending", name, "dump.yaml")}}
			in, err := flags.Load(t.Context(), cli.Streams{In: strings.NewReader(""), Err: io.Discard})
			require.NoError(t, err)
			found, err := client.InProcess().Remedies(t.Context(), in.Input, client.RemediesQuestion{Job: jobOf(in, "ml/train")})
			require.NoError(t, err)
			var got []string
			for _, remedy := range found.Answer.GetRemedies() {
				kind := kindOf(remedy)
				if kind == "NODES_LIKE" {
					kind += " " + remedy.GetEdits()[0].GetNode().GetName()
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
