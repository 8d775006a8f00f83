package decode

import (
	"encoding/binary"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/internal/field"
)

// slot is a message of the contract that is read again and again into the same memory. Its contents are valid until it is filled again, and
// its texts share memory with the bytes that were read.
type slot[M any] struct {
	m M
	record
}

// fill reads an encoded message as the protobuf library does; false: it is malformed, or has a field that is not known.
func (s *slot[M]) fill(of *table, data []byte) bool {
	s.empty(of)
	return s.merge(data)
}

// empty empties the message.
func (s *slot[M]) empty(of *table) {
	if s.of == nil {
		s.record = of.record(reflect.ValueOf(&s.m))
	}
	s.reset()
}

// record reads the fields of one message into its Go struct, and keeps the memory of what that refers to.
type record struct {
	of *table
	// at is the address of the struct, and set has the bits of the fields that are set.
	at  unsafe.Pointer
	set uint64
	// rooms are, by column.room, the memory of optional fields, of lists, and of messages, and inner what reads these.
	rooms []unsafe.Pointer
	inner []*record
	// runs are the positions of the fields that are left to the caller.
	runs []run
}

// run is a range of the encoded message with consecutive fields of one tag.
type run struct {
	tag      uint32
	from, to int
}

// table lists the fields of a type of messages.
type table struct {
	// columns are found by tags, and fields by numbers.
	columns, fields []column
	// rooms are the types of what the struct refers to, and inner the tables of the messages among them.
	rooms []reflect.Type
	inner []*table
	// shapes are those of the messages that the library makes.
	shapes []*Shape
	// amounts: the message has dimensions and amounts, a list of numbers and one of doubles, and nothing else.
	amounts bool
}

// column describes the setter of a field and its position in the struct. An optional field has its value in its room.
type column struct {
	set      setter
	optional bool
	room     uint8
	offset   uint16
}

type setter uint8

const (
	unknown setter = iota
	// leave leaves a field to the caller.
	leave
	setText
	setBool
	set32
	set64
	addNumber
	addNumbers
	addLong
	addLongs
	addDouble
	addDoubles
	setMessage
	// setByLibrary makes a message in memory of its own, texts included, which the model keeps.
	setByLibrary
)

// setters are those of numbers and texts.
var setters = map[reflect.Kind]setter{
	reflect.String: setText, reflect.Bool: setBool,
	reflect.Int32: set32, reflect.Uint32: set32, reflect.Int64: set64, reflect.Uint64: set64,
}

// tableOf returns the table of a type of messages. Lists of messages and texts are left to the caller. It panics for a message that a slot
// would misread.
func tableOf[M any]() *table {
	of, fault := newTable(reflect.TypeFor[M]())
	if fault != "" {
		panic("decode: " + fault) //nolint:forbidigo // A fault of the program, which every test finds.
	}
	return of
}

// newTable reads the tags of a struct, as in `protobuf:"varint,3,opt,name=weight"`. fault names a field that a slot would misread.
func newTable(message reflect.Type) (of *table, fault string) {
	of = &table{}
	for f := range message.Fields() {
		if parts := strings.Split(f.Tag.Get("protobuf"), ","); len(parts) > 1 {
			number, err := strconv.ParseUint(parts[1], 10, 32)
			if err != nil || number == 0 || number >= 64 {
				return nil, message.String() + "." + f.Name + " has a number that is not between 1 and 63"
			}
			of.add(&f, uint32(number)<<3)
			if why := of.check(&f, parts[0], uint32(number)); why != "" {
				return nil, message.String() + "." + f.Name + " " + why
			}
		} else if f.IsExported() {
			return nil, message.String() + "." + f.Name + " is a oneof or no field of a message"
		}
	}
	of.amounts = len(of.fields) == 3 && of.fields[1].set == addNumbers && of.fields[2].set == addDoubles
	return of, ""
}

// check returns why a slot would misread a field, or "".
func (t *table) check(f *reflect.StructField, encoding string, number uint32) string {
	const shortTags = 16
	switch encoding {
	case "varint", "bytes", "fixed64":
	default:
		return "is written as " + encoding
	}
	switch c := t.fields[number]; {
	case c.set == unknown:
		return "is of the type " + f.Type.String()
	case c.set == leave && number >= shortTags:
		return "is left to the caller, and its tag takes more than one byte"
	case c.set == leave && f.Type.Elem().Kind() != reflect.Pointer && f.Type.Elem().Kind() != reflect.String:
		return "is bytes or a list of the type " + f.Type.String()
	case c.set >= setBool && c.set <= addLongs && encoding != "varint" && !strings.Contains(string(f.Tag), "packed"):
		return "is a number written as " + encoding
	case f.Offset > math.MaxUint16 || len(t.rooms) > math.MaxUint8:
		return "is one too many"
	}
	return ""
}

// add adds a field; the tag is its number alone.
func (t *table) add(f *reflect.StructField, tag uint32) {
	c := column{offset: uint16(f.Offset), room: uint8(len(t.rooms))}
	of, inner, known := f.Type, (*table)(nil), (*Shape)(nil)
	if of.Kind() == reflect.Pointer {
		of, c.optional = of.Elem(), true
	}
	switch of.Kind() {
	case reflect.Struct:
		var fault string
		c.set, c.optional = setMessage, false
		inner, fault = newTable(of)
		if fault != "" || slices.ContainsFunc(inner.columns, func(c column) bool { return c.set == leave }) {
			c.set, inner = setByLibrary, nil
			if m, ok := reflect.TypeAssert[proto.Message](reflect.New(of)); ok {
				known = shapes[m.ProtoReflect().Descriptor().FullName()]
			}
		}
		t.put(tag|field.Delimited, c)
	case reflect.Slice:
		one, packed, kind := leave, leave, field.Delimited
		switch of.Elem().Kind() {
		case reflect.Int32, reflect.Uint32:
			one, packed, kind = addNumber, addNumbers, field.Varint
		case reflect.Int64, reflect.Uint64:
			one, packed, kind = addLong, addLongs, field.Varint
		case reflect.Float64:
			one, packed, kind = addDouble, addDoubles, field.Fixed64
		default:
		}
		c.set = one
		t.put(tag|kind, c)
		c.set = packed
		t.put(tag|field.Delimited, c)
	case reflect.String:
		c.set = setText
		t.put(tag|field.Delimited, c)
	default:
		c.set = setters[of.Kind()]
		t.put(tag|field.Varint, c)
	}
	t.rooms, t.inner, t.shapes = append(t.rooms, of), append(t.inner, inner), append(t.shapes, known)
}

func (t *table) put(tag uint32, c column) {
	for int(tag) >= len(t.columns) {
		t.columns, t.fields = append(t.columns, make([]column, 8)...), append(t.fields, column{})
	}
	t.columns[tag], t.fields[tag>>3] = c, c
}

// record returns what reads into a struct.
func (t *table) record(message reflect.Value) record {
	r := record{of: t, at: message.UnsafePointer()}
	for i, of := range t.rooms {
		room := reflect.New(of)
		r.rooms, r.inner = append(r.rooms, room.UnsafePointer()), append(r.inner, nil)
		if inner := t.inner[i]; inner != nil {
			r.inner[i] = new(inner.record(room))
		}
	}
	return r
}

// reset empties the message. A number of fields costs less one by one than the whole struct.
func (r *record) reset() {
	for set := r.set; set != 0; set &= set - 1 {
		c := r.of.fields[bits.TrailingZeros64(set)]
		at := unsafe.Add(r.at, c.offset)
		switch {
		case c.optional || c.set == setMessage || c.set == setByLibrary:
			*(*unsafe.Pointer)(at) = nil
		case c.set == setText:
			*(*string)(at) = ""
		case c.set == setBool:
			*(*bool)(at) = false
		case c.set == set32:
			*(*uint32)(at) = 0
		case c.set == set64:
			*(*uint64)(at) = 0
		case c.set == addNumbers:
			*(*[]uint32)(at) = nil
		case c.set == addLongs:
			*(*[]uint64)(at) = nil
		case c.set == addDoubles:
			*(*[]float64)(at) = nil
		}
	}
	r.set, r.runs = 0, r.runs[:0]
}

// merge adds encoded fields to the message.
func (r *record) merge(b []byte) bool {
	if r.of.amounts && r.set == 0 && r.fillAmounts(b) {
		return true
	}
	columns := r.of.columns
	for i := 0; i < len(b); {
		tag, value, from, to := field.At(b, i)
		if to < 0 {
			return false
		}
		if tag >= uint32(len(columns)) || columns[tag].set == unknown {
			if tag>>3 < Informative {
				return false
			}
			i = to
			continue
		}
		c := &columns[tag]
		r.set |= 1 << (tag >> 3)
		at := unsafe.Add(r.at, c.offset)
		if c.optional {
			room := r.rooms[c.room]
			*(*unsafe.Pointer)(at) = room
			at = room
		}
		switch c.set {
		case setText:
			text := b[from:to]
			if *(*string)(at) = lent(text); !isASCII(text) && !utf8.Valid(text) {
				return false
			}
		case setBool:
			*(*bool)(at) = value != 0
		case set32:
			*(*uint32)(at) = uint32(value)
		case set64:
			*(*uint64)(at) = value
		case leave:
			to, _ = afterShort(b, to, tag)
			r.runs = append(r.runs, run{tag, i, to})
		default:
			if !r.add(c, at, tag, value, b[from:to]) {
				return false
			}
		}
		i = to
	}
	return true
}

// fillAmounts fills an empty message of amounts that is written in the usual way, numbers of dimensions in a byte each and before the
// amounts; false: it is not, and nothing was done. Of a snapshot with 100,000 tasks such messages are a fifth of all that is read once.
func (r *record) fillAmounts(b []byte) bool {
	const numbers, doubles = 1<<3 | field.Delimited, 2<<3 | field.Delimited
	if len(b) < 4 || uint32(b[0]) != numbers {
		return false
	}
	n := int(b[1])
	if len(b) != 4+9*n || uint32(b[2+n]) != doubles || int(b[3+n]) != 8*n || n > 15 || !isASCII(b[2:2+n]) {
		return false
	}
	dimension, amount := &r.of.fields[1], &r.of.fields[2]
	dimensions, amounts := r.rooms[dimension.room], r.rooms[amount.room]
	list, of := slices.Grow((*(*[]uint32)(dimensions))[:0], n)[:n], slices.Grow((*(*[]float64)(amounts))[:0], n)[:n]
	for i := range list {
		list[i] = uint32(b[2+i])
	}
	b = b[4+n:]
	for i := range of {
		of[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	keep(unsafe.Add(r.at, dimension.offset), dimensions, list)
	keep(unsafe.Add(r.at, amount.offset), amounts, of)
	r.set = 1<<1 | 1<<2
	return true
}

// add adds a field to the list or the message at an address.
func (r *record) add(c *column, at unsafe.Pointer, tag uint32, value uint64, data []byte) bool {
	switch room := r.rooms[c.room]; c.set {
	case addNumber, addNumbers:
		list, ok := Numbers(listAt[uint32](at, room), tag, value, data)
		keep(at, room, list)
		return ok
	case addLong, addLongs:
		list, ok := Numbers(listAt[uint64](at, room), tag, value, data)
		keep(at, room, list)
		return ok
	case addDouble:
		keep(at, room, append(listAt[float64](at, room), math.Float64frombits(value)))
	case addDoubles:
		list := slices.Grow(listAt[float64](at, room), len(data)/8)
		for ; len(data) >= 8; data = data[8:] {
			list = append(list, math.Float64frombits(binary.LittleEndian.Uint64(data)))
		}
		keep(at, room, list)
		return len(data) == 0
	case setMessage:
		inner := r.inner[c.room]
		if *(*unsafe.Pointer)(at) == nil {
			inner.reset()
			*(*unsafe.Pointer)(at) = room
		}
		return inner.merge(data)
	case setByLibrary:
		if *(*unsafe.Pointer)(at) == nil {
			*(*unsafe.Pointer)(at) = reflect.New(r.of.rooms[c.room]).UnsafePointer()
		}
		m, ok := reflect.TypeAssert[proto.Message](reflect.NewAt(r.of.rooms[c.room], *(*unsafe.Pointer)(at)))
		return ok && r.of.shapes[c.room].Knows(data) && proto.UnmarshalOptions{Merge: true}.Unmarshal(data, m) == nil
	default:
	}
	return true
}

// Numbers adds the field of a list, which is packed or not.
func Numbers[T ~int32 | ~uint32 | ~uint64](list []T, tag uint32, value uint64, packed []byte) ([]T, bool) {
	if tag&7 == field.Varint {
		return append(list, T(value)), true
	}
	n := 0
	for _, b := range packed {
		if b < 0x80 {
			n++
		}
	}
	list = slices.Grow(list, n)
	for i := 0; i < len(packed); {
		value, end := uint64(packed[i]), i+1
		if value >= 0x80 {
			if value, end = field.NumberAt(packed, i); end < 0 {
				return nil, false
			}
		}
		list, i = append(list, T(value)), end
	}
	return list, true
}

// listAt returns the list at an address; a list that is not set yet begins in its room.
func listAt[T any](at, room unsafe.Pointer) []T {
	if list := *(*[]T)(at); list != nil {
		return list
	}
	return (*(*[]T)(room))[:0]
}

// keep sets the list at a place, whose memory is used again.
func keep[T any](at, room unsafe.Pointer, list []T) { *(*[]T)(at), *(*[]T)(room) = list, list }

// afterShort returns where the run of fields of a tag ends that begins at from, and how many there are. A field of 128 bytes and more ends
// it.
func afterShort(b []byte, from int, tag uint32) (end, n int) {
	i := from
	for i+1 < len(b) && uint32(b[i]) == tag && b[i+1] < 0x80 {
		next := i + 2 + int(b[i+1])
		if next > len(b) {
			break
		}
		i = next
		n++
	}
	return i, n
}

// lent returns bytes as a string, which is valid as long as the bytes are.
func lent(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // G103: lent, not kept; what is kept is copied.
}

// isASCII reports whether no byte has its highest bit set, eight at a time; the last eight may overlap those before.
func isASCII(b []byte) bool {
	const highest = 0x8080808080808080
	if len(b) < 8 {
		all := byte(0)
		for _, c := range b {
			all |= c
		}
		return all < 0x80
	}
	all := binary.LittleEndian.Uint64(b[len(b)-8:])
	for ; len(b) > 8; b = b[8:] {
		all |= binary.LittleEndian.Uint64(b)
	}
	return all&highest == 0
}
