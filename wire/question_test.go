package wire_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

func TestEveryKindOfStepAndOfAnswerHasItsQuestion(t *testing.T) {
	fields := (&apportionv1.Step{}).ProtoReflect().Descriptor().Oneofs().ByName("step").Fields()
	for i := range fields.Len() {
		step, name := &apportionv1.Step{}, string(fields.Get(i).Name())
		step.ProtoReflect().Set(fields.Get(i), step.ProtoReflect().NewField(fields.Get(i)))
		q := wire.QuestionOf(step)
		require.NotNil(t, q, "no question answers the step %s", name)
		require.Equal(t, name, q.Name)
		require.Contains(t, wire.Questions, q)
	}
	require.Len(t, wire.Questions, fields.Len())
	require.Nil(t, wire.QuestionOf(nil))
	require.Nil(t, wire.QuestionOf(&apportionv1.Step{}))

	// Any step may fail, and steps without a result are answered with done.
	shared := []string{"error", "done"}
	kinds := (&apportionv1.Answer{}).ProtoReflect().Descriptor().Oneofs().ByName("answer").Fields()
	for i := range kinds.Len() {
		name := string(kinds.Get(i).Name())
		named := func(q *wire.Question) bool { return q.Name == name }
		require.NotEqual(t, slices.Contains(shared, name), slices.ContainsFunc(wire.Questions, named), "the answer %s", name)
	}
}
