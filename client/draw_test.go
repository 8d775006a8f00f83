package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// stepKinds are the kinds of steps of the contract.
var stepKinds = (&apportionv1.Step{}).ProtoReflect().Descriptor().Oneofs().ByName("step").Fields()

// What steps about twoTeams name: entities that exist, and one that does not.
var (
	drawnTasks  = []string{"web/shop-0", "web/shop-1", "web/shop-2", "ml/train-0", "ml/train-1", "web/none"}
	drawnJobs   = []string{"web/shop", "ml/train", "attic/old", "web/new", "web/none"}
	drawnQueues = []string{"web", "ml", "attic", "none"}
	drawnNodes  = []string{"n0", "n1", "none"}
)

// drawStep draws a step of any kind about twoTeams.
func drawStep(t *rapid.T) *apportionv1.Step {
	return drawStepOf(t, stepKinds.Get(rapid.IntRange(0, stepKinds.Len()-1).Draw(t, "kind")))
}

// drawStepOf draws a step of one kind. Its fields are found by reflection, so a new kind is drawn as soon as the contract has it.
func drawStepOf(t *rapid.T, kind protoreflect.FieldDescriptor) *apportionv1.Step {
	step := &apportionv1.Step{}
	drawFields(t, step.ProtoReflect().Mutable(kind).Message())
	if forecast := step.GetForecast(); forecast != nil && forecast.Runs == 0 {
		// The default of 100 runs, each with 30 days of arrivals, takes longer under the race detector than the deadline of a batch.
		forecast.Runs = 1
	}
	return step
}

func drawFields(t *rapid.T, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	chosen := map[protoreflect.FullName]protoreflect.FieldDescriptor{}
	for i := range fields.Len() {
		f := fields.Get(i)
		name := string(f.Name())
		if oneof := f.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
			if _, drawn := chosen[oneof.FullName()]; !drawn {
				chosen[oneof.FullName()] = oneof.Fields().Get(rapid.IntRange(0, oneof.Fields().Len()-1).Draw(t, string(oneof.Name())))
			}
			if chosen[oneof.FullName()] != f {
				continue
			}
		}
		switch {
		case rapid.IntRange(0, 2).Draw(t, name+" absent") == 0:
		case f.IsList():
			for range rapid.IntRange(0, 1).Draw(t, name) {
				if f.Message() != nil {
					m.Mutable(f).List().Append(protoreflect.ValueOfMessage(drawMessage(t, f).ProtoReflect()))
				} else {
					m.Mutable(f).List().Append(drawScalar(t, f))
				}
			}
		case f.Message() != nil:
			drawn := drawMessage(t, f)
			m.Set(f, protoreflect.ValueOfMessage(drawn.ProtoReflect()))
		default:
			m.Set(f, drawScalar(t, f))
		}
	}
}

// drawMessage draws what a field of a step holds.
func drawMessage(t *rapid.T, f protoreflect.FieldDescriptor) proto.Message {
	name := f.Message().FullName()
	names := func(known []string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(known), 0, 2).Draw(t, string(name))
	}
	switch name {
	case "apportion.v1.Selector":
		return &apportionv1.Selector{Names: names(selectable(f))}
	case "apportion.v1.PendingFilter":
		return &apportionv1.PendingFilter{Queues: &apportionv1.Selector{Names: names(drawnQueues)}}
	case "apportion.v1.Explain":
		return &apportionv1.Explain{}
	case "apportion.v1.Job":
		return drawNewJob(t)
	case "apportion.v1.Change":
		return drawSnapshotChange(t)
	case "apportion.v1.Ref":
		return &apportionv1.Ref{Name: rapid.SampledFrom([]string{"web", "ml", "attic", "web/shop", "ml/train", "n1", "nothing"}).Draw(t, "ref")}
	case "apportion.v1.Admission", "apportion.v1.Placement", "apportion.v1.Eviction", "apportion.v1.StatusChange",
		"apportion.v1.Edits", "apportion.v1.Edit":
		kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
		require.NoError(t, err)
		m := kind.New()
		drawFields(t, m)
		return m.Interface()
	case "apportion.v1.PastJobs":
		return drawPastJobs(t)
	}
	require.Fail(t, "no generator for "+string(name))
	return nil
}

// selectable returns the names of what a selector in a field may select.
func selectable(f protoreflect.FieldDescriptor) []string {
	switch f.Name() {
	case "queues":
		return drawnQueues
	case "jobs", "job", "of":
		return drawnJobs
	case "nodes", "node":
		return drawnNodes
	}
	return drawnTasks
}

// drawPastJobs draws jobs of a queue that exists, or of one that does not.
func drawPastJobs(t *rapid.T) *apportionv1.PastJobs {
	past := &apportionv1.PastJobs{Kinds: []*apportionv1.PastKind{{
		Queue: rapid.Uint32Range(0, 3).Draw(t, "queue"), Tasks: rapid.Uint32Range(0, 2).Draw(t, "tasks"),
		Request: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1000}},
	}}}
	for range rapid.IntRange(0, 5).Draw(t, "jobs") {
		past.KindIndices = append(past.KindIndices, 0)
		past.AgeSeconds = append(past.AgeSeconds, rapid.Uint64Range(0, 10_000).Draw(t, "age"))
		past.RunSeconds = append(past.RunSeconds, rapid.Uint64Range(0, 10_000).Draw(t, "seconds"))
	}
	return past
}

func drawNewJob(t *rapid.T) *apportionv1.Job {
	return &apportionv1.Job{
		Namespace: "web", Name: "new", Queue: rapid.SampledFrom(drawnQueues).Draw(t, "queue"), Kueue: drawKueueWorkload(t),
		Groups: []*apportionv1.TaskGroup{{
			Request: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1000}},
			Tasks:   []*apportionv1.Task{{Uid: "web/new-0"}, {Uid: "web/new-1", Status: running}},
		}},
	}
}

func drawSnapshotChange(t *rapid.T) *apportionv1.Change {
	change := &apportionv1.Change{}
	if rapid.Bool().Draw(t, "remove job") {
		change.RemoveJobs = []string{rapid.SampledFrom(drawnJobs).Draw(t, "removed job")}
	}
	if rapid.Bool().Draw(t, "set job") {
		change.Jobs = []*apportionv1.Job{drawNewJob(t)}
	}
	if rapid.Bool().Draw(t, "set queue") {
		change.Queues = []*apportionv1.Queue{{
			Name: rapid.SampledFrom(drawnQueues).Draw(t, "changed queue"), Weight: new(rapid.Uint32Range(1, 9).Draw(t, "weight")),
		}}
	}
	if rapid.Bool().Draw(t, "set what Kueue has") {
		cohorts, flavors := drawKueue(t)
		change.Queues, change.NodeSets = append(change.Queues, cohorts...), append(change.NodeSets, flavors...)
	}
	if rapid.Bool().Draw(t, "update task") {
		change.Tasks = []*apportionv1.TaskUpdate{{
			Task:   &apportionv1.TaskUpdate_Uid{Uid: rapid.SampledFrom(drawnTasks).Draw(t, "updated task")},
			Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING,
		}}
	}
	return change
}

func drawScalar(t *rapid.T, f protoreflect.FieldDescriptor) protoreflect.Value {
	switch name := string(f.Name()); f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, name))
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(rapid.IntRange(0, values.Len()-1).Draw(t, name)).Number())
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32Range(0, 3).Draw(t, name))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64Range(0, 9).Draw(t, name))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64Range(0, 3).Draw(t, name))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(rapid.IntRange(0, 3).Draw(t, name)))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.SampledFrom([]string{"web", "ml/train-0", "cpu"}).Draw(t, name))
	default:
		require.Fail(t, "no generator for "+string(f.FullName()))
		return protoreflect.Value{}
	}
}

// A property that draws a kind of step only in forms that are refused would say nothing about it.
func TestEveryKindOfStepIsDrawnSoThatItSucceeds(t *testing.T) {
	snapshot, policy := twoTeams(t), proportional(t)
	for i := range stepKinds.Len() {
		kind := stepKinds.Get(i)
		t.Run(string(kind.Name()), func(t *testing.T) {
			drawn := rapid.Custom(func(t *rapid.T) *apportionv1.Step {
				// A generator has to draw something, and a MarkStep has no fields.
				rapid.Bool().Draw(t, "any")
				return drawStepOf(t, kind)
			})
			for seed := range 300 {
				session, err := client.InProcess().OpenSession(t.Context(), client.Input{Snapshot: snapshot, Policy: policy})
				require.NoError(t, err)
				answers, err := session.Do(t.Context(), mark(), drawn.Example(seed))
				require.NoError(t, err)
				require.NoError(t, session.Close())
				if answers[1].GetError() == nil {
					message := answers[1].ProtoReflect()
					answer := message.WhichOneof(message.Descriptor().Oneofs().ByName("answer")).Name()
					require.Contains(t, []protoreflect.Name{kind.Name(), "mark", "event"}, answer)
					return
				}
			}
			require.Fail(t, "every step drawn was refused")
		})
	}
}
