package scenario

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/internal/tree"
)

// word reads one of the values of an enum into a place.
func word[E interface {
	~int32
	protoreflect.Enum
}](place *E) tree.Reader {
	return func(n tree.Node) error {
		number, err := enum((*place).Descriptor(), n)
		*place = E(number)
		return err
	}
}

// enum returns one of the values of an enum, written in lower case without their common prefix.
func enum(descriptor protoreflect.EnumDescriptor, n tree.Node) (protoreflect.EnumNumber, error) {
	values := descriptor.Values()
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
	return 0, n.Fault("one of these is expected: %s", strings.Join(words, ", "))
}
