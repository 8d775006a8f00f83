package extender

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/adapter/extender/extendertest"
)

// plainTask, plainNode and plainQuestion are a question as Go's decoder reads it, which holds all of it in memory.
type plainTask struct {
	UID      string `json:"UID"`
	NodeName string `json:"NodeName"`
	Status   int32  `json:"Status"`
}

type plainNode struct {
	Name string `json:"Name"`
}

type plainQuestion struct {
	Task     plainTask   `json:"task"`
	Evictor  plainTask   `json:"evictor"`
	Node     plainNode   `json:"node"`
	Queue    plainNode   `json:"queue"`
	Nodes    []plainNode `json:"nodes"`
	Job      plainJob    `json:"job"`
	Evictees []plainHeld `json:"evictees"`
}

type plainJob struct {
	UID   string               `json:"UID"`
	Tasks map[string]plainTask `json:"Tasks"`
}

type plainHeld struct {
	UID        *string   `json:"UID"`
	Resreq     *struct{} `json:"Resreq"`
	InitResreq *struct{} `json:"InitResreq"`
	NumaInfo   *struct{} `json:"NumaInfo"`
	Pod        *struct{} `json:"Pod"`
}

func (t *plainTask) state() taskState {
	return taskState{uid: t.UID, node: t.NodeName, status: statusOf(t.Status)}
}

// requireReadAlike requires that a question of any verb is read as Go's decoder reads it, in pieces of any size.
func requireReadAlike(t require.TestingT, verb verb, body []byte, size func() int) {
	var q plainQuestion
	require.NoError(t, json.Unmarshal(body, &q))
	from := &pieces{text: body, size: size}
	var err error
	switch verb {
	case predicate:
		var task, node string
		task, node, err = readPredicate(from)
		require.Equal(t, []string{q.Task.UID, q.Node.Name}, []string{task, node})
	case prioritize:
		var task string
		var nodes []string
		task, nodes, err = readPrioritize(from, nil)
		require.Equal(t, q.Task.UID, task)
		want := []string(nil)
		for _, n := range q.Nodes {
			want = append(want, n.Name)
		}
		require.Equal(t, want, nodes)
	case queueOverused:
		var queue string
		queue, err = readQueue(from)
		require.Equal(t, q.Queue.Name, queue)
	case jobEnqueueable, jobEnqueued, jobReady:
		var job jobState
		job, err = readJob(from, nil)
		want := []taskState(nil)
		for _, task := range q.Job.Tasks {
			want = append(want, task.state())
		}
		byUID := func(a, b taskState) int { return cmp.Compare(a.uid, b.uid) }
		slices.SortFunc(want, byUID)
		slices.SortFunc(job.tasks, byUID)
		require.Equal(t, q.Job.UID, job.uid)
		require.Equal(t, want, job.tasks)
	case allocate, deallocate:
		var task taskState
		task, err = readEvent(from)
		require.Equal(t, q.Task.state(), task)
	case preemptable, reclaimable:
		var kept []byte
		kept, err = readAll(from, int64(len(body)), nil)
		require.NoError(t, err)
		var e eviction
		e, err = readEviction(kept, nil)
		require.Equal(t, q.Evictor.UID, e.claimant)
		want := []string(nil)
		for _, o := range q.Evictees {
			if o.UID != nil && *o.UID != "" && o.Resreq != nil && o.InitResreq != nil && o.NumaInfo != nil && o.Pod != nil {
				want = append(want, *o.UID)
			}
		}
		require.Equal(t, want, e.uids)
	case onSessionOpen, onSessionClose:
		return
	}
	require.NoError(t, err)
	rest, err := io.ReadAll(from)
	require.NoError(t, err)
	require.Empty(t, bytes.TrimSpace(rest), "all of it has been read")
}

// sizes are those of parts that end before, at and behind the edges of blocks and buffers.
var sizes = []int{1, 7, 63, 64, 65, 4095, 4096, 4097, chunkOfQuestion - 1, chunkOfQuestion, chunk + 1}

// TestRecordedRequestsAreReadAlikeInPiecesOfAnySize reads what stock Volcano sent, of every verb, as it was sent and as it was written down.
func TestRecordedRequestsAreReadAlikeInPiecesOfAnySize(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json.gz")
	require.NoError(t, err)
	seen := map[verb]int{}
	for _, file := range files {
		packed, err := os.ReadFile(file)
		require.NoError(t, err)
		plain, err := gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
		var r struct {
			Exchanges []struct {
				Verb    verb `json:"verb"`
				Request struct {
					Body json.RawMessage `json:"body"`
				} `json:"request"`
			} `json:"exchanges"`
		}
		require.NoError(t, json.NewDecoder(plain).Decode(&r))
		for i, e := range r.Exchanges {
			var sent bytes.Buffer
			require.NoError(t, json.Compact(&sent, e.Request.Body))
			// The sizes take turns: trying all of them on every request takes long and finds no more.
			for k, body := range [][]byte{sent.Bytes(), e.Request.Body} {
				size := sizes[(i+k*5)%len(sizes)]
				if e.Verb != onSessionOpen {
					requireReadAlike(t, e.Verb, body, func() int { return size })
				} else {
					requirePushReadAlike(t, body, func() int { return size })
				}
			}
			seen[e.Verb]++
		}
	}
	// Volcano 1.16 sends it, in the form of jobEnqueueable; the recordings are of 1.15.
	seen[jobEnqueued] = seen[jobEnqueueable]
	for verb := range noOpinion {
		require.Positive(t, seen[verb], verb)
	}
}

// requirePushReadAlike requires that a push is read with the pruner, in pieces of any size, as it is read without.
func requirePushReadAlike(t *testing.T, body []byte, size func() int) {
	t.Helper()
	want, err := readPruned(bytes.NewReader(body), bound{})
	require.NoError(t, err)
	got, err := readPush(&pieces{text: body, size: size})
	require.NoError(t, err)
	requireSamePush(t, want, got)
}

// TestLargeRequestsAreReadAlikeInPiecesOfAnySize reads requests of a large cluster, with escapes at every place of a block.
func TestLargeRequestsAreReadAlikeInPiecesOfAnySize(t *testing.T) {
	shape := extendertest.Shape{Pods: 20}
	escape := func(body []byte, by int) []byte {
		text := `"managedFields":`
		return bytes.ReplaceAll(body, []byte(text), []byte(`"x":"`+strings.Repeat("y", by)+`\\\"}]\\","\"{[":[],`+text))
	}
	for i, size := range []int{7, 63, 64, 65, 4097, chunk + 1} {
		by := 64 - size%64 + i
		requirePushReadAlike(t, escape(extendertest.Push(shape), by), func() int { return size })
		for verb, body := range map[verb][]byte{
			predicate: extendertest.Predicate(shape), prioritize: extendertest.Prioritize(shape, 3), jobReady: extendertest.Job(shape),
			jobEnqueueable: extendertest.Job(shape), allocate: extendertest.Event(shape, 2), deallocate: extendertest.Event(shape, 64),
			reclaimable: extendertest.Victims(shape, 10), preemptable: extendertest.Victims(shape, 10),
		} {
			requireReadAlike(t, verb, escape(body, by), func() int { return size })
		}
	}
}

// awkward draws texts that end, or seem to end, something at any place of a block.
func awkward(t *rapid.T) string {
	end := rapid.SampledFrom([]string{"", "a", `\`, `\\`, `\"`, `"`, `"}`, `]"`, "{", ",", ":", "ä", "<&", "\n", `\u0022`})
	return end.Draw(t, "before") + strings.Repeat("x", rapid.IntRange(0, 70).Draw(t, "far")) + end.Draw(t, "behind")
}

// padded adds members that are not read, before and behind the others in the order of names.
func padded(t *rapid.T, object map[string]any) map[string]any {
	for range rapid.IntRange(0, 1).Draw(t, "members") {
		name := rapid.SampledFrom([]string{"A", "zz", "LastTransaction."}).Draw(t, "name") + awkward(t)
		var value any = awkward(t)
		for range rapid.IntRange(0, 2).Draw(t, "nested") {
			value = map[string]any{awkward(t): value, "list": []any{value, 1.5, nil, true}}
		}
		object[name] = value
	}
	return object
}

func someTask(t *rapid.T) map[string]any {
	return padded(t, map[string]any{
		"UID": awkward(t), "Name": awkward(t), "NodeName": awkward(t), "TaskRole": awkward(t),
		"Status": rapid.SampledFrom([]int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 7}).Draw(t, "status"),
		"Resreq": map[string]any{"MilliCPU": 500, "ScalarResources": map[string]any{"a/b": 1e21}}, "InitResreq": map[string]any{},
		"NumaInfo": map[string]any{}, "Priority": 3, "Preemptable": true,
		"Pod": padded(t, map[string]any{"metadata": padded(t, map[string]any{"creationTimestamp": nil}), "spec": padded(t, map[string]any{})}),
	})
}

func someTasks(t *rapid.T) map[string]any {
	tasks := map[string]any{}
	for i := range rapid.IntRange(0, 3).Draw(t, "tasks") {
		tasks[string(rune('a'+i))+awkward(t)] = someTask(t)
	}
	return tasks
}

func TestAnyRequestIsReadAlikeInPiecesOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		named := func() map[string]any { return padded(t, map[string]any{"UID": awkward(t), "Name": awkward(t)}) }
		verb := rapid.SampledFrom([]verb{predicate, prioritize, queueOverused, jobReady, allocate, reclaimable, onSessionOpen}).Draw(t, "verb")
		question := map[string]any{}
		switch verb {
		case predicate:
			question = map[string]any{"task": someTask(t), "node": named()}
		case prioritize:
			question = map[string]any{"task": someTask(t), "nodes": []any{named(), named(), named()}}
		case queueOverused:
			question = map[string]any{"queue": named()}
		case jobReady:
			question = map[string]any{"job": padded(t, map[string]any{"UID": awkward(t), "Tasks": someTasks(t)})}
		case allocate:
			question = map[string]any{"task": someTask(t)}
		case reclaimable:
			question = map[string]any{"evictor": someTask(t), "evictees": []any{someTask(t), someTask(t)}}
		case onSessionOpen:
			job := padded(t, map[string]any{"UID": awkward(t), "Queue": "q", "Tasks": someTasks(t), "PodGroup": padded(t, map[string]any{})})
			node := padded(t, map[string]any{"Name": awkward(t), "Node": padded(t, map[string]any{}), "Tasks": someTasks(t)})
			question = map[string]any{
				"Jobs": map[string]any{awkward(t): job}, "Nodes": map[string]any{awkward(t): node},
				"Queues": map[string]any{"q": padded(t, map[string]any{"Name": "q"})},
			}
		case preemptable, jobEnqueueable, deallocate, onSessionClose:
		}
		body, err := json.Marshal(padded(t, question))
		require.NoError(t, err)
		most := rapid.SampledFrom([]int{3, 64, 128, 5000}).Draw(t, "most")
		size := func() int { return rapid.IntRange(1, most).Draw(t, "size") }
		if rapid.Bool().Draw(t, "even") {
			size = func() int { return most }
		}
		if verb != onSessionOpen {
			requireReadAlike(t, verb, body, size)
			return
		}
		want, err := readPruned(bytes.NewReader(body), bound{})
		require.NoError(t, err)
		got, err := readPush(&pieces{text: body, size: size})
		require.NoError(t, err)
		requireSamePush(t, want, got)
	})
}
