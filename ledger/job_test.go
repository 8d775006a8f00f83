package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
)

// ran is a snapshot with jobs of one task each, which run or wait.
func ran(jobs map[string]apportionv1.TaskStatus) *apportionv1.Snapshot {
	s := cluster()
	s.Jobs = nil
	for _, name := range []string{"j1", "j2", "j3"} {
		if status, is := jobs[name]; is {
			s.Jobs = append(s.Jobs, &apportionv1.Job{
				Name: name, Namespace: "ns", Queue: "a", Owner: "ann", CreateTime: 900e9, Priority: 7, MinAvailable: 1,
				Groups: []*apportionv1.TaskGroup{{Request: resource(1500), Tasks: []*apportionv1.Task{task(name+"-0", status, 0)}}},
			})
		}
	}
	return s
}

const pending = apportionv1.TaskStatus_TASK_STATUS_PENDING

func TestAJobThatEndedIsRememberedWithItsTimes(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j1": pending}), 1000)
	require.Empty(t, l.Jobs(), "what waits has not run")
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j1": running}), 1100)
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j1": pending, "j2": running}), 1200)
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j1": running, "j2": running}), 1300)
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j2": running}), 1400)
	require.Equal(t, []ledger.Job{
		{
			Name: "ns/j1", Queue: "a", Owner: "ann", Priority: 7, Tasks: 1, Min: 1, Request: map[string]int64{"cpu": 1500},
			Arrived: 900, Began: 1100, Ended: 1300,
		},
		{
			Name: "ns/j2", Queue: "a", Owner: "ann", Priority: 7, Tasks: 1, Min: 1, Request: map[string]int64{"cpu": 1500},
			Arrived: 900, Began: 1200, Ended: 1400, Runs: true,
		},
	}, l.Jobs(), "an eviction does not end a job")
}

func TestAJobOfTheSameNameIsAnotherJob(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	for at := int64(1000); at < 1400; at += 200 {
		l.Follow(ran(map[string]apportionv1.TaskStatus{"j1": running}), at)
		l.Follow(ran(nil), at+100)
	}
	jobs := l.Jobs()
	require.Len(t, jobs, 2)
	require.Equal(t, []int64{1000, 1000, 1200, 1200}, []int64{jobs[0].Began, jobs[0].Ended, jobs[1].Began, jobs[1].Ended})
}

func TestTheJobsThatEndedFirstAreDropped(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	s := ran(nil)
	for i := range ledger.MaxJobs + 10 {
		name := fmt.Sprintf("job-%05d", i)
		tasks := []*apportionv1.Task{task(name, running, int64(1+i))}
		s.Jobs = append(s.Jobs, &apportionv1.Job{Name: name, Queue: "a", Groups: []*apportionv1.TaskGroup{{Tasks: tasks}}})
	}
	l.Follow(s, 50_000)
	require.Len(t, l.Jobs(), ledger.MaxJobs, "no more than this run at once")
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j1": running}), 50_100)
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j1": running}), 50_150)
	l.Follow(ran(nil), 50_200)
	jobs := l.Jobs()
	require.Len(t, jobs, ledger.MaxJobs)
	require.Equal(t, "/job-00001", jobs[0].Name)
	require.Equal(t, "ns/j1", jobs[len(jobs)-1].Name)
}

func TestJobsAreStoredAndMerged(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	read, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j1": running, "j2": running}), 1100)
	l.Follow(ran(map[string]apportionv1.TaskStatus{"j2": running}), 1200)
	load(t, read, l)
	require.Equal(t, l.Jobs(), read.Jobs())
	// j2 ended while the ledger was not there.
	read.Follow(ran(nil), 5000)
	require.Equal(t, int64(1200), read.Jobs()[1].Ended)
	require.False(t, read.Jobs()[1].Runs)

	other, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	require.NoError(t, other.Merge(read))
	require.NoError(t, other.Merge(read))
	require.Equal(t, read.Jobs(), other.Jobs())
}

// load reads into one ledger what another stores.
func load(t *testing.T, to, from *ledger.Ledger) {
	t.Helper()
	changes := from.Changes()
	for _, table := range ledger.Tables() {
		for _, e := range changes {
			if e.Table == table {
				require.NoError(t, to.Load(e))
			}
		}
	}
}
