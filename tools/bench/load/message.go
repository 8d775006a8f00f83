package main

import (
	"math/rand/v2"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/wire/method"
)

// messagesOf returns an empty request and an empty response of a method.
func messagesOf(name string) (request, response proto.Message, err error) {
	call := method.Named(name)
	in, err := protoregistry.GlobalTypes.FindMessageByName(call.Input().FullName())
	if err != nil {
		return nil, nil, err
	}
	out, err := protoregistry.GlobalTypes.FindMessageByName(call.Output().FullName())
	if err != nil {
		return nil, nil, err
	}
	return in.New().Interface(), out.New().Interface(), nil
}

// fill sets what a question names: the input, a job, a task, a change. Of the members of a oneof it sets one.
func fill(message protoreflect.Message, in *apportionv1.Input, random *rand.Rand) {
	fields := message.Descriptor().Fields()
	var members []protoreflect.FieldDescriptor
	for i := range fields.Len() {
		field := fields.Get(i)
		if of := field.ContainingOneof(); of != nil && !of.IsSynthetic() {
			members = append(members, field)
			continue
		}
		fillField(message, field, in, random)
	}
	if len(members) > 0 {
		fillField(message, members[random.IntN(len(members))], in, random)
	}
}

// snapshotNames are the fields that name a snapshot that the server maintains.
var snapshotNames = map[protoreflect.FullName]bool{
	"apportion.v1.DownloadSnapshotRequest.name": true, "apportion.v1alpha1.GetHistoryRequest.name": true,
	"apportion.v1alpha1.GetUsageRequest.name": true,
}

// fillField sets one field, most of them at random. A list, a text or a number stays empty unless a question is faulty without it.
func fillField(message protoreflect.Message, field protoreflect.FieldDescriptor, in *apportionv1.Input, random *rand.Rand) {
	switch {
	case field.Name() == "node" && field.IsList():
		message.Mutable(field).List().Append(protoreflect.ValueOfUint32(uint32(random.IntN(8))))
	case field.IsList() || field.IsMap():
	case field.Kind() == protoreflect.BoolKind:
		message.Set(field, protoreflect.ValueOfBool(random.IntN(2) == 0))
	case field.Kind() == protoreflect.EnumKind:
		values := field.Enum().Values()
		message.Set(field, protoreflect.ValueOfEnum(values.Get(random.IntN(values.Len())).Number()))
	case snapshotNames[field.FullName()]:
		message.Set(field, protoreflect.ValueOfString(snapshotName))
	case field.FullName() == "apportion.v1.PlanStep.tasks":
		// A plan is for a job or for tasks.
	case field.FullName() == "apportion.v1.ExplainStep.jobs" && random.IntN(2) == 0,
		field.FullName() == "apportion.v1.ExplainStep.filter" && message.Has(message.Descriptor().Fields().ByName("jobs")):
		// Jobs are named or selected.
	case field.Kind() == protoreflect.MessageKind:
		value := message.NewField(field)
		if named := namedBy(value.Message().Interface(), in, random); named != nil {
			value = protoreflect.ValueOfMessage(named.ProtoReflect())
		} else {
			fill(value.Message(), in, random)
		}
		message.Set(field, value)
	}
}

// namedBy returns what a question names where it has a message of this type, or nil if the message is part of the question.
func namedBy(of proto.Message, in *apportionv1.Input, random *rand.Rand) proto.Message {
	number := func(below int) []uint32 { return []uint32{uint32(random.IntN(below))} }
	switch of.(type) {
	case *apportionv1.Input:
		return in
	case *apportionv1.Selector:
		return &apportionv1.Selector{Indices: number(4)}
	case *apportionv1.Event:
		all := events(random)
		return all[random.IntN(len(all))].GetEvent()
	}
	return nil
}

// aChange returns a change that sets a queue.
func aChange(random *rand.Rand) *apportionv1.Change {
	return &apportionv1.Change{
		AsOf: new(random.Int64()), Queues: []*apportionv1.Queue{{Name: "added", Weight: new(uint32(1 + random.IntN(9)))}},
	}
}

// events returns a step of each kind of event.
func events(random *rand.Rand) []*apportionv1.Step {
	some := func() *apportionv1.Selector { return &apportionv1.Selector{Indices: []uint32{uint32(random.IntN(4))}} }
	status := apportionv1.TaskStatus(random.IntN(10))
	return []*apportionv1.Step{
		event.Admit(some()), event.Place(some(), some()), event.Evict(some(), status), event.SetStatus(some(), status),
		event.Change(aChange(random)), event.Edit([]*apportionv1.Edit{{
			Kind: apportionv1.EditKind_EDIT_KIND_WEIGHT, Amount: new(float64(random.IntN(9))),
			Object: &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Index: new(uint32(random.IntN(4)))}},
		}}),
	}
}

// steps returns one step of each kind, in the order of the contract.
func steps(random *rand.Rand) []*apportionv1.Step {
	members := (*apportionv1.Step)(nil).ProtoReflect().Descriptor().Oneofs().ByName("step").Fields()
	all := make([]*apportionv1.Step, members.Len())
	for i := range all {
		all[i] = &apportionv1.Step{}
		fillField(all[i].ProtoReflect(), members.Get(i), nil, random)
	}
	return all
}

// stepName is the name of a step's kind.
func stepName(step *apportionv1.Step) string {
	r := step.ProtoReflect()
	return string(r.WhichOneof(r.Descriptor().Oneofs().ByName("step")).Name())
}
