package objects

import (
	"slices"
	"strings"
)

// Shape selects the parts of an object that are read. The scanner skips everything else, which is most of a cluster's dump.
type Shape struct {
	Fields map[string]*Shape
	// Rest is the shape of all other fields; nil skips them.
	Rest *Shape
	// Names keeps the names of skipped fields, so that misspelt ones can be found.
	Names bool
}

// of returns the shape of a field, nil if it is skipped. A nil shape skips everything.
func (s *Shape) of(name string) *Shape {
	if f, ok := s.Fields[name]; ok {
		return f
	}
	return s.Rest
}

// Fields are shapes by the names of fields.
type Fields = map[string]*Shape

// Select returns the shape of some paths, such as spec.containers.name; lists are not part of a path. What a path names is a scalar, or a
// map or list of scalars; of any depth if the path ends in a star. One that ends in a question mark selects nothing but keeps the names of
// fields that are not selected.
func Select(paths ...string) *Shape {
	all := &Shape{Fields: Fields{}}
	for _, path := range paths {
		one := Leaf
		switch name := path[:len(path)-1]; path[len(name):] {
		case "*":
			one, path = Deep, name
		case "?":
			one, path = &Shape{Names: true}, name
		}
		steps := strings.Split(path, ".")
		for _, step := range slices.Backward(steps) {
			one = &Shape{Fields: Fields{step: one}}
		}
		all = Union(all, one)
	}
	return all
}

// Annotated is a shape with some annotations.
func Annotated(s *Shape, keys ...string) *Shape {
	annotations := Fields{}
	for _, key := range keys {
		annotations[key] = Leaf
	}
	return Union(s, &Shape{Fields: Fields{MetadataField: {Fields: Fields{AnnotationsField: {Fields: annotations}}}}})
}

// Union selects what either of two shapes selects.
func Union(a, b *Shape) *Shape {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	case a == Deep || b == Deep:
		return Deep
	}
	out := &Shape{Fields: make(Fields, len(a.Fields)+len(b.Fields)), Rest: Union(a.Rest, b.Rest), Names: a.Names || b.Names}
	for name := range a.Fields {
		out.Fields[name] = Union(a.of(name), b.of(name))
	}
	for name := range b.Fields {
		out.Fields[name] = Union(a.of(name), b.of(name))
	}
	return out
}

var (
	// Leaf is a scalar, or a map or list of scalars.
	Leaf = &Shape{Rest: &Shape{}}

	// Deep is the shape of a value of any depth.
	Deep = func() *Shape {
		s := &Shape{}
		s.Rest = s
		return s
	}()
)
