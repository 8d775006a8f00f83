package kueue

import (
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Kept returns a message as a model keeps it.
func Kept(m proto.Message) *model.Extra {
	v := reflect.ValueOf(m).Elem()
	return &model.Extra{Value: m, Bytes: shapes[v.Type()].bytes(v), Parts: Parts(m)}
}

// Parts returns the number of a queue's flavors, or that of a job's pod sets and requests. A nomination has so many attempts for each of
// these at most.
func Parts(m proto.Message) int {
	n := 0
	switch m := m.(type) {
	case *apportionv1.KueueQueue:
		n = len(m.GetQuotas())
	case *apportionv1.KueueWorkload:
		for _, p := range m.GetPodSets() {
			n += 1 + len(p.GetRequest().GetDimensions())
		}
	}
	return n
}

// ShareBytes returns what the message of Share takes.
func ShareBytes(s *kueue.State, queue int32) int {
	node := s.NodeOf(queue)
	if _, _, in := s.Node(node); !in {
		return sizeOf[apportionv1.KueueShare]()
	}
	const nominal = 8
	return sizeOf[apportionv1.KueueShare]() + s.CountAccounts(node)*collected(sizeOf[apportionv1.KueueAccount]()+pointer+nominal)
}

// NominationBytes returns about what the message of Nomination takes, without texts.
func NominationBytes(n *kueue.Nomination) int {
	// Lists that grow have more room than they need.
	const listed = 2 * pointer
	few, bytes := hasFew(n), sizeOf[nominationRoom]()
	if few {
		bytes = sizeOf[fewMessages]()
	}
	bytes += len(n.Victims) * (sizeOf[apportionv1.KueueVictim]() + listed)
	for i := range n.PodSets {
		p := &n.PodSets[i]
		if bytes += len(p.Lacks) * (sizeOf[apportionv1.KueueLack]() + listed); !few {
			bytes += sizeOf[apportionv1.KueuePodSetAssignment]() + pointer +
				len(p.Flavors)*(sizeOf[apportionv1.KueueAssignedFlavor]()+pointer)
		}
		for k := range p.Lacks {
			if t := p.Lacks[k].Taint; t != nil {
				bytes += len(t.Key) + len(t.Value) + len(t.Effect) + listed
			}
		}
	}
	return collected(bytes)
}

const pointer = 8

// collected adds to what is made what waits to be collected meanwhile.
func collected(bytes int) int { return bytes + bytes/4 }

// sizeOf returns what a message of a type takes.
func sizeOf[T any]() int { return classOf(int(reflect.TypeFor[T]().Size())) }

// classOf returns what is allocated for so many bytes.
func classOf(n int) int {
	const class = 16
	return (n + class - 1) / class * class
}

// shapes has the types of the messages that are kept, and of those in them.
var shapes = shapesOf((*apportionv1.KueueFlavor)(nil), (*apportionv1.KueueQueue)(nil), (*apportionv1.KueueWorkload)(nil))

// shape is what of a type of messages takes memory.
type shape struct {
	size  int
	parts []part
}

// part is a field of a message that refers to memory: to one value, or to a list of them.
type part struct {
	field, size int
	list        bool
	// of is the type of the values if these are messages, or nil.
	of *shape
}

func shapesOf(messages ...proto.Message) map[reflect.Type]*shape {
	known := map[reflect.Type]*shape{}
	for _, m := range messages {
		shapeOf(reflect.TypeOf(m).Elem(), known)
	}
	return known
}

// shapeOf returns the shape of a type of messages.
func shapeOf(t reflect.Type, known map[reflect.Type]*shape) *shape {
	if s := known[t]; s != nil {
		return s
	}
	s := &shape{size: classOf(int(t.Size()))}
	known[t] = s
	for i := range t.NumField() {
		f := t.Field(i)
		if kind := f.Type.Kind(); !f.IsExported() || kind != reflect.Pointer && kind != reflect.Slice {
			continue
		}
		p := part{field: i, size: int(f.Type.Elem().Size()), list: f.Type.Kind() == reflect.Slice}
		of := f.Type
		if p.list {
			of = of.Elem()
		}
		if of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Struct {
			p.of = shapeOf(of.Elem(), known)
		}
		s.parts = append(s.parts, p)
	}
	return s
}

// bytes returns about what a message takes without its texts.
func (s *shape) bytes(v reflect.Value) int {
	n := s.size
	for i := range s.parts {
		p := &s.parts[i]
		f := v.Field(p.field)
		switch {
		case f.IsNil():
		case !p.list && p.of == nil:
			n += p.size
		case !p.list:
			n += p.of.bytes(f.Elem())
		default:
			n += p.size * f.Cap()
			for k := 0; p.of != nil && k < f.Len(); k++ {
				if item := f.Index(k); !item.IsNil() {
					n += p.of.bytes(item.Elem())
				}
			}
		}
	}
	return n
}
