package wire_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/wire"
)

// eachReason calls each with every reason in a message.
func eachReason(m protoreflect.Message, each func(*apportionv1.Cause)) {
	if r, ok := m.Interface().(*apportionv1.Cause); ok {
		each(r)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap() || f.FullName() == "apportion.v1.Finding.nodes" || f.FullName() == "apportion.v1.PlanMiss.nodes":
		case f.IsList():
			for i := range v.List().Len() {
				eachReason(v.List().Get(i).Message(), each)
			}
		default:
			eachReason(v.Message(), each)
		}
		return true
	})
}

func TestEveryReasonCarriesItsTextWhereThatIsAsked(t *testing.T) {
	const snapshot = `
dimensions: "cpu"
nodes { name: "n" allocatable { dimensions: 0 amounts: 4000 } }
queues { name: "small" capability { dimensions: 0 amounts: 2000 } } queues { name: "large" weight: 3 }
jobs { uid: "run" queue: "large" phase: JOB_PHASE_RUNNING min_available: 1
  groups { request { dimensions: 0 amounts: 4000 } tasks { uid: "r0" status: TASK_STATUS_RUNNING node: 0 } } }
jobs { uid: "wait" queue: "small" min_available: 1 min_resources { dimensions: 0 amounts: 3000 }
  groups { request { dimensions: 0 amounts: 3000 } tasks { uid: "w0" } } }`
	const policy = `tiers { plugins { gang {} } plugins { proportion {} } }`
	names := text.Names{Dimensions: []string{"cpu"}, Queues: []string{"small", "large"}}
	s := open(t, snapshot, policy)
	for _, step := range []string{
		`enqueue {}`, `jobs {}`, `allocatable { tasks { names: "w0" } explain: true }`, `preemptive { tasks { names: "w0" } }`,
		`reclaim { claimant { names: "w0" } explain: true }`, `nodes { tasks { names: "w0" } explain: true }`, `shares {}`,
		`explain { jobs { names: "wait" } }`,
	} {
		s.Show(false, false)
		plain := ask(t, s, step)
		require.Nil(t, plain.GetError(), step)
		eachReason(plain.ProtoReflect(), func(r *apportionv1.Cause) { require.Empty(t, r.GetText(), step) })

		s.Show(true, false)
		told := ask(t, s, step)
		reasons := 0
		eachReason(told.ProtoReflect(), func(r *apportionv1.Cause) {
			reasons++
			require.Equal(t, text.Reason(names, r), r.GetText(), step)
			r.Text = ""
		})
		require.True(t, proto.Equal(plain, told), "%s: but for the texts the answer is the same", step)
		if step != `shares {}` {
			require.Positive(t, reasons, step)
		}
	}
}

func TestTextsCountTowardsTheLimitOfAnswers(t *testing.T) {
	snapshot := `dimensions: "cpu" queues { name: "q" capability { dimensions: 0 amounts: 1 } }`
	for i := range 40 {
		snapshot += fmt.Sprintf(` jobs { uid: "%d" queue: "q" min_resources { dimensions: 0 amounts: 3000 } }`, i)
	}
	const policy = `tiers { plugins { proportion {} } }`
	s := open(t, snapshot, policy)
	require.Nil(t, ask(t, s, `enqueue {}`).GetError())
	without := s.AnswerBytes()
	s.Show(true, false)
	texts := 0
	eachReason(ask(t, s, `enqueue {}`).ProtoReflect(), func(r *apportionv1.Cause) { texts += len(r.GetText()) })
	require.Greater(t, texts, 1000)
	require.GreaterOrEqual(t, s.AnswerBytes(), without+texts)

	s = open(t, snapshot, policy, wire.Options{AnswerBytes: without + texts/2})
	s.Show(true, false)
	require.Equal(t, "ANSWER_TOO_LARGE", errorInfo(t, ask(t, s, `enqueue {}`).GetError()).GetReason())
}

func TestTextsNameQueuesAsAChangeLeftThem(t *testing.T) {
	s := open(t, `dimensions: "cpu" queues { name: "q" } jobs { uid: "a" queue: "q" min_resources { dimensions: 0 amounts: 3000 } }`,
		`tiers { plugins { proportion {} } }`)
	s.Show(true, false)
	answers, err := s.DoAll([]*apportionv1.Step{
		parse(t, &apportionv1.Step{}, `enqueue {}`),
		parse(t, &apportionv1.Step{}, `event { change { queues { name: "new" state: QUEUE_STATE_CLOSED } } }`),
		parse(t, &apportionv1.Step{}, `event { change { jobs { uid: "b" queue: "new" min_resources { dimensions: 0 amounts: 1 } } } }`),
		parse(t, &apportionv1.Step{}, `enqueue { jobs { names: "b" } }`),
	})
	require.NoError(t, err)
	require.Nil(t, answers[1].GetError())
	require.Equal(t, "queue new is not open (proportion)", answers[3].GetEnqueue().GetJobs()[0].GetVerdict().GetCauses()[0].GetText())
}
