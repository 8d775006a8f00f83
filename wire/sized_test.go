package wire_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// sizedShapes are clusters on which sessions take more than what changes.
var sizedShapes = map[string]struct {
	make   func() *apportionv1.Snapshot
	policy string
	steps  []string
}{
	"kueue workloads": {func() *apportionv1.Snapshot {
		s := kueueCluster(20, 100)
		for i := range 2000 {
			w := &apportionv1.KueueWorkload{}
			for k := range 3 {
				w.PodSets = append(w.PodSets, &apportionv1.KueuePodSet{
					Name: fmt.Sprint(k), Count: 1, Requests: []*apportionv1.KueueAmount{{Name: "cpu", Amount: 5}, {Name: "memory", Amount: 1}},
				})
			}
			s.Jobs = append(s.Jobs, &apportionv1.Job{Name: fmt.Sprint("j", i), Queue: fmt.Sprint("q", i%100), Kueue: w})
		}
		return s
	}, `tiers { plugins { kueue {} } }`, nil},
	"kueue admissions": {func() *apportionv1.Snapshot {
		s := kueueCluster(20, 10)
		for i := range 2000 {
			s.Jobs = append(s.Jobs, &apportionv1.Job{Name: fmt.Sprint("j", i), Queue: fmt.Sprint("q", i%10), Kueue: &apportionv1.KueueWorkload{
				ReserveTime: new(int64(1)), PodSets: []*apportionv1.KueuePodSet{{Name: "s", Count: 1}},
				Admission: &apportionv1.KueueAdmission{PodSets: []*apportionv1.KueueAdmittedPodSet{{
					Name: "s", Usage: []*apportionv1.KueueFlavoredUsage{{Resource: "cpu", Flavor: "f1", Amount: new(int64(1))}},
				}}},
			}})
		}
		return s
	}, `tiers { plugins { kueue {} } }`, nil},
	"kueue quotas": {func() *apportionv1.Snapshot { return kueueCluster(200, 100) }, `tiers { plugins { kueue {} } }`, nil},
	"kueue cohort": {func() *apportionv1.Snapshot {
		s := kueueCluster(20, 500)
		for _, q := range s.GetQueues() {
			q.Kueue.Cohort = "all"
		}
		return s
	}, `tiers { plugins { kueue {} } }`, nil},
	"pods' rules": {func() *apportionv1.Snapshot { return podCluster(3000, 0) }, `tiers { plugins { gang {} } }`, nil},
	"pods, counted": {
		func() *apportionv1.Snapshot { return podCluster(20, 20_000) }, `tiers { plugins { gang {} } }`,
		[]string{`nodes { tasks { index: 0 } }`},
	},
	"pods of many classes, counted": {
		func() *apportionv1.Snapshot { return podCluster(2000, 20_000) }, `tiers { plugins { gang {} } }`,
		[]string{`nodes { tasks { index: 0 } }`},
	},
}

// kueueCluster has queues with quotas for two resources of each flavor.
func kueueCluster(flavors, queues int) *apportionv1.Snapshot {
	s := &apportionv1.Snapshot{Kueue: &apportionv1.KueueSnapshot{}}
	g := &apportionv1.KueueResourceGroup{CoveredResources: []string{"cpu", "memory"}}
	for i := range flavors {
		s.Kueue.Flavors = append(s.Kueue.Flavors, &apportionv1.KueueFlavor{Name: fmt.Sprint("f", i)})
		g.Flavors = append(g.Flavors, &apportionv1.KueueFlavorQuotas{
			Name: fmt.Sprint("f", i), Resources: []*apportionv1.KueueQuota{{Name: "cpu", Nominal: 1}, {Name: "memory", Nominal: 1}},
		})
	}
	for i := range queues {
		s.Queues = append(s.Queues, &apportionv1.Queue{
			Name: fmt.Sprint("q", i), Kueue: &apportionv1.KueueQueue{Groups: []*apportionv1.KueueResourceGroup{g}},
		})
	}
	return s
}

// podCluster has classes that keep off each other by node and by zone, and pods of them on a thousand nodes.
func podCluster(classes, pods int) *apportionv1.Snapshot {
	s := &apportionv1.Snapshot{
		Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "q"}},
		Pods: &apportionv1.PodRules{Topologies: []*apportionv1.Topology{{Key: "host", Node: true}, {Key: "zone"}}},
	}
	for i := range classes {
		s.Pods.Classes = append(s.Pods.Classes, &apportionv1.PodClass{
			Selections:     []uint32{uint32(i)},
			AntiAffinities: []*apportionv1.PodAntiAffinity{{Selection: uint32(i)}, {Selection: uint32(i), Topology: 1}},
			Spreads:        []*apportionv1.PodSpread{{Selection: uint32(i), MaxSkew: 1}},
		})
	}
	const nodes = 1000
	for i := range nodes {
		s.Nodes = append(s.Nodes, &apportionv1.Node{Name: fmt.Sprint("n", i), Domains: []uint32{0, uint32(1 + i%3)}, Allocatable: amounts(1, 100)})
	}
	for i := range pods {
		n := s.GetNodes()[i%nodes]
		n.OtherPods = append(n.OtherPods, uint32(1+(i+i/nodes)%classes))
	}
	s.Jobs = []*apportionv1.Job{{
		Name: "j", Queue: "q", Groups: []*apportionv1.TaskGroup{{PodClass: 1, Request: amounts(1, 10), Tasks: []*apportionv1.Task{{}}}},
	}}
	return s
}

func TestWhatIsBookedForASessionIsWhatItTakes(t *testing.T) {
	unraced(t)
	for name, shape := range sizedShapes {
		t.Run(name, func(t *testing.T) {
			m, err := wire.Compile(shape.make())
			require.NoError(t, err)
			p := parse(t, &apportionv1.Policy{}, shape.policy)
			var steps []*apportionv1.Step
			for _, text := range shape.steps {
				steps = append(steps, parse(t, &apportionv1.Step{}, text))
			}
			const count = 4
			var sessions [count]*wire.Session
			before := heap()
			for i := range sessions {
				s, err := wire.Open(m, p, wire.Options{})
				require.NoError(t, err)
				if len(steps) > 0 {
					s.Keep()
					answers, err := s.DoAll(steps)
					require.NoError(t, err)
					require.Empty(t, answers[0].GetError().GetMessage())
					s.Restore()
				}
				sessions[i] = s
			}
			took := float64(heap()-before) / count
			booked := float64(sessions[0].Bytes())
			t.Logf("%.0f bytes are booked for each, %.0f taken: %.2f", booked, took, booked/took)
			require.Less(t, booked/took, 1.5)
			require.Greater(t, booked/took, 1/1.5)
			runtime.KeepAlive(sessions)
			runtime.KeepAlive(m)
		})
	}
}

func TestAQuestionAboutManyFlavorsTakesNoMoreThanIsBookedForIt(t *testing.T) {
	unraced(t)
	s := kueueCluster(2000, 1)
	for i := range 200 {
		s.Jobs = append(s.Jobs, &apportionv1.Job{Name: fmt.Sprint("j", i), Queue: "q0", Kueue: &apportionv1.KueueWorkload{
			PodSets: []*apportionv1.KueuePodSet{{Name: "s", Count: 1, Requests: []*apportionv1.KueueAmount{{Name: "cpu", Amount: 5}}}},
		}})
	}
	data, err := proto.Marshal(s)
	require.NoError(t, err)
	m, err := wire.Compile(s)
	require.NoError(t, err)
	p := parse(t, &apportionv1.Policy{}, `tiers { plugins { kueue {} } }`)
	size := wire.Measure(data)
	require.Equal(t, wire.ExtentOf(m, p), size.Extent(p))
	for _, text := range []string{`explain {}`, `explain { jobs { index: 7 } }`, `enqueue {}`} {
		steps := []*apportionv1.Step{parse(t, &apportionv1.Step{}, text)}
		booked, _ := wire.StepMemory(steps, wire.ExtentOf(m, p), wire.Options{})
		took, answers := leastPeak(t, m, p, wire.Options{}, steps, booked)
		require.Empty(t, answers[0].GetError().GetMessage())
		t.Logf("%-30s %5d KiB of %5d booked", text, took>>10, booked>>10)
		require.Less(t, took, booked)
	}
}
