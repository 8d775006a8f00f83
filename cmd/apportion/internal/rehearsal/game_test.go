package rehearsal

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/ledger"
)

var gamesFlag = flag.Bool("games", false, "play all games for 40 days, as docs/fair.md shows them")

// order is what a queue asks for in a game: jobs whose tasks take a node of 8 GPUs each, as much work as so many GPUs do in that time, and
// more from the beginning.
type order struct {
	queue        string
	nodes        int
	length, gpus float64
	waiting      int
	spread       float64
}

// singles are jobs of one node, of so many hours ± 25 %, which a queue always has more of than it is given.
func singles(queue string, hours, gpus float64) order {
	return order{queue: queue, nodes: 1, length: hours, gpus: gpus, waiting: 20, spread: .25}
}

// gangs are jobs of so many nodes, one of which always waits.
func gangs(queue string, nodes int, hours, every float64) order {
	return order{queue: queue, nodes: nodes, length: hours, gpus: 8 * float64(nodes) * hours / every, waiting: 1}
}

// jobs returns the jobs that arrive within so many seconds.
func (o *order) jobs(draw *rand.Rand, end float64) []trace.Job {
	const begin = 60
	each := 8 * float64(o.nodes) * o.length * hour / o.gpus
	var jobs []trace.Job
	for i, at := 0, 0.0; at < end; i++ {
		if i >= o.waiting {
			at += each
		}
		seconds := o.length * hour * (1 + o.spread*(2*draw.Float64()-1))
		jobs = append(jobs, trace.Job{
			Name: fmt.Sprintf("%s-%d-%05d", o.queue, o.nodes, i), Queue: o.queue, Arrival: begin + int64(at), Min: o.nodes, Seconds: int64(seconds),
			Groups: []trace.Group{{Role: "task", Tasks: o.nodes, Request: []trace.Amount{{Resource: gpu, Amount: 8000}}}},
		})
	}
	return jobs
}

// played is a game of queues a, b, c … on ten nodes of 8 GPUs.
type played struct {
	name    string
	weights []uint32
	asks    []order
	// neighbours are the queues whose part the others try to lower.
	neighbours string
	long       bool
}

// play plays a game for so many days under the preset `fair` with a half-life of 7 days. It returns the GPUs that each queue held on average,
// and those that were kept idle for its gangs.
func (g *played) play(t *testing.T, days int) (held, reserved map[string]float64) {
	t.Helper()
	end := int64(days) * 24 * int64(hour)
	draw := rand.New(rand.NewPCG(1, 1))
	h := &trace.Trace{}
	for i := range g.asks {
		h.Jobs = append(h.Jobs, g.asks[i].jobs(draw, float64(end))...)
	}
	h.Sort()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options(t)
	o.Observe = func(m *Moment) {
		waits := map[string]int{}
		for _, j := range m.Jobs {
			if j.Since == Never {
				waits[j.Queue] += j.Tasks()
			}
		}
		for _, q := range g.neighbours {
			require.Positive(t, waits[string(q)], "%s has work for all at %d", string(q), m.Now)
		}
		if m.Now >= end {
			cancel()
		}
	}
	v := &Variant{
		Name: "fair", Snapshot: cluster(10, g.weights...), Policy: preset(t, "fair"), Memory: &Memory{Epoch: 6 * time.Hour, HalfLife: 28},
	}
	r, err := start(ctx, v, h, o)
	require.NoError(t, err)
	_, err = r.toEnd(ctx)
	require.ErrorIs(t, err, context.Canceled)
	held, reserved = map[string]float64{}, map[string]float64{}
	for _, q := range r.result().Queues {
		held[q.Name] = q.Hours / float64(r.meter.at) * hour
	}
	dimensions := r.memory.entitled.Dimensions()
	for line, sums := range r.memory.entitled.Spent(-1<<30, 1<<30) {
		for d, sum := range sums {
			if dimensions[d] == ledger.Reserved(gpu) && line.Owner == "" {
				reserved[line.Queue] = float64(sum) / float64(r.meter.at)
			}
		}
	}
	return held, reserved
}

// TestGangsCostTheirNeighboursNoMoreThanTheirQueuesPart plays games in which a queue asks for gangs of the whole cluster, for which room stands idle
// while jobs end: each neighbour has its part by weight within a twentieth.
func TestGangsCostTheirNeighboursNoMoreThanTheirQueuesPart(t *testing.T) {
	raced.Skip(t)
	days := 24
	if *gamesFlag {
		days = 40
	}
	for _, g := range []played{
		{"two queues with work for all", []uint32{1, 1}, []order{singles("a", 6, 41), singles("b", 6, 41)}, "ab", true},
		{"a third of weight 1 of 17 with gangs of all nodes for 5 minutes", []uint32{8, 8, 1}, []order{
			singles("a", 6, 38.5), singles("b", 6, 38.5), gangs("c", 10, 1./12, 4),
		}, "ab", false},
		{"the same beside jobs of a day", []uint32{8, 8, 1}, []order{singles("a", 24, 38.5), singles("b", 24, 38.5), gangs("c", 10, 1./12, 4)}, "ab", true},
		{"a third of weight 1 of 17 with gangs of 4 nodes for 5 minutes", []uint32{8, 8, 1}, []order{
			singles("a", 6, 38.5), singles("b", 6, 38.5), gangs("c", 4, 1./12, 1),
		}, "ab", true},
		{"two such queues of weight 1 of 18", []uint32{8, 8, 1, 1}, []order{
			singles("a", 6, 38.5), singles("b", 6, 38.5), gangs("c", 10, 1./12, 4), gangs("d", 10, .5, 6),
		}, "ab", true},
		{"b adds gangs of all nodes for 30 minutes", []uint32{1, 1}, []order{singles("a", 6, 41), singles("b", 6, 40), gangs("b", 10, .5, 6)}, "a", false},
		{"b adds gangs of all nodes for 6 hours", []uint32{1, 1}, []order{singles("a", 6, 41), singles("b", 6, 30), gangs("b", 10, 6, 24)}, "a", false},
		{"b adds gangs of 4 nodes for 6 hours", []uint32{1, 1}, []order{singles("a", 6, 41), singles("b", 6, 20), gangs("b", 4, 6, 6)}, "a", true},
		{"b asks for gangs of all nodes alone", []uint32{1, 1}, []order{singles("a", 6, 41), gangs("b", 10, 6, 11)}, "a", true},
	} {
		t.Run(g.name, func(t *testing.T) {
			if g.long && !*gamesFlag {
				t.Skip("-games plays it")
			}
			held, reserved := g.play(t, days)
			t.Log("GPUs held, and kept idle:", held, reserved)
			all := uint32(0)
			for _, weight := range g.weights {
				all += weight
			}
			for _, q := range g.neighbours {
				part := 80 * float64(g.weights[q-'a']) / float64(all)
				require.GreaterOrEqual(t, held[string(q)], .95*part, "%s of its %.1f", string(q), part)
			}
		})
	}
}
