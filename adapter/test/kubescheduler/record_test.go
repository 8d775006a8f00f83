package kubescheduler_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/test/kubescheduler"
)

func TestTheMessageOfTheSchedulerIsReadAsCounts(t *testing.T) {
	three := []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		feasible []string
		message  string
		want     kubescheduler.Answer
		fault    string
	}{
		"nodes by reason": {
			message: "0/7 nodes are available: 2 Insufficient cpu, 5 node(s) had untolerated taint {key: a, b}.",
			want:    kubescheduler.Answer{Reasons: map[string]int{"Insufficient cpu": 2, "node(s) had untolerated taint {key: a, b}": 5}},
		},
		"some nodes passed": {
			feasible: three,
			message:  "0/4 nodes are available: 1 Insufficient memory, 3 node(s) passed every filter.",
			want:     kubescheduler.Answer{Reasons: map[string]int{"Insufficient memory": 1}},
		},
		"every node passed": {
			feasible: three, message: "0/3 nodes are available: 3 node(s) passed every filter.",
			want: kubescheduler.Answer{Reasons: map[string]int{}},
		},
		"the pod is rejected": {
			message: `0/3 nodes are available: persistentvolumeclaim "x" not found.`,
			want:    kubescheduler.Answer{Reasons: map[string]int{}, Rejected: `persistentvolumeclaim "x" not found`},
		},
		"another number of nodes passed": {
			feasible: three, message: "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) passed every filter.",
			fault: "2 nodes passed every filter, not 3",
		},
		"nodes passed that the message does not count": {
			feasible: three, message: "0/4 nodes are available: 4 Insufficient cpu.", fault: "3 nodes passed every filter",
		},
		"another message": {message: "the extender failed", fault: "not a message about nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			got := kubescheduler.Answer{Feasible: c.feasible}
			err := got.Explain(c.message)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			c.want.Feasible = c.feasible
			require.Equal(t, c.want, got)
		})
	}
}

func TestAFileOfAnswersIsReadAsItWasWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answers.jsonl.gz")
	clusters := []kubescheduler.Cluster{
		{Seed: 1, Objects: json.RawMessage(`{"items":[]}`), Pods: []kubescheduler.Answer{{Namespace: "n", Name: "p", Rejected: "no <volume>"}}},
		{Seed: 2, Objects: json.RawMessage(`{}`)},
	}
	require.NoError(t, kubescheduler.Write(file, clusters))
	got, err := kubescheduler.Read(file)
	require.NoError(t, err)
	require.Equal(t, clusters, got)
}

func TestASeedGivesOneCluster(t *testing.T) {
	for seed := range uint64(20) {
		first, again := kubescheduler.Generate(seed), kubescheduler.Generate(seed)
		require.Equal(t, first, again)
		require.NotEqual(t, first, kubescheduler.Generate(seed+1))
	}
}
