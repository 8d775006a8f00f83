package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
)

// TestALedgerInWhichAJobRanTwiceIsRehearsed has a job that ended, and began again under its name.
func TestALedgerInWhichAJobRanTwiceIsRehearsed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "usage.ledger")
	kept, err := file.Open(name, ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	for i, at := range []int64{1000, 1600, 2200, 2800, 3400} {
		s := &apportionv1.Snapshot{Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "lab"}}}
		if i%2 == 0 {
			s.Jobs = []*apportionv1.Job{{Uid: "again", Queue: "lab", CreateTime: 900e9, Groups: []*apportionv1.TaskGroup{{
				Request: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{2000}},
				Tasks:   []*apportionv1.Task{{Uid: "again-0", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING}},
			}}}}
		}
		require.NoError(t, kept.Update(func(l *ledger.Ledger) error { l.Follow(s, at); return nil }))
	}
	require.NoError(t, kept.Close())
	cluster := filepath.Join(t.TempDir(), "cluster.json")
	require.NoError(t, os.WriteFile(cluster, []byte(`{"dimensions": ["cpu"], "queues": [{"name": "lab"}],
		"nodes": [{"name": "n", "allocatable": {"dimensions": [0], "amounts": [2000]}}]}`), 0o600))
	code, out, errors := execute(t, "", "rehearse", "--snapshot", cluster, "--trace", name)
	require.Zero(t, code, errors)
	require.Contains(t, out+errors, `2 runs of jobs that ran before have a number behind the name; the first is of "again"`)
}
