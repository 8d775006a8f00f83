package reference

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func queue(name, parent string) *apportionv1.Queue {
	return &apportionv1.Queue{Name: name, Parent: parent}
}

// branch is a tree of one branch with so many levels below root.
func branch(levels int) []*apportionv1.Queue {
	queues := []*apportionv1.Queue{queue("root", "")}
	parent := "root"
	for i := range levels {
		name := string(rune('a' + i))
		queues = append(queues, queue(name, parent))
		parent = name
	}
	return queues
}

func TestCyclesOfParents(t *testing.T) {
	tests := map[string]struct {
		queues []*apportionv1.Queue
		cycle  bool
	}{
		"no queue":                        {},
		"a branch":                        {queues: branch(7)},
		"without a root":                  {queues: branch(3)[1:]},
		"an absent parent is root":        {queues: []*apportionv1.Queue{queue("root", ""), queue("a", "")}},
		"a queue that is its own parent":  {queues: append(branch(2), queue("s", "s")), cycle: true},
		"a cycle of two":                  {queues: append(branch(1), queue("s", "t"), queue("t", "s")), cycle: true},
		"below a cycle":                   {queues: []*apportionv1.Queue{queue("u", "s"), queue("s", "t"), queue("t", "s")}, cycle: true},
		"an unknown parent is no cycle":   {queues: append(branch(1), queue("s", "nowhere"))},
		"the parent of root is not asked": {queues: []*apportionv1.Queue{queue("root", "root"), queue("a", "root")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.cycle, hasCycle(test.queues))
		})
	}
}

// judged is the judge of a case with one way of keeping accounts of these queues.
func judged(expect object, queues []*apportionv1.Queue, plugins ...*apportionv1.Plugin) *judge {
	c := &Case{Expect: expect, Unstable: []string{"/queueOrder/sorted/1", "/hdrfTree/children/a"}, Script: Script{
		Simulate: []Simulation{{Steps: []Operation{{Op: "allocatable"}, {Op: "remove", Task: "ns/p"}}}},
	}}
	s := &subject{nodeNames: []string{"n0"}, input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{Queues: queues}},
		Rule:   &apportionv1.Input_Policy{Policy: &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: plugins}}}},
	}}
	return c.judge(s)
}

var (
	hierarchical = &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Capacity{Capacity: &apportionv1.Capacity{Hierarchical: true}}}
	flat         = &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Capacity{Capacity: &apportionv1.Capacity{}}}
	gang         = &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Gang{Gang: &apportionv1.Gang{}}}
)

func TestWhoIsHeldToWhat(t *testing.T) {
	accepted, refused := object{"hierarchyReady": true}, object{"hierarchyReady": false}
	cycle := append(branch(1), queue("s", "s"))
	ordinary := judged(accepted, branch(6), hierarchical)
	judges := map[string]*judge{
		"ordinary": ordinary, "flat": judged(object{}, append(branch(9), cycle...), flat), "refused": judged(refused, branch(2), hierarchical),
		"cycle": judged(accepted, cycle, hierarchical), "cycle in tiers": judged(accepted, cycle, hierarchical, gang),
		"refused cycle": judged(refused, cycle, hierarchical), "deep": judged(accepted, branch(20), hierarchical),
	}
	const (
		brokenTrees = "refused, cycle, refused cycle, cycle in tiers"
		everywhere  = "ordinary, flat, deep, " + brokenTrees
	)
	tests := map[string]struct {
		want any
		rule Rule
		// unheld are the judges that do not compare it, by rule if a rule of their tree exempts it.
		unheld string
	}{
		"/queueOrder/sorted/1":                    {want: "q", rule: Unstable, unheld: everywhere},
		"/hdrfTree/children/a":                    {want: object{}, rule: Unstable, unheld: everywhere},
		"/events/0":                               {want: "panic: resource is not sufficient", rule: Crash, unheld: everywhere},
		"/simulate/0":                             {want: "fatal: stack overflow", rule: Crash, unheld: everywhere},
		"/verdicts/jobs/j/valid/message":          {want: "Not enough", rule: Text, unheld: everywhere},
		"/openSession":                            {want: "panic: index out of range"},
		"/verdicts/jobs/j/valid/reason":           {want: "NotEnoughTasks"},
		"/hierarchyReady":                         {want: true},
		"/total":                                  {want: object{}},
		"/tasks/ns~1p/status":                     {want: "Running"},
		"/jobOrder/sorted/0":                      {want: "j"},
		"/afterEvents/jobOrder/sorted/0":          {want: "j"},
		"/verdicts/jobs/j/ready":                  {want: true},
		"/queues/proportion/q/share":              {want: 1.0},
		"/queues/capacity":                        {want: object{}, unheld: brokenTrees},
		"/afterEvents/queues/capacity":            {want: object{}, unheld: brokenTrees},
		"/queuesAfterEnqueue/capacity":            {want: object{}, unheld: brokenTrees},
		"/events/0/queues/capacity":               {want: object{}, unheld: brokenTrees},
		"/events/0/drfJob/share":                  {want: 1.0},
		"/simulate/0/0":                           {want: true},
		"/simulate/0/1":                           {want: "ok", unheld: brokenTrees},
		"/verdicts/allocatable/t":                 {want: true},
		"/verdicts/overused/q":                    {want: true},
		"/queueOrder/sorted/0":                    {want: "q", unheld: "cycle, cycle in tiers"},
		"/afterEvents/queueOrder/pairs/0/less":    {want: true, unheld: "cycle, cycle in tiers"},
		"/victimQueueOrder/0/sorted/0":            {want: "q", unheld: "cycle, cycle in tiers"},
		"/reclaims/0/victimPopOrder":              {want: []any{}, unheld: "cycle, cycle in tiers"},
		"/reclaims/0/victims":                     {want: nil, unheld: "cycle in tiers"},
		"/reclaims/0/byPlugin/capacity/vote":      {want: -1.0},
		"/enqueue/0/verdict":                      {want: true, unheld: "cycle in tiers"},
		"/preempts/0/byPlugin/priority/victims/0": {want: "t"},
	}
	ofTree := map[string]Rule{
		"refused": RefusedTree, "refused cycle": RefusedTree, "cycle": ParentCycle, "cycle in tiers": ParentCycle,
	}
	for pointer, test := range tests {
		for name, judge := range judges {
			var expected Rule
			if strings.Contains(", "+test.unheld+",", ", "+name+",") {
				expected = test.rule
				if expected == "" {
					expected = ofTree[name]
				}
			}
			path := strings.Split(pointer, "/")[1:]
			require.Equal(t, expected, judge.unheld(pointer, path, test.want), "%s: %s", name, pointer)
		}
	}
}

func TestWhatIsMeant(t *testing.T) {
	accepted := object{"hierarchyReady": true}
	ordinary := judged(accepted, branch(6), hierarchical)
	cycle := judged(accepted, append(branch(1), queue("s", "s")), hierarchical)
	tests := map[string]struct {
		want            any
		ordinary, cycle any
	}{
		"openSession":                               {want: "panic: index out of range", ordinary: refusedInput, cycle: refusedInput},
		"nodes/t/n/nodegroup.predicate":             {want: "ok", ordinary: groupFits, cycle: groupFits},
		"nodes/u/n/nodegroup.predicate":             {want: "task a on node b fit failed: node group label not found", ordinary: groupMissing, cycle: groupMissing},
		"nodes/v/n/nodegroup.predicate":             {want: "… fit failed: node group affinity not specified", ordinary: groupRefused, cycle: groupRefused},
		"nodes/w/n/nodegroup.predicate":             {want: "… fit failed: node does not satisfy the node group affinity", ordinary: groupRefused, cycle: groupRefused},
		"nodes/x/n/nodegroup.predicate":             {want: "something else", ordinary: "something else", cycle: "something else"},
		"tasks/t/node":                              {want: "n0", ordinary: "n0", cycle: "n0"},
		"tasks/u/node":                              {want: "ghost", ordinary: "", cycle: ""},
		"queueOrder/pairs/0/cmp":                    {want: -3.0, ordinary: -1.0, cycle: -1.0},
		"hierarchyReady":                            {want: true, ordinary: true, cycle: false},
		"verdicts/allocatable/t":                    {want: true, ordinary: true, cycle: false},
		"verdicts/preemptive/t":                     {want: true, ordinary: true, cycle: false},
		"verdicts/preemptiveAllPendingOfJob/j":      {want: true, ordinary: true, cycle: false},
		"afterEvents/verdicts/allocatable/t":        {want: true, ordinary: true, cycle: false},
		"verdicts/overused/q":                       {want: true, ordinary: true, cycle: true},
		"verdicts/jobs/j/ready":                     {want: true, ordinary: true, cycle: true},
		"enqueue/0/verdict":                         {want: true, ordinary: true, cycle: false},
		"enqueue/1/verdict":                         {want: noJob, ordinary: noJob, cycle: noJob},
		"simulate/0/0":                              {want: true, ordinary: true, cycle: false},
		"reclaims/0/victims":                        {want: []any{"t"}, ordinary: []any{"t"}, cycle: nil},
		"reclaims/0/byPlugin/capacity/victims":      {want: []any{"t"}, ordinary: []any{"t"}, cycle: nil},
		"reclaims/0/byPlugin/capacity/vote":         {want: 1.0, ordinary: 1.0, cycle: -1.0},
		"reclaims/0/byPlugin/conformance/vote":      {want: 1.0, ordinary: 1.0, cycle: 1.0},
		"preempts/0/byPlugin/conformance/victims/0": {want: "t", ordinary: "t", cycle: "t"},
	}
	for pointer, test := range tests {
		path := strings.Split(pointer, "/")
		require.Equal(t, test.ordinary, ordinary.requiredAnswer(path, test.want), pointer)
		require.Equal(t, test.cycle, cycle.requiredAnswer(path, test.want), pointer)
	}
}
