package report

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// documented compares a drawing with that of a document, or writes it there.
func documented(t *testing.T, name, title string, plots []plot) {
	t.Helper()
	var drawn bytes.Buffer
	require.NoError(t, draw(&drawn, title, plots))
	golden(t, filepath.Join("..", "..", "..", "..", "..", "docs", name), drawn.Bytes())
}

// queues returns a snapshot with 16 GPUs on two nodes, and two queues.
func queues(t *testing.T, names ...string) *apportionv1.Snapshot {
	t.Helper()
	s := client.NewSnapshot()
	for _, name := range []string{"n0", "n1"} {
		s.Node(client.Node{Name: name, Allocatable: client.Resources{"nvidia.com/gpu": "8"}})
	}
	for _, name := range names {
		s.Queue(client.Queue{Name: name, Weight: 1})
	}
	snapshot, err := s.Build()
	require.NoError(t, err)
	return snapshot
}

// TestThePictureOfALateQueueIsAsTheEngineDecides runs two queues that want everything, one of them two weeks before the other.
func TestThePictureOfALateQueueIsAsTheEngineDecides(t *testing.T) {
	const day, weeks = 24 * 3600, 7
	random := rand.New(rand.NewPCG(9, 0))
	history := &trace.Trace{}
	for at := int64(0); at < weeks*7*day; at += day / 16 {
		for i, name := range []string{"old", "late"} {
			if i == 1 && at < 14*day {
				continue
			}
			history.Jobs = append(history.Jobs, trace.Job{
				Name: fmt.Sprint(name, at), Queue: name, Arrival: at, Min: 1, Seconds: day*3/4 + random.Int64N(day/2),
				Groups: []trace.Group{{Role: "task", Tasks: 1, Request: []trace.Amount{{Resource: "nvidia.com/gpu", Amount: 1000}}}},
			})
		}
	}
	policy, _ := client.Preset("fair")
	entitlement, _ := client.Preset("proportion")
	r := &Report{Trace: Trace{Last: weeks * 7 * day}, Resource: "nvidia.com/gpu"}
	for _, v := range []rehearsal.Variant{{Name: "no memory"}, {Name: "half-life of 7 days", Memory: &rehearsal.Memory{Epoch: 6 * time.Hour, HalfLife: 28}}} {
		v.Snapshot, v.Policy = queues(t, "old", "late"), policy
		result, err := rehearsal.Run(t.Context(), &v, history, &rehearsal.Options{Every: 300, Resource: r.Resource, Entitlement: entitlement})
		require.NoError(t, err)
		result.Series.Fairness = result.Series.Fairness[:weeks*7*day/result.Series.Step]
		for q := range result.Series.Queues {
			of := &result.Series.Queues[q]
			of.Used, of.Entitled = of.Used[:len(result.Series.Fairness)], of.Entitled[:len(result.Series.Fairness)]
		}
		r.Runs = append(r.Runs, result)
	}
	_, from, to := r.scale()
	var plots []plot
	for i := range r.Runs {
		plots = append(plots, r.shares(i, 16, from, to))
		plots[i].YUnit = "solid: in use, dashed: entitled to"
	}
	documented(t, "fair-memory-late.svg", "The GPUs of two queues of equal weight, one of which comes two weeks after the other", plots)
}

// factor asks the engine for the factor of the weight of a queue that has used so many times its part.
func factor(t *testing.T, gain, power uint32, rho float64) float64 {
	t.Helper()
	const all = 1 << 40
	s := queues(t, "a", "b", "c", "d")
	gpu := uint32(0)
	for d, name := range s.GetDimensions() {
		if name == "nvidia.com/gpu" {
			gpu = uint32(d)
		}
	}
	usage := func(n float64) *apportionv1.Usage {
		return &apportionv1.Usage{Dimensions: []uint32{gpu}, QuantumSeconds: []int64{int64(n)}}
	}
	s.Memory = &apportionv1.Memory{EpochSeconds: 21600, HalfLifeEpochs: 28, Epoch: 1}
	for i, q := range s.GetQueues() {
		q.Usage = usage(all * rho / 4)
		if i > 0 {
			q.Usage = usage(all * (4 - rho) / 12)
		}
	}
	model, err := decode.Compile(s)
	require.NoError(t, err)
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{{
		Plugin: &apportionv1.Plugin_Fair{Fair: &apportionv1.Fair{Memory: &apportionv1.FairMemory{Gain: &gain, Power: &power}}},
	}}}}}
	session, err := wire.Open(model, policy, wire.Options{})
	require.NoError(t, err)
	answer, err := session.Ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}})
	require.NoError(t, err)
	for _, division := range answer.GetShares().GetPlugins()[0].GetFair().GetWeights() {
		for _, child := range division.GetChildren() {
			if division.GetDimension() == gpu && child.GetQueue() == 0 {
				return float64(child.GetFactor()) / 65536
			}
		}
	}
	t.Fatal("there is no factor")
	return 0
}

// TestThePictureOfWeightsIsAsTheEngineComputesThem draws the weight with memory over usage.
func TestThePictureOfWeightsIsAsTheEngineComputesThem(t *testing.T) {
	const most, high, low = 2.5, 4, -3
	height := func(f float64) float64 { return bottom - (bottom-top)*(math.Log2(f)-low)/(high-low) }
	p := plot{Title: "Weight with memory / weight", YUnit: "by what a queue used", XUnit: "usage, in parts by weight (1: as much as its weight says)"}
	for e := low; e <= high; e++ {
		p.Y = append(p.Y, tick{height(math.Exp2(float64(e))), strconv.FormatFloat(math.Exp2(float64(e)), 'g', 4, 64)})
	}
	for x := 0.0; x <= most; x += .5 {
		p.X = append(p.X, tick{left + (right-left)*x/most, strconv.FormatFloat(x, 'g', 3, 64)})
	}
	for i, of := range []struct {
		gain, power uint32
		name        string
	}{{3 << 16, 2, "gain 3, power 2 (default)"}, {3 << 16, 1, "gain 3, power 1"}, {1 << 16, 1, "gain 1, power 1"}} {
		var points []string
		for x := 0.0; x <= most; x += most / 100 {
			points = append(points, at(left+(right-left)*x/most)+","+at(height(factor(t, of.gain, of.power, x))))
		}
		p.Curves = append(p.Curves, curve{Color: i, Points: strings.Join(points, " "), Name: of.name})
		p.Legend = append(p.Legend, key{Color: i, Name: of.name})
	}
	p.Curves = append(p.Curves, curve{Color: 7, Dashed: true, Points: fmt.Sprintf("%s,%s %s,%s", at(left), at(height(1)), at(right), at(height(1))), Name: "weight"})
	documented(t, "fair-memory-weight.svg", p.Title, []plot{p})
}
