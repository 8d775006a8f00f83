package kueue_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// TestEachCauseOfPendingIsTold explains the workload that the first line of each dump names, and expects the sentence of that line.
func TestEachCauseOfPendingIsTold(t *testing.T) {
	policy, _ := client.Preset("kueue")
	files, err := filepath.Glob("testdata/pending/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 20)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			first, _, _ := strings.Cut(string(data), "\n")
			job, sentence, found := strings.Cut(strings.TrimPrefix(first, "# "), ": ")
			require.True(t, found)
			cluster, err := kueue.Read([]objects.Source{{Name: file, Data: data}}, now)
			require.NoError(t, err)
			require.Equal(t, sentence, sentenceOf(t, cluster.Snapshot, policy, job))
		})
	}
}

// sentenceOf returns why a workload waits.
func sentenceOf(t *testing.T, snapshot *apportionv1.Snapshot, policy *apportionv1.Policy, job string) string {
	t.Helper()
	for _, l := range snapshot.GetLeftOuts() {
		if l.GetNamespace()+"/"+l.GetName() == job {
			return text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l})
		}
	}
	answer, err := client.InProcess().Explain(t.Context(), client.Input{Snapshot: snapshot, Policy: policy}, client.ExplainQuestion{Jobs: []string{job}})
	require.NoError(t, err)
	return answer.Answer.GetJobs()[0].GetText()
}
