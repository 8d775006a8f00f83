package volcano

import (
	"encoding/binary"
	"math"
)

// amounts is a sparse vector, ascending by provisional dimension. A dimension that is named with 0 is present.
type amounts struct {
	entries []entry
}

type entry struct {
	dimension int32
	amount    float64
}

// at returns the entry of a dimension. It adds one with amount 0 if there is none, and then reports fresh.
func (a *amounts) at(dimension int32) (place *entry, fresh bool) {
	i := len(a.entries)
	for i > 0 && a.entries[i-1].dimension >= dimension {
		i--
	}
	if i < len(a.entries) && a.entries[i].dimension == dimension {
		return &a.entries[i], false
	}
	a.entries = append(a.entries, entry{})
	copy(a.entries[i+1:], a.entries[i:])
	a.entries[i] = entry{dimension: dimension}
	return &a.entries[i], true
}

// add adds an amount of one dimension.
func (a *amounts) add(dimension int32, amount float64) {
	place, _ := a.at(dimension)
	place.amount += amount
}

// plus adds b, dimension by dimension.
func (a *amounts) plus(b *amounts) {
	if b == nil {
		return
	}
	for _, e := range b.entries {
		a.add(e.dimension, e.amount)
	}
}

// raise takes the larger of both in every dimension that either has.
func (a *amounts) raise(b *amounts) {
	if b == nil {
		return
	}
	for _, e := range b.entries {
		if place, fresh := a.at(e.dimension); fresh || e.amount > place.amount {
			place.amount = e.amount
		}
	}
}

// key is equal for equal vectors only.
func (a *amounts) key(buffer []byte) []byte {
	for _, e := range a.entries {
		buffer = binary.LittleEndian.AppendUint32(buffer, uint32(e.dimension))
		buffer = binary.LittleEndian.AppendUint64(buffer, math.Float64bits(e.amount))
	}
	return buffer
}
