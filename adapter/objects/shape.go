package objects

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

type Fields = map[string]*Shape

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
