package render

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestEveryKindOfAnswerHasAView(t *testing.T) {
	fields := (&apportionv1.Answer{}).ProtoReflect().Descriptor().Oneofs().ByName("answer").Fields()
	var kinds []protoreflect.Name
	for i := range fields.Len() {
		kinds = append(kinds, fields.Get(i).Name())
	}
	require.ElementsMatch(t, kinds, slices.Collect(maps.Keys(views)), "a row of views shows each kind of answer")
}
