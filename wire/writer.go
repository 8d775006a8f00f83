package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// writer encodes a message from its last field to its first, at the end of a piece of memory: the length of a part is known when the part
// has been written, so that nothing is measured beforehand. Every method writes before what was written earlier.
type writer struct {
	memory []byte
	// at is where the bytes written begin.
	at  int
	err error
}

// room makes sure that n bytes can be written.
func (w *writer) room(n int) {
	if n <= w.at {
		return
	}
	written := len(w.memory) - w.at
	larger := make([]byte, max(2*len(w.memory), 512, written+n))
	copy(larger[len(larger)-written:], w.memory[w.at:])
	w.memory, w.at = larger, len(larger)-written
}

// empty takes back all bytes written, and keeps the memory unless it is more than most.
func (w *writer) empty(most int) {
	if len(w.memory) > most {
		w.memory = nil
	}
	w.at = len(w.memory)
}

// size is how many bytes have been written.
func (w *writer) size() int { return len(w.memory) - w.at }

func (w *writer) varint(v uint64) {
	w.room(binary.MaxVarintLen64)
	if v < 0x80 {
		w.at--
		w.memory[w.at] = byte(v)
		return
	}
	w.at -= protowire.SizeVarint(v)
	binary.PutUvarint(w.memory[w.at:], v)
}

func (w *writer) tag(field protowire.Number, kind protowire.Type) {
	w.varint(protowire.EncodeTag(field, kind))
}

// number writes a number unless it is 0.
func (w *writer) number(field protowire.Number, v uint64) {
	if v != 0 {
		w.varint(v)
		w.tag(field, protowire.VarintType)
	}
}

// optional writes a number that may be absent.
func (w *writer) optional(field protowire.Number, v *uint32) {
	if v != nil {
		w.varint(uint64(*v))
		w.tag(field, protowire.VarintType)
	}
}

func (w *writer) boolean(field protowire.Number, v bool) {
	if v {
		w.number(field, 1)
	}
}

// double writes a number unless it is 0; negative zero is written.
func (w *writer) double(field protowire.Number, v float64) {
	if bits := math.Float64bits(v); bits != 0 {
		w.room(8)
		w.at -= 8
		binary.LittleEndian.PutUint64(w.memory[w.at:], bits)
		w.tag(field, protowire.Fixed64Type)
	}
}

// text writes a string unless it is empty. Strings of an answer are UTF-8 because those of requests are.
func (w *writer) text(field protowire.Number, s string) {
	if s != "" {
		w.room(len(s))
		w.at -= len(s)
		copy(w.memory[w.at:], s)
		w.begin(field, len(s))
	}
}

// encoded writes bytes that are encoded already.
func (w *writer) encoded(data []byte) {
	w.room(len(data))
	w.at -= len(data)
	copy(w.memory[w.at:], data)
}

// begin completes a field of n bytes that have just been written.
func (w *writer) begin(field protowire.Number, n int) {
	w.varint(uint64(n))
	w.tag(field, protowire.BytesType)
}

// numbers writes a packed list.
func (w *writer) numbers(field protowire.Number, list []uint32) {
	if len(list) == 0 {
		return
	}
	before := w.size()
	for _, v := range slices.Backward(list) {
		w.varint(uint64(v))
	}
	w.begin(field, w.size()-before)
}

// doubles writes a packed list.
func (w *writer) doubles(field protowire.Number, list []float64) {
	if len(list) == 0 {
		return
	}
	w.room(8 * len(list))
	w.at -= 8 * len(list)
	for i, v := range list {
		binary.LittleEndian.PutUint64(w.memory[w.at+8*i:], math.Float64bits(v))
	}
	w.begin(field, 8*len(list))
}

// library writes a message that the protobuf library encodes, unless it is absent.
func (w *writer) library(field protowire.Number, m proto.Message) {
	if m == nil || !m.ProtoReflect().IsValid() {
		return
	}
	data, err := proto.Marshal(m)
	if err != nil {
		w.err = err
		return
	}
	w.encoded(data)
	w.begin(field, len(data))
}

// message writes a message unless it is absent.
func message[M any](w *writer, field protowire.Number, m *M, write func(*writer, *M)) {
	if m != nil {
		before := w.size()
		write(w, m)
		w.begin(field, w.size()-before)
	}
}

// messages writes a list of messages.
func messages[M any](w *writer, field protowire.Number, list []*M, write func(*writer, *M)) {
	for _, m := range slices.Backward(list) {
		before := w.size()
		if m != nil {
			write(w, m)
		}
		w.begin(field, w.size()-before)
	}
}
