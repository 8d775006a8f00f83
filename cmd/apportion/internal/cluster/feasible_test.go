//go:build cluster

package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/test/kubescheduler"
)

// recorded is the file of recorded answers, which tests of the reader compare with ours.
var recorded = filepath.Join("..", "..", "..", "..", "adapter", "volcano", "testdata", "kubescheduler.jsonl.gz")

// schedule returns a random cluster with the scheduler's answers.
func (s *apiServer) schedule(t *testing.T, seed uint64) kubescheduler.Cluster {
	t.Helper()
	o := kubescheduler.Generate(seed)
	s.make(t, o)
	return kubescheduler.Cluster{Seed: seed, Pods: s.answers(t, o), Objects: s.objects(t)}
}

// TestRealAPIServerWithKubernetesSchedulerAnswersAsRecorded compares the recorded answers about random clusters with those of the scheduler;
// with -short it plays every fifth. KUBESCHEDULER_RECORD=200 records the answers about that many clusters again.
func TestRealAPIServerWithKubernetesSchedulerAnswersAsRecorded(t *testing.T) {
	record := number(t, "KUBESCHEDULER_RECORD", 0)
	var clusters []kubescheduler.Cluster
	if record == 0 {
		var err error
		clusters, err = kubescheduler.Read(recorded)
		require.NoError(t, err)
	}
	for seed := range record {
		clusters = append(clusters, kubescheduler.Cluster{Seed: uint64(seed)})
	}
	s := startServer(t)
	s.prepare(t)
	began := time.Now()
	for i := range clusters {
		if testing.Short() && i%5 != 0 {
			continue
		}
		t.Run(fmt.Sprint("seed ", clusters[i].Seed), func(t *testing.T) {
			defer s.clear(t)
			got := s.schedule(t, clusters[i].Seed)
			if record == 0 {
				require.Equal(t, clusters[i].Pods, got.Pods)
				require.JSONEq(t, string(clusters[i].Objects), string(got.Objects))
			}
			clusters[i] = got
		})
	}
	t.Logf("%d clusters in %v", len(clusters), time.Since(began).Round(time.Second))
	if record > 0 && !testing.Short() && !t.Failed() {
		require.NoError(t, os.MkdirAll(filepath.Dir(recorded), 0o755))
		require.NoError(t, kubescheduler.Write(recorded, clusters))
	}
}
