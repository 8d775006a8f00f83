package history

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/store"
)

var (
	gpus = Cause{
		Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED, Check: apportionv1.CheckKind_CHECK_KIND_NODES,
		Code: apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE, Dimension: "nvidia.com/gpu",
	}
	limit = Cause{
		Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED, Check: apportionv1.CheckKind_CHECK_KIND_SHARE,
		Code: apportionv1.CauseCode_CAUSE_CODE_ABOVE_REAL_CAPABILITY, Dimension: "cpu", Queue: "ml",
	}
	turn  = Cause{Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN}
	large = Options{Retain: time.Hour, Step: 10 * time.Second, Gap: 3 * time.Minute, Bytes: 64 << 20}
)

const start = int64(1_000_000 * time.Second)

// at is a number of minutes after the start.
func at(minutes int) int64 { return start + int64(minutes)*int64(time.Minute) }

// version is a version with waiting jobs by name, and without queues.
func version(minutes int, waits map[string]Cause, exist ...string) *Version {
	v := &Version{At: at(minutes), Exists: func(id string) bool { return slices.Contains(exist, id) }}
	for _, name := range slices.Sorted(maps.Keys(waits)) {
		v.Jobs = append(v.Jobs, Job{ID: name, Name: "ns/" + name, Queue: "ml", Cause: waits[name]})
	}
	return v
}

func jobOf(t *testing.T, h *History, name string) *apportionv1alpha1.JobHistory {
	t.Helper()
	out := h.Answer(&apportionv1alpha1.GetHistoryRequest{Jobs: []string{name}}, &Audience{})
	require.Len(t, out.GetJobs(), 1)
	return out.GetJobs()[0]
}

func TestAJobHasAnIntervalForEachCauseInTurn(t *testing.T) {
	h := New(large)
	for minute, cause := range []Cause{gpus, gpus, limit, limit, limit} {
		require.NoError(t, h.Take(version(minute, map[string]Cause{"a": cause})))
	}
	job := jobOf(t, h, "ns/a")
	require.Equal(t, apportionv1alpha1.WaitState_WAIT_STATE_WAITS, job.GetState())
	require.Equal(t, at(0), job.GetSince())
	require.Len(t, job.GetIntervals(), 2)
	first, second := job.GetIntervals()[0], job.GetIntervals()[1]
	require.Equal(t, []int64{at(0), at(2), at(2), at(4)}, []int64{first.GetStartTime(), first.GetEndTime(), second.GetStartTime(), second.GetEndTime()})
	require.Equal(t, []uint32{2, 3}, []uint32{first.GetVersions(), second.GetVersions()})
	require.False(t, first.GetLasts())
	require.True(t, second.GetLasts())
	require.Equal(t, "because no usable node has enough nvidia.com/gpu left", first.GetText())
	require.Equal(t, "because queue ml would hold more cpu than it may", second.GetText())
}

func TestAJobThatEndsIsForgottenAfterAWhile(t *testing.T) {
	h := New(large)
	require.NoError(t, h.Take(version(0, map[string]Cause{"a": gpus})))
	require.NoError(t, h.Take(version(1, nil, "a")))
	job := jobOf(t, h, "a")
	require.Equal(t, apportionv1alpha1.WaitState_WAIT_STATE_ENDED, job.GetState())
	require.Equal(t, at(1), job.GetEnded())
	require.NoError(t, h.Take(version(2, nil)))
	require.Equal(t, apportionv1alpha1.WaitState_WAIT_STATE_GONE, jobOf(t, h, "a").GetState())
	require.NoError(t, h.Take(version(61, nil)))
	jobOf(t, h, "a")
	require.NoError(t, h.Take(version(62, nil)))
	require.Empty(t, h.Answer(&apportionv1alpha1.GetHistoryRequest{Jobs: []string{"a"}}, &Audience{}).GetJobs())
	require.Zero(t, h.Bytes())
}

func TestAJobThatWaitsAgainWaitsSinceThen(t *testing.T) {
	h := New(large)
	require.NoError(t, h.Take(version(0, map[string]Cause{"a": gpus})))
	require.NoError(t, h.Take(version(1, nil, "a")))
	require.NoError(t, h.Take(version(2, map[string]Cause{"a": gpus})))
	job := jobOf(t, h, "a")
	require.Equal(t, at(2), job.GetSince())
	require.Zero(t, job.GetEnded())
	require.Len(t, job.GetIntervals(), 2)
}

func TestTooManyIntervalsAreMergedFromTheOldestOn(t *testing.T) {
	h := New(large)
	const changes = 3 * mostIntervals
	for i := range changes {
		require.NoError(t, h.Take(version(i, map[string]Cause{"a": []Cause{gpus, limit}[i%2]})))
	}
	intervals := jobOf(t, h, "a").GetIntervals()
	require.Len(t, intervals, mostIntervals)
	require.EqualValues(t, changes-mostIntervals, intervals[0].GetMerged())
	require.EqualValues(t, changes-mostIntervals+1, intervals[0].GetVersions())
	require.Equal(t, at(0), jobOf(t, h, "a").GetSince())
}

func TestAnOlderVersionIsIgnoredAndALongPauseIsAGap(t *testing.T) {
	h := New(large)
	require.NoError(t, h.Take(version(1, map[string]Cause{"a": gpus})))
	require.NoError(t, h.Take(version(0, nil)))
	require.NoError(t, h.Take(version(1, nil)))
	require.NoError(t, h.Take(version(10, map[string]Cause{"a": gpus})))
	out := h.Answer(&apportionv1alpha1.GetHistoryRequest{Waiting: true}, &Audience{})
	require.EqualValues(t, 2, out.GetVersions())
	require.Len(t, out.GetGaps(), 1)
	require.Equal(t, []int64{at(1), at(10)}, []int64{out.GetGaps()[0].GetStartTime(), out.GetGaps()[0].GetEndTime()})
	require.Len(t, out.GetJobs()[0].GetIntervals(), 1)
}

func TestAHistoryTellsThatAClockWasSetBack(t *testing.T) {
	h := New(large)
	require.NoError(t, h.Take(version(1000, map[string]Cause{"a": gpus})))
	require.NoError(t, h.Take(version(990, nil)))
	require.ErrorContains(t, h.Take(version(900, nil)), "a clock was set back: the version is of 1970-01-13T04:46:40Z, and the history goes on after 1970-01-13T06:26:40Z")
	require.NoError(t, h.Take(version(1001, nil)))
}

func TestAFullHistoryForgetsEndedJobsFirstAndThenTakesNoMore(t *testing.T) {
	small := large
	small.Bytes = 2 * 20 * (recordBytes + intervalBytes + 20)
	h := New(small)
	many := func(prefix string, n int) map[string]Cause {
		waits := map[string]Cause{}
		for i := range n {
			waits[fmt.Sprintf("%s%03d", prefix, i)] = gpus
		}
		return waits
	}
	require.NoError(t, h.Take(version(0, many("a", 15))))
	require.NoError(t, h.Take(version(1, many("b", 100))))
	require.NoError(t, h.Take(version(2, many("b", 100))))
	out := h.Answer(&apportionv1alpha1.GetHistoryRequest{Waiting: true}, &Audience{})
	require.NotEmpty(t, out.GetJobs())
	require.Equal(t, 100, int(out.GetUnrecordedJobs())+len(out.GetJobs()))
	require.LessOrEqual(t, h.Bytes(), small.Bytes/2)
}

func TestAnAudienceSeesItsOwnQueues(t *testing.T) {
	h := New(large)
	v := version(0, map[string]Cause{"a": limit})
	v.Jobs = append(v.Jobs, Job{ID: "b", Name: "ns/b", Queue: "own", Cause: limit})
	v.Queues = []Queue{{Name: "ml", Waiting: 1}, {Name: "own", Waiting: 1}}
	require.NoError(t, h.Take(v))
	own := func(name string) bool { return name == "own" }
	out := h.Answer(&apportionv1alpha1.GetHistoryRequest{Jobs: []string{"a", "b"}, Queues: []string{"ml", "own"}, Waiting: true}, &Audience{own, own})
	require.Len(t, out.GetJobs(), 2)
	for _, job := range out.GetJobs() {
		require.Equal(t, "b", job.GetUid())
		require.Empty(t, job.GetIntervals()[0].GetQueue())
		require.Equal(t, "because the queue would hold more cpu than it may", job.GetIntervals()[0].GetText())
	}
	require.Len(t, out.GetQueues(), 1)
	require.Equal(t, "own", out.GetQueues()[0].GetQueue())
}

// drawVersions draws a sequence of versions of a few jobs and queues, a few seconds to some minutes apart.
func drawVersions(t *rapid.T) []*Version {
	var out []*Version
	now := start
	for range rapid.IntRange(1, 80).Draw(t, "versions") {
		now += int64(rapid.SampledFrom([]time.Duration{3 * time.Second, 10 * time.Second, time.Minute, 4 * time.Minute, 40 * time.Minute}).Draw(t, "pause"))
		v := &Version{At: now, Dimensions: []string{"cpu", "memory"}}
		exist := map[string]bool{}
		for i := range 4 {
			id := fmt.Sprint("job", i)
			switch k := rapid.IntRange(0, 4).Draw(t, "job"); k {
			case 0:
			case 1:
				exist[id] = true
			default:
				exist[id] = true
				v.Jobs = append(v.Jobs, Job{ID: id, Name: "ns/" + id, Queue: "q0", Cause: []Cause{gpus, limit, turn}[k-2]})
			}
		}
		v.Exists = func(id string) bool { return exist[id] }
		for i := range 2 {
			if rapid.IntRange(0, 5).Draw(t, "queue") > 0 {
				amounts := func() []float64 {
					return []float64{float64(rapid.IntRange(0, 3).Draw(t, "cpu")), float64(rapid.IntRange(0, 3).Draw(t, "memory"))}
				}
				v.Queues = append(v.Queues, Queue{
					Name: fmt.Sprint("q", i), Waiting: rapid.IntRange(0, 2).Draw(t, "waiting"), Overused: rapid.Bool().Draw(t, "overused"),
					Deserved: amounts(), Allocated: amounts(), Request: amounts(),
				})
			}
		}
		out = append(out, v)
	}
	return out
}

// plainJob says from all versions what a job waited for. It keeps no state between versions.
func plainJob(all []*Version, id string, retain int64) *apportionv1alpha1.JobHistory {
	causeIn := func(v *Version) *Cause {
		for i := range v.Jobs {
			if v.Jobs[i].ID == id {
				return &v.Jobs[i].Cause
			}
		}
		return nil
	}
	var job *apportionv1alpha1.JobHistory
	for i, v := range all {
		now := causeIn(v)
		var before *Cause
		if i > 0 {
			before = causeIn(all[i-1])
		}
		switch {
		case now != nil && before != nil && *now == *before:
			last := job.GetIntervals()[len(job.GetIntervals())-1]
			last.EndTime, last.Versions = v.At, last.Versions+1
		case now != nil:
			if job == nil {
				job = &apportionv1alpha1.JobHistory{Uid: id, Name: "ns/" + id, Queue: "q0"}
			}
			if before == nil {
				job.Since = v.At
			} else {
				job.Intervals[len(job.Intervals)-1].EndTime = v.At
			}
			job.State, job.Ended = apportionv1alpha1.WaitState_WAIT_STATE_WAITS, 0
			job.Intervals = append(job.Intervals, &apportionv1alpha1.CauseInterval{
				Verdict: now.Verdict, Check: now.Check, Code: now.Code, Queue: now.Queue, Resource: now.Dimension,
				StartTime: v.At, EndTime: v.At, Versions: 1, Text: now.text(),
			})
		case before != nil:
			job.Intervals[len(job.Intervals)-1].EndTime = v.At
			job.State, job.Ended = apportionv1alpha1.WaitState_WAIT_STATE_ENDED, v.At
		}
		if job != nil && now == nil {
			if !v.Exists(id) {
				job.State = apportionv1alpha1.WaitState_WAIT_STATE_GONE
			}
			if v.At-job.GetEnded() > retain {
				job = nil
			}
		}
	}
	if job != nil && job.GetEnded() == 0 {
		job.Intervals[len(job.Intervals)-1].Lasts = true
	}
	return job
}

// Property: a history says what is said by looking through all versions, also if it is closed and opened between any two of them.
func TestAHistoryEqualsItsPlainTwin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		versions := drawVersions(r)
		h := New(large)
		path := filepath.Join(t.TempDir(), "history")
		var onDisk *History
		again := func() {
			var err error
			if onDisk != nil {
				require.NoError(r, onDisk.Close())
			}
			onDisk, err = Open(path, large)
			require.NoError(r, err)
		}
		again()
		defer func() { require.NoError(r, onDisk.Close()) }()
		for i, v := range versions {
			require.NoError(r, h.Take(v))
			require.NoError(r, onDisk.Take(v))
			if rapid.IntRange(0, 9).Draw(r, "restart") == 0 {
				again()
			}
			if i != len(versions)-1 && rapid.IntRange(0, 7).Draw(r, "compare") > 0 {
				continue
			}
			for id := range 4 {
				id := fmt.Sprint("job", id)
				want := plainJob(versions[:i+1], id, int64(large.Retain))
				for _, history := range []*History{h, onDisk} {
					got := history.Answer(&apportionv1alpha1.GetHistoryRequest{Jobs: []string{id}}, &Audience{}).GetJobs()
					if want == nil {
						require.Empty(r, got)
						continue
					}
					require.Len(r, got, 1)
					if len(want.GetIntervals()) <= mostIntervals {
						require.Empty(r, differs(want, got[0]))
					} else {
						require.Equal(r, want.GetSince(), got[0].GetSince())
					}
				}
			}
		}
		sameSeries(r, h, onDisk)
		totals(r, h, versions)
	})
}

func differs(want, got proto.Message) string {
	if proto.Equal(want, got) {
		return ""
	}
	return fmt.Sprintf("want %v\n got %v", want, got)
}

// sameSeries compares the queues of two histories.
func sameSeries(t require.TestingT, a, b *History) {
	ask := &apportionv1alpha1.GetHistoryRequest{Queues: []string{"q0", "q1"}}
	one, other := a.Answer(ask, &Audience{}), b.Answer(ask, &Audience{})
	require.Len(t, other.GetQueues(), len(one.GetQueues()))
	for i := range one.GetQueues() {
		require.Empty(t, differs(one.GetQueues()[i], other.GetQueues()[i]))
	}
	require.Equal(t, a.jobBytes, b.jobBytes)
	require.Equal(t, a.sampleBytes, b.sampleBytes)
}

// totals compares the samples of a history with the versions that they are the means of.
func totals(t require.TestingT, h *History, versions []*Version) {
	for i := range 2 {
		name := fmt.Sprint("q", i)
		answer := h.Answer(&apportionv1alpha1.GetHistoryRequest{Queues: []string{name}}, &Audience{}).GetQueues()
		if len(answer) == 0 {
			continue
		}
		samples := answer[0].GetSamples()
		sum, want, count, n := 0.0, 0.0, 0, 0
		for _, s := range samples {
			for _, a := range s.GetAmounts() {
				sum += (a.GetAllocated() + 2*a.GetDeserved() + 3*a.GetRequest()) * float64(s.GetVersions())
			}
			sum += 5 * s.GetWaitingJobs() * float64(s.GetVersions())
			count += int(s.GetVersions())
		}
		for _, v := range versions {
			for j := range v.Queues {
				q := &v.Queues[j]
				if q.Name != name || v.At < samples[0].GetStartTime() {
					continue
				}
				n++
				want += 5 * float64(q.Waiting)
				for d := range q.Allocated {
					want += q.Allocated[d] + 2*q.Deserved[d] + 3*q.Request[d]
				}
			}
		}
		require.Equal(t, n, count)
		require.InDelta(t, want, sum, 1e-6*math.Max(1, want))
	}
}

func TestASeriesIsCoarserTheLongerItIs(t *testing.T) {
	o := large
	o.Retain = 365 * 24 * time.Hour
	h := New(o)
	for i := range 5000 {
		v := version(i, nil)
		v.Dimensions, v.Queues = []string{"cpu"}, []Queue{{Name: "q0", Allocated: []float64{float64(i)}}}
		require.NoError(t, h.Take(v))
	}
	samples := h.Answer(&apportionv1alpha1.GetHistoryRequest{Queues: []string{"q0"}}, &Audience{}).GetQueues()[0].GetSamples()
	require.LessOrEqual(t, len(samples), mostSamples)
	require.Greater(t, len(samples), mostSamples/3)
	require.Equal(t, at(0), samples[0].GetStartTime())
	require.Equal(t, at(4999), samples[len(samples)-1].GetEndTime())
	for _, s := range samples {
		middle := float64(s.GetStartTime()+s.GetEndTime()-2*start) / 2 / float64(time.Minute)
		require.InDelta(t, middle, s.GetAmounts()[0].GetAllocated(), 1e-6)
	}
}

func TestADamagedOrForeignFileIsAClearError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h, err := Open(path, large)
	require.NoError(t, err)
	for i := range 50 {
		require.NoError(t, h.Take(version(i, map[string]Cause{fmt.Sprint("job", i%7): limit})))
	}
	_, err = Open(path, large)
	require.ErrorIs(t, err, store.ErrInUse)
	require.NoError(t, h.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)

	broken := slices.Clone(whole)
	for i := len(broken) / 4; i < len(broken); i += 7 {
		broken[i] ^= 0x55
	}
	require.NoError(t, os.WriteFile(path, broken, 0o600))
	_, err = Open(path, large)
	require.ErrorIs(t, err, store.ErrDamaged)
	require.ErrorContains(t, err, path)

	require.NoError(t, os.WriteFile(path, whole[:len(whole)/2], 0o600))
	_, err = Open(path, large)
	require.ErrorIs(t, err, store.ErrDamaged)

	other := filepath.Join(t.TempDir(), "other")
	file, err := store.Open(other, store.Options{Format: "something else", Tables: tables})
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, err = Open(other, large)
	require.ErrorContains(t, err, "something else")
}

func TestWhatWasTakenSurvivesAKillAtAnyTime(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "history")
	h, err := Open(path, large)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()) }()
	twin := New(large)
	for i := range 20 {
		v := version(i, map[string]Cause{"a": []Cause{gpus, limit}[i/3%2], fmt.Sprint("b", i/4): turn}, "a")
		v.Dimensions, v.Queues = []string{"cpu"}, []Queue{{Name: "q0", Waiting: i % 2, Allocated: []float64{float64(i)}}}
		require.NoError(t, h.Take(v))
		require.NoError(t, twin.Take(v))
		// A killed process leaves the file as it is now.
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		copied := filepath.Join(directory, "copy")
		require.NoError(t, os.WriteFile(copied, data, 0o600))
		left, err := Open(copied, large)
		require.NoError(t, err)
		ask := &apportionv1alpha1.GetHistoryRequest{Jobs: []string{"a"}, Waiting: true, Queues: []string{"q0"}}
		want, got := twin.Answer(ask, &Audience{}), left.Answer(ask, &Audience{})
		got.Started = want.GetStarted()
		require.Empty(t, differs(want, got))
		require.NoError(t, left.Close())
		require.NoError(t, os.Remove(copied))
	}
}

func TestWhatCouldNotBeStoredIsStoredByTheNextVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h, err := Open(path, large)
	require.NoError(t, err)
	require.NoError(t, h.Take(version(0, map[string]Cause{"a": gpus})))
	require.NoError(t, h.file.Close())
	require.Error(t, h.Take(version(1, map[string]Cause{"a": limit})))
	h.file, err = store.Open(path, store.Options{Format: format, Tables: tables})
	require.NoError(t, err)
	require.NoError(t, h.Take(version(2, map[string]Cause{"a": limit})))
	require.NoError(t, h.Close())
	again, err := Open(path, large)
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close()) }()
	require.Len(t, jobOf(t, again, "a").GetIntervals(), 2)
}

// FuzzASampleIsReadAsItWasWritten reads any bytes as a sample, and what is one as it was.
func FuzzASampleIsReadAsItWasWritten(f *testing.F) {
	f.Add((&sample{From: 1, Until: 5, Versions: 2, Waiting: 0.5, Amounts: []amount{{0, 1, 2, 3}, {2, 4, 5, 6}}}).encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		if !s.decode(7, data, 3) {
			return
		}
		var again sample
		require.True(t, again.decode(7, s.encode(), 3))
		require.Equal(t, s.encode(), again.encode())
	})
}
