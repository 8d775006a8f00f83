package extender_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/adapter/extender"
	"github.com/apportion/apportion/adapter/extender/extendertest"
)

// waiting is a cluster of nodes of 10 cpu in which only pending jobs exist, in queues by turns. Their minimums in cpu are given; 0: none.
type waiting struct {
	nodes, queues int
	minimums      []int
}

func (w waiting) queue(job int) string { return fmt.Sprintf("q%d", job%w.queues) }

func (w waiting) job(i int) extendertest.Object {
	name, spec := fmt.Sprintf("j%02d", i), extendertest.Object{}
	if w.minimums[i] > 0 {
		spec["minResources"] = extendertest.Object{"cpu": strconv.Itoa(w.minimums[i])}
	}
	return extendertest.Object{
		"UID": "ns/" + name, "Name": name, "Namespace": "ns", "Queue": w.queue(i), "MinAvailable": 1, "Tasks": extendertest.Object{},
		"PodGroup": extendertest.Object{"spec": spec, "status": extendertest.Object{"phase": "Pending"}},
	}
}

func (w waiting) push(t require.TestingT) []byte {
	jobs, nodes, queues := extendertest.Object{}, extendertest.Object{}, extendertest.Object{}
	for i := range w.minimums {
		jobs[fmt.Sprintf("ns/j%02d", i)] = w.job(i)
		queues[w.queue(i)] = extendertest.Object{"Name": w.queue(i), "Weight": 1, "Queue": extendertest.Object{
			"spec": extendertest.Object{}, "status": extendertest.Object{"state": "Open"},
		}}
	}
	for i := range w.nodes {
		name := fmt.Sprintf("n%d", i)
		nodes[name] = extendertest.Object{
			"Name": name, "Allocatable": extendertest.Object{"MilliCPU": 10000, "Memory": 0, "ScalarResources": nil},
		}
	}
	body, err := json.Marshal(extendertest.Object{"Jobs": jobs, "Nodes": nodes, "Queues": queues})
	require.NoError(t, err)
	return body
}

// ask sends a question or an event about a job.
func (w waiting) ask(t require.TestingT, b *bridge, verb string, job int) reply {
	body, err := json.Marshal(extendertest.Object{"job": w.job(job)})
	require.NoError(t, err)
	return b.asked(verb, body)
}

// defaultConf is Volcano's default configuration.
const defaultConf = `
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf, enablePreemptable: false}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
`

// TestTheDefaultConfigurationAdmitsAsManyJobsAsVolcano: proportion lets 10 jobs of 4 cpu into each queue, overcommit 12 into a cluster of
// 1.2 times 40 cpu.
func TestTheDefaultConfigurationAdmitsAsManyJobsAsVolcano(t *testing.T) {
	for name, change := range map[string]func(*extender.Options){
		"without an observer": func(o *extender.Options) { o.Observer = nil },
		"with an observer":    func(*extender.Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			w, b, admitted := waiting{nodes: 4, queues: 3}, newBridge(t, defaultConf, change), 0
			for range 30 {
				w.minimums = append(w.minimums, 4)
			}
			b.asked("onSessionOpen", w.push(t))
			for i := range w.minimums {
				if string(w.ask(t, b, "jobEnqueueable", i).Status) == "1" {
					admitted++
				}
			}
			require.Equal(t, 12, admitted)
			b.requireNoAbstention()
		})
	}
}

// TestAJobThatVolcanoAdmitsIsBookedOnce compares votes with a sum: each job is admitted by the vote, or by Volcano alone, and only Volcano
// 1.16 reports which jobs it has admitted.
func TestAJobThatVolcanoAdmitsIsBookedOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := waiting{
			queues:   1,
			nodes:    rapid.IntRange(1, 4).Draw(rt, "nodes"),
			minimums: rapid.SliceOfN(rapid.IntRange(0, 9), 1, 20).Draw(rt, "minimums"),
		}
		tells := rapid.Bool().Draw(rt, "Volcano tells who is admitted")
		b := newBridge(t, "actions: allocate\ntiers: [{plugins: [{name: overcommit}]}]")
		b.asked("onSessionOpen", w.push(rt))
		booked := 0
		for i, minimum := range w.minimums {
			// Volcano admits a job without a minimum, and calls no plugin for it.
			admitted := minimum == 0 || tells && rapid.Bool().Draw(rt, "by another plugin")
			if !admitted {
				admitted = booked+minimum <= 12*w.nodes
				require.Equal(rt, admitted, string(w.ask(rt, b, "jobEnqueueable", i).Status) == "1", "job %d", i)
			}
			if !admitted {
				continue
			}
			booked += minimum
			if tells {
				w.ask(rt, b, "jobEnqueued", i)
			}
		}
		b.requireNoAbstention()
	})
}

func TestAnAdmissionIsLoggedAsItIsBooked(t *testing.T) {
	told := &observing{t: t}
	w, b := waiting{nodes: 1, queues: 1, minimums: []int{4, 4, 4, 12}}, newBridge(t, defaultConf, func(o *extender.Options) { o.Observer = told })
	b.asked("onSessionOpen", w.push(t))
	w.ask(t, b, "jobEnqueueable", 0)
	w.ask(t, b, "jobEnqueued", 0)
	w.ask(t, b, "jobEnqueued", 1)
	w.ask(t, b, "jobEnqueueable", 3)
	b.asked("jobEnqueued", []byte(`{"job":{"UID":"ns/stranger"}}`))
	require.Equal(t, map[string]float64{"applied jobEnqueued ": 1, "repeated jobEnqueued ": 1}, b.counts("apportion_extender_events_total"))
	require.Equal(t, map[string]float64{"unknown jobEnqueued ": 1}, b.counts("apportion_extender_abstentions_total"))
	var admitted []bool
	for _, q := range told.sessions[0].asked {
		for _, step := range q.Steps {
			admitted = append(admitted, step.GetEvent().GetAdmit() != nil)
		}
	}
	require.Equal(t, []bool{false, true, true, false}, admitted)
}
