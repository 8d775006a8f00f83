package decisionlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/decisionlog"
	"github.com/apportion/apportion/service/servicetest"
)

// memory is a sink that keeps lines, or is stuck until it is let go.
type memory struct {
	mutex sync.Mutex
	lines []string
	fault error
	stuck chan struct{}
	// full is the error of Flush; records that were held back until then are lost.
	full error
}

func (m *memory) Write(_ *decisionlog.Entry, line []byte) error {
	if m.stuck != nil {
		<-m.stuck
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.fault != nil {
		return m.fault
	}
	m.lines = append(m.lines, string(line))
	return nil
}

func (m *memory) Flush() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.full
}

func (*memory) Close() error { return nil }

func (m *memory) entries(t *testing.T) []decisionlog.Entry {
	t.Helper()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	out := make([]decisionlog.Entry, len(m.lines))
	for i, line := range m.lines {
		require.NoError(t, json.Unmarshal([]byte(line), &out[i]), line)
	}
	return out
}

var policies = map[string]*apportionv1.Policy{"cluster": servicetest.Proportion()}

func valueOf(t *testing.T, log *decisionlog.Log, name, label string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(log.Collectors()...)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	require.Fail(t, "no metric "+name)
	return 0
}

func TestACallIsWrittenDownWithWhatItsAnswerRestsOn(t *testing.T) {
	sink := &memory{}
	log := decisionlog.New(decisionlog.Options{Sink: sink})
	r := servicetest.Start(t, service.Options{Policies: policies, Observers: []service.Observer{log}})
	answer, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), "cluster")})
	require.NoError(t, err)
	_, err = r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: servicetest.Named(servicetest.Snapshot(1), "none")})
	require.Error(t, err)
	r.Stop()
	require.NoError(t, log.Close(t.Context()))

	entries := sink.entries(t)
	require.Len(t, entries, 2)
	first := entries[0]
	require.Equal(t, "EvaluateShares", first.Method)
	require.Equal(t, "cluster", first.PolicyName)
	require.Equal(t, "anonymous", first.Identity)
	require.Equal(t, answer.GetBasis().GetPolicyDigest(), first.PolicyDigest)
	require.Equal(t, answer.GetBasis().GetEngineVersion(), first.EngineVersion)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", first.SnapshotDigest, "though the snapshot came inline")
	require.Len(t, first.Steps, 1)
	require.Len(t, first.Answers, 1)
	require.Positive(t, first.Seconds)
	require.Contains(t, string(entries[1].Error), "POLICY_NOT_FOUND")
	require.Empty(t, entries[1].Answers)
	require.InDelta(t, 2, valueOf(t, log, "apportion_decision_log_written_total", ""), 0)
}

func TestMaskedFieldsAreNowhereInTheLine(t *testing.T) {
	sink := &memory{}
	log := decisionlog.New(decisionlog.Options{Sink: sink, Settings: setting.DecisionLog{Mask: []string{"uid", "name", "identity", "role"}}})
	r := servicetest.Start(t, service.Options{Policies: policies, Observers: []service.Observer{log}})
	snapshot := servicetest.Snapshot(1)
	uid := snapshot.GetJobs()[0].GetNamespace() + "/" + snapshot.GetJobs()[0].GetName()
	require.Greater(t, len(uid), 4)
	for _, asked := range []string{uid, "secret-job"} {
		_, _ = r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: servicetest.Named(snapshot, "cluster"), Steps: []*apportionv1.Step{
			{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{Jobs: &apportionv1.Selector{Names: []string{asked}}}}},
			{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
		}})
	}
	r.Stop()
	require.NoError(t, log.Close(t.Context()))
	require.Len(t, sink.lines, 2)
	for _, line := range sink.lines {
		require.NotContains(t, line, "secret-job")
		require.NotContains(t, line, `"`+uid+`"`)
		require.NotContains(t, line, "anonymous")
		require.NotContains(t, line, `"`+snapshot.GetQueues()[0].GetName()+`"`)
	}
	require.True(t, sink.entries(t)[0].Masked)
	require.Contains(t, sink.lines[1], "INVALID_STEP", "the reason of an error stays")
}

func TestWhatWasAskedMayBeLeftToADigest(t *testing.T) {
	sink := &memory{}
	log := decisionlog.New(decisionlog.Options{Sink: sink, Settings: setting.DecisionLog{Questions: setting.QuestionsDigest}})
	r := servicetest.Start(t, service.Options{Policies: policies, Observers: []service.Observer{log}})
	_, err := r.CheckEnqueue(t.Context(), &apportionv1.CheckEnqueueRequest{Input: servicetest.Named(servicetest.Snapshot(1), "cluster")})
	require.NoError(t, err)
	r.Stop()
	require.NoError(t, log.Close(t.Context()))
	entry := sink.entries(t)[0]
	require.Empty(t, entry.Steps)
	require.Regexp(t, "^sha256:", entry.StepsDigest)
}

func TestAStuckSinkHoldsUpNoCallAndTakesNoMoreMemory(t *testing.T) {
	for _, drop := range []string{"", "newest", setting.DropOldest, setting.DropBlock} {
		t.Run(drop, func(t *testing.T) {
			sink := &memory{stuck: make(chan struct{})}
			log := decisionlog.New(decisionlog.Options{
				Sink: sink, Settings: setting.DecisionLog{Drop: drop, Waiting: 16, WaitingBytes: 256 << 10, BlockTime: time.Millisecond},
			})
			r := servicetest.Start(t, service.Options{Policies: policies, Observers: []service.Observer{log}})
			request := &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), "cluster")}
			call := func() time.Duration {
				began := time.Now()
				_, err := r.EvaluateShares(t.Context(), request)
				require.NoError(t, err)
				return time.Since(began)
			}
			slowest := time.Duration(0)
			for range 50 {
				call()
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for range 300 {
				slowest = max(slowest, call())
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			require.Less(t, slowest, 2*time.Second, "a sink that never returns delays no call")
			require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))
			require.LessOrEqual(t, valueOf(t, log, "apportion_decision_log_queue_bytes", ""), float64(256<<10))
			require.LessOrEqual(t, valueOf(t, log, "apportion_decision_log_queue_length", ""), 16.0)
			require.Greater(t, valueOf(t, log, "apportion_decision_log_dropped_total", "full"), 250.0)

			hurried, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, log.Close(hurried), context.DeadlineExceeded)
			close(sink.stuck)
			r.Stop()
			require.NoError(t, log.Close(t.Context()))
			lost := uint64(0)
			for _, e := range sink.entries(t) {
				lost += e.Lost
			}
			require.Positive(t, lost, "the log says that something is missing")
		})
	}
}

func TestAShareOfTheCallsIsLogged(t *testing.T) {
	sink := &memory{}
	log := decisionlog.New(decisionlog.Options{Sink: sink, Settings: setting.DecisionLog{OneIn: 10}})
	wanted := 0
	for range 20_000 {
		if log.Wants(t.Context(), "EvaluateShares", "cluster") {
			wanted++
		}
	}
	// Ten standard deviations of a fair draw.
	require.InDelta(t, 2000, wanted, 425)

	all := decisionlog.New(decisionlog.Options{Sink: sink})
	r := servicetest.Start(t, service.Options{Policies: policies, Observers: []service.Observer{log, all}})
	for range 40 {
		_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), "cluster")})
		require.NoError(t, err)
	}
	r.Stop()
	require.NoError(t, all.Close(t.Context()))
	require.NoError(t, log.Close(t.Context()))
	require.Less(t, valueOf(t, log, "apportion_decision_log_written_total", ""), 40.0)
	require.Equal(t, 40.0, valueOf(t, all, "apportion_decision_log_written_total", ""))
}

func TestEntriesThatASinkCouldNotWriteAreCountedAndTheNextEntryTellsHowManyAreMissing(t *testing.T) {
	for name, sink := range map[string]*memory{
		"a write fails":                        {fault: errors.New("no space left")},
		"what was held back cannot be written": {full: errors.New("no space left")},
	} {
		t.Run(name, func(t *testing.T) {
			log := decisionlog.New(decisionlog.Options{Sink: sink})
			r := servicetest.Start(t, service.Options{Policies: policies, Observers: []service.Observer{log}})
			request := &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), "cluster")}
			for range 3 {
				_, err := r.EvaluateShares(t.Context(), request)
				require.NoError(t, err)
			}
			require.Eventually(t, func() bool { return valueOf(t, log, "apportion_decision_log_dropped_total", "sink") == 3 },
				5*time.Second, time.Millisecond)
			require.Zero(t, valueOf(t, log, "apportion_decision_log_written_total", ""))
			sink.mutex.Lock()
			sink.fault, sink.full = nil, nil
			before := len(sink.lines)
			sink.mutex.Unlock()
			_, err := r.EvaluateShares(t.Context(), request)
			require.NoError(t, err)
			r.Stop()
			require.NoError(t, log.Close(t.Context()))
			require.Equal(t, uint64(3), sink.entries(t)[before].Lost)
			require.Equal(t, 1.0, valueOf(t, log, "apportion_decision_log_written_total", ""))
		})
	}
}

func TestALineThatWasCutShortSpoilsNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"time":"2026-01-02T03:04:05Z","met`), 0o600))
	for range 2 {
		sink, err := decisionlog.NewFileSink(setting.DecisionLog{File: path})
		require.NoError(t, err)
		require.NoError(t, sink.Write(nil, []byte(`{"time":"2026-01-02T03:04:05Z","method":"EvaluateShares"}`)))
		require.NoError(t, sink.Close())
	}
	written, err := os.Open(path)
	require.NoError(t, err)
	defer written.Close()
	var outcomes []string
	require.NoError(t, decisionlog.NewReplayer(t.TempDir()).Replay(written, func(o decisionlog.Outcome) error {
		outcomes = append(outcomes, fmt.Sprint(o.Line, o.Skipped))
		return nil
	}))
	require.Len(t, outcomes, 3)
	require.Equal(t, "1it was truncated", outcomes[0])
	require.NotContains(t, outcomes[1]+outcomes[2], "cut short")
}

func TestAFileBeginsAnewWhenItIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	sink, err := decisionlog.NewFileSink(setting.DecisionLog{File: path, FileBytes: 100, Keep: 2})
	require.NoError(t, err)
	for i := range 9 {
		require.NoError(t, sink.Write(nil, bytes.Repeat([]byte{byte('a' + i)}, 39)))
	}
	require.NoError(t, sink.Close())
	read := func(name string) string {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(data)
	}
	require.Equal(t, "i", read(path)[:1])
	require.Equal(t, "gh", strings.ReplaceAll(strings.ReplaceAll(read(path+".1"), strings.Repeat("g", 38)+"\n", ""), strings.Repeat("h", 38)+"\n", ""))
	require.Equal(t, "e", read(path + ".2")[:1])
	require.NoFileExists(t, path+".3")

	sink, err = decisionlog.NewFileSink(setting.DecisionLog{File: path, FileBytes: 100, Keep: 2})
	require.NoError(t, err)
	require.NoError(t, sink.Write(nil, []byte("j")))
	require.NoError(t, sink.Close())
	require.Contains(t, read(path), "i\nj\n", "a file that is there is gone on with")
}

func TestAFileThatIsMovedAwayIsNotWrittenOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	sink, err := decisionlog.NewFileSink(setting.DecisionLog{File: path})
	require.NoError(t, err)
	write := func(line string) {
		require.NoError(t, sink.Write(nil, []byte(line)))
		require.NoError(t, sink.Flush())
	}
	read := func(name string) string {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(data)
	}
	write("first")
	require.NoError(t, os.Rename(path, path+".moved"))
	write("second")
	write("third")
	require.Equal(t, "first\n", read(path+".moved"))
	require.Equal(t, "second\nthird\n", read(path))
	require.NoError(t, os.Remove(path))
	write("fourth")
	require.Equal(t, "fourth\n", read(path))
	require.NoError(t, os.Rename(path, path+".moved"))
	require.NoError(t, os.WriteFile(path, []byte("not ended"), 0o600))
	write("fifth")
	require.Equal(t, "not ended\nfifth\n", read(path), "another file of its name is gone on with")
	require.NoError(t, sink.Close())
}

func TestAStoreKeepsTheNewest(t *testing.T) {
	directory := t.TempDir()
	store, err := decisionlog.OpenStore(directory, 250)
	require.NoError(t, err)
	for _, digest := range []string{"sha256:a", "sha256:b", "sha256:c"} {
		require.NoError(t, store.Snapshot(digest, make([]byte, 100)))
	}
	_, err = decisionlog.ReadSnapshot(directory, "sha256:a")
	require.ErrorIs(t, err, decisionlog.ErrNotStored)
	data, err := decisionlog.ReadSnapshot(directory, "sha256:c")
	require.NoError(t, err)
	require.Len(t, data, 100)
	_, err = decisionlog.ReadSnapshot(directory, "../../etc/passwd")
	require.ErrorIs(t, err, decisionlog.ErrNotStored)

	again, err := decisionlog.OpenStore(directory, 250)
	require.NoError(t, err)
	require.NoError(t, again.Snapshot("sha256:d", make([]byte, 100)))
	_, err = decisionlog.ReadSnapshot(directory, "sha256:b")
	require.ErrorIs(t, err, decisionlog.ErrNotStored)
}
