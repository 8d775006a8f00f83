package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/wire"
)

func TestStepsThatChangeTheStateAreThoseOfTheServer(t *testing.T) {
	var names []protoreflect.Name
	for _, q := range wire.Questions {
		// A mark changes what a rollback returns to, and an admission what the next one may take: both leave these answers as they are.
		if q.Changes && !q.Marks && !q.Decides() {
			names = append(names, protoreflect.Name(q.Name))
		}
	}
	require.ElementsMatch(t, names, changing)
}
