package wire_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// hostileShape is a snapshot that would cost far more than its bytes, and a question about it.
type hostileShape struct {
	name     string
	snapshot *apportionv1.Snapshot
	policy   string
	question string
	// work bounds the question; 0: as by default. refused is in the error, which comes before the work is done; empty: it is answered.
	work    int64
	refused string
}

const (
	byKueue     = `tiers { plugins { kueue { usage_sharing {} } } }`
	byGang      = `tiers { plugins { gang {} } }`
	tooMuchWork = "units of work are done"
)

// numbered returns n texts.
func numbered(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = prefix + strconv.Itoa(i)
	}
	return list
}

// resources has an amount of each of n dimensions.
func resources(n int, amount float64) *apportionv1.Resource {
	out := &apportionv1.Resource{}
	for d := range uint32(n) {
		out.Dimensions, out.Amounts = append(out.Dimensions, d), append(out.Amounts, amount)
	}
	return out
}

// kueueSnapshot has one queue with quotas of flavors, and workloads that wait there.
func kueueSnapshot(dimensions int, flavors []string, workloads int, set *apportionv1.KueuePodSet) *apportionv1.Snapshot {
	own := &apportionv1.KueueQueue{}
	s := &apportionv1.Snapshot{Dimensions: dimensionsOf(dimensions), Queues: []*apportionv1.Queue{{Name: "q", Kueue: own}}}
	for _, name := range flavors {
		s.NodeSets = append(s.NodeSets, &apportionv1.NodeSet{Name: name, Flavor: &apportionv1.KueueFlavor{}})
		own.Quotas = append(own.Quotas, &apportionv1.Quota{NodeSet: name, Nominal: resources(dimensions, 1000)})
	}
	for _, name := range numbered("job", workloads) {
		s.Jobs = append(s.Jobs, &apportionv1.Job{
			Name: name, Queue: "q", Kueue: &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{set}},
		})
	}
	return s
}

// dimensionsOf are cpu, and n-1 other dimensions.
func dimensionsOf(n int) []string { return append([]string{"cpu"}, numbered("r", n-1)...) }

func requests(dimensions int, amount float64) *apportionv1.KueuePodSet {
	return &apportionv1.KueuePodSet{Name: "s", Count: 1, Request: resources(dimensions, amount)}
}

// hostileShapes are what a client may send at most.
func hostileShapes() []hostileShape {
	const most = 63 // And memory, which every snapshot has.
	wide := kueueSnapshot(most, numbered("f", 20_000), 0, nil)
	admitted := &apportionv1.KueueWorkload{Admitted: true}
	for _, name := range numbered("s", 5000) {
		admitted.PodSets = append(admitted.PodSets, &apportionv1.KueuePodSet{
			Name: name, Count: 1, Uses: []*apportionv1.FlavorUse{{NodeSet: name, Used: resources(1, 1)}},
		})
	}
	sets := kueueSnapshot(1, []string{"f"}, 1, nil)
	sets.Jobs[0].Kueue = admitted
	local := kueueSnapshot(most, []string{"f"}, 0, nil)
	local.Queues[0].Kueue.UsageBased = true
	for _, name := range numbered("l", 5000) {
		local.Queues[0].Kueue.LocalQueues = append(local.Queues[0].Kueue.LocalQueues, &apportionv1.KueueLocalQueue{
			Owner: name, Consumed: resources(most, 1),
		})
		local.Jobs = append(local.Jobs, &apportionv1.Job{Name: name, Queue: "q", Owner: name, Kueue: &apportionv1.KueueWorkload{}})
	}
	elsewhere := kueueSnapshot(1, []string{"f"}, 1, requests(1, 1<<50))
	for _, name := range numbered("g", 50_000) {
		elsewhere.NodeSets = append(elsewhere.NodeSets, &apportionv1.NodeSet{Name: name, Flavor: &apportionv1.KueueFlavor{}})
	}
	return []hostileShape{
		{"resources by flavors", wide, byKueue, `shares {}`, 0, "more than 1048576 accounts"},
		{"sets of an admitted workload", sets, byKueue, `shares {}`, 20_000_000, ""},
		{"flavors of other queues, at each try of a remedy", elsewhere, byKueue, `remedies { job { indices: 0 } }`, 2_000_000, ""},
		{"usage of a local queue", local, byKueue, `shares {}`, 1_000_000, tooMuchWork},
		{"requests by covered resources", kueueSnapshot(most, []string{"f", "g"}, 2000, requests(most, 0)), byKueue, `explain {}`, 2_000_000, tooMuchWork},
		{
			"flavors that are tried", kueueSnapshot(1, numbered("f", 2000), 40, requests(1, 5000)), byKueue,
			`explain {}`, 0, "the answer would exceed 1048576 bytes",
		},
		{
			"flavors that are tried before a job is admitted",
			kueueSnapshot(1, numbered("f", 2000), 40, requests(1, 5000)), byKueue,
			`enqueue { mode: ENQUEUE_MODE_VOTES }`, 0, "the answer would exceed 1048576 bytes",
		},
	}
}

// podSnapshot has n nodes and a task of the first class.
func podSnapshot(n int, rules *apportionv1.PodRules) *apportionv1.Snapshot {
	s := &apportionv1.Snapshot{
		Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "q"}}, Pods: rules, Jobs: []*apportionv1.Job{{
			Name: "j", Queue: "q", Phase: apportionv1.JobPhase_JOB_PHASE_INQUEUE, MinAvailable: 1,
			Groups: []*apportionv1.TaskGroup{{PodClass: 1, Request: amounts(1, 1), Tasks: []*apportionv1.Task{{}}}},
		}},
	}
	for _, name := range numbered("n", n) {
		s.Nodes = append(s.Nodes, &apportionv1.Node{Name: name, Allocatable: amounts(1, 10)})
	}
	return s
}

// topologies are n labels; every node is a domain of each.
func topologies(n int) []*apportionv1.Topology {
	var list []*apportionv1.Topology
	for _, key := range numbered("t", n) {
		list = append(list, &apportionv1.Topology{Key: key, Node: true})
	}
	return list
}

// hostilePods are snapshots with rules on other pods.
func hostilePods() []hostileShape {
	ports, spreads, filters := &apportionv1.PodRules{}, &apportionv1.PodRules{Topologies: topologies(1)}, &apportionv1.PodRules{Topologies: topologies(20)}
	for i, address := range numbered("", 10_000) {
		if i%2 == 0 {
			address = ""
		}
		ports.Classes = append(ports.Classes, &apportionv1.PodClass{Ports: []*apportionv1.HostPort{{Port: 80, Address: address}}})
	}
	for i := range uint32(1000) {
		spread, filter := &apportionv1.PodClass{}, &apportionv1.PodClass{}
		for k := range uint32(60) {
			spread.Spreads = append(spread.Spreads, &apportionv1.PodSpread{Selection: 60*i + k, MaxSkew: 1})
		}
		for k := range uint32(20) {
			if k > 9 || i>>k&1 == 1 {
				filter.Spreads = append(filter.Spreads, &apportionv1.PodSpread{Topology: k, MaxSkew: 1})
			}
		}
		spreads.Classes, filters.Classes = append(spreads.Classes, spread), append(filters.Classes, filter)
	}
	keepers := &apportionv1.PodRules{Topologies: topologies(60), Classes: []*apportionv1.PodClass{{}}}
	for i := range uint32(30) {
		class := &apportionv1.PodClass{}
		for k := range uint32(60) {
			class.AntiAffinities = append(class.AntiAffinities, &apportionv1.PodAntiAffinity{Selection: i, Topology: k})
		}
		keepers.Classes = append(keepers.Classes, class)
		keepers.Classes[0].Selections = append(keepers.Classes[0].Selections, i)
	}
	crowded := podSnapshot(3000, keepers)
	for _, n := range crowded.Nodes {
		n.OtherPods = []uint32{1}
	}
	near := &apportionv1.PodClass{AffinityTopologies: make([]uint32, 500_000)}
	for i := range near.AffinityTopologies {
		near.AffinityTopologies[i] = uint32(i)
	}
	return []hostileShape{
		{"ports that conflict with each other", podSnapshot(0, ports), byGang, `shares {}`, 100_000_000, ""},
		{"spreads over nodes", podSnapshot(2000, spreads), byGang, `nodes { tasks { indices: 0 } }`, 100_000_000, ""},
		{"nodes that count for spreads", podSnapshot(2000, filters), byGang, `nodes { tasks { indices: 0 } }`, 100_000_000, tooMuchWork},
		{
			"pods that many rules count", crowded, byGang, `shares {}`, 0,
			"the rules concern 5401800 pairs of a pod and a rule, at most 1144608 are taken for 3001 pods",
		},
		{
			"topologies of an affinity", podSnapshot(0, &apportionv1.PodRules{Topologies: topologies(1), Classes: []*apportionv1.PodClass{near}}),
			byGang, `shares {}`, 0, "500000 rules, at most 64 are taken",
		},
	}
}

func TestWhatTakesFarMoreThanItsBytesIsRefusedBeforeItIsDone(t *testing.T) {
	unraced(t)
	for _, shape := range slices.Concat(hostileShapes(), hostilePods()) {
		t.Run(shape.name, func(t *testing.T) {
			m, err := decode.Compile(shape.snapshot)
			if err == nil {
				var s *wire.Session
				if s, err = wire.Open(m, parse(t, &apportionv1.Policy{}, shape.policy), wire.Options{Work: shape.work, AnswerBytes: 1 << 20}); err == nil {
					_, err = s.Ask(parse(t, &apportionv1.Step{}, shape.question))
				}
			}
			if shape.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, shape.refused)
		})
	}
}

// TestAQuestionOfKueueThatFailsAdmitsNothing asks whether many jobs may be admitted, whose answer is too large once some are.
func TestAQuestionOfKueueThatFailsAdmitsNothing(t *testing.T) {
	snapshot := kueueSnapshot(1, numbered("f", 100), 50, requests(1, 1000))
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, byKueue), wire.Options{AnswerBytes: 20_000})
	require.NoError(t, err)
	shares := func() *apportionv1.Answer { return ask(t, s, `shares {}`) }
	before := shares()
	_, err = s.Ask(parse(t, &apportionv1.Step{}, `enqueue { mode: ENQUEUE_MODE_VOTES }`))
	require.ErrorContains(t, err, "the answer would exceed 20000 bytes")
	require.True(t, proto.Equal(before, shares()))
}

// TestTasksThatMustBeNearEachOtherAreJudgedWithoutANode asks about tasks for which no node is left, or of which no node takes the first.
func TestTasksThatMustBeNearEachOtherAreJudgedWithoutANode(t *testing.T) {
	rules := `dimensions: "cpu" queues { name: "q" } pods { topologies { key: "zone" }
		classes { selections: 1 affinity_topologies: 0 affinity_selection: 1 } classes { selections: 2 affinity_topologies: 0 affinity_selection: 2 } } `
	waiting := func(groups string) string {
		return `jobs { name: "j" queue: "q" min_available: 3 phase: JOB_PHASE_INQUEUE ` + groups +
			` groups { role: "b" pod_class: 2 request { dimensions: 0 amounts: 1 } tasks {} tasks {} } }`
	}
	for name, snapshot := range map[string]string{
		"no node": waiting(``),
		"no room for the first": waiting(`groups { pod_class: 1 request { dimensions: 0 amounts: 100 } tasks {} }`) +
			`nodes { name: "a" domains: 1 allocatable { dimensions: 0 amounts: 10 } } nodes { name: "b" domains: 2 allocatable { dimensions: 0 amounts: 10 } }`,
	} {
		for _, question := range []string{
			`plan { job { indices: 0 } }`, `explain {}`, `explain { jobs { indices: 0 } }`, `nodes { jointly: true tasks { indices: 0 indices: 1 } }`,
			`remedies { job { indices: 0 } }`,
		} {
			s := open(t, rules+snapshot, `tiers { plugins { gang {} } plugins { fair {} } }`)
			require.Nil(t, ask(t, s, question).GetError(), "%s: %s", name, question)
		}
	}
}
