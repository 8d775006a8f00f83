package scenario

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/editing"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/tree"
	"github.com/apportion/apportion/internal/wire"
)

// kind is a kind of step.
type kind struct {
	// field of the contract's Step that the step becomes, and event, if it is one, that of Event.
	field, event protoreflect.FieldDescriptor
	// short is the key that a value without keys stands for; empty if there is none.
	short string
	read  func(*work) (*apportionv1.Step, error)
	// complete checks and completes a step that was read by the fields of its message; nil: it is complete.
	complete func(*work, *apportionv1.Step) error
}

// special are the kinds that are not simply read by the fields of their message.
var special = map[protoreflect.FullName]kind{
	nameOf[*apportionv1.MarkStep]():     {read: (*work).setMark, short: "name"},
	nameOf[*apportionv1.RollbackStep](): {read: (*work).rollback, short: "mark"},
	nameOf[*apportionv1.Edits]():        {read: (*work).makeEdits, short: "edits"},
	nameOf[*apportionv1.Placement]():    {complete: (*work).checkNodes},
	nameOf[*apportionv1.OrderStep]():    {complete: (*work).orderQueues},
}

// kinds are the questions that this program answers, and the events, by the names of their fields in JSON. Of changes there are two: a job
// that is added, and jobs that are removed.
var kinds = stepKinds()

func stepKinds() map[string]kind {
	list := map[string]kind{
		"addJob":    {read: (*work).addJob},
		"removeJob": {read: (*work).removeJob, short: "jobs"},
	}
	add := func(k kind, of protoreflect.FieldDescriptor) {
		if k.read == nil {
			first := of.Message().Fields().ByNumber(1)
			if isSelection(first) && first.ContainingOneof() == nil {
				k.short = first.JSONName()
			}
			k.read = func(w *work) (*apportionv1.Step, error) { return w.message(k) }
		}
		list[of.JSONName()] = k
	}
	fields := (&apportionv1.Step{}).ProtoReflect().Descriptor().Fields()
	events := (&apportionv1.Event{}).ProtoReflect().Descriptor().Fields()
	for _, question := range wire.Questions {
		field := fields.ByName(protoreflect.Name(question.Name))
		if field.Message() != events.Get(0).Parent() {
			k := special[field.Message().FullName()]
			k.field = field
			add(k, field)
			continue
		}
		for i := range events.Len() {
			if of := events.Get(i); of.Message().FullName() != nameOf[*apportionv1.Change]() {
				k := special[of.Message().FullName()]
				k.field, k.event = field, of
				add(k, of)
			}
		}
	}
	return list
}

func nameOf[M protoreflect.ProtoMessage]() protoreflect.FullName {
	var m M
	return m.ProtoReflect().Descriptor().FullName()
}

func kindNames() []string { return slices.Sorted(maps.Keys(kinds)) }

// message translates a step whose keys are the fields of its message.
func (w *work) message(k kind) (*apportionv1.Step, error) {
	step := &apportionv1.Step{}
	m := step.ProtoReflect().Mutable(k.field).Message()
	if k.event != nil {
		m = m.Mutable(k.event).Message()
	}
	if err := w.node.Read(w.fields(m)); err != nil {
		return nil, err
	}
	if first := m.Descriptor().Fields().ByNumber(1); required(first) && len(selected(m, first)) == 0 {
		return nil, w.node.FaultAt(first.JSONName(), "is needed")
	}
	if k.complete != nil {
		return step, k.complete(w, step)
	}
	return step, nil
}

func (w *work) checkNodes(step *apportionv1.Step) error {
	placement := step.GetEvent().GetPlace()
	if n := len(placement.GetNodes().GetIndices()); n > 0 && n != len(placement.GetTasks().GetIndices()) {
		return w.node.FaultAt("nodes", "one node for each task is expected")
	}
	return nil
}

// orderQueues orders all queues if the step names nothing.
func (*work) orderQueues(step *apportionv1.Step) error {
	if order := step.GetOrder(); order.GetSubject() == nil {
		order.Subject = &apportionv1.OrderStep_Queues{Queues: &apportionv1.Selector{}}
	}
	return nil
}

// required reports whether the first field of a step must select something: tasks, or jobs that are admitted. In other steps everything is
// selected if nothing is.
func required(first protoreflect.FieldDescriptor) bool {
	return isSelection(first) && (first.Name() == "tasks" || strings.HasPrefix(string(first.Name()), "claimant") ||
		first.Parent().FullName() == nameOf[*apportionv1.Admission]())
}

// selected returns what a field selects.
func selected(m protoreflect.Message, selection protoreflect.FieldDescriptor) []uint32 {
	message, _ := m.Get(selection).Message().Interface().(*apportionv1.Selector)
	return message.GetIndices()
}

func (w *work) addJob() (*apportionv1.Step, error) {
	job, err := Job(w.snapshot, w.node)
	if err != nil {
		return nil, err
	}
	if _, err := w.snapshot.Job(lookup.JobName(job)); err == nil {
		return nil, w.node.FaultAt("name", "a job of this name is there already, or was")
	}
	larger, _ := w.snapshot.With(job)
	w.step.Snapshot = larger
	w.step.Done = func() { w.snapshot = larger }
	return event.Change(&apportionv1.Change{Jobs: []*apportionv1.Job{job}}), nil
}

func (w *work) removeJob() (*apportionv1.Step, error) {
	change := &apportionv1.Change{}
	err := w.node.Read(tree.Fields{"jobs": func(n tree.Node) error {
		gone, err := indices(n, w.snapshot.Job)
		for _, j := range gone {
			job := w.snapshot.GetJobs()[j]
			change.RemoveJobs = append(change.RemoveJobs, cmp.Or(job.GetUid(), lookup.JobName(job)))
		}
		return err
	}})
	if err == nil && len(change.GetRemoveJobs()) == 0 {
		err = w.node.FaultAt("jobs", "is needed")
	}
	return event.Change(change), err
}

// makeEdits reads edits as --set of whatif does.
func (w *work) makeEdits() (*apportionv1.Step, error) {
	var edits []*apportionv1.Edit
	reader := editing.NewReader(w.snapshot)
	err := w.node.Read(tree.Fields{"edits": func(n tree.Node) error {
		for _, item := range n.OneOrMore() {
			edit, err := reader.Read(item.Value)
			switch {
			case err != nil:
				return item.Fault("%v", err)
			case len(reader.Names) > len(w.snapshot.GetDimensions()):
				return item.Fault("the cluster has no resource %q", reader.Names[len(reader.Names)-1])
			}
			edits = append(edits, edit.Edit)
		}
		return nil
	}})
	if err == nil && len(edits) == 0 {
		err = w.node.FaultAt("edits", "is needed")
	}
	return event.Edit(edits), err
}

func (w *work) setMark() (*apportionv1.Step, error) {
	var name string
	err := w.node.Read(tree.Fields{"name": tree.Text(&name)})
	w.step.Done = func() { w.marks = append(w.marks, mark{name: name, snapshot: w.snapshot}) }
	return &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}}, err
}

// rollback goes back to the mark of a name, or to the last one.
func (w *work) rollback() (*apportionv1.Step, error) {
	var name string
	if err := w.node.Read(tree.Fields{"mark": tree.Text(&name)}); err != nil {
		return nil, err
	}
	for i, m := range slices.Backward(w.marks) {
		if name != "" && m.name != name {
			continue
		}
		w.step.Done = func() { w.snapshot, w.marks = m.snapshot, w.marks[:i+1] }
		return &apportionv1.Step{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: uint32(i)}}}, nil
	}
	if name == "" {
		name = "there is none at all"
	}
	return nil, w.node.Fault("no such mark was set: %s", name)
}
