package scenario

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/tree"
)

// isSelection reports whether a field is a Selector.
func isSelection(f protoreflect.FieldDescriptor) bool {
	return f != nil && f.Message() != nil && !f.IsList() && f.Message().FullName() == nameOf[*apportionv1.Selector]()
}

// find returns how the names in a field become indices; nil for a field that holds none.
func (w *work) find(f protoreflect.FieldDescriptor) func(string) (uint32, error) {
	if isSelection(f) {
		return map[protoreflect.Name]func(string) (uint32, error){
			"queues": w.snapshot.Queue, "jobs": w.snapshot.Job, "job": w.snapshot.Job, "of": w.snapshot.Job,
			"tasks": w.snapshot.Task, "claimant": w.snapshot.Task, "claimants": w.snapshot.Task, "candidates": w.snapshot.Task,
			"nodes": w.snapshot.Node, "node": w.snapshot.Node,
		}[f.Name()]
	}
	return map[protoreflect.FullName]func(string) (uint32, error){
		"apportion.v1.OrderStep.claimant_task":  w.snapshot.Task,
		"apportion.v1.OrderStep.claimant_queue": w.snapshot.Queue,
	}[f.FullName()]
}

// fields are readers into the fields of a step. Fields of names and uids have no reader: a scenario gives names in the fields of indices.
func (w *work) fields(m protoreflect.Message) tree.Fields {
	read := tree.Fields{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		key := f.JSONName()
		reader := w.field(m, f)
		if reader == nil {
			continue
		}
		read[key] = func(n tree.Node) error {
			if one := f.ContainingOneof(); one != nil && m.WhichOneof(one) != nil {
				return n.Fault("excludes %s, which is given too", m.WhichOneof(one).JSONName())
			}
			return reader(n)
		}
	}
	return read
}

// field is a reader into a field; nil for one that cannot be given.
func (w *work) field(m protoreflect.Message, f protoreflect.FieldDescriptor) tree.Reader {
	find := w.find(f)
	switch {
	case isSelection(f):
		return selection(m, f, find)
	case f.Message() != nil && f.Message().FullName() == nameOf[*apportionv1.Explain]():
		return present(m, f)
	case find != nil:
		return func(n tree.Node) error {
			index, err := indices(n, find)
			switch {
			case err != nil:
				return err
			case f.IsList():
				setNumbers(m, f, index)
			case len(index) != 1:
				return n.Fault("one name is expected")
			default:
				m.Set(f, protoreflect.ValueOfUint32(index[0]))
			}
			return nil
		}
	case f.Kind() == protoreflect.BoolKind:
		return func(n tree.Node) error {
			var given bool
			err := tree.Flag(&given)(n)
			m.Set(f, protoreflect.ValueOfBool(given))
			return err
		}
	case f.Kind() == protoreflect.EnumKind:
		return func(n tree.Node) error { return words(m, f, n) }
	case f.Kind() == protoreflect.Uint32Kind && !f.IsList():
		return func(n tree.Node) error {
			var given uint32
			err := tree.Whole(&given)(n)
			m.Set(f, protoreflect.ValueOfUint32(given))
			return err
		}
	}
	return nil
}

// selection reads names; true selects everything.
func selection(m protoreflect.Message, f protoreflect.FieldDescriptor, find func(string) (uint32, error)) tree.Reader {
	return func(n tree.Node) error {
		if n.ShortTag() == "!!bool" {
			return present(m, f)(n)
		}
		index, err := indices(n, find)
		if err != nil {
			return err
		}
		selected := m.Mutable(f).Message()
		setNumbers(selected, selected.Descriptor().Fields().ByName("indices"), index)
		return nil
	}
}

// present makes an empty message of true.
func present(m protoreflect.Message, f protoreflect.FieldDescriptor) tree.Reader {
	return func(n tree.Node) error {
		var given bool
		err := tree.Flag(&given)(n)
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
func words(m protoreflect.Message, f protoreflect.FieldDescriptor, n tree.Node) error {
	items := []tree.Node{n}
	if f.IsList() {
		items = n.OneOrMore()
	}
	for _, item := range items {
		number, err := enum(f.Enum(), item)
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

// word reads one of the values of an enum into a place.
func word[E interface {
	~int32
	protoreflect.Enum
}](place *E) tree.Reader {
	return func(n tree.Node) error {
		number, err := enum((*place).Descriptor(), n)
		*place = E(number)
		return err
	}
}

// enum returns one of the values of an enum, written in lower case without their common prefix.
func enum(descriptor protoreflect.EnumDescriptor, n tree.Node) (protoreflect.EnumNumber, error) {
	values := descriptor.Values()
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	name := prefix + strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(n.Value))
	if value := values.ByName(protoreflect.Name(name)); n.Kind == yaml.ScalarNode && value != nil && value.Number() != 0 {
		return value.Number(), nil
	}
	var words []string
	for i := range values.Len() {
		if value := values.Get(i); value.Number() != 0 {
			words = append(words, strings.ToLower(strings.TrimPrefix(string(value.Name()), prefix)))
		}
	}
	slices.Sort(words)
	return 0, n.Fault("one of these is expected: %s", strings.Join(words, ", "))
}
