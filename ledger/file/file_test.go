package file

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/store"
	"github.com/apportion/apportion/ledger"
)

var hourly = ledger.Options{Epoch: time.Hour, HalfLife: 2}

// evidence number n is one task that used n milli-cores for an hour, from hour n on.
func evidence(n int) *ledger.Evidence {
	return &ledger.Evidence{
		Task: "task-" + strconv.Itoa(n), Start: int64(n) * 3600, Path: []string{"q" + strconv.Itoa(n%7), "root"},
		Owner: "owner-" + strconv.Itoa(n%3), Amounts: map[string]int64{"cpu": int64(n)}, Seen: int64(n+1) * 3600,
	}
}

func enter(n int) func(*ledger.Ledger) error {
	return func(l *ledger.Ledger) error {
		err := l.Enter(evidence(n), 1<<32)
		l.Seal()
		return err
	}
}

func used(f *File) (root int64) {
	f.View(func(l *ledger.Ledger) {
		if v := l.Spent(0, 1<<20)[ledger.Line{Queue: "root"}]; v != nil {
			root = v[0]
		}
	})
	return root
}

// sum is what tasks 1 to n used.
func sum(n int) int64 { return int64(n) * int64(n+1) / 2 * 3600 }

func whole(f *File) string {
	text := ""
	f.View(func(l *ledger.Ledger) {
		for n := range int64(60) {
			text += fmt.Sprint(l.Usage(n), l.Spent(n, n+1))
		}
		text += fmt.Sprint(l.Counts(), l.Records())
	})
	return text
}

func TestALedgerIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f, err := Open(path, ledger.Options{Epoch: time.Hour, HalfLife: 2, Retain: 1000})
	require.NoError(t, err)
	for n := 1; n <= 40; n++ {
		require.NoError(t, f.Update(enter(n)))
	}
	before := whole(f)
	require.Equal(t, sum(40), used(f))
	require.NoError(t, f.Close())

	f, err = Open(path, ledger.Options{Epoch: time.Hour, HalfLife: 2, Retain: 1000})
	require.NoError(t, err)
	require.Equal(t, before, whole(f))

	var copied bytes.Buffer
	require.NoError(t, f.Backup(&copied))
	require.NoError(t, f.Close())
	restored := filepath.Join(t.TempDir(), "restored")
	require.NoError(t, os.WriteFile(restored, copied.Bytes(), 0o600))
	f, err = Read(restored, ledger.Options{Epoch: time.Hour, HalfLife: 2, Retain: 1000})
	require.NoError(t, err)
	require.Equal(t, before, whole(f))
	require.NoError(t, f.Close())
}

func TestTheFileStaysSmallWhenOldEpochsAreDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f, err := Open(path, hourly)
	require.NoError(t, err)
	var sizes []int64
	for n := 1; n <= 400; n++ {
		require.NoError(t, f.Update(enter(n)))
		if n%100 == 0 {
			sizes = append(sizes, f.Size())
		}
	}
	f.View(func(l *ledger.Ledger) { require.LessOrEqual(t, l.Records(), 6) })
	require.NoError(t, f.Close())
	require.Equal(t, sizes[1], sizes[3], "the file has the size of what it keeps")
}

// crowded is set in the process that is killed.
const crowded = "APPORTION_LEDGER_KILLED"

// TestMain writes one task after the other, in the process that is killed, and says so after each.
func TestMain(m *testing.M) {
	path := os.Getenv(crowded)
	if path == "" {
		os.Exit(m.Run())
	}
	f, err := Open(path, ledger.Options{Epoch: time.Hour, HalfLife: 2, Retain: 100000})
	if err != nil {
		fmt.Println("fault", err) //nolint:forbidigo // The process speaks to the test.
		os.Exit(1)
	}
	from, _ := strconv.Atoi(os.Args[len(os.Args)-1])
	for n := from; ; n++ {
		if err := f.Update(func(l *ledger.Ledger) error { return errors.Join(enter(n)(l), ended(n)(l)) }); err != nil {
			fmt.Println("fault", err) //nolint:forbidigo // The process speaks to the test.
			os.Exit(1)
		}
		fmt.Println("stored", n) //nolint:forbidigo // The process speaks to the test.
	}
}

func TestAKillAtAnyMomentLosesNothingThatWasAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	stored, rounds := 0, 20
	if testing.Short() {
		rounds = 4
	}
	for range rounds {
		command := exec.CommandContext(t.Context(), os.Args[0], strconv.Itoa(stored+1))
		command.Env = append(os.Environ(), crowded+"="+path)
		out, err := command.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, command.Start())
		lines := bufio.NewScanner(out)
		until := stored + 1 + rand.IntN(20)
		killed := false
		for lines.Scan() {
			n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "stored "))
			require.NoError(t, err, lines.Text())
			stored = n
			if n >= until && !killed {
				killed = true
				go func() {
					time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
					_ = command.Process.Signal(syscall.SIGKILL)
				}()
			}
		}
		require.Error(t, command.Wait())
		f, err := Open(path, ledger.Options{Epoch: time.Hour, HalfLife: 2, Retain: 100000})
		require.NoError(t, err)
		got, jobs := used(f), len(jobsOf(f))
		require.NoError(t, f.Close())
		// What was written and not yet acknowledged may be there.
		if got == sum(stored+1) {
			stored++
		}
		require.Equal(t, sum(stored), got)
		require.Equal(t, stored, jobs, "the last one runs, those before have ended")
	}
}

// ended follows a snapshot in which only job number n runs, without a request.
func ended(n int) func(*ledger.Ledger) error {
	name := "job-" + strconv.Itoa(n)
	return func(l *ledger.Ledger) error {
		l.Follow(&apportionv1.Snapshot{
			Queues: []*apportionv1.Queue{{Name: "q"}},
			Jobs: []*apportionv1.Job{{Name: name, Queue: "q", Groups: []*apportionv1.TaskGroup{{Tasks: []*apportionv1.Task{
				{Uid: name, Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING},
			}}}}},
		}, int64(n+1)*3600)
		return nil
	}
}

func jobsOf(f *File) (jobs []ledger.Job) {
	f.View(func(l *ledger.Ledger) { jobs = l.Jobs() })
	return jobs
}

func TestAFileOfAnEarlierProgramHasNoJobsAndTakesThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	var tables []string
	for _, table := range ledger.Tables() {
		if !slices.Contains(ledger.Later(), table) {
			tables = append(tables, string(table))
		}
	}
	old, err := store.Open(path, store.Options{Format: ledger.Format, Tables: tables})
	require.NoError(t, err)
	l, err := ledger.New(hourly)
	require.NoError(t, err)
	require.NoError(t, enter(1)(l))
	var entries []store.Entry
	for _, e := range l.Changes() {
		entries = append(entries, store.Entry{Table: string(e.Table), Key: e.Key, Value: e.Value})
	}
	require.NoError(t, old.Write(entries))
	require.NoError(t, old.Close())
	f, err := Read(path, hourly)
	require.NoError(t, err)
	require.Empty(t, jobsOf(f))
	require.NoError(t, f.Close())
	f, err = Open(path, hourly)
	require.NoError(t, err)
	require.NoError(t, f.Update(ended(2)))
	require.NoError(t, f.Close())
	f, err = Read(path, hourly)
	require.NoError(t, err)
	require.Len(t, jobsOf(f), 1)
	require.NoError(t, f.Close())
}

func TestAFailedWriteIsAnErrorAndTheNextOneStoresAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f, err := Open(path, hourly)
	require.NoError(t, err)
	write := f.write
	full := errors.New("no space left on device")
	f.write = func([]store.Entry) error { return full }
	require.ErrorIs(t, f.Update(enter(1)), full)
	require.ErrorIs(t, f.Update(enter(2)), full)
	require.Equal(t, sum(2), used(f), "the ledger goes on in memory")
	f.write = write
	require.NoError(t, f.Update(enter(3)))
	require.NoError(t, f.Close())
	f, err = Open(path, hourly)
	require.NoError(t, err)
	require.Equal(t, sum(3), used(f))
	require.NoError(t, f.Close())
}

func TestASecondProcessIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f, err := Open(path, hourly)
	require.NoError(t, err)
	_, err = Open(path, hourly)
	require.ErrorIs(t, err, store.ErrInUse)
	require.EqualError(t, err, path+": another process uses it")
	require.NoError(t, f.Close())
}

func TestALedgerOfAnotherEpochIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f, err := Open(path, hourly)
	require.NoError(t, err)
	require.NoError(t, f.Update(enter(1)))
	require.NoError(t, f.Close())
	_, err = Open(path, ledger.Options{Epoch: time.Minute})
	require.ErrorContains(t, err, "the ledger has epochs of 1h, not of 1m; another length begins a new ledger")
}

func TestALedgerIsReadAndChangedWhileItsDiskHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	f, err := Open(path, hourly)
	require.NoError(t, err)
	write, hangs, full := f.write, make(chan struct{}), make(chan error)
	f.write = func([]store.Entry) error {
		close(hangs)
		return <-full
	}
	stored := make(chan error)
	go func() { stored <- f.Update(enter(1)) }()
	<-hangs
	f.Change(func(l *ledger.Ledger) { require.NoError(t, enter(2)(l)) })
	require.Equal(t, sum(2), used(f))
	full <- errors.New("no space left on device")
	require.Error(t, <-stored)
	f.write = write
	require.NoError(t, f.Update(enter(3)))
	require.NoError(t, f.Close())
	f, err = Open(path, hourly)
	require.NoError(t, err)
	require.Equal(t, sum(3), used(f), "what could not be stored is stored later")
	require.NoError(t, f.Close())
}
