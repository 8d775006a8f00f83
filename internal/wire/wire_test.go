package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// parse reads a message in text format.
func parse[M proto.Message](t *testing.T, m M, text string) M {
	t.Helper()
	require.NoError(t, prototext.Unmarshal([]byte(text), m), text)
	return m
}

// twoQueues is a cluster of 10 CPUs: ml runs 6 of them and wants 4, web runs nothing and wants 5.
const twoQueues = `
dimensions: "cpu" dimensions: "memory"
nodes { name: "n0" allocatable { dimensions: [0, 1] amounts: [10000, 100] } }
queues { name: "ml" weight: 1 }
queues { name: "web" weight: 1 }
jobs { name: "train" namespace: "a" queue: "ml" phase: JOB_PHASE_RUNNING groups {
  role: "worker" request { dimensions: [0, 1] amounts: [2000, 10] }
  tasks { uid: "t0" status: TASK_STATUS_RUNNING node: 0 } tasks { uid: "t1" status: TASK_STATUS_RUNNING node: 0 }
  tasks { name: "train-2" status: TASK_STATUS_RUNNING node: 0 } tasks { name: "train-3" } tasks { name: "train-4" }
} }
jobs { uid: "serve" queue: "web" min_resources { dimensions: [0] amounts: [1000] } groups {
  request { dimensions: [0, 1] amounts: [1000, 1] } tasks { uid: "s0" } tasks { uid: "s1" } counts { count: 3 }
} }`

const proportional = `tiers { plugins { gang {} } plugins { priority {} } } tiers { plugins { proportion {} } }`

func open(t *testing.T, snapshot, policy string, options ...wire.Options) *wire.Session {
	t.Helper()
	m, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, snapshot))
	require.NoError(t, err)
	s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, policy), append(options, wire.Options{})[0])
	require.NoError(t, err)
	return s
}

// ask answers a step given in text format.
func ask(t *testing.T, s *wire.Session, step string) *apportionv1.Answer {
	t.Helper()
	return s.Do(parse(t, &apportionv1.Step{}, step))
}

// requireAnswer compares an answer with its text format.
func requireAnswer(t *testing.T, want string, got *apportionv1.Answer) {
	t.Helper()
	expected := parse(t, &apportionv1.Answer{}, want)
	if !proto.Equal(expected, got) {
		require.Equal(t, prototext.Format(expected), prototext.Format(got))
	}
}

func errorInfo(t *testing.T, st *status.Status) *errdetails.ErrorInfo {
	t.Helper()
	info := &errdetails.ErrorInfo{}
	require.NotEmpty(t, st.GetDetails())
	require.NoError(t, st.GetDetails()[0].UnmarshalTo(info))
	require.Equal(t, decode.Domain, info.GetDomain())
	return info
}

func fields(t *testing.T, st *status.Status) []string {
	t.Helper()
	if len(st.GetDetails()) < 2 {
		return nil
	}
	bad := &errdetails.BadRequest{}
	require.NoError(t, st.GetDetails()[1].UnmarshalTo(bad))
	var list []string
	for _, v := range bad.GetFieldViolations() {
		list = append(list, v.GetField()+": "+v.GetDescription())
	}
	return list
}

func TestStepsAreAnswered(t *testing.T) {
	for _, c := range []struct{ name, step, want string }{
		{
			"the share of one queue, only what is wanted", `shares { queues { names: "web" } fields: SHARE_FIELD_DESERVED }`,
			`shares {
			  plugins { plugin: "proportion" queues { queue: 1 name: "web" participating: true
			    deserved { dimensions: [0, 1] amounts: [5000, 5] } } }
			  standings { queue: 1 name: "web" rank: 0 } }`,
		},
		{
			"allocatable each", `allocatable { tasks { indices: 3 names: ["s0", "a/train-4"] } }`,
			`allocatable {
			  tasks { task: 3 verdict { vote: VOTE_REJECT causes { plugin: "proportion" code: CAUSE_CODE_ABOVE_DESERVED
			    queue: 0 dimensions: 0 have: 6000 need: 2000 limit: 5000 } } }
			  tasks { task: 5 verdict { vote: VOTE_PERMIT } }
			  tasks { task: 4 verdict { vote: VOTE_REJECT causes { plugin: "proportion" code: CAUSE_CODE_ABOVE_DESERVED
			    queue: 0 dimensions: 0 have: 6000 need: 2000 limit: 5000 } } } }`,
		},
		{"preemptive jointly", `preemptive { tasks { names: ["s0", "s1"] } jointly: true }`, `preemptive { tasks { verdict { vote: VOTE_PERMIT } } }`},
		{
			"enqueue", `enqueue { jobs { names: "serve" } mode: ENQUEUE_MODE_ACTION }`,
			`enqueue { jobs { job: 1 uid: "serve" verdict { vote: VOTE_PERMIT } } } changed: true`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireAnswer(t, c.want, ask(t, open(t, twoQueues, proportional), c.step))
		})
	}
}

func TestAFaultyStepNamesItsFields(t *testing.T) {
	s := open(t, twoQueues, proportional)
	st := ask(t, s, `reclaim { claimant { names: "absent" } candidates { indices: [1, 99] } }`).GetError()
	require.Equal(t, int32(codes.InvalidArgument), st.GetCode())
	require.Equal(t, "INVALID_STEP", errorInfo(t, st).GetReason())
	require.Equal(t, []string{
		`reclaim.claimant.names[0]: no task "absent"`,
		`reclaim.candidates.indices[1]: no task 99, there are 7`,
	}, fields(t, st))
}

func TestTheClusterIsReadAsTheLibraryReadsIt(t *testing.T) {
	named := func(names ...string) []byte {
		data, err := proto.Marshal(&apportionv1.Snapshot{AsOf: 7, Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "q"}}})
		require.NoError(t, err)
		for _, name := range names {
			data = protowire.AppendString(protowire.AppendTag(data, 2, protowire.BytesType), name)
		}
		return data
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "no name": named(), "one": named("prod"), "the last of several": named("prod", "test"), "the last is empty": named("prod", ""),
		"of another type": append(named("prod"), 2<<3, 1),
	} {
		t.Run(name, func(t *testing.T) {
			var message apportionv1.Snapshot
			require.NoError(t, proto.Unmarshal(data, &message))
			require.Equal(t, message.GetCluster(), decode.ClusterOf(data))
		})
	}
	require.Empty(t, decode.ClusterOf(append(named("prod"), 0xff)), "cut off")
	require.Empty(t, decode.ClusterOf(named("\xff")), "no text")
}
