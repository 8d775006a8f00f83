package wire_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
)

// policies are the policies with which properties are tested.
var policies = map[string]string{
	"proportion":            `tiers { plugins { proportion {} } }`,
	"capacity flat":         `tiers { plugins { capacity {} } }`,
	"capacity hierarchical": `tiers { plugins { capacity { hierarchical: true ancestor_reclaim_level: 1 } } }`,
	"drf":                   `tiers { plugins { priority {} } plugins { gang {} } } tiers { plugins { drf {} } }`,
	"hierarchical drf":      `tiers { plugins { hierarchical_drf {} } }`,
	"fair":                  `tiers { plugins { gang {} } plugins { fair {} } }`,
	"default": `tiers { plugins { priority {} } plugins { gang {} } plugins { conformance {} } }
		tiers { plugins { overcommit {} } plugins { drf {} } plugins { proportion {} } } tier_walk: TIER_WALK_VOLCANO`,
	"everything": `tiers { plugins { priority {} } plugins { gang {} } plugins { conformance {} } plugins { cooldown {} } }
		tiers { plugins { overcommit {} } plugins { drf {} } plugins { proportion {} } plugins { capacity {} } plugins { node_group {} } plugins { binpack {} } }
		tier_walk: TIER_WALK_VOLCANO`,
}

var policyNames = slices.Sorted(maps.Keys(policies))

// everyPolicy runs a property for each policy.
func everyPolicy(t *testing.T, property func(t *rapid.T, policy string)) {
	t.Helper()
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { property(t, policy) })
		})
	}
}

func drawSnapshot(t *rapid.T, uids bool) *apportionv1.Snapshot {
	return generate.Snapshot(generate.Shape{
		Queues: rapid.IntRange(1, 12).Draw(t, "queues"), Jobs: rapid.IntRange(0, 20).Draw(t, "jobs"), Tasks: rapid.IntRange(0, 60).Draw(t, "tasks"),
		Nodes: rapid.IntRange(0, 8).Draw(t, "nodes"), Depth: rapid.IntRange(0, 3).Draw(t, "depth"), Dimensions: rapid.IntRange(2, 6).Draw(t, "dimensions"),
		Seed: rapid.Uint64Range(0, 1<<20).Draw(t, "seed"), UIDs: uids,
		NodeSets: rapid.IntRange(0, 2).Draw(t, "node sets"),
	})
}

func opened(t require.TestingT, snapshot *apportionv1.Snapshot, policy string) *wire.Session {
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	s, err := wire.Open(m, p, wire.Options{})
	require.NoError(t, err)
	return s
}

// everything asks every question that changes nothing.
func everything(snapshot *apportionv1.Snapshot) []*apportionv1.Step {
	var running, pending []uint32
	number := uint32(0)
	for _, j := range snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, t := range g.GetTasks() {
				switch t.GetStatus() {
				case apportionv1.TaskStatus_TASK_STATUS_RUNNING:
					running = append(running, number)
				case apportionv1.TaskStatus_TASK_STATUS_PENDING, apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED:
					pending = append(pending, number)
				}
				number++
			}
		}
	}
	candidates := &apportionv1.Selector{Indices: running}
	steps := []*apportionv1.Step{
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Jobs: &apportionv1.Selector{}, Tree: true, Explain: &apportionv1.Explain{}}}},
		{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{}}},
		{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Pairs: true, Subject: &apportionv1.OrderStep_Queues{Queues: &apportionv1.Selector{}}}}},
		{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Pairs: true, Subject: &apportionv1.OrderStep_Jobs{Jobs: &apportionv1.Selector{}}}}},
		{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Nodes: true, Jobs: true, Tasks: true}}},
	}
	for _, t := range pending[:min(3, len(pending))] {
		one := &apportionv1.Selector{Indices: []uint32{t}}
		steps = append(steps,
			&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: one, Explain: true}}},
			&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{Tasks: one, Explain: true}}},
			&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: one, Candidates: candidates, Explain: true}}},
			&apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{Claimant: one, Candidates: candidates}}},
			&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: one, ByPlugin: true, Explain: true}}})
	}
	return steps
}

// drawMove draws a step that changes tasks or admits jobs, or at least tries to.
func drawMove(t *rapid.T, snapshot *apportionv1.Snapshot) *apportionv1.Step {
	tasks := uint32(0)
	for _, j := range snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			tasks += uint32(len(g.GetTasks()))
		}
	}
	task := &apportionv1.Selector{Indices: []uint32{rapid.Uint32Range(0, tasks+1).Draw(t, "task")}}
	switch rapid.IntRange(0, 4).Draw(t, "move") {
	case 0:
		node := rapid.Uint32Range(0, uint32(len(snapshot.GetNodes()))).Draw(t, "node")
		return event.Place(task, &apportionv1.Selector{Indices: []uint32{node}})
	case 1:
		return event.Evict(task, 0)
	case 2:
		status := apportionv1.TaskStatus(rapid.Int32Range(0, 10).Draw(t, "status"))
		return event.SetStatus(task, status)
	case 3:
		return &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: drawJob(t, snapshot)}}}
	default:
		return &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}}
	}
}

func drawJob(t *rapid.T, snapshot *apportionv1.Snapshot) *apportionv1.Selector {
	return &apportionv1.Selector{Indices: []uint32{rapid.Uint32Range(0, uint32(len(snapshot.GetJobs()))).Draw(t, "job")}}
}

// drawKey draws the uid or name of a job, if there is any.
func drawKey(t *rapid.T, snapshot *apportionv1.Snapshot) []string {
	if len(snapshot.GetJobs()) == 0 {
		return nil
	}
	job := rapid.SampledFrom(snapshot.GetJobs()).Draw(t, "job")
	return []string{cmp.Or(job.GetUid(), job.GetNamespace()+"/"+job.GetName())}
}

// drawStep draws a step that changes something, or at least tries to.
func drawStep(t *rapid.T, snapshot *apportionv1.Snapshot) *apportionv1.Step {
	if rapid.IntRange(0, 7).Draw(t, "change the snapshot") == 0 {
		change := mirror(snapshot).drawn(t, drawSnapshot(t, rapid.Bool().Draw(t, "other uids")))
		return event.Change(change)
	}
	return drawChange(t, snapshot)
}

// drawChange is drawStep without changes of the snapshot.
func drawChange(t *rapid.T, snapshot *apportionv1.Snapshot) *apportionv1.Step {
	switch rapid.IntRange(0, 6).Draw(t, "change") {
	case 0:
		return event.Change(&apportionv1.Change{RemoveJobs: drawKey(t, snapshot)})
	case 1:
		added := &apportionv1.Job{Name: fmt.Sprint("added", rapid.IntRange(0, 5).Draw(t, "name")), Queue: snapshot.GetQueues()[0].GetName()}
		if len(snapshot.GetJobs()) > 0 {
			added.Queue = snapshot.GetJobs()[0].GetQueue()
			for i, g := range snapshot.GetJobs()[0].GetGroups() {
				added.Groups = append(added.Groups, &apportionv1.TaskGroup{
					Role: fmt.Sprint(i), Request: g.GetRequest(), Tasks: []*apportionv1.Task{{}, {Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING}},
				})
			}
		}
		return event.Change(&apportionv1.Change{Jobs: []*apportionv1.Job{added}})
	}
	return drawMove(t, snapshot)
}

func encodedAnswers(t require.TestingT, s *wire.Session, steps []*apportionv1.Step) [][]byte {
	answers, err := s.DoAll(steps)
	require.NoError(t, err)
	out := make([][]byte, len(answers))
	for i, a := range answers {
		out[i], err = proto.MarshalOptions{Deterministic: true}.Marshal(a)
		require.NoError(t, err)
	}
	return out
}

func TestRollbackRestoresEveryAnswerBitForBit(t *testing.T) {
	everyPolicy(t, func(t *rapid.T, policy string) {
		snapshot := drawSnapshot(t, false)
		s := opened(t, snapshot, policy)
		for range rapid.IntRange(0, 4).Draw(t, "changes before") {
			s.Do(drawStep(t, snapshot))
		}
		questions := everything(snapshot)
		before := encodedAnswers(t, s, questions)
		mark := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}).GetMark().GetMark()
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			if rapid.IntRange(0, 9).Draw(t, "mark again") == 0 {
				s.Do(&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}})
			}
			s.Do(drawStep(t, snapshot))
		}
		done := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: mark}}})
		require.NotNil(t, done.GetMark(), "%v", done)
		require.Equal(t, before, encodedAnswers(t, s, questions))
	})
}

func TestAFailedStepChangesNothing(t *testing.T) {
	everyPolicy(t, func(t *rapid.T, policy string) {
		snapshot := drawSnapshot(t, false)
		s := opened(t, snapshot, policy)
		questions := everything(snapshot)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			before := encodedAnswers(t, s, questions)
			if s.Do(drawStep(t, snapshot)).GetError() != nil {
				require.Equal(t, before, encodedAnswers(t, s, questions))
			}
		}
	})
}

// shuffled returns the same cluster with its queues, jobs, nodes, and tasks of each group in another order.
func shuffled(snapshot *apportionv1.Snapshot, seed uint64) *apportionv1.Snapshot {
	out := proto.CloneOf(snapshot)
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(out.Queues), func(i, k int) { out.Queues[i], out.Queues[k] = out.Queues[k], out.Queues[i] })
	random.Shuffle(len(out.Jobs), func(i, k int) { out.Jobs[i], out.Jobs[k] = out.Jobs[k], out.Jobs[i] })
	place := make([]uint32, len(out.Nodes))
	order := random.Perm(len(out.Nodes))
	nodes := make([]*apportionv1.Node, len(out.Nodes))
	for to, from := range order {
		nodes[to], place[from] = out.Nodes[from], uint32(to)
	}
	out.Nodes = nodes
	for _, set := range out.GetNodeSets() {
		for i, n := range set.GetNodes() {
			set.Nodes[i] = place[n]
		}
	}
	for _, j := range out.GetJobs() {
		for _, g := range j.GetGroups() {
			random.Shuffle(len(g.Tasks), func(i, k int) { g.Tasks[i], g.Tasks[k] = g.Tasks[k], g.Tasks[i] })
			for _, task := range g.GetTasks() {
				if task.Node != nil {
					task.Node = new(place[task.GetNode()])
				}
			}
		}
	}
	return out
}

// told returns the answers of a session by names only, so that two orders of one cluster can be compared.
func told(t require.TestingT, snapshot *apportionv1.Snapshot, policy string) map[string]any {
	s := opened(t, snapshot, policy)
	out := map[string]any{}
	queue := func(i uint32) string { return snapshot.GetQueues()[i].GetName() }
	do := func(step *apportionv1.Step) *apportionv1.Answer {
		a := s.Do(step)
		require.Nil(t, a.GetError())
		return a
	}
	shares := do(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Jobs: &apportionv1.Selector{}}}}).GetShares()
	for _, p := range shares.GetPlugins() {
		for _, q := range p.GetQueues() {
			var family []string
			for _, i := range append(slices.Clone(q.GetAncestors()), q.GetChildren()...) {
				family = append(family, queue(i))
			}
			slices.Sort(family)
			q.Ancestors, q.Children = nil, nil
			index := q.GetQueue()
			q.Queue = 0
			out[fmt.Sprint("share ", p.GetPlugin(), " ", queue(index))] = fmt.Sprint(q, family)
		}
		for _, j := range p.GetJobs() {
			j.Job = 0
			out[fmt.Sprint("job share ", p.GetPlugin(), " ", j.GetUid())] = fmt.Sprint(j)
		}
	}
	for _, q := range shares.GetStandings() {
		out["standing "+q.GetName()] = fmt.Sprint(q.GetOverused(), q.Rank != nil, q.GetRank())
	}
	var jobs, running, pending []string
	for _, j := range snapshot.GetJobs() {
		jobs = append(jobs, j.GetNamespace()+"/"+j.GetName())
		for _, g := range j.GetGroups() {
			for _, task := range g.GetTasks() {
				switch task.GetStatus() {
				case apportionv1.TaskStatus_TASK_STATUS_RUNNING:
					running = append(running, task.GetUid())
				case apportionv1.TaskStatus_TASK_STATUS_PENDING:
					pending = append(pending, task.GetUid())
				}
			}
		}
	}
	slices.Sort(jobs)
	slices.Sort(running)
	slices.Sort(pending)
	for _, uid := range pending[:min(4, len(pending))] {
		reclaim := &apportionv1.ReclaimStep{Claimant: &apportionv1.Selector{Names: []string{uid}}, Candidates: &apportionv1.Selector{Names: running}}
		out["victims "+uid] = victims(do(&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: reclaim}}).GetReclaim())
		reclaim.Candidates = nil
		out["reclaim "+uid] = victims(do(&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: reclaim}}).GetReclaim())
		preempt := &apportionv1.PreemptStep{Claimant: reclaim.GetClaimant()}
		out["preempt "+uid] = victims(do(&apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: preempt}}).GetPreempt())
		best := &apportionv1.NodesStep{Tasks: reclaim.GetClaimant(), Top: 3}
		for _, n := range do(&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: best}}).GetNodes().GetTasks()[0].GetNodes() {
			out["nodes "+uid] = fmt.Sprint(out["nodes "+uid], " ", snapshot.GetNodes()[n].GetName())
		}
		ask := &apportionv1.AllocatableStep{Tasks: &apportionv1.Selector{Names: []string{uid}}}
		out["allocatable "+uid] = do(&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: ask}}).GetAllocatable().GetTasks()[0].GetVerdict().GetVote()
	}
	enqueue := do(&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: &apportionv1.Selector{Names: jobs}}}}).GetEnqueue()
	for _, j := range enqueue.GetJobs() {
		out["enqueue "+j.GetUid()] = j.GetVerdict().GetVote()
	}
	return out
}

func TestTheOrderOfASnapshotChangesNoAnswer(t *testing.T) {
	everyPolicy(t, func(t *rapid.T, policy string) {
		snapshot := drawSnapshot(t, true)
		other := shuffled(snapshot, rapid.Uint64().Draw(t, "shuffle"))
		require.Equal(t, told(t, snapshot, policy), told(t, other, policy))
	})
}

// TestCapacityKeepsGuarantees holds for capacity and not for proportion, which looks at deserved alone: see the counter-example below.
func TestCapacityKeepsGuarantees(t *testing.T) {
	for _, name := range []string{"capacity flat", "capacity hierarchical"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				snapshot := drawSnapshot(t, false)
				s := opened(t, snapshot, policies[name])
				shares := func() []*apportionv1.QueueShare {
					return s.Do(&apportionv1.Step{Step: &apportionv1.Step_Shares{}}).GetShares().GetPlugins()[0].GetQueues()
				}
				before := shares()
				for _, step := range everything(snapshot) {
					reclaim := step.GetReclaim()
					if reclaim == nil {
						continue
					}
					mark := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}).GetMark().GetMark()
					victims := &apportionv1.Selector{}
					for _, v := range s.Do(step).GetReclaim().GetVictims() {
						victims.Indices = append(victims.Indices, v.GetTask())
					}
					s.Do(event.Evict(victims, 0))
					for i, q := range shares() {
						lost := !proto.Equal(q.GetAllocated(), before[i].GetAllocated())
						if len(q.GetChildren()) > 0 || !lost {
							continue
						}
						for k, d := range q.GetGuarantee().GetDimensions() {
							require.GreaterOrEqual(t, amount(q.GetAllocated(), d), q.GetGuarantee().GetAmounts()[k], "queue %s", q.GetName())
						}
					}
					s.Do(&apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: mark}}})
				}
			})
		})
	}
}

func amount(r *apportionv1.Resource, dimension uint32) float64 {
	if i := slices.Index(r.GetDimensions(), dimension); i >= 0 {
		return r.GetAmounts()[i]
	}
	return 0
}

func TestProportionTakesVictimsBelowGuaranteeInOneDimension(t *testing.T) {
	// b has more cpu than it deserves, so its only memory goes, although b is guaranteed just that.
	s := opened(t, parse(t, &apportionv1.Snapshot{}, `
dimensions: "cpu" dimensions: "memory"
nodes { name: "n" allocatable { dimensions: [0, 1] amounts: [10000, 100] } }
queues { name: "a" }
queues { name: "b" guarantee { dimensions: [1] amounts: [50] } }
jobs { name: "claim" queue: "a" groups { request { dimensions: [0] amounts: [9000] } tasks {} } }
jobs { name: "work" queue: "b" groups {
  tasks { status: TASK_STATUS_RUNNING detail { request { dimensions: [1] amounts: [50] } } }
  tasks { status: TASK_STATUS_RUNNING detail { request { dimensions: [0] amounts: [9000] } } }
} }`), policies["proportion"])
	answer := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{
		Claimant: &apportionv1.Selector{Indices: []uint32{0}}, Candidates: &apportionv1.Selector{Indices: []uint32{1}},
	}}})
	require.Len(t, answer.GetReclaim().GetVictims(), 1)
}

func TestAnAncestorHasWhatItsChildrenHaveTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := drawSnapshot(t, false)
		s := opened(t, snapshot, policies["capacity hierarchical"])
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			s.Do(drawStep(t, snapshot))
		}
		all := s.Do(&apportionv1.Step{Step: &apportionv1.Step_Shares{}}).GetShares().GetPlugins()[0].GetQueues()
		queues := map[uint32]*apportionv1.QueueShare{}
		for _, q := range all {
			queues[q.GetQueue()] = q
		}
		for _, q := range all {
			if len(q.GetChildren()) == 0 {
				continue
			}
			for _, part := range []func(*apportionv1.QueueShare) *apportionv1.Resource{
				(*apportionv1.QueueShare).GetAllocated, (*apportionv1.QueueShare).GetRequest, (*apportionv1.QueueShare).GetInqueue,
				(*apportionv1.QueueShare).GetElastic,
			} {
				for d := range uint32(6) {
					sum := 0.0
					for _, child := range q.GetChildren() {
						sum += amount(part(queues[child]), d)
					}
					require.InDelta(t, sum, amount(part(q), d), 1e-6)
				}
			}
		}
	})
}
