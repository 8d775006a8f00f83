package service

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/connection"
)

// bookedShape is a kind of snapshot, or of change, of which a cache may hold many.
type bookedShape struct {
	name string
	// count is the number of those held, and make returns the i-th; each is another.
	count int
	make  func(i int) *apportionv1.Snapshot
	// change returns the i-th change; it is made of the state before in a chain, and otherwise of the snapshot 0.
	change func(i int) *apportionv1.Change
	chain  bool
}

// cluster is a snapshot with given numbers of objects. The time distinguishes snapshots.
func cluster(i, dimensions, nodes, queues, jobs, tasks int) *apportionv1.Snapshot {
	s := &apportionv1.Snapshot{AsOf: int64(i)}
	amounts := &apportionv1.Resource{Dimensions: []uint32{0, 1}, Amounts: []float64{1000, 1 << 30}}
	for d := range dimensions {
		s.Dimensions = append(s.Dimensions, fmt.Sprintf("example.com/device-%d", d))
		amounts.Amounts, amounts.Dimensions = append(amounts.Amounts, 1), append(amounts.Dimensions, uint32(d+2))
	}
	s.Dimensions = append([]string{"cpu", "memory"}, s.Dimensions...)
	for n := range nodes {
		s.Nodes = append(s.Nodes, &apportionv1.Node{Name: fmt.Sprintf("node-%d", n), Allocatable: proto.CloneOf(amounts)})
	}
	for q := range queues {
		s.Queues = append(s.Queues, &apportionv1.Queue{Name: fmt.Sprintf("queue-%d", q), Capability: proto.CloneOf(amounts)})
	}
	for j := range jobs {
		s.Jobs = append(s.Jobs, job(j, max(queues, 1), tasks))
	}
	return s
}

func job(j, queues, tasks int) *apportionv1.Job {
	g := &apportionv1.TaskGroup{Request: &apportionv1.Resource{Dimensions: []uint32{0, 1}, Amounts: []float64{100, 1 << 20}}}
	for i := range tasks {
		g.Tasks = append(g.Tasks, &apportionv1.Task{Name: fmt.Sprintf("job-%d-%d", j, i)})
	}
	return &apportionv1.Job{
		Uid: fmt.Sprintf("uid-%d", j), Name: fmt.Sprintf("job-%d", j), Namespace: "batch", Queue: fmt.Sprintf("queue-%d", j%queues),
		Groups: []*apportionv1.TaskGroup{g},
	}
}

var bookedShapes = []bookedShape{
	{name: "empty", count: 4000, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 0, 0, 0, 0) }},
	{name: "tiny", count: 4000, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 1, 1, 1, 1) }},
	{name: "wide", count: 200, make: func(i int) *apportionv1.Snapshot { return cluster(i, 60, 20, 20, 5, 1) }},
	{name: "many queues", count: 20, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 1, 2000, 0, 0) }},
	{name: "many nodes", count: 20, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 2000, 1, 0, 0) }},
	{name: "many jobs", count: 20, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 1, 10, 1000, 1) }},
	{name: "many tasks", count: 20, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 1, 1, 10, 1000) }},
	{name: "standard", count: 40, make: func(i int) *apportionv1.Snapshot { return cluster(i, 2, 100, 20, 100, 10) }},
	{name: "counts", count: 20, make: func(i int) *apportionv1.Snapshot {
		s := cluster(i, 0, 1, 1, 1, 1)
		for range 5000 {
			s.Jobs[0].Groups[0].Counts = append(s.Jobs[0].Groups[0].Counts, &apportionv1.TaskCount{Count: 1})
		}
		return s
	}},
	{name: "node groups of queues", count: 20, make: func(i int) *apportionv1.Snapshot {
		s, terms := cluster(i, 0, 1, 1, 1, 1), &apportionv1.NodeGroupTerms{}
		for n := range 5000 {
			terms.RequiredGroups = append(terms.RequiredGroups, fmt.Sprintf("group-%d", n))
		}
		s.Queues[0].NodeGroupAffinity = &apportionv1.NodeGroupAffinity{Affinity: terms}
		return s
	}},
	{name: "kueue workloads", count: 20, make: func(i int) *apportionv1.Snapshot {
		s := cluster(i, 0, 1, 1, 1000, 0)
		for _, j := range s.Jobs {
			w := &apportionv1.KueueWorkload{}
			for k := range 5 {
				w.PodSets = append(w.PodSets, &apportionv1.KueuePodSet{
					Name: fmt.Sprint(k), Count: 1, Request: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1}},
				})
			}
			j.Kueue = w
		}
		return s
	}},
	{name: "kueue quotas", count: 20, make: func(i int) *apportionv1.Snapshot {
		s := cluster(i, 0, 1, 100, 0, 0)
		for f := range 20 {
			s.NodeSets = append(s.NodeSets, &apportionv1.NodeSet{Name: fmt.Sprint("f", f), Flavor: &apportionv1.KueueFlavor{
				NodeLabels: []*apportionv1.KueueLabel{{Key: "example.com/kind", Value: fmt.Sprint("kind-", f)}},
			}})
		}
		for _, q := range s.Queues {
			q.Kueue = &apportionv1.KueueQueue{}
			for f := range 20 {
				q.Kueue.Quotas = append(q.Kueue.Quotas, &apportionv1.Quota{
					NodeSet: fmt.Sprint("f", f), Nominal: &apportionv1.Resource{Dimensions: []uint32{0, 1}, Amounts: []float64{8000, 0}},
					BorrowingLimit: &apportionv1.Resource{Dimensions: []uint32{1}, Amounts: []float64{7}},
				})
			}
		}
		return s
	}},
	{
		name: "changes of kueue workloads", count: 200, chain: true,
		make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 1, 1, 100, 0) },
		change: func(i int) *apportionv1.Change {
			c := &apportionv1.Change{}
			for n := range 20 {
				j := job((i+n)%100, 1, 0)
				j.Kueue = &apportionv1.KueueWorkload{}
				for k := range 20 {
					j.Kueue.PodSets = append(j.Kueue.PodSets, &apportionv1.KueuePodSet{Name: fmt.Sprint(k), Count: 1, MinCount: new(int32(1))})
				}
				c.Jobs = append(c.Jobs, j)
			}
			return c
		},
	},
	{name: "owners of usage without amounts", count: 20, make: func(i int) *apportionv1.Snapshot {
		s := cluster(i, 0, 1, 100, 0, 0)
		s.Memory = &apportionv1.Memory{EpochSeconds: 3600, HalfLifeEpochs: 24}
		for _, q := range s.Queues {
			for k := range 50 {
				q.Owners = append(q.Owners, &apportionv1.OwnerUsage{Owner: fmt.Sprint("user", k)})
			}
		}
		return s
	}},
	{name: "owners of usage", count: 20, make: func(i int) *apportionv1.Snapshot {
		s, used := cluster(i, 6, 1, 100, 0, 0), &apportionv1.Usage{Dimensions: []uint32{0, 1}, QuantumSeconds: []int64{1, 2}}
		s.Memory = &apportionv1.Memory{EpochSeconds: 3600, HalfLifeEpochs: 24}
		for _, q := range s.GetQueues() {
			q.Usage = used
			for k := range 50 {
				q.Owners = append(q.Owners, &apportionv1.OwnerUsage{Owner: fmt.Sprint("user", k), Usage: used})
			}
		}
		return s
	}},
	{
		name: "changes of owners of usage", count: 50, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 1, 1, 1, 1) },
		change: func(i int) *apportionv1.Change {
			q := cluster(i, 0, 0, 1, 0, 0).GetQueues()[0]
			for k := range 2000 {
				q.Owners = append(q.Owners, &apportionv1.OwnerUsage{Owner: fmt.Sprint("user", i, k)})
			}
			return &apportionv1.Change{Queues: []*apportionv1.Queue{q}}
		},
	},
	{name: "pod classes", count: 20, make: func(i int) *apportionv1.Snapshot {
		s := cluster(i, 0, 1, 1, 0, 0)
		s.Pods = &apportionv1.PodRules{Topologies: []*apportionv1.Topology{{Key: "a"}}}
		for k := range 2000 {
			s.Pods.Classes = append(s.Pods.Classes, &apportionv1.PodClass{
				Selections: []uint32{uint32(k)}, AntiAffinities: []*apportionv1.PodAntiAffinity{{Selection: uint32(k)}},
			})
		}
		return s
	}},
	{
		name: "changes of pod classes", count: 50, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 1, 1, 1, 1) },
		change: func(i int) *apportionv1.Change {
			p := &apportionv1.PodRules{Topologies: []*apportionv1.Topology{{Key: "a"}}}
			for k := range 2000 {
				p.Classes = append(p.Classes, &apportionv1.PodClass{
					Selections: []uint32{uint32(k + i)}, AntiAffinities: []*apportionv1.PodAntiAffinity{{Selection: uint32(k)}},
				})
			}
			return &apportionv1.Change{Pods: p}
		},
	},
	{name: "left out", count: 20, make: func(i int) *apportionv1.Snapshot {
		s := cluster(i, 0, 1, 1, 1, 1)
		for n := range 2000 {
			s.LeftOuts = append(s.LeftOuts, &apportionv1.LeftOut{Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_NO_JOB, Name: fmt.Sprintf("pod-%d", n)})
		}
		return s
	}},
	{name: "long names", count: 100, make: func(i int) *apportionv1.Snapshot {
		s := cluster(i, 0, 10, 10, 0, 0)
		for _, n := range s.GetNodes() {
			n.Name += strings.Repeat("n", 2000)
		}
		return s
	}},
	{
		name: "empty changes", count: 2000, make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 1, 1, 1, 1) },
		change: func(i int) *apportionv1.Change { return &apportionv1.Change{AsOf: new(int64(i) + 1)} },
	},
	{
		name: "chain of changes", count: 1000, chain: true,
		make: func(i int) *apportionv1.Snapshot { return cluster(i, 0, 10, 10, 100, 1) },
		change: func(i int) *apportionv1.Change {
			return &apportionv1.Change{Jobs: []*apportionv1.Job{job(i%100, 10, 2)}}
		},
	},
	{
		name: "changes of a large cluster", count: 200,
		make:   func(i int) *apportionv1.Snapshot { return cluster(i, 0, 200, 50, 5000, 2) },
		change: func(i int) *apportionv1.Change { return &apportionv1.Change{Jobs: []*apportionv1.Job{job(i, 50, 3)}} },
	},
}

func TestWhatIsBookedForASnapshotIsWhatItTakes(t *testing.T) {
	if raced.On {
		t.Skip("the race detector takes memory of its own")
	}
	for _, shape := range bookedShapes {
		t.Run(shape.name, func(t *testing.T) {
			s, err := New(Options{Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			hold := func(data []byte, digest string, base *entry) *entry {
				k := entryKey{connection.Anonymous, digest}
				_, cached, _, err := s.store(t.Context(), k, data, base, follow(t.Context()))
				require.NoError(t, err)
				require.True(t, cached)
				return s.cache.find(k)
			}
			whole := func(i int) *entry {
				data, err := proto.Marshal(shape.make(i))
				require.NoError(t, err)
				sum := sha256.Sum256(data)
				return hold(data, "sha256:"+hex.EncodeToString(sum[:]), nil)
			}
			base := whole(-1)
			heap := func() int64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			_, booked := s.cache.usage()
			before := heap()
			for i := range shape.count {
				if shape.change == nil {
					whole(i)
					continue
				}
				data, err := proto.Marshal(shape.change(i))
				require.NoError(t, err)
				next := hold(data, decode.ChangeDigest(base.digest(), data), base)
				if shape.chain {
					base = next
				}
			}
			took := heap() - before
			snapshots, now := s.cache.usage()
			require.Equal(t, shape.count+1, snapshots)
			booked = now - booked
			ratio := float64(booked) / float64(took)
			t.Logf("%d bytes are booked for each, %d taken: %.2f", booked/int64(shape.count), took/int64(shape.count), ratio)
			require.Less(t, ratio, 1.5)
			require.Greater(t, ratio, 1/1.5)
			runtime.KeepAlive(s)
		})
	}
}

func TestACallThatIsRefusedIsNotCountedOn(t *testing.T) {
	s, err := New(Options{Overload: admission.Options{Calls: 2}})
	require.NoError(t, err)
	const method = apportionv1.DecisionService_EvaluateShares_FullMethodName
	var ends []func()
	for range 2 {
		end, err := s.begin(t.Context(), method)
		require.NoError(t, err)
		ends = append(ends, end)
	}
	for range 5 {
		_, err := s.begin(t.Context(), method)
		require.ErrorContains(t, err, "too many calls have begun")
	}
	_, err = s.begin(t.Context(), apportionv1.DecisionService_RunSession_FullMethodName)
	require.NoError(t, err, "sessions are counted apart")
	for _, end := range ends {
		end()
	}
	require.Zero(t, s.admission.Usage().Begun)
	_, err = s.begin(t.Context(), method)
	require.NoError(t, err)
}
