package reference

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// names lists the confused queues of a tree.
func names(queues []*apportionv1.Queue) []string {
	var found []string
	for _, q := range queues {
		if confused(queues)[q.Name] {
			found = append(found, q.Name)
		}
	}
	return found
}

func TestTheQueuesThatVolcanoConfuses(t *testing.T) {
	tests := map[string]struct {
		queues []*apportionv1.Queue
		names  string
	}{
		"no queue":                                   {},
		"one branch of any depth":                    {queues: branch(40)},
		"two queues at level 6, none below":          {queues: append(branch(6), queue("x", "e"))},
		"two queues at level 6, and one below":       {queues: append(branch(7), queue("x", "e")), names: "f g x"},
		"two queues at level 5":                      {queues: append(branch(9), queue("x", "d"))},
		"two queues at level 7, and one below":       {queues: append(branch(9), queue("x", "f")), names: "g h i x"},
		"two queues at level 8, and one below":       {queues: append(branch(10), queue("x", "g"))},
		"two queues at level 9, and one below":       {queues: append(branch(10), queue("x", "h"))},
		"two queues at level 10, and one below":      {queues: append(branch(11), queue("x", "i")), names: "j k x"},
		"cousins at level 6 below different level 5": {queues: append(branch(7), queue("x", "d"), queue("y", "x"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, strings.Fields(test.names), append([]string{}, names(test.queues)...))
		})
	}
}

// volcanoLists are lists of ancestors as Volcano builds them: by append, parents before their children, and each leaf may append itself to
// its own list when it is asked something.
type volcanoLists map[string][]string

func (v volcanoLists) add(q *apportionv1.Queue) {
	v[q.Name] = append(v[parentOf(q)], parentOf(q)) //nolint:gocritic // That lists share memory is the point.
}

func (v volcanoLists) ask(q string) { _ = append(v[q], q) }

// TestConfusedQueuesAreThoseWhoseListsOverwriteEachOther makes the lists by append itself, in any order, and books usage by them.
func TestConfusedQueuesAreThoseWhoseListsOverwriteEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queues, parent := drawTree(t)
		expected := confused(queues)
		lists := volcanoLists{root: make([]string, 0)}
		for _, q := range queues {
			lists.add(q)
		}
		for range rapid.IntRange(0, 10).Draw(t, "asked") {
			lists.ask(rapid.SampledFrom(queues).Draw(t, "queue").Name)
		}
		wrong := false
		for _, q := range queues {
			name := q.Name
			for _, booked := range slices.Backward(lists[q.Name]) {
				name = parent[name]
				if booked != name {
					wrong = true
					require.True(t, expected[q.Name], "the list of %s is wrong", q.Name)
					require.True(t, expected[booked] && expected[name], "usage of %s is booked on %s in place of %s", q.Name, booked, name)
				}
			}
		}
		// The condition is exact: if it holds, some order of the same calls confuses the accounts.
		if len(expected) > 0 && !wrong {
			require.True(t, canConfuse(queues, parent), "nothing confuses %v", queues)
		}
	})
}

// canConfuse asks every queue after all lists are made.
func canConfuse(queues []*apportionv1.Queue, parent map[string]string) bool {
	for _, asked := range queues {
		lists := volcanoLists{root: make([]string, 0)}
		for _, q := range queues {
			lists.add(q)
		}
		lists.ask(asked.Name)
		for _, q := range queues {
			name := q.Name
			for _, booked := range slices.Backward(lists[q.Name]) {
				name = parent[name]
				if booked != name {
					return true
				}
			}
		}
	}
	return false
}

// drawTree draws a tree that is deep more often than wide, parents first, and the parent of each queue.
func drawTree(t *rapid.T) ([]*apportionv1.Queue, map[string]string) {
	var queues []*apportionv1.Queue
	parent := map[string]string{}
	for i := range rapid.IntRange(1, 40).Draw(t, "queues") {
		above := root
		if i > 0 {
			above = queues[rapid.IntRange(max(0, i-3), i-1).Draw(t, "parent")].Name
		}
		name := fmt.Sprint("q", i)
		queues, parent[name] = append(queues, queue(name, above)), above
	}
	return queues, parent
}

func TestWhatAliasingConcerns(t *testing.T) {
	// x and f are at level 6, g is below f.
	queues := append(branch(7), queue("x", "e"), queue("w", "d"))
	s := &subject{
		input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{Queues: queues}},
			Rule:   &apportionv1.Input_Policy{Policy: &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{hierarchical}}}}},
		},
		queueNames: []string{"g", "w"}, ofJob: []uint32{0, 1}, ofTask: []uint32{0, 1},
		jobs: map[string]uint32{"jg": 0, "jw": 1}, tasks: map[string]uint32{"tg": 0, "tw": 1},
	}
	c := &Case{Expect: object{"hierarchyReady": true}, Script: Script{
		EnqueueOrder: []string{"jw", "jg", "jw"},
		Reclaims:     []Eviction{{Task: "tw", Candidates: []string{"tw"}}, {Task: "tw", Candidates: []string{"tw", "tg"}}, {Task: "tg"}},
		Preempts:     []Eviction{{Task: "tg", Candidates: []string{"tg"}}},
		VictimQueues: []VictimQueues{{PreemptorQueue: "g", Queues: []string{"w", "d"}}, {PreemptorQueue: "w", Queues: []string{"w", "x"}}},
		Simulate:     []Simulation{{Task: "tw"}, {Task: "tg"}, {Task: "tw", Steps: []Operation{{Op: "remove", Task: "tg"}}}},
	}}
	judge := c.judge(s)
	pair := func(l, r string) object { return object{"l": l, "r": r} }
	tests := map[string]struct {
		want   any
		unheld bool
	}{
		"/hierarchyReady":                           {want: true},
		"/jobOrder/sorted/0":                        {want: "jg"},
		"/nodes/tg/n/binpack.score":                 {want: 1.0},
		"/queues/capacity/g/allocated":              {unheld: true},
		"/queues/capacity/x/share":                  {unheld: true},
		"/queues/capacity/g/realCapability":         {},
		"/queues/capacity/e/allocated":              {},
		"/queues/proportion/g/allocated":            {},
		"/queues/capacity/w/inqueue":                {},
		"/queuesAfterEnqueue/capacity/w/inqueue":    {unheld: true},
		"/queuesAfterEnqueue/capacity/w/allocated":  {},
		"/afterEvents/queues/capacity/root/inqueue": {unheld: true},
		"/afterEvents/queues/capacity/f/allocated":  {unheld: true},
		"/events/0/queues/capacity/f/share":         {unheld: true},
		"/events/0/queues/capacity/w/share":         {},
		"/events/0/drfJob/share":                    {},
		"/verdicts/allocatable/tg":                  {unheld: true},
		"/verdicts/allocatable/tw":                  {},
		"/afterEvents/verdicts/preemptive/tg":       {unheld: true},
		"/verdicts/preemptiveAllPendingOfJob/jg":    {unheld: true},
		"/verdicts/preemptiveAllPendingOfJob/jw":    {},
		"/verdicts/overused/g":                      {},
		"/verdicts/jobs/jg/ready":                   {},
		"/queueOrder/pairs/0":                       {want: pair("w", "g"), unheld: true},
		"/queueOrder/pairs/1":                       {want: pair("w", "e")},
		"/queueOrder/sorted":                        {unheld: true},
		"/victimQueueOrder/0/pairs/0":               {want: pair("w", "d")},
		"/victimQueueOrder/0/sorted":                {},
		"/victimQueueOrder/1/sorted":                {unheld: true},
		"/reclaims/0/victims":                       {},
		"/reclaims/1/victims":                       {unheld: true},
		"/reclaims/2/byPlugin/capacity/vote":        {unheld: true},
		"/reclaims/1/byPlugin/gang/vote":            {},
		"/preempts/0/victims":                       {},
		"/preempts/0/victimPopOrder":                {unheld: true},
		"/simulate/0/0":                             {want: true},
		"/simulate/1/0":                             {want: true, unheld: true},
		"/simulate/2/0":                             {want: "ok", unheld: true},
		"/enqueue/0/verdict":                        {want: true},
		"/enqueue/2/verdict":                        {want: true, unheld: true},
	}
	for pointer, test := range tests {
		expected := Rule("")
		if test.unheld {
			expected = Aliased
		}
		require.Equal(t, expected, judge.unheld(pointer, strings.Split(pointer, "/")[1:], test.want), pointer)
	}
}
