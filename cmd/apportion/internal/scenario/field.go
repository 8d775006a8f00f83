package scenario

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/cmd/apportion/internal/document"
)

// source makes faults of a file.
type source struct{ file string }

func (s source) fault(n *yaml.Node, key, message string) error {
	return &document.FaultError{File: s.file, Line: n.Line, Key: key, Message: message}
}

// readers read the values of keys.
type readers map[string]func(key string, value *yaml.Node) error

// mapping reads each value of a mapping with the reader of its key. Keys that have none, or that come twice, are faults.
func (s source) mapping(n *yaml.Node, path string, read readers) error {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return s.fault(n, path, "keys are expected: "+known(read))
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		full := join(path, key.Value)
		reader, ok := read[key.Value]
		switch {
		case !ok:
			return s.fault(key, full, "no such key; there are "+known(read))
		case seen[key.Value]:
			return s.fault(key, full, "named twice")
		}
		seen[key.Value] = true
		if err := reader(full, value); err != nil {
			return err
		}
	}
	return nil
}

func known(read readers) string { return strings.Join(slices.Sorted(maps.Keys(read)), ", ") }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// text reads a text into a place.
func (s source) text(place *string) func(string, *yaml.Node) error {
	return func(key string, n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || isNull(n) {
			return s.fault(n, key, "a text is expected")
		}
		*place = n.Value
		return nil
	}
}

// texts reads one text, or a list of them.
func (s source) texts(place *[]string) func(string, *yaml.Node) error {
	return func(key string, n *yaml.Node) error {
		items := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			items = n.Content
		}
		*place = make([]string, len(items))
		for i, item := range items {
			if err := s.text(&(*place)[i])(key, item); err != nil {
				return err
			}
		}
		return nil
	}
}

// flag reads true or false.
func (s source) flag(place *bool) func(string, *yaml.Node) error {
	return func(key string, n *yaml.Node) error {
		if n.ShortTag() != "!!bool" || n.Decode(place) != nil {
			return s.fault(n, key, "neither true nor false")
		}
		return nil
	}
}

// whole reads a whole number that fits into its place.
func whole[N int32 | uint32](s source, place *N) func(string, *yaml.Node) error {
	return func(key string, n *yaml.Node) error {
		number, err := strconv.ParseInt(n.Value, 10, 64)
		if n.ShortTag() != "!!int" || err != nil || int64(N(number)) != number {
			return s.fault(n, key, "not a whole number that is possible here: "+n.Value)
		}
		*place = N(number)
		return nil
	}
}

// word reads one of the values of an enum into a place.
func word[E interface {
	~int32
	protoreflect.Enum
}](s source, place *E) func(string, *yaml.Node) error {
	return func(key string, n *yaml.Node) error {
		number, err := s.enum((*place).Descriptor(), key, n)
		*place = E(number)
		return err
	}
}

// enum reads one of the values of an enum, written in lower case without their common prefix.
func (s source) enum(enum protoreflect.EnumDescriptor, key string, n *yaml.Node) (protoreflect.EnumNumber, error) {
	values := enum.Values()
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	name := prefix + strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(n.Value))
	if value := values.ByName(protoreflect.Name(name)); n.Kind == yaml.ScalarNode && value != nil && value.Number() != 0 {
		return value.Number(), nil
	}
	var words []string
	for i := range values.Len() {
		if value := values.Get(i); value.Number() != 0 {
			words = append(words, strings.ToLower(strings.TrimPrefix(string(value.Name()), prefix)))
		}
	}
	slices.Sort(words)
	return 0, s.fault(n, key, "one of these is expected: "+strings.Join(words, ", "))
}
