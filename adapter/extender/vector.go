package extender

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/go-faster/jx"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
)

// amount is an amount of one resource, by the number of its name.
type amount struct {
	name  int32
	value float64
}

// vector is a sparse list of amounts, ascending by number, no number twice.
type vector []amount

// set puts an amount in its place.
func (v *vector) set(name int32, value float64) {
	i := len(*v)
	for i > 0 && (*v)[i-1].name >= name {
		i--
	}
	if i < len(*v) && (*v)[i].name == name {
		(*v)[i].value = value
		return
	}
	*v = slices.Insert(*v, i, amount{name, value})
}

// plus adds w.
func (v *vector) plus(w vector) {
	for _, a := range w {
		have := 0.0
		for _, b := range *v {
			if b.name == a.name {
				have = b.value
			}
		}
		v.set(a.name, have+a.value)
	}
}

// names numbers texts in the order of their first appearance and stores each once.
type names struct {
	ids  map[string]int32
	list []string
}

func (n *names) of(name []byte) int32 {
	if id, ok := n.ids[string(name)]; ok {
		return id
	}
	if n.ids == nil {
		n.ids = make(map[string]int32)
	}
	kept := string(name)
	id := int32(len(n.list))
	n.ids[kept] = id
	n.list = append(n.list, kept)
	return id
}

// vectors stores equal vectors once: most pods have the same request as others.
type vectors struct {
	bound
	names   names
	ids     map[string]int32
	list    []vector
	scratch vector
	key     []byte
}

const (
	cpu    = "cpu"
	memory = "memory"
)

// resource reads a Resource of Volcano's, whose units are ours. The result is valid until the next call.
func (v *vectors) resource(d *jx.Decoder) (vector, error) {
	v.scratch = v.scratch[:0]
	err := object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case "MilliCPU":
			return v.read(d, []byte(cpu))
		case "Memory":
			return v.read(d, []byte(memory))
		case "ScalarResources":
			return object(d, v.read)
		}
		return d.Skip()
	})
	return v.scratch, err
}

func (v *vectors) read(d *jx.Decoder, name []byte) error {
	id, err := v.dimension(name)
	if err != nil {
		return err
	}
	value, err := float(d)
	v.scratch.set(id, value)
	return err
}

// dimension returns the number of a resource's name. It bounds their count, because insertion takes linear time.
func (v *vectors) dimension(name []byte) (int32, error) {
	id := v.names.of(name)
	if most := v.Dimensions; most > 0 && int64(id) >= most {
		return 0, v.within(decode.Size{Dimensions: int64(id) + 1})
	}
	return id, nil
}

// request reads a Resource that pods ask for and returns its number. It omits a cpu or memory of 0, which does not change the request.
func (v *vectors) request(d *jx.Decoder) (int32, error) {
	read, err := v.resource(d)
	if err != nil {
		return 0, err
	}
	read = slices.DeleteFunc(read, func(a amount) bool {
		name := v.names.list[a.name]
		return a.value == 0 && (name == cpu || name == memory)
	})
	v.key = v.key[:0]
	for _, a := range read {
		v.key = binary.LittleEndian.AppendUint32(v.key, uint32(a.name))
		v.key = binary.LittleEndian.AppendUint64(v.key, math.Float64bits(a.value))
	}
	if id, ok := v.ids[string(v.key)]; ok {
		return id, nil
	}
	if v.ids == nil {
		v.ids = make(map[string]int32)
	}
	id := int32(len(v.list))
	v.ids[string(v.key)] = id
	v.list = append(v.list, slices.Clone(read))
	return id, nil
}

// quantities reads a Kubernetes ResourceList in Volcano's units; nil if there is none.
func (v *vectors) quantities(d *jx.Decoder) (vector, error) {
	if d.Next() == jx.Null {
		return nil, d.Null()
	}
	read := vector{}
	err := object(d, func(d *jx.Decoder, name []byte) error {
		key := string(name)
		written, err := text(d)
		if err != nil {
			return within(key, err)
		}
		value, accounted, err := volcano.Amount(key, written)
		if err != nil || !accounted {
			return err
		}
		id, err := v.dimension([]byte(key))
		read.set(id, value)
		return err
	})
	return read, err
}

// dimensions names all resources, cpu and memory first, then the others by name, and returns the number of each name among them.
func (v *vectors) dimensions() (sorted []string, number []uint32) {
	rank := func(name string) int {
		switch name {
		case cpu:
			return 0
		case memory:
			return 1
		}
		return 2
	}
	sorted = slices.Clone(v.names.list)
	slices.SortFunc(sorted, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	position := make(map[string]uint32, len(sorted))
	for i, name := range sorted {
		position[name] = uint32(i)
	}
	number = make([]uint32, len(sorted))
	for id, name := range v.names.list {
		number[id] = position[name]
	}
	return sorted, number
}

// amounts converts vectors for a Builder, which copies them.
type amounts struct {
	number []uint32
	lent   model.Amounts
}

// of returns nil for a nil vector.
func (a *amounts) of(v vector) *model.Amounts {
	if v == nil {
		return nil
	}
	a.lent.Dimension, a.lent.Amount = a.lent.Dimension[:0], a.lent.Amount[:0]
	for _, entry := range v {
		a.lent.Dimension = append(a.lent.Dimension, a.number[entry.name])
		a.lent.Amount = append(a.lent.Amount, entry.value)
	}
	return &a.lent
}
