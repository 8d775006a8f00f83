package wire_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
)

// agree requires that the direct decoder reads data as the protobuf library and Compile do.
func agree(t *testing.T, data []byte) {
	t.Helper()
	agreeInParts(t, data)
	agreeOnSums(t, data)
	var snapshot apportionv1.Snapshot
	direct, directErr := decode.CompileBytes(data)
	if err := proto.Unmarshal(data, &snapshot); err != nil {
		require.Error(t, directErr, "the protobuf library says: %v", err)
		if !strings.Contains(directErr.Error(), "not a valid protobuf message") {
			// Before the bytes that are malformed stand fields that are not known: each is named by its number.
			for _, path := range named(t, directErr) {
				require.Regexp(t, `\.[0-9]+$`, path)
			}
		}
		return
	}
	if paths := strangers(&snapshot, "snapshot."); len(paths) > 0 {
		require.Equal(t, paths[:min(len(paths), 100)], named(t, directErr))
		return
	}
	want, err := decode.Compile(&snapshot)
	if err != nil {
		require.Error(t, directErr)
		require.Equal(t, err.Error(), directErr.Error())
		return
	}
	require.NoError(t, directErr)
	require.Equal(t, public(want), public(direct))
}

// agreeInParts requires that data is read alike with the jobs in parts and in one go.
func agreeInParts(t *testing.T, data []byte) {
	t.Helper()
	whole, wholeErr := decode.CompileBytes(data)
	d := new(decode.Decoder)
	for _, n := range []int{2, 3, 5, 2} {
		parts, err := d.CompileWithin(data, decode.Guard{Parts: n})
		if wholeErr != nil {
			require.EqualError(t, err, wholeErr.Error())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, public(whole), public(parts))
	}
}

// agreeOnSums requires that reading a snapshot for its sums only finds what reading all of it finds.
func agreeOnSums(t require.TestingT, data []byte) {
	whole, wholeErr := decode.CompileBytes(data)
	d := new(decode.Decoder)
	for _, n := range []int{1, 3, 1} {
		sums, err := d.CompileWithin(data, decode.Guard{Sums: true, Parts: n})
		if wholeErr != nil {
			require.EqualError(t, err, wholeErr.Error())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, whole.Tasks.Len(), sums.Tasks.Len()+sums.Tallied)
		require.Equal(t, whole.Accounts.Copied(), sums.Accounts.Copied())
		for q := range whole.Queues {
			require.Equal(t, whole.QueueSumOf(model.QueueID(q)), sums.QueueSumOf(model.QueueID(q)))
		}
		for _, name := range []string{"proportion", "capacity flat", "capacity hierarchical", "drf", "default"} {
			p := &apportionv1.Policy{}
			require.NoError(t, prototext.Unmarshal([]byte(policies[name]), p))
			shares := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Jobs: &apportionv1.Selector{}}}}
			l, lErr := wire.Open(whole, p, wire.Options{})
			r, rErr := wire.Open(sums, p, wire.Options{})
			require.Equal(t, lErr, rErr)
			if lErr != nil {
				continue
			}
			require.Equal(t, prototext.Format(l.Basis()), prototext.Format(r.Basis()))
			for _, step := range []*apportionv1.Step{shares, enqueue(0), enqueue(apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION), shares} {
				only := name != "default" || step == shares
				require.Equal(t, only, wire.OnlySums(p, []*apportionv1.Step{step}))
				if only {
					require.Equal(t, prototext.Format(l.Do(step)), prototext.Format(r.Do(step)))
				}
			}
		}
	}
}

func enqueue(mode apportionv1.EnqueueMode) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: mode}}}
}

func TestSumsAreThoseOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := drawSnapshot(t, rapid.Bool().Draw(t, "uids"))
		if rapid.Bool().Draw(t, "rough") {
			roughen(snapshot, rapid.Uint64().Draw(t, "roughness"))
		}
		jobs := snapshot.GetJobs()
		if len(jobs) > 0 && rapid.IntRange(0, 2).Draw(t, "spoil") == 0 {
			tasks := tasksOf(rapid.SampledFrom(jobs).Draw(t, "job"))
			same := rapid.SampledFrom([]string{"same", "the same uid, of more than sixteen bytes"}).Draw(t, "uid")
			for _, task := range tasks[:min(len(tasks), 2)] {
				switch rapid.IntRange(0, 2).Draw(t, "with") {
				case 0:
					task.Uid = same
				case 1:
					task.Node = new(uint32(len(snapshot.GetNodes())))
				case 2:
					task.Status = 77
				}
			}
		}
		data, err := proto.Marshal(snapshot)
		require.NoError(t, err)
		agreeOnSums(t, data)
	})
}

// TestSumsReadTheConstraintsOfAGroupApartFromThoseOfItsTasks gives a group a constraint that does not exist, before a task that has one which
// does.
func TestSumsReadTheConstraintsOfAGroupApartFromThoseOfItsTasks(t *testing.T) {
	const unjudged = 7
	for _, constraint := range []uint64{1, 99} {
		task, err := proto.Marshal(&apportionv1.Task{Name: "t", Detail: &apportionv1.TaskDetail{
			UnjudgedConstraints: []apportionv1.PlacementConstraint{apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES},
		}})
		require.NoError(t, err)
		group := protowire.AppendVarint(protowire.AppendTag(nil, unjudged, protowire.VarintType), constraint)
		group = protowire.AppendBytes(protowire.AppendTag(group, 4, protowire.BytesType), task)
		data, err := proto.Marshal(&apportionv1.Snapshot{
			Queues: []*apportionv1.Queue{{Name: "q"}}, Jobs: []*apportionv1.Job{{Name: "j", Queue: "q"}},
		})
		require.NoError(t, err)
		job := protowire.AppendBytes(protowire.AppendTag([]byte("\x12\x01i\x22\x01q"), 10, protowire.BytesType), group)
		number := (&apportionv1.Snapshot{}).ProtoReflect().Descriptor().Fields().ByName("jobs").Number()
		data = protowire.AppendBytes(protowire.AppendTag(data, number, protowire.BytesType), job)
		agreeOnSums(t, data)
	}
}

func TestSumsKeepNoTask(t *testing.T) {
	for _, shape := range []generate.Shape{
		{Queues: 20, Jobs: 60, Tasks: 400, Nodes: 30, Seed: 1, UIDs: true},
		{Queues: 20, Jobs: 60, Tasks: 400, Nodes: 30, Seed: 2, Depth: 3, Dimensions: 9, NodeSets: 2},
		{Queues: 10, Jobs: 3, Tasks: 20_000, Nodes: 30, Seed: 3, UIDs: true},
	} {
		data, err := proto.Marshal(generate.Snapshot(shape))
		require.NoError(t, err)
		for _, n := range []int{1, 2, 5} {
			m, err := new(decode.Decoder).CompileWithin(data, decode.Guard{Sums: true, Parts: n})
			require.NoError(t, err)
			require.Zero(t, m.Tasks.Len())
			require.Equal(t, shape.Tasks, m.Tallied)
		}
	}
}

// public returns the exported parts of a model.
func public(m *model.Model) []any {
	var texts []string
	for t := range m.Tasks.All() {
		texts = append(texts, m.TaskUID(t), m.TaskName(t))
	}
	return []any{
		texts, m.Dims, m.AsOf, m.Nodes, m.Queues, m.Jobs.Copied(), m.Groups.Copied(), m.Counts.Copied(), m.Tasks.Copied(),
		m.Details.Copied(), m.Requests, m.Total, m.Accounts.Copied(), m.QueueJobs,
		m.QueueOrder, m.JobOrder, m.NodeSets,
	}
}

func TestTheDirectDecoderAgreesOnGeneratedSnapshots(t *testing.T) {
	for seed := range uint64(5) {
		snapshot := generate.Snapshot(generate.Shape{Queues: 20, Jobs: 60, Tasks: 400, Nodes: 30, Seed: seed, Depth: 3, Dimensions: 5, UIDs: seed%2 == 0, NodeSets: int(seed % 3)})
		data, err := proto.Marshal(snapshot)
		require.NoError(t, err)
		agree(t, data)
	}
}

// message puts fields together: numbers as varints, byte slices as they are.
func message(fields ...any) []byte {
	var b []byte
	for i := 0; i < len(fields); i += 2 {
		number := protowire.Number(fields[i].(int))
		switch v := fields[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
		case float64:
			b = protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), math.Float64bits(v))
		}
	}
	return b
}

func TestTheDirectDecoderAgreesOnUnusualEncodings(t *testing.T) {
	cpu := message(1, 0, 2, 5.0)
	queue := message(1, "q")
	for name, data := range map[string][]byte{
		"nothing":                                  nil,
		"jobs before queues before dimensions":     message(6, message(4, "q", 10, message(4, message(1, "u"), 2, cpu), 2, "j"), 5, queue, 3, "cpu"),
		"queues before nodes, faulty all":          message(5, message(2, "p"), 4, message(4, "x"), 5, message(2, "p")),
		"numbers that are not packed":              message(3, "cpu", 4, message(1, "n", 2, cpu)),
		"a resource in two parts":                  message(3, "cpu", 3, "gpu", 4, message(1, "n", 2, cpu, 2, message(1, 1, 2, 7.0))),
		"a dimension in two parts that clash":      message(3, "cpu", 4, message(1, "n", 2, cpu, 2, cpu)),
		"a name given twice: the last counts":      message(5, message(1, "a", 1, "b")),
		"a detail in two parts":                    message(5, queue, 6, message(2, "j", 4, "q", 10, message(4, message(8, message(1, 0), 8, message(2, 2, 3, "class"))))),
		"an affinity in two parts":                 message(5, message(1, "q", 10, message(1, message(1, "x")), 10, message(1, message(1, "y")))),
		"text that is no text":                     message(5, message(1, "\xff")),
		"a cluster label that is no text":          message(2, "\xff"),
		"unknown fields of every kind":             append(message(99, 1, 98, "x", 97, 1.0, 5, queue), 0xa5, 0x05, 1, 2, 3, 4),
		"informative fields of every kind":         append(message(299, 1, 298, "x", 297, 1.0, 5, queue), 0xa5, 0x06, 1, 2, 3, 4),
		"a group that is informative":              {0xa3, 0x06, 0x08, 0x01, 0xa4, 0x06},
		"a group that is unknown":                  {0xa3, 0x05, 0x08, 0x01, 0xa4, 0x05},
		"a group that does not end":                {0xa3, 0x06, 0x08, 0x01},
		"an end without a group":                   {0xa4, 0x06},
		"a field number of 0":                      {0x02, 0x00},
		"a field number beyond all":                {0x82, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00},
		"a kind that does not exist":               {0x0f},
		"a length beyond the end":                  {0x2a, 0x05, 0x0a},
		"a number without end":                     {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a known field of another kind is unknown": append(message(5, 3, 1, "x", 6, message(10, 7, 4, 3)), message(5, queue)...),
		"node sets before nodes, twice the same":   message(8, message(1, "s", 2, []byte{0}, 2, 0, 3, "rule"), 8, message(1, "s"), 4, message(1, "n", 5, message(1, 1), 5, message(2, "d"))),
		"sets and constraints, packed and not":     message(8, message(1, "s"), 5, queue, 6, message(2, "j", 4, "q", 11, "c", 10, message(6, "s", 7, 1, 7, []byte{2, 9}, 4, message(8, message(7, "s", 8, []byte{3}, 8, 4, 9, "c"))))),
		"packed numbers that break off":            message(4, message(1, "n", 2, message(1, []byte{0x80}))),
		"packed amounts that break off":            message(4, message(1, "n", 2, message(2, []byte{1, 2, 3}))),
		"an enum beyond all":                       message(5, message(1, "q", 5, 77)),
		"a negative status":                        message(5, queue, 6, message(2, "j", 4, "q", 10, message(4, message(2, -1), 5, message(1, -5, 3, 1)))),
		"a node of 2^32":                           message(5, queue, 6, message(2, "j", 4, "q", 10, message(4, message(3, 1<<32)))),
		"a total twice":                            message(3, "cpu", 7, cpu, 3, "gpu", 7, message(1, 1, 2, 3.0)),
		"an empty total":                           message(7, []byte{}),
		"an empty request in a detail":             message(3, "cpu", 5, queue, 6, message(2, "j", 4, "q", 10, message(2, cpu, 4, message(8, message(6, []byte{}))))),
	} {
		t.Run(name, func(t *testing.T) { agree(t, data) })
	}
}

func FuzzTheDirectDecoderAgrees(f *testing.F) {
	snapshot := generate.Snapshot(generate.Shape{Queues: 2, Jobs: 3, Tasks: 6, Nodes: 2, Seed: 1, Depth: 2, Dimensions: 4, UIDs: true})
	data, err := proto.Marshal(snapshot)
	require.NoError(f, err)
	f.Add(data)
	f.Add(message(3, "cpu", 5, message(1, "q"), 6, message(2, "j", 4, "q", 10, message(4, message(8, message(2, 1, 3, "x")), 5, message(3, 4)))))
	f.Fuzz(agree)
}

func BenchmarkCompile(b *testing.B) {
	data, err := proto.Marshal(generate.Snapshot(generate.Standard()))
	require.NoError(b, err)
	b.Run("direct", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decode.CompileBytes(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reused", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		var d decode.Decoder
		for b.Loop() {
			if _, err := d.Compile(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sums", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		var d decode.Decoder
		for b.Loop() {
			if _, err := d.CompileWithin(data, decode.Guard{Sums: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			var snapshot apportionv1.Snapshot
			if err := proto.Unmarshal(data, &snapshot); err != nil {
				b.Fatal(err)
			}
			if _, err := decode.Compile(&snapshot); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEvaluate is a whole call but for the transport: compile for sums, open, answer, encode.
func BenchmarkEvaluate(b *testing.B) {
	for name, shape := range map[string]generate.Shape{
		"standard": generate.Standard(),
		"small":    {Queues: 10, Jobs: 100, Tasks: 1000, Nodes: 50, Seed: 1, UIDs: true},
	} {
		data, err := proto.Marshal(generate.Snapshot(shape))
		require.NoError(b, err)
		policy := &apportionv1.Policy{}
		require.NoError(b, prototext.Unmarshal([]byte(policies["proportion"]), policy))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			var d decode.Decoder
			for b.Loop() {
				m, err := d.CompileWithin(data, decode.Guard{Sums: true})
				require.NoError(b, err)
				s, err := wire.Open(m, policy, wire.Options{})
				require.NoError(b, err)
				answer := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Shares{}})
				_, err = proto.Marshal(answer)
				require.NoError(b, err)
			}
		})
	}
}

func TestJobsReadInPartsAreThoseReadInOneGo(t *testing.T) {
	for seed := range uint64(4) {
		snapshot := generate.Snapshot(generate.Shape{Queues: 20, Jobs: 60, Tasks: 400, Nodes: 30, Seed: seed, Depth: 2, Dimensions: 5, UIDs: true})
		jobs := snapshot.GetJobs()
		jobs[7].GetGroups()[0].Tasks[0].Detail = &apportionv1.TaskDetail{PriorityClass: "high", Request: jobs[50].GetGroups()[0].GetRequest()}
		jobs[55].GetGroups()[0].Tasks[0].Detail = &apportionv1.TaskDetail{PriorityClass: "low", Request: jobs[8].GetGroups()[0].GetRequest()}
		jobs[56].Groups = append(jobs[56].Groups, &apportionv1.TaskGroup{Role: "x", Counts: []*apportionv1.TaskCount{{Count: 3}}})
		for name, spoil := range map[string]func(){
			"sound":                                func() {},
			"a uid twice, in two parts":            func() { jobs[59].GetGroups()[0].Tasks[0].Uid = jobs[0].GetGroups()[0].GetTasks()[0].GetUid() },
			"a job twice":                          func() { jobs[58].Uid = jobs[1].GetUid() },
			"no such queue, in a part and another": func() { jobs[2].Queue, jobs[57].Queue = "none", "neither" },
			"a number that stands for nothing":     func() { jobs[54].GetGroups()[0].Tasks[0].Status = 99 },
		} {
			spoil()
			data, err := proto.Marshal(snapshot)
			require.NoError(t, err)
			t.Run(name, func(t *testing.T) { agreeInParts(t, data) })
		}
	}
}
