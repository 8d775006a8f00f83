package wire_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/edit"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// editable is a cluster with something of everything that edits change.
const editable = `
as_of: 1000000000000000000
dimensions: "cpu" dimensions: "memory" dimensions: "example.com/gpu"
memory { epoch_seconds: 3600 half_life_epochs: 24 epoch: 7 }
nodes { name: "n0" allocatable { dimensions: [0, 1, 2] amounts: [10000, 100, 8000] } used_by_others { dimensions: 0 amounts: 1000 } }
nodes { name: "n1" allocatable { dimensions: 0 amounts: 4000 } unschedulable { cause: UNSCHEDULABLE_CAUSE_CORDONED } }
node_sets { name: "gpu" nodes: 0 rule: "gpu" }
queues { name: "root" }
queues { name: "ml" weight: 2 parent: "root" capability { dimensions: 0 amounts: 6000 } }
queues { name: "web" parent: "root" state: QUEUE_STATE_CLOSED budget { kind: BUDGET_KIND_SOFT amount { dimensions: 0 quantum_seconds: 9 } } }
jobs {
  uid: "run" queue: "web" min_available: 1 phase: JOB_PHASE_RUNNING groups {
    request { dimensions: 0 amounts: 1000 } tasks { uid: "run-0" status: TASK_STATUS_RUNNING node: 1 }
  }
}
jobs {
  uid: "wait" queue: "ml" min_available: 2 phase: JOB_PHASE_INQUEUE min_resources { dimensions: 0 amounts: 4000 } groups {
    role: "worker" min_available: 2 request { dimensions: [0, 2] amounts: [2000, 1000] } node_set: "gpu" tasks { uid: "w-0" } tasks { uid: "w-1" }
  }
}
`

// editedBy makes edits of a snapshot in a session.
func editedBy(t *testing.T, snapshot *apportionv1.Snapshot, edits ...string) (*wire.Session, error) {
	t.Helper()
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, proportional), wire.Options{})
	require.NoError(t, err)
	list := make([]*apportionv1.Edit, len(edits))
	for i := range edits {
		list[i] = parse(t, &apportionv1.Edit{}, edits[i])
	}
	err = s.Edit(list, "input.")
	return s, err
}

// TestAnEditIsTheSnapshotWithAnotherSetting compares each kind of edit with the snapshot in which the setting was written by hand.
func TestAnEditIsTheSnapshotWithAnotherSetting(t *testing.T) {
	asked := map[apportionv1.EditKind]bool{}
	queue := func(s *apportionv1.Snapshot) *apportionv1.Queue { return s.GetQueues()[1] }
	web := func(s *apportionv1.Snapshot) *apportionv1.Queue { return s.GetQueues()[2] }
	job := func(s *apportionv1.Snapshot) *apportionv1.Job { return s.GetJobs()[1] }
	amounts := func(d uint32, x float64) *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{d}, Amounts: []float64{x}}
	}
	usage := func(x int64) *apportionv1.Usage {
		return &apportionv1.Usage{Dimensions: []uint32{0}, QuantumSeconds: []int64{x}}
	}
	for text, change := range map[string]func(s *apportionv1.Snapshot){
		`kind: EDIT_KIND_CAPABILITY queue { name: "ml" } dimension: 0 amount: 8000`: func(s *apportionv1.Snapshot) { queue(s).Capability = amounts(0, 8000) },
		`kind: EDIT_KIND_CAPABILITY queue { index: 1 } dimension: 2 amount: inf`: func(s *apportionv1.Snapshot) {
			queue(s).Capability = parse(t, &apportionv1.Resource{}, `dimensions: [0, 2] amounts: [6000, inf]`)
		},
		`kind: EDIT_KIND_GUARANTEE queue { index: 1 name: "ml" } dimension: 0 amount: 5`: func(s *apportionv1.Snapshot) { queue(s).Guarantee = amounts(0, 5) },
		`kind: EDIT_KIND_DESERVED queue { name: "ml" } dimension: 2 amount: 1000`:        func(s *apportionv1.Snapshot) { queue(s).Deserved = amounts(2, 1000) },
		`kind: EDIT_KIND_WEIGHT queue { name: "ml" } amount: 5`:                          func(s *apportionv1.Snapshot) { queue(s).Weight = new(uint32(5)) },
		`kind: EDIT_KIND_OPEN queue { name: "web" }`:                                     func(s *apportionv1.Snapshot) { web(s).State = apportionv1.QueueState_QUEUE_STATE_OPEN },
		`kind: EDIT_KIND_CLOSE queue { name: "ml" }`:                                     func(s *apportionv1.Snapshot) { queue(s).State = apportionv1.QueueState_QUEUE_STATE_CLOSED },
		`kind: EDIT_KIND_CLOSE queue { name: "ml" } text: "closing"`:                     func(s *apportionv1.Snapshot) { queue(s).State = apportionv1.QueueState_QUEUE_STATE_CLOSING },
		`kind: EDIT_KIND_PARENT queue { name: "ml" } text: "web"`:                        func(s *apportionv1.Snapshot) { queue(s).Parent = "web" },
		`kind: EDIT_KIND_PRIORITY queue { name: "ml" } amount: -3`:                       func(s *apportionv1.Snapshot) { queue(s).Priority = -3 },
		`kind: EDIT_KIND_PRIORITY job { name: "wait" } amount: 7`:                        func(s *apportionv1.Snapshot) { job(s).Priority = 7 },
		`kind: EDIT_KIND_UNRECLAIMABLE queue { name: "ml" }`:                             func(s *apportionv1.Snapshot) { queue(s).Reclaimable = new(false) },
		`kind: EDIT_KIND_RECLAIMABLE queue { name: "ml" }`:                               func(s *apportionv1.Snapshot) { queue(s).Reclaimable = new(true) },
		`kind: EDIT_KIND_USAGE queue { name: "ml" } dimension: 0 amount: 12`:             func(s *apportionv1.Snapshot) { queue(s).Usage = usage(12) },
		`kind: EDIT_KIND_BUDGET queue { name: "ml" } dimension: 0 amount: 12`: func(s *apportionv1.Snapshot) {
			queue(s).Budget = &apportionv1.Budget{Kind: apportionv1.BudgetKind_BUDGET_KIND_HARD, Amount: usage(12)}
		},
		`kind: EDIT_KIND_BUDGET_KIND queue { name: "web" } text: "hard"`: func(s *apportionv1.Snapshot) {
			web(s).Budget.Kind = apportionv1.BudgetKind_BUDGET_KIND_HARD
		},
		`kind: EDIT_KIND_BUDGET_KIND queue { name: "web" }`: func(s *apportionv1.Snapshot) {
			web(s).Budget = nil
		},
		`kind: EDIT_KIND_SPENT queue { name: "web" } dimension: 0 amount: 4`:                   func(s *apportionv1.Snapshot) { web(s).Budget.Spent = usage(4) },
		`kind: EDIT_KIND_QUEUE job { name: "wait" } to { name: "web" }`:                        func(s *apportionv1.Snapshot) { job(s).Queue = "web" },
		`kind: EDIT_KIND_MINIMUM job { index: 1 } amount: 1`:                                   func(s *apportionv1.Snapshot) { job(s).MinAvailable = 1 },
		`kind: EDIT_KIND_MINIMUM job { name: "wait" } role: "worker" amount: 1`:                func(s *apportionv1.Snapshot) { job(s).Groups[0].MinAvailable = new(uint32(1)) },
		`kind: EDIT_KIND_MIN_RESOURCES job { name: "wait" } dimension: 0`:                      func(s *apportionv1.Snapshot) { job(s).MinResources = &apportionv1.Resource{} },
		`kind: EDIT_KIND_MIN_RESOURCES job { name: "wait" } dimension: 0 amount: 1`:            func(s *apportionv1.Snapshot) { job(s).MinResources = amounts(0, 1) },
		`kind: EDIT_KIND_REQUEST job { name: "wait" } role: "worker" dimension: 0 amount: 500`: lowered,
		`kind: EDIT_KIND_ALLOWED_NODE job { name: "wait" } to { name: "n1" }`:                  widened,
		`kind: EDIT_KIND_END job { name: "wait" }`:                                             func(s *apportionv1.Snapshot) { s.Jobs = s.Jobs[:1] },
		`kind: EDIT_KIND_CORDON node { name: "n0" }`:                                           cordoned,
		`kind: EDIT_KIND_UNCORDON node { index: 1 }`:                                           func(s *apportionv1.Snapshot) { s.Nodes[1].Unschedulable = nil },
		`kind: EDIT_KIND_ALLOCATABLE node { name: "n1" } dimension: 0 amount: 9`:               func(s *apportionv1.Snapshot) { s.Nodes[1].Allocatable = amounts(0, 9) },
		`kind: EDIT_KIND_FORGET`:                                   func(s *apportionv1.Snapshot) { s.Memory = nil },
		`kind: EDIT_KIND_NODES_LIKE node { name: "n0" } amount: 2`: twoMore,
		`kind: EDIT_KIND_REMOVE node { name: "n1" }`:               removed,
		`kind: EDIT_KIND_MAINTENANCE node { name: "n1" } text: "2026-03-02T15:00:00Z/2026-03-02T17:00:00Z"`: down,
	} {
		t.Run(text, func(t *testing.T) {
			asked[parse(t, &apportionv1.Edit{}, text).GetKind()] = true
			s, err := editedBy(t, parse(t, &apportionv1.Snapshot{}, editable), text)
			require.NoError(t, err)
			byHand := parse(t, &apportionv1.Snapshot{}, editable)
			change(byHand)
			m, err := decode.Compile(byHand)
			require.NoError(t, err)
			require.Equal(t, prototext.Format(decode.SnapshotOf(m)), prototext.Format(decode.SnapshotOf(s.Engine().View().Model)))
		})
	}
	for kind := range apportionv1.EditKind_name {
		of := apportionv1.EditKind(kind)
		kueue := of >= apportionv1.EditKind_EDIT_KIND_NOMINAL && of <= apportionv1.EditKind_EDIT_KIND_FLAVOR
		require.True(t, asked[of] || kueue || kind == 0, of)
	}
}

func lowered(s *apportionv1.Snapshot) {
	for _, task := range s.GetJobs()[1].GetGroups()[0].GetTasks() {
		task.Detail = &apportionv1.TaskDetail{Request: &apportionv1.Resource{Dimensions: []uint32{0, 2}, Amounts: []float64{500, 1000}}}
	}
}

func widened(s *apportionv1.Snapshot) {
	s.NodeSets = append(s.NodeSets, &apportionv1.NodeSet{Name: "gpu or other nodes", Nodes: []uint32{0, 1}, Rule: "gpu"})
	for _, task := range s.GetJobs()[1].GetGroups()[0].GetTasks() {
		task.Detail = &apportionv1.TaskDetail{NodeSet: "gpu or other nodes"}
	}
}

func cordoned(s *apportionv1.Snapshot) {
	s.Nodes[0].Unschedulable = &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED}
}

func twoMore(s *apportionv1.Snapshot) {
	for _, name := range []string{"n0-new-1", "n0-new-2"} {
		node := proto.CloneOf(s.GetNodes()[0])
		node.Name, node.UsedByOthers = name, nil
		s.Nodes = append(s.Nodes, node)
	}
	s.NodeSets[0].Nodes = []uint32{0, 2, 3}
}

func removed(s *apportionv1.Snapshot) {
	s.Nodes = s.Nodes[:1]
	s.Jobs[0].Groups[0].Tasks[0].Node = nil
}

func down(s *apportionv1.Snapshot) {
	s.Nodes[1].Reservations = []*apportionv1.NodeReservation{
		{StartUnixNano: 1772463600e9, EndUnixNano: 1772470800e9, Reason: "maintenance"},
	}
}

func TestEveryFaultOfAnEditIsNamedByItsPath(t *testing.T) {
	s, err := editedBy(t, parse(t, &apportionv1.Snapshot{}, editable),
		`kind: EDIT_KIND_WEIGHT queue { name: "ml" } amount: 3`,
		`kind: EDIT_KIND_WEIGHT queue { name: "absent" } amount: 1.5`,
		`kind: EDIT_KIND_CAPABILITY queue { index: 9 } dimension: 7 amount: -1`,
		`kind: EDIT_KIND_CAPABILITY queue { index: 1 name: "web" } amount: 1 text: "x"`,
		`queue { name: "ml" }`,
		`kind: EDIT_KIND_CORDON queue { name: "ml" } amount: 1`,
		`kind: EDIT_KIND_END job { name: "run" }`,
		`kind: EDIT_KIND_PRIORITY job { index: 0 } amount: 3e9`,
		`kind: EDIT_KIND_REMOVE node { name: "n1" }`,
		`kind: EDIT_KIND_ALLOWED_NODE job { name: "wait" } to { name: "n1" }`,
		`kind: EDIT_KIND_REQUEST job { name: "wait" } dimension: 0 amount: 1 node_set: "x"`,
		`kind: EDIT_KIND_MINIMUM job { name: "wait" } role: "boss" amount: nan`,
		`kind: EDIT_KIND_NODES_LIKE node { name: "n0" } amount: 200000`,
		`kind: EDIT_KIND_CLOSE queue { name: "ml" } text: "shut" to { index: 0 }`,
		`kind: EDIT_KIND_MAINTENANCE node { name: "n0" } text: "tomorrow"`,
		`kind: EDIT_KIND_USAGE queue { name: "ml" } dimension: 0 amount: 0.5 role: "x" node_set: "x"`,
		`kind: EDIT_KIND_NOMINAL queue { name: "ml" } dimension: 0 amount: 1`,
		`kind: EDIT_KIND_FLAVOR queue { name: "ml" }`,
	)
	var paths []string
	for _, v := range decode.AsFault(err).Violations.Violations {
		paths = append(paths, v.Path)
	}
	require.Equal(t, []string{
		"input.edits[1].queue.name", "input.edits[1].amount",
		"input.edits[2].queue.index", "input.edits[2].dimension", "input.edits[2].amount",
		"input.edits[3].queue.name", "input.edits[3].text", "input.edits[3].dimension",
		"input.edits[4].kind",
		"input.edits[5].node", "input.edits[5].amount",
		"input.edits[7].job", "input.edits[7].amount",
		"input.edits[9].to",
		"input.edits[10].node_set", "input.edits[10].role",
		"input.edits[11].amount", "input.edits[11].amount", "input.edits[11].role",
		"input.edits[12].amount",
		"input.edits[13].to", "input.edits[13].text",
		"input.edits[14].text",
		"input.edits[15].node_set", "input.edits[15].amount", "input.edits[15].role",
		"input.edits[16].node_set",
		"input.edits[17].object", "input.edits[17].node_set",
	}, paths)
	require.Equal(t, prototext.Format(parse(t, &apportionv1.Queue{}, `name: "ml" weight: 2`)), prototext.Format(&apportionv1.Queue{
		Name: "ml", Weight: new(uint32(s.Engine().View().Queues[1].Weight)),
	}), "nothing is half done")

	many := slices.Repeat([]string{`kind: EDIT_KIND_OPEN queue { name: "ml" }`}, decode.MaxEdits+1)
	_, err = editedBy(t, parse(t, &apportionv1.Snapshot{}, editable), many...)
	require.ErrorContains(t, err, "input.edits: there are 1001 edits, more than 1000")
}

// TestKindsOfEditsAreThoseOfTheContract compares the engine's last kind with the contract's.
func TestKindsOfEditsAreThoseOfTheContract(t *testing.T) {
	require.EqualValues(t, apportionv1.EditKind_EDIT_KIND_FORGET, edit.Forget)
	require.EqualValues(t, apportionv1.EditKind_EDIT_KIND_QUEUE, edit.Queue)
	require.EqualValues(t, apportionv1.EditKind_EDIT_KIND_NODES_LIKE, edit.NodesLike)
}

func TestAnEditThatIsOnlyAKindIsAFault(t *testing.T) {
	for _, kind := range apportionv1.EditKind_name {
		t.Run(kind, func(t *testing.T) {
			switch _, err := editedBy(t, parse(t, &apportionv1.Snapshot{}, editable), "kind: "+kind); kind {
			case "EDIT_KIND_FORGET":
				require.NoError(t, err, "it is about the snapshot as a whole")
			default:
				require.Contains(t, decode.AsFault(err).Violations.Violations[0].Path, "input.edits[0].")
			}
		})
	}
}

// FuzzEditsAreMadeOrRefused takes any lists: a fault names fields, and leaves the state as it was.
func FuzzEditsAreMadeOrRefused(f *testing.F) {
	for _, list := range []string{
		`edits { kind: EDIT_KIND_CAPABILITY queue { name: "ml" } dimension: 0 amount: 8000 } edits { kind: EDIT_KIND_END job { index: 0 } }`,
		`edits { kind: EDIT_KIND_REQUEST job { name: "wait" } role: "worker" dimension: 2 amount: 1 } edits { kind: EDIT_KIND_FORGET }`,
		`edits { kind: EDIT_KIND_ALLOWED_NODE job { name: "wait" } to { name: "n1" } } edits { kind: EDIT_KIND_REMOVE node { name: "n0" } }`,
		`edits { kind: EDIT_KIND_MAINTENANCE node { index: 1 } text: "2026-03-02T15:00:00Z/2h" } edits { kind: EDIT_KIND_FLAVOR node_set: "x" }`,
		`edits { kind: EDIT_KIND_NODES_LIKE node { name: "n0" } amount: 3 } edits { kind: EDIT_KIND_PARENT queue { name: "ml" } text: "web" }`,
	} {
		input := &apportionv1.Input{}
		require.NoError(f, prototext.Unmarshal([]byte(list), input))
		data, err := proto.Marshal(input)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		input := &apportionv1.Input{}
		if proto.Unmarshal(data, input) != nil {
			return
		}
		s, err := editedBy(t, parse(t, &apportionv1.Snapshot{}, editable))
		require.NoError(t, err)
		if err := s.Edit(input.GetEdits(), "input."); err != nil {
			require.NotEqual(t, codes.Internal, decode.AsFault(err).Code)
			shares := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}}
			left, err := s.Ask(shares)
			require.NoError(t, err)
			fresh, err := editedBy(t, parse(t, &apportionv1.Snapshot{}, editable))
			require.NoError(t, err)
			want, err := fresh.Ask(shares)
			require.NoError(t, err)
			require.Equal(t, prototext.Format(want), prototext.Format(left))
		}
	})
}
