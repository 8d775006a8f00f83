package objects

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Into fills a value of Go from a tree by the names in the tags of its fields, as a decoder of JSON does. A value of a wrong type is a
// problem with its place, and stays zero. It reports whether there was none.
func (r *Reader) Into(v *Value, into any) bool {
	before := r.Found.Total
	r.fill(v, reflect.ValueOf(into).Elem())
	return r.Found.Total == before
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

func (r *Reader) fill(v *Value, into reflect.Value) {
	of := into.Type()
	readsNull := of != timeType && reflect.PointerTo(of).Implements(unmarshalerType)
	if v == nil || v.Type == Null && !readsNull {
		return
	}
	if of == timeType {
		if nanoseconds := r.MomentAt(v); nanoseconds != 0 {
			into.Set(reflect.ValueOf(time.Unix(0, nanoseconds).UTC()))
		}
		return
	}
	if readsNull {
		if err := json.Unmarshal(AppendJSON(nil, v), into.Addr().Interface()); err != nil {
			r.Found.Add(r.Doc, v, "not valid: %v", err)
		}
		return
	}
	switch of.Kind() {
	case reflect.Pointer:
		one := reflect.New(of.Elem())
		r.fill(v, one.Elem())
		into.Set(one)
	case reflect.Struct, reflect.Map:
		if r.Is(v, Map) {
			r.fillFields(v, into)
		}
	case reflect.Slice:
		if r.Is(v, List) {
			list := reflect.MakeSlice(of, len(v.Items), len(v.Items))
			for i, item := range v.Items {
				r.fill(item, list.Index(i))
			}
			into.Set(list)
		}
	case reflect.Interface:
		if plain := v.plain(); plain != nil {
			into.Set(reflect.ValueOf(plain))
		}
	default:
		r.fillScalar(v, into)
	}
}

func (r *Reader) fillScalar(v *Value, into reflect.Value) {
	switch of := into.Type(); of.Kind() {
	case reflect.String:
		into.SetString(r.TextAt(v))
	case reflect.Bool:
		if flag := r.FlagAt(v); flag != nil {
			into.SetBool(*flag)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		into.SetInt(r.wholeWithin(v, -1<<(of.Bits()-1), math.MaxInt64>>(64-of.Bits())))
	default:
		r.Found.Add(r.Doc, v, "cannot be read as %s", of)
	}
}

func (r *Reader) fillFields(v *Value, into reflect.Value) {
	if into.Kind() == reflect.Map {
		r.fillMap(v, into)
		return
	}
	fields := fieldsOf(into.Type())
	for _, item := range v.Items {
		if at, known := fields[item.Key]; known {
			r.fill(item, into.FieldByIndex(at))
		}
	}
}

func (r *Reader) fillMap(v *Value, into reflect.Value) {
	of := into.Type()
	all := reflect.MakeMapWithSize(of, len(v.Items))
	for _, item := range v.Items {
		one := reflect.New(of.Elem()).Elem()
		r.fill(item, one)
		all.SetMapIndex(reflect.ValueOf(item.Key).Convert(of.Key()), one)
	}
	into.Set(all)
}

// plain returns the value as a decoder of JSON does.
func (v *Value) plain() any {
	var plain any
	_ = json.Unmarshal(AppendJSON(nil, v), &plain) // What was read is written without a fault.
	return plain
}

// wholeWithin reads a whole number between two bounds.
func (r *Reader) wholeWithin(v *Value, least, most int64) int64 {
	parsed, err := strconv.ParseInt(v.Text, 10, 64)
	if v.Type != Number || err != nil || parsed < least || parsed > most {
		r.Found.Add(r.Doc, v, "not a whole number between %d and %d%s", least, most, Shown(v))
		return 0
	}
	return parsed
}

// known has the fields of each type of struct.
var known sync.Map

// fieldsOf returns the positions of the fields of a struct by the names in their tags; those of embedded structs are its own.
func fieldsOf(of reflect.Type) map[string][]int {
	if fields, ok := known.Load(of); ok {
		return fields.(map[string][]int) //nolint:forcetypeassert,errcheck // Nothing else is stored.
	}
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "" && name != "-" && options != "inline" {
			fields[name] = f.Index
		}
	}
	known.Store(of, fields)
	return fields
}

// ShapeOf selects what Into reads of a type.
func ShapeOf(of reflect.Type) *Shape {
	if of == timeType {
		return Leaf
	}
	if reflect.PointerTo(of).Implements(unmarshalerType) {
		return Deep
	}
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		return ShapeOf(of.Elem())
	case reflect.Map:
		return &Shape{Rest: ShapeOf(of.Elem())}
	case reflect.Struct:
		s := &Shape{Fields: Fields{}}
		for name, at := range fieldsOf(of) {
			s.Fields[name] = ShapeOf(of.FieldByIndex(at).Type)
		}
		return s
	case reflect.Interface:
		return Deep
	default:
		return Leaf
	}
}

// Typed returns the shape of a type, and what reads objects that were decoded into it. Whatever decodes them may call read.
func Typed[A Adapter, T any](read func(A, Metadata, *T)) (shape *Shape, of func(A, Metadata, *Value)) {
	return ShapeOf(reflect.TypeFor[T]()), func(a A, m Metadata, root *Value) {
		var object T
		if a.Base().Into(root, &object) {
			read(a, m, &object)
		}
	}
}
