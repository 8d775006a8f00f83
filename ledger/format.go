package ledger

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
)

// writer appends values: numbers as varints, texts and lists after their lengths.
type writer struct{ data []byte }

func (w *writer) unsigned(n uint64) { w.data = binary.AppendUvarint(w.data, n) }
func (w *writer) signed(n int64)    { w.data = binary.AppendVarint(w.data, n) }

func (w *writer) text(s string) {
	w.unsigned(uint64(len(s)))
	w.data = append(w.data, s...)
}

func (w *writer) list(texts []string) {
	w.unsigned(uint64(len(texts)))
	for _, s := range texts {
		w.text(s)
	}
}

func (w *writer) vector(v []int64) {
	w.unsigned(uint64(len(v)))
	for _, n := range v {
		w.signed(n)
	}
}

// amount writes 128 bits in at most 19 bytes.
func (w *writer) amount(a Amount) {
	for a.Hi != 0 || a.Lo >= 0x80 {
		w.data = append(w.data, byte(a.Lo)|0x80)
		a.Lo = a.Lo>>7 | a.Hi<<57
		a.Hi >>= 7
	}
	w.data = append(w.data, byte(a.Lo))
}

// errShort says that a value of a ledger is not of the form that was written.
var errShort = errors.New("the value ends too early, or has a number that is out of range")

// reader reads what a writer wrote. After the first fault all values are zero, and err is set.
type reader struct {
	data []byte
	err  error
}

func (r *reader) fail() {
	r.data, r.err = nil, errShort
}

func (r *reader) unsigned() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.data)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[size:]
	return n
}

// count reads the length of a list. An element has at least one byte, so that the length is bounded by the data.
func (r *reader) count() int {
	n := r.unsigned()
	if n > uint64(len(r.data)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	s := string(r.data[:n])
	r.data = r.data[n:]
	return s
}

func (r *reader) list() []string {
	texts := make([]string, r.count())
	for i := range texts {
		texts[i] = r.text()
	}
	return texts
}

func (r *reader) vector() []int64 {
	v := make([]int64, r.count())
	for i := range v {
		v[i] = r.signed()
	}
	return v
}

func (r *reader) amount() Amount {
	var a Amount
	for shift := 0; shift < 128; shift += 7 {
		if len(r.data) == 0 {
			break
		}
		b := r.data[0]
		r.data = r.data[1:]
		part := uint64(b & 0x7f)
		switch {
		case shift < 64:
			a.Lo |= part << shift
			a.Hi |= part >> (64 - shift)
		default:
			a.Hi |= part << (shift - 64)
		}
		if b < 0x80 {
			return a
		}
	}
	r.fail()
	return Amount{}
}

// end returns the fault of the reader, or one if data is left.
func (r *reader) end() error {
	if r.err == nil && len(r.data) > 0 {
		r.fail()
	}
	return r.err
}

// block is the cells of an epoch in their encoded form, in the order of lines: the distance to the line before, then the amounts. A
// ledger of a year is mostly these.
type block []byte

func encodeBlock(c cells) block {
	var w writer
	before := int32(-1)
	for _, n := range slices.Sorted(maps.Keys(c)) {
		x := c[n]
		for len(x) > 0 && x[len(x)-1] == (Amount{}) {
			x = x[:len(x)-1]
		}
		if len(x) == 0 {
			continue
		}
		w.unsigned(uint64(n - before))
		before = n
		w.unsigned(uint64(len(x)))
		for _, a := range x {
			w.amount(a)
		}
	}
	return w.data
}

// each decodes a block; lines is the number of lines. The amounts are valid during the call.
func (b block) each(lines int, use func(line int32, x []Amount)) error {
	r := reader{data: b}
	n, x := int64(-1), []Amount(nil)
	for len(r.data) > 0 {
		step, width := r.unsigned(), r.count()
		x = x[:0]
		for range width {
			x = append(x, r.amount())
		}
		n += int64(min(step, uint64(lines)+1))
		if r.err == nil && (step == 0 || n >= int64(lines)) {
			r.fail()
		}
		if r.err != nil {
			break
		}
		use(int32(n), x)
	}
	return r.err
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.start, b.start), strings.Compare(a.task, b.task))
}
