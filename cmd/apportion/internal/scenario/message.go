package scenario

import (
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// isSelection reports whether a field is a message of indices and names, as Queues.
func isSelection(f protoreflect.FieldDescriptor) bool {
	if f == nil || f.Message() == nil || f.IsList() {
		return false
	}
	switch f.Message().FullName() {
	case nameOf[*apportionv1.Queues](), nameOf[*apportionv1.Jobs](), nameOf[*apportionv1.Tasks](), nameOf[*apportionv1.Nodes]():
		return true
	}
	return false
}

// find returns how the names in a field become indices; nil for a field that holds none.
func (w *work) find(f protoreflect.FieldDescriptor) func(string) (uint32, error) {
	if isSelection(f) {
		return map[protoreflect.FullName]func(string) (uint32, error){
			nameOf[*apportionv1.Queues](): w.snapshot.Queue, nameOf[*apportionv1.Jobs](): w.snapshot.Job,
			nameOf[*apportionv1.Tasks](): w.snapshot.Task, nameOf[*apportionv1.Nodes](): w.snapshot.Node,
		}[f.Message().FullName()]
	}
	return map[protoreflect.FullName]func(string) (uint32, error){
		"apportion.v1.AllocateStep.node":        w.snapshot.Node,
		"apportion.v1.OrderStep.claimant_task":  w.snapshot.Task,
		"apportion.v1.OrderStep.claimant_queue": w.snapshot.Queue,
	}[f.FullName()]
}

// fields are readers into the fields of a step. Names and uids have none: a scenario names things by the fields of their indices.
func (w *work) fields(m protoreflect.Message) readers {
	read := readers{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		key := f.JSONName()
		if f.IsList() && w.find(f) != nil {
			key += "s"
		}
		reader := w.field(m, f)
		if reader == nil || f.Name() == "omit_names" {
			continue
		}
		read[key] = func(key string, n *yaml.Node) error {
			if one := f.ContainingOneof(); one != nil && m.WhichOneof(one) != nil {
				return w.fault(n, key, "excludes "+m.WhichOneof(one).JSONName()+", which is given too")
			}
			return reader(key, n)
		}
	}
	return read
}

// field is a reader into a field; nil for one that cannot be given.
func (w *work) field(m protoreflect.Message, f protoreflect.FieldDescriptor) func(string, *yaml.Node) error {
	find := w.find(f)
	switch {
	case isSelection(f):
		return w.selection(m, f, find)
	case f.Message() != nil && f.Message().FullName() == nameOf[*apportionv1.Explain]():
		return w.present(m, f)
	case find != nil:
		return func(key string, n *yaml.Node) error {
			index, err := w.indices(key, n, find)
			switch {
			case err != nil:
				return err
			case f.IsList():
				setNumbers(m, f, index)
			case len(index) != 1:
				return w.fault(n, key, "one name is expected")
			default:
				m.Set(f, protoreflect.ValueOfUint32(index[0]))
			}
			return nil
		}
	case f.Kind() == protoreflect.BoolKind:
		return func(key string, n *yaml.Node) error {
			var given bool
			err := w.flag(&given)(key, n)
			m.Set(f, protoreflect.ValueOfBool(given))
			return err
		}
	case f.Kind() == protoreflect.EnumKind:
		return func(key string, n *yaml.Node) error { return w.words(m, f, key, n) }
	case f.Kind() == protoreflect.Uint32Kind && !f.IsList():
		return func(key string, n *yaml.Node) error {
			var given uint32
			err := whole(w.source, &given)(key, n)
			m.Set(f, protoreflect.ValueOfUint32(given))
			return err
		}
	}
	return nil
}

// selection reads names; true selects everything.
func (w *work) selection(
	m protoreflect.Message, f protoreflect.FieldDescriptor, find func(string) (uint32, error),
) func(string, *yaml.Node) error {
	return func(key string, n *yaml.Node) error {
		if n.ShortTag() == "!!bool" {
			return w.present(m, f)(key, n)
		}
		index, err := w.indices(key, n, find)
		if err != nil {
			return err
		}
		selected := m.Mutable(f).Message()
		setNumbers(selected, selected.Descriptor().Fields().ByName("index"), index)
		return nil
	}
}

// present makes an empty message of true.
func (w *work) present(m protoreflect.Message, f protoreflect.FieldDescriptor) func(string, *yaml.Node) error {
	return func(key string, n *yaml.Node) error {
		var given bool
		err := w.flag(&given)(key, n)
		if given {
			m.Mutable(f)
		}
		return err
	}
}

func setNumbers(m protoreflect.Message, f protoreflect.FieldDescriptor, numbers []uint32) {
	list := m.Mutable(f).List()
	for _, n := range numbers {
		list.Append(protoreflect.ValueOfUint32(n))
	}
}

// words reads one value of an enum, or a list of them.
func (w *work) words(m protoreflect.Message, f protoreflect.FieldDescriptor, key string, n *yaml.Node) error {
	items := []*yaml.Node{n}
	if f.IsList() && n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		number, err := w.enum(f.Enum(), key, item)
		if err != nil {
			return err
		}
		if f.IsList() {
			m.Mutable(f).List().Append(protoreflect.ValueOfEnum(number))
		} else {
			m.Set(f, protoreflect.ValueOfEnum(number))
		}
	}
	return nil
}
