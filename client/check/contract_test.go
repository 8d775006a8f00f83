package check_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
)

// everyQuestion asks all kinds of questions, and changes the state in every way at the end.
func everyQuestion(t *testing.T) *apportionv1.SimulateRequest {
	t.Helper()
	data, err := os.ReadFile("../../testdata/conformance/Simulate/every-kind-of-step/1.request.json")
	require.NoError(t, err)
	request := &apportionv1.SimulateRequest{}
	require.NoError(t, protojson.Unmarshal(data, request))
	policy := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(preset), policy))
	request.Input.Rule = &apportionv1.Input_Policy{Policy: policy}
	// Questions come first: answers after a change are not checked.
	slices.SortStableFunc(request.GetSteps(), func(l, r *apportionv1.Step) int { return cmp.Compare(changes(l), changes(r)) })
	return request
}

// changes is 1 for a step that changes the state.
func changes(step *apportionv1.Step) int {
	switch step.GetStep().(type) {
	case *apportionv1.Step_Shares, *apportionv1.Step_Jobs, *apportionv1.Step_Allocatable, *apportionv1.Step_Preemptive,
		*apportionv1.Step_Reclaim, *apportionv1.Step_Preempt, *apportionv1.Step_Order, *apportionv1.Step_Nodes, *apportionv1.Step_Inspect,
		*apportionv1.Step_Explain, *apportionv1.Step_Plan, *apportionv1.Step_Remedies, *apportionv1.Step_Mark, *apportionv1.Step_Enqueue,
		*apportionv1.Step_Evictable, *apportionv1.Step_Forecast:
		return 0
	}
	return 1
}

// TestEveryFieldOfTheContractIsCheckedOrListed walks the contract: of each field of a response a mutant is refused, or the field, or one
// that holds it, is on the list of what was not checked, or must be absent. A field that is added to the contract fails until the checker
// has it.
func TestEveryFieldOfTheContractIsCheckedOrListed(t *testing.T) {
	raced.Skip(t)
	count, present := newTally(), map[string]bool{}
	look := func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		response := answered(t, r)
		truth, err := check.Response(r, response)
		require.NoError(t, err)
		for _, u := range truth.Unchecked {
			count.unchecked[bare(u.Field)] = u.Why
		}
		for _, m := range mutants(response.ProtoReflect(), "") {
			path := positions.ReplaceAllString(m.path, "")
			present[path] = present[path] || m.kind == "cleared" || m.kind == "shorter"
			if count.found[path] {
				continue
			}
			m.do()
			report, err := check.Response(r, response)
			require.NoError(t, err)
			count.found[path] = len(report.Faults) > 0
			m.undo()
		}
	}
	look(t, everyQuestion(t))
	eachCase(t, 249, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		r.Steps = append(r.Steps, fairQuestions(r.GetInput().GetSnapshot(), 4)...)
		look(t, r)
	})
	for _, policy := range policies {
		s := generate.Snapshot(generate.Shape{Queues: 5, Jobs: 8, Tasks: 30, Nodes: 4, Seed: 1, Depth: 1, Dimensions: 3})
		look(t, asked(t, s, policy, fairQuestions(s, 3)...))
	}
	covered := func(path string) bool {
		if count.found[path] || listed(&check.Report{Unchecked: unchecked(count)}, path) {
			return true
		}
		for at := path; strings.Contains(at, "."); {
			if at = at[:strings.LastIndex(at, ".")]; count.found[at] && !present[at] {
				return true
			}
		}
		return false
	}
	var missing []string
	fields := fieldsOf((&apportionv1.SimulateResponse{}).ProtoReflect().Descriptor(), "")
	for field := range count.unchecked {
		require.Contains(t, fields, field, "the list names a field that the contract does not have")
	}
	for _, path := range fields {
		if !covered(path) {
			missing = append(missing, path)
		}
	}
	require.Empty(t, missing, "fields that are neither checked nor on the list")
}

func unchecked(c *tally) []check.Unchecked {
	var list []check.Unchecked
	for field, why := range c.unchecked {
		list = append(list, check.Unchecked{Field: field, Why: why})
	}
	return list
}

// fieldsOf lists the paths of all fields of a message, but of those of other packages.
func fieldsOf(m protoreflect.MessageDescriptor, path string) []string {
	var list []string
	fields := m.Fields()
	for i := range fields.Len() {
		at := strings.TrimPrefix(path+"."+string(fields.Get(i).Name()), ".")
		list = append(list, at)
		if inner := fields.Get(i).Message(); inner != nil && inner.ParentFile().Package() == m.ParentFile().Package() && strings.Count(at, ".") < 10 {
			list = append(list, fieldsOf(inner, at)...)
		}
	}
	return list
}
