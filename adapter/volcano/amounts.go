package volcano

import (
	"encoding/binary"
	"math"
	"slices"
)

// amounts is a sparse vector, ascending by the names of the resources. A resource that is named with 0 is present.
type amounts struct {
	entries []entry
}

type entry struct {
	name   resourceName
	amount float64
}

// at returns the entry of a resource. If there is none, it adds one with amount 0 and returns fresh.
func (a *amounts) at(name resourceName) (place *entry, fresh bool) {
	i := len(a.entries)
	for i > 0 && a.entries[i-1].name.Value() >= name.Value() {
		i--
	}
	if i < len(a.entries) && a.entries[i].name == name {
		return &a.entries[i], false
	}
	a.entries = slices.Insert(a.entries, i, entry{name: name})
	return &a.entries[i], true
}

// add adds an amount of one resource.
func (a *amounts) add(name resourceName, amount float64) {
	place, _ := a.at(name)
	place.amount += amount
}

// plus adds b, resource by resource.
func (a *amounts) plus(b *amounts) {
	if b == nil {
		return
	}
	for _, e := range b.entries {
		a.add(e.name, e.amount)
	}
}

// raise takes the larger of both for every resource that either has.
func (a *amounts) raise(b *amounts) {
	if b == nil {
		return
	}
	for _, e := range b.entries {
		if place, fresh := a.at(e.name); fresh || e.amount > place.amount {
			place.amount = e.amount
		}
	}
}

// key is equal for equal vectors only.
func (a *amounts) key(buffer []byte) []byte {
	for _, e := range a.entries {
		name := e.name.Value()
		buffer = append(binary.AppendUvarint(buffer, uint64(len(name))), name...)
		buffer = binary.LittleEndian.AppendUint64(buffer, math.Float64bits(e.amount))
	}
	return buffer
}
