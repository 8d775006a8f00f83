package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/decisionlog"
)

const header = "arrival,job,queue,priority,tasks,min,cpu,gpu,seconds\n"

func TestACSVHasALineForEachJob(t *testing.T) {
	trace, err := ReadCSV("week.csv", strings.NewReader("# a comment\n"+header+"60,late,a,0,2,1,4,1,30\n0,early,b,-5,1,,500m,,10\n"), Strict)
	require.NoError(t, err)
	require.Equal(t, []Job{
		{Name: "early", Queue: "b", Priority: -5, Min: 1, Seconds: 10, Groups: []Group{{"task", 1, []Amount{{"cpu", 500}}}}},
		{Name: "late", Queue: "a", Arrival: 60, Min: 1, Seconds: 30, Groups: []Group{{"task", 2, []Amount{{"cpu", 4000}, {"nvidia.com/gpu", 1000}}}}},
	}, trace.Jobs)
	require.Equal(t, []string{"a", "b"}, trace.Queues())
	require.Equal(t, []string{"cpu", "nvidia.com/gpu"}, trace.Resources())
}

func TestATraceSaysWhichJobsMayNotBeEvicted(t *testing.T) {
	trace, err := ReadCSV("f", strings.NewReader("arrival,queue,seconds,cpu,preemptable\n0,a,1,1,false\n1,a,1,1,\n2,a,1,1,true\n"), Strict)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false}, []bool{trace.Jobs[0].Protected, trace.Jobs[1].Protected, trace.Jobs[2].Protected})
}

func TestTheMarkAgainstFormulasIsTakenOff(t *testing.T) {
	trace, err := ReadCSV("marked.csv", strings.NewReader("arrival,queue,seconds,cpu\n0,'=a,1,1\n"), Strict)
	require.NoError(t, err)
	require.Equal(t, "=a", trace.Jobs[0].Queue)
}

func TestColumnsThatAreAbsentHaveDefaults(t *testing.T) {
	trace, err := ReadCSV("short.csv", strings.NewReader("seconds,memory,queue,arrival\n5,1Gi,a,2026-03-02T00:01:00Z\n5,1Gi,a,2026-03-02T01:00:00+01:00\n"), Strict)
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC), trace.Start)
	request := []Group{{"task", 1, []Amount{{"memory", 1 << 30}}}}
	require.Equal(t, []Job{
		{Name: "job-3", Queue: "a", Min: 1, Seconds: 5, Groups: request},
		{Name: "job-2", Queue: "a", Arrival: 60, Min: 1, Seconds: 5, Groups: request},
	}, trace.Jobs)
}

func TestATraceIsRepeated(t *testing.T) {
	trace, err := ReadCSV("day.csv", strings.NewReader("arrival,job,queue,owner,seconds,cpu\n0,a,q,eve,5,1\n90000,b,q,,5,1\n"), Strict)
	require.NoError(t, err)
	require.Equal(t, "eve", trace.Jobs[0].Owner)
	require.NoError(t, trace.Repeat(3, 86_400))
	var jobs []string
	for _, j := range trace.Jobs {
		jobs = append(jobs, fmt.Sprint(j.Name, " ", j.Arrival))
	}
	require.Equal(t, []string{"a 0", "a/2 86400", "b 90000", "a/3 172800", "b/2 176400", "b/3 262800"}, jobs)
	require.ErrorContains(t, trace.Repeat(MaxJobs, 1), "are more than 5000000")
	require.ErrorContains(t, trace.Repeat(2, maxSeconds), "would end after more than")
}

func TestFaultsOfACSVAreNamedByLineAndColumn(t *testing.T) {
	manyResources := ""
	for i := range 65 {
		manyResources += ",r" + strconv.Itoa(i)
	}
	for story, test := range map[string]struct{ file, want string }{
		"empty":             {"", "f:1: the first line must name the columns"},
		"missing columns":   {"arrival,cpu\n", "f:1: queue: the column is missing\nf:1: seconds: the column is missing"},
		"no resource":       {"arrival,queue,seconds\n", "f:1: a column of a resource is missing, such as cpu or gpu"},
		"a column twice":    {"arrival,queue,seconds,gpu,nvidia.com/gpu\n", "f:1: nvidia.com/gpu: the column is given twice"},
		"no number":         {header + "x,j,a,0,1,1,1,1,60\n", `f:2: arrival: "x" is not a whole number from 0 to`},
		"too many tasks":    {header + "0,j,a,0,100001,1,1,1,60\n", `f:2: tasks: "100001" is not a whole number from 1 to 100000`},
		"minimum too high":  {header + "0,j,a,0,2,3,1,1,60\n", `f:2: min: "3" is not a whole number from 1 to 2`},
		"no seconds":        {header + "0,j,a,0,2,2,1,1,\n", `f:2: seconds: "" is not a whole number`},
		"bad quantity":      {header + "0,j,a,0,2,2,1,1Q,60\n", `f:2: gpu: "1Q" is not a quantity`},
		"unlimited":         {header + "0,j,a,0,2,2,1,unlimited,60\n", `f:2: gpu: "unlimited" is not a quantity`},
		"too few fields":    {header + "\n0,j,a\n", "f:3: the number of fields differs from the number of columns"},
		"a quote":           {header + "0,\"j,a,0,2,2,1,1,60\n", "f:2: column 21: extraneous or missing"},
		"twice":             {header + "0,j,a,0,1,1,1,1,60\n1,j,a,0,1,1,1,1,60\n", `f:3: job: job "j" is in line 2 already`},
		"moments and times": {header + "0,j,a,0,1,1,1,1,60\n2026-03-02T00:00:00Z,k,a,0,1,1,1,1,60\n", "f:3: arrival: some arrivals are times"},
		"neither":           {"arrival,queue,seconds,cpu,preemptable\n0,a,1,1,maybe\n", `f:2: preemptable: "maybe" is neither true nor false`},
		"a long line":       {header + "0,j,a,0,1,1,1,1,60\n" + strings.Repeat(",", 4<<20), "f:3: the line, or a field in quotes"},
		"a long header":     {strings.Repeat(",", 4<<20), "f:1: the line, or a field in quotes that goes on here, is longer than 65536 bytes"},
		"quotes of lines":   {header + "0,\"" + strings.Repeat("j\n", 1<<20), "is longer than 65536 bytes"},
		"many resources":    {"arrival,queue,seconds" + manyResources + "\n", "f:1: 65 columns of resources are more than 64"},
		"no queue":          {header + "0,j, ,0,1,1,1,1,60\n", "f:2: queue: a name of 1 to 1000 bytes is needed"},
	} {
		_, err := ReadCSV("f", strings.NewReader(test.file), Strict)
		require.ErrorContains(t, err, test.want, story)
	}
	_, err := ReadCSV("f", strings.NewReader(header+strings.Repeat("x,j,a,0,1,1,1,1,60\n", 1_000_000)), Strict)
	require.Len(t, strings.Split(err.Error(), "\n"), mostFaults+1, "the first faults, and that there are more")
}

func TestALineWithAWrongArrivalLeavesTheOthersOfTheHistoryIn(t *testing.T) {
	const dated = header + "2026-03-02T00:00:00Z,a,q,0,1,1,1,1,60\n2026-13-99T00:00:00Z,b,q,0,1,1,1,1,60\n" +
		"7,c,q,0,1,1,1,1,60\n2026-03-02T00:00:10Z,d,q,0,1,1,1,1,60\n"
	const plain = header + "soon,a,q,0,1,1,1,1,60\n0,b,q,0,1,1,1,1,60\n2026-03-02T00:00:00Z,c,q,0,1,1,1,1,60\n10,d,q,0,1,1,1,1,60\n"
	for name, file := range map[string]string{"dated": dated, "plain": plain} {
		read, err := ReadCSV("f", strings.NewReader(file), Tolerant)
		require.NoError(t, err, name)
		require.Len(t, read.Jobs, 2, name)
		require.EqualValues(t, 10, read.Jobs[1].Arrival, name)
		require.Equal(t, 2, read.Faulty.Total, name)
	}
	_, err := ReadCSV("f", strings.NewReader(dated), Strict)
	require.ErrorContains(t, err, `f:3: arrival: "2026-13-99T00:00:00Z" is not a time like 2006-01-02T15:04:05Z, as other arrivals are`)
}

func TestATimeWithoutAZoneIsReadAsSlurmPrintsIt(t *testing.T) {
	read, err := ReadCSV("f", strings.NewReader(header+"2026-11-02T01:00:00,a,q,0,1,1,1,1,60\n2026-11-02T02:30:00Z,b,q,0,1,1,1,1,60\n"), Strict)
	require.NoError(t, err)
	require.EqualValues(t, 5400, read.Jobs[1].Arrival)
	require.Equal(t, "2026-11-02T01:00:00Z", read.Start.Format(time.RFC3339))
}

// kth is made in the form of the archive's files.
const kth = `; Version: 2.2
; MaxNodes: 100
; UnixStartTime: 843460893
; Queue: 1 batch
;
    1        0     10   3600     4   -1   -1      4   7200 1048576  1   7  3 -1  1 -1 -1 -1
    2      100     -1     -1     8   -1   -1      8   7200      -1  5   7  3 -1  1 -1 -1 -1
    3      200      0    600    10   -1   -1     -1   7200      -1  0   8  4 -1  2 -1 -1 -1
    4      300      0    600    10   -1   -1     10   7200      -1  2   8  4 -1  2 -1 -1 -1
`

func TestAnArchivedTraceIsRead(t *testing.T) {
	swf := &SWF{Processor: []Amount{{"cpu", 1000}}, PerTask: 4}
	trace, err := swf.Read("kth.swf", strings.NewReader(kth))
	require.NoError(t, err)
	require.Equal(t, []Job{
		{Name: "job-1", Queue: "batch", Owner: "user-7", Min: 1, Seconds: 3600, Wait: 10, Waited: true, Groups: []Group{{"task", 1, []Amount{{"cpu", 4000}, {"memory", 4 << 30}}}}},
		{Name: "job-3", Queue: "queue-2", Owner: "user-8", Arrival: 200, Min: 3, Seconds: 600, Waited: true, Groups: []Group{
			{"task", 2, []Amount{{"cpu", 4000}}}, {"rest", 1, []Amount{{"cpu", 2000}}},
		}},
	}, trace.Jobs)
	require.Equal(t, int64(843460893), trace.Start.Unix())
	require.Equal(t, []string{
		"kth.swf: 1 job is left out: never ran", "kth.swf: 1 job is left out: part of a job that was suspended",
	}, trace.Notes)
}

func TestAColumnOfAnArchivedTraceTellsTheQueue(t *testing.T) {
	for column, want := range map[string]string{"user": "user-7", "group": "physics", "partition": "partition--1"} {
		swf := &SWF{QueueOf: column, Queues: map[string]string{"3": "physics"}, Processor: []Amount{{"cpu", 1000}}}
		trace, err := swf.Read("kth.swf", strings.NewReader(kth))
		require.NoError(t, err)
		require.Equal(t, want, trace.Jobs[0].Queue)
	}
	swf := &SWF{Queues: map[string]string{"1": "a", "*": "b"}, Processor: []Amount{{"cpu", 1000}}}
	trace, err := swf.Read("kth.swf", strings.NewReader(kth))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, trace.Queues())
	_, err = (&SWF{QueueOf: "executable"}).Read("kth.swf", strings.NewReader(kth))
	require.ErrorContains(t, err, `no column "executable" contains the queue`)
}

func TestFaultsOfAnArchivedTraceAreNamedByLineAndColumn(t *testing.T) {
	line := "1 0 10 3600 4 -1 -1 4 7200 1048576 1 7 3 -1 1 -1 -1 -1\n"
	for story, test := range map[string]struct{ file, want string }{
		"too few fields": {"; c\n1 2 3\n", "f:2: 3 fields, 18 are needed"},
		"no number":      {strings.Replace(line, "3600", "x", 1), `f:1: run time: "x" is not a number`},
		"not a number":   {strings.Replace(line, "3600", "NaN", 1), `f:1: run time: "NaN" is not a number`},
		"too long":       {strings.Replace(line, "3600", "1e12", 1), `f:1: run time: "1e12" is not a time`},
		"before":         {strings.Replace(line, "1 0", "1 -9", 1), `f:1: submit time: "-9" is not a time`},
		"too wide":       {strings.Replace(line, "-1 4 7200", "-1 9000000 7200", 1), `f:1: requested processors: "9000000" is more than`},
		"twice":          {line + line, "f:2: job number: job 1 is in line 1 already"},
		"a long line":    {"; c\n" + strings.Repeat("1", 1<<17), "f:2: the line is longer than"},
	} {
		_, err := (&SWF{}).Read("f", strings.NewReader(test.file))
		require.ErrorContains(t, err, test.want, story)
	}
}

// instant is a snapshot of jobs, named with the number of their tasks that run.
func instant(t *testing.T, jobs map[string]int) (string, *model.Model) {
	t.Helper()
	s := client.NewSnapshot()
	s.Node(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "64"}})
	s.Queue(client.Queue{Name: "a", Weight: 1})
	for _, name := range []string{"waits", "runs", "stays"} {
		running, there := jobs[name]
		if !there {
			continue
		}
		group := client.Group{Role: "w", Request: client.Resources{"cpu": "2"}, Tasks: make([]client.Task, 2)}
		if name == "stays" {
			group.Unjudged = []apportionv1.PlacementConstraint{apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES}
		}
		for i := range group.Tasks {
			group.Tasks[i].UID = fmt.Sprint(name, i)
			if i < running {
				group.Tasks[i].Status, group.Tasks[i].Node = apportionv1.TaskStatus_TASK_STATUS_RUNNING, "n"
			}
		}
		s.Job(client.Job{Name: name, Queue: "a", MinAvailable: 2, Created: time.Unix(1000, 0), Groups: []client.Group{group}})
	}
	snapshot, err := s.Build()
	require.NoError(t, err)
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	m, err := decode.CompileBytes(data)
	require.NoError(t, err)
	return decode.Digest(data), m
}

func TestADecisionLogShowsWhenJobsRan(t *testing.T) {
	models := map[string]*model.Model{}
	var log bytes.Buffer
	entry := func(second int64, jobs map[string]int) {
		digest, m := instant(t, jobs)
		models[digest] = m
		line, err := json.Marshal(decisionlog.Entry{Time: time.Unix(second, 0), Method: "EvaluateShares", SnapshotDigest: digest})
		require.NoError(t, err)
		log.Write(append(line, '\n'))
	}
	entry(1010, map[string]int{"waits": 0, "runs": 0})
	entry(1020, map[string]int{"waits": 0, "runs": 1})
	entry(1030, map[string]int{"waits": 1, "runs": 2})
	entry(1090, map[string]int{"waits": 0, "stays": 2})
	fmt.Fprintf(&log, `{"time":"2026-01-01T00:00:00Z","method":"EvaluateShares","snapshot_digest":"gone"}`+"\n")
	trace, err := ReadLog("log", &log, func(digest string) (*model.Model, error) {
		if m := models[digest]; m != nil {
			return m, nil
		}
		return nil, decisionlog.ErrNotStored
	}, Strict)
	require.NoError(t, err)
	require.Equal(t, time.Unix(1000, 0).UTC(), trace.Start)
	require.Len(t, trace.Jobs, 2)
	require.Equal(t, Job{
		Name: "runs", Queue: "a", Min: 2, Seconds: 60, Wait: 30, Waited: true, Groups: []Group{{"w", 2, []Amount{{"cpu", 2000}}}},
	}, trace.Jobs[0])
	require.Equal(t, "stays", trace.Jobs[1].Name)
	require.Equal(t, []string{
		"log: 1 job left out: never seen running",
		"log: 1 job had not ended when the log did",
		"log: 1 job may use any node in the rehearsal, though rules say where its tasks run",
		"log: 1 decision left out, of which the snapshot is not stored",
	}, trace.Notes)
}

func TestALogOutOfOrderIsRefused(t *testing.T) {
	none := func(string) (*model.Model, error) { return nil, errors.New("none") }
	_, err := ReadLog("log", strings.NewReader(
		`{"time":"2026-01-02T00:00:00Z","snapshot_digest":"x"}`+"\n"+`{"time":"2026-01-01T00:00:00Z","snapshot_digest":"y"}`+"\nno\n"), none, Strict)
	require.ErrorContains(t, err, "log:2: time: the entry is older")
	require.ErrorContains(t, err, "log:3: not an entry of a decision log")
}

// FuzzReaders checks that whatever is read is a trace that can be rehearsed, or an error of bounded size.
func FuzzReaders(f *testing.F) {
	f.Add([]byte(header + "60,late,a,0,2,1,4,1,30\n0,early,b,-5,1,,500m,,10\n"))
	f.Add([]byte(kth))
	f.Add([]byte("arrival,queue,seconds,cpu\n2026-03-02T00:00:00Z,a,1,1\n0001-01-01T00:00:00Z,a,1,1\n"))
	f.Add([]byte(`{"time":"2026-01-02T00:00:00Z","snapshot_digest":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		swf := &SWF{QueueOf: "user", Processor: []Amount{{"cpu", 1000}}, PerTask: 8}
		none := func(string) (*model.Model, error) { return nil, decisionlog.ErrNotStored }
		for i, read := range []func() (*Trace, error){
			func() (*Trace, error) { return ReadCSV("f", bytes.NewReader(data), Strict) },
			func() (*Trace, error) { return swf.Read("f", bytes.NewReader(data)) },
			func() (*Trace, error) { return ReadLog("f", bytes.NewReader(data), none, Strict) },
		} {
			trace, err := read()
			if err != nil {
				require.Less(t, len(err.Error()), 1<<14, "reader %d", i)
				continue
			}
			last := int64(0)
			names := map[string]bool{}
			for k := range trace.Jobs {
				j := &trace.Jobs[k]
				require.GreaterOrEqual(t, j.Arrival, last)
				require.LessOrEqual(t, j.Arrival, maxSeconds)
				require.Positive(t, j.Seconds)
				require.Positive(t, j.Min)
				require.LessOrEqual(t, j.Min, j.Tasks())
				require.LessOrEqual(t, j.Tasks(), MaxTasks+1)
				require.False(t, names[j.Name])
				require.NotEmpty(t, j.Queue)
				names[j.Name], last = true, j.Arrival
			}
		}
	})
}
