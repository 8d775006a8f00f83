package check

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/internal/wire"
)

func TestStepsThatChangeTheStateAreThoseOfTheServer(t *testing.T) {
	var names []protoreflect.Name
	for _, q := range wire.Questions {
		if q.Changes {
			names = append(names, protoreflect.Name(q.Name))
		}
	}
	require.ElementsMatch(t, names, append(beside, changing...))
}
