package wire_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

// betweenStops bounds the counted work between two times that a question asks whether its answer is still needed. An idle processor does it
// in a few milliseconds.
const betweenStops = 1 << 20

// longQuestions are questions that cost a lot of work, of each kind of step that may.
var longQuestions = map[string]string{
	"shares": `shares { jobs {} tree: true explain {} }`, "jobs": `jobs {}`, "enqueue": `enqueue { mode: ENQUEUE_MODE_ACTION }`,
	"allocatable": `allocatable { tasks { TASKS } explain: true }`, "preemptive": `preemptive { tasks { TASKS } explain: true }`,
	"reclaim": `reclaim { claimant { TASK } explain: true }`, "preempt": `preempt { claimant { TASK } explain: true }`,
	"order": `order { jobs {} pairs: false }`, "nodes": `nodes { tasks { TASKS } top: 1 }`,
	"inspect": `inspect { nodes: true jobs: true tasks: true queues: true }`,
	"event":   `event { evict { tasks { TASKS } } }`, "explain": `explain {}`, "plan": `plan { job { JOB } }`,
	"remedies": `remedies { job { JOB } }`, "evictable": `evictable { claimants { TASKS } }`, "forecast": `forecast { job { JOB } }`,
}

// noWork are the kinds of steps that cost next to nothing.
var noWork = map[string]bool{"mark": true, "rollback": true}

// longQuestion is the question of a kind about a snapshot: about its pending tasks, or for events the running ones.
func longQuestion(t *testing.T, snapshot *apportionv1.Snapshot, kind string) *apportionv1.Step {
	t.Helper()
	var tasks [2]strings.Builder
	number, counts, first, job := 0, [2]int{}, -1, 0
	for i, j := range snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, task := range g.GetTasks() {
				running := 0
				switch {
				case task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_RUNNING:
					running = 1
				case task.GetStatus() > apportionv1.TaskStatus_TASK_STATUS_PENDING:
					number++
					continue
				case first < 0:
					first, job = number, i
				}
				if counts[running]++; counts[running] <= 2000 {
					tasks[running].WriteString(" indices: " + strconv.Itoa(number))
				}
				number++
			}
		}
	}
	list := tasks[0].String()
	if kind == "event" {
		list = tasks[1].String()
	}
	text := strings.ReplaceAll(longQuestions[kind], "TASKS", list)
	text = strings.ReplaceAll(text, "TASK", "indices: "+strconv.Itoa(first))
	return parse(t, &apportionv1.Step{}, strings.ReplaceAll(text, "JOB", "indices: "+strconv.Itoa(job)))
}

// TestEveryQuestionAsksWhetherToStop asks each kind of question until its end, then lets it be cancelled at random points.
func TestEveryQuestionAsksWhetherToStop(t *testing.T) {
	raced.Skip(t)
	snapshot := generate.Snapshot(generate.Shape{Queues: 200, Jobs: 2000, Tasks: 20_000, Nodes: 500, Seed: 3})
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for _, q := range wire.Questions {
		if noWork[q.Name] {
			continue
		}
		require.Contains(t, longQuestions, q.Name, "a kind of question without a row")
		step := longQuestion(t, snapshot, q.Name)
		for _, policy := range []string{"default", "fair"} {
			t.Run(q.Name+" by "+policy, func(t *testing.T) {
				// The question is cancelled when it asks for the n-th time.
				ask := func(n int) (answer *apportionv1.Answer, calls int, spent, after int64, err error) {
					var s *wire.Session
					var cancelled int64
					s, err = wire.Open(m, parse(t, &apportionv1.Policy{}, policies[policy]), wire.Options{Stop: func() bool {
						if s == nil {
							return false
						}
						if calls++; calls == n {
							cancelled = s.Spent()
						}
						return calls >= n
					}})
					require.NoError(t, err)
					answer, err = s.Ask(step)
					return answer, calls, s.Spent(), s.Spent() - cancelled, err
				}
				whole, calls, spent, _, err := ask(math.MaxInt)
				require.NoError(t, err)
				require.LessOrEqual(t, spent, int64(calls+1)*betweenStops, "it asked %d times", calls)
				for range min(3, calls) {
					n := 1 + random.IntN(calls)
					answer, asked, _, after, err := ask(n)
					if err != nil {
						require.Equal(t, codes.DeadlineExceeded, decode.AsFault(err).Code, "%v", err)
					} else {
						require.True(t, proto.Equal(whole, answer), "cancelled at question %d of %d: it is answered by half", n, calls)
					}
					require.LessOrEqual(t, after, int64(betweenStops), "after it was cancelled at question %d of %d; it asked %d times", n, calls, asked)
				}
			})
		}
	}
}
