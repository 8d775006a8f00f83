package check_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
)

var allMutants = flag.Bool("mutants", false, "try every mutant of every recorded answer")

// mutant is a change of one field: its path, what is changed, and how it is done and undone.
type mutant struct {
	path, kind string
	do, undo   func()
}

// mutants lists the changes of each field of a message, those below it too: numbers are one more and one less, floats twice as large, yes
// is no, an enum is the next value, a text has one more letter; what is absent is set and what is present cleared; lists lose and repeat an
// entry and exchange neighbours.
func mutants(m protoreflect.Message, path string) []mutant {
	var list []mutant
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		at := strings.TrimPrefix(path+"."+string(f.Name()), ".")
		switch {
		case f.IsList():
			list = append(list, ofList(m, f, at)...)
		case f.ContainingOneof() != nil && !f.ContainingOneof().IsSynthetic() && !m.Has(f):
		case m.Has(f):
			old := m.Get(f)
			list = append(list, mutant{at, "cleared", func() { m.Clear(f) }, func() { m.Set(f, old) }})
			if f.Message() != nil {
				list = append(list, mutants(old.Message(), at)...)
				continue
			}
			list = append(list, ofValue(old, at, func(v protoreflect.Value) { m.Set(f, v) })...)
		case f.Message() != nil:
			list = append(list, mutant{at, "set", func() { m.Set(f, m.NewField(f)) }, func() { m.Clear(f) }})
		default:
			undo := func() { m.Clear(f) }
			if f.HasPresence() {
				list = append(list, mutant{at, "set", func() { m.Set(f, f.Default()) }, undo})
			}
			for _, v := range ofValue(f.Default(), at, func(v protoreflect.Value) { m.Set(f, v) }) {
				list = append(list, mutant{at, v.kind, v.do, undo})
			}
		}
	}
	return list
}

func ofList(m protoreflect.Message, f protoreflect.FieldDescriptor, at string) []mutant {
	if !m.Has(f) {
		grow := func() {
			l := m.Mutable(f).List()
			if f.Message() != nil {
				l.AppendMutable()
			} else {
				l.Append(l.NewElement())
			}
		}
		return []mutant{{at, "longer", grow, func() { m.Clear(f) }}}
	}
	var list []mutant
	l := m.Get(f).List()
	n := l.Len()
	whole := make([]protoreflect.Value, n)
	for i := range n {
		whole[i] = l.Get(i)
	}
	put := func(values []protoreflect.Value) {
		l.Truncate(0)
		for _, v := range values {
			l.Append(v)
		}
	}
	undo := func() { put(whole) }
	replace := func(kind string, values []protoreflect.Value) {
		list = append(list, mutant{at, kind, func() { put(values) }, undo})
	}
	replace("shorter", whole[:n-1])
	replace("shorter", whole[1:])
	replace("longer", append(slices.Clone(whole), whole[n-1]))
	for i := range n - 1 {
		swapped := slices.Clone(whole)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		replace("exchanged", swapped)
	}
	for i := range n {
		entry := fmt.Sprintf("%s[%d]", at, i)
		if f.Message() != nil {
			list = append(list, mutants(whole[i].Message(), entry)...)
			continue
		}
		list = append(list, ofValue(whole[i], entry, func(v protoreflect.Value) { l.Set(i, v) })...)
	}
	return list
}

// ofValue lists the changes of one value.
func ofValue(old protoreflect.Value, at string, set func(protoreflect.Value)) []mutant {
	var list []mutant
	add := func(kind string, v any) {
		list = append(list, mutant{at, kind, func() { set(protoreflect.ValueOf(v)) }, func() { set(old) }})
	}
	switch v := old.Interface().(type) {
	case uint32:
		add("more", v+1)
		if v > 0 {
			add("less", v-1)
		}
	case uint64:
		add("more", v+1)
		if v > 0 {
			add("less", v-1)
		}
	case int32:
		add("more", v+1)
		add("less", v-1)
	case int64:
		add("more", v+1)
		add("less", v-1)
	case float64:
		if !math.IsInf(v, 0) {
			add("more", v+1)
			add("less", v-1)
		}
		add("twice", max(1, 2*v)*2)
		add("not a number", math.NaN())
	case bool:
		add("inverted", !v)
	case protoreflect.EnumNumber:
		add("another", v+1)
		if v > 0 {
			add("another", v-1)
		}
	case string:
		add("another", v+"1")
	}
	return list
}

var positions = regexp.MustCompile(`\[\d+\]`)

// entries is a path with [*] in place of positions, but for those of answers and plugins.
func entries(path string) string {
	path = positions.ReplaceAllString(path, "[*]$0")
	path = regexp.MustCompile(`(answers|plugins)\[\*\]`).ReplaceAllString(path, "$1")
	return regexp.MustCompile(`\[\*\]\[\d+\]`).ReplaceAllString(path, "[*]")
}

// bare is a path without positions.
func bare(path string) string {
	return positions.ReplaceAllString(strings.ReplaceAll(path, "[*]", ""), "")
}

// listed reports whether a field is among those that were not checked.
func listed(r *check.Report, path string) bool {
	path = entries(path)
	return slices.ContainsFunc(r.Unchecked, func(u check.Unchecked) bool {
		return path == u.Field || strings.HasPrefix(path, u.Field+".") || strings.HasPrefix(path, u.Field+"[")
	})
}

// plain is a response without what means nothing: amounts of 0, and the order of dimensions.
func plain(response *apportionv1.SimulateResponse) *apportionv1.SimulateResponse {
	out := proto.CloneOf(response)
	var walk func(m protoreflect.Message)
	walk = func(m protoreflect.Message) {
		if r, ok := m.Interface().(*apportionv1.Resource); ok && len(r.GetAmounts()) == len(r.GetDimensions()) {
			amounts := map[uint32]float64{}
			for i, d := range r.GetDimensions() {
				if r.GetAmounts()[i] != 0 || int(d) >= len(response.GetBasis().GetDimensions()) {
					amounts[d] = r.GetAmounts()[i]
				}
			}
			r.Dimensions, r.Amounts = slices.Sorted(maps.Keys(amounts)), nil
			for _, d := range r.GetDimensions() {
				r.Amounts = append(r.GetAmounts(), amounts[d])
			}
			return
		}
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.Message() == nil:
			case f.IsList():
				for i := range v.List().Len() {
					walk(v.List().Get(i).Message())
				}
			default:
				walk(v.Message())
			}
			return true
		})
	}
	walk(out.ProtoReflect())
	return out
}

// tally counts mutants by what became of them.
type tally struct {
	refused, listed, same map[string]int
	// found are the fields of which some mutant was refused.
	found map[string]bool
	// unlisted are the fields that reports name as not checked.
	unchecked map[string]string
}

func newTally() *tally {
	return &tally{map[string]int{}, map[string]int{}, map[string]int{}, map[string]bool{}, map[string]string{}}
}

func (c *tally) total() int {
	n := 0
	for _, counts := range []map[string]int{c.refused, c.listed, c.same} {
		for _, k := range counts {
			n += k
		}
	}
	return n
}

// try tries the mutants of a response, every n-th of them.
func (c *tally) try(t *testing.T, request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse, from, n int) {
	t.Helper()
	truth, err := check.Response(request, response)
	require.NoError(t, err)
	require.Empty(t, truth.Faults)
	for _, u := range truth.Unchecked {
		c.unchecked[bare(u.Field)] = u.Why
	}
	for i, m := range mutants(response.ProtoReflect(), "") {
		if (i+from)%n != 0 {
			continue
		}
		m.do()
		report, err := check.Response(request, response)
		require.NoError(t, err, "%s %s", m.path, m.kind)
		switch {
		case len(report.Faults) > 0:
			c.refused[m.kind]++
			c.found[positions.ReplaceAllString(m.path, "")] = true
		case listed(report, m.path) || listed(truth, m.path):
			c.listed[m.kind]++
		default:
			changed := plain(response)
			m.undo()
			paths := differences(plain(response).ProtoReflect(), changed.ProtoReflect(), "")
			for _, path := range paths {
				require.True(t, listed(report, path) || listed(truth, path), "%s %s: %s is changed, not found and not listed", m.path, m.kind, path)
			}
			if c.listed[m.kind]++; len(paths) == 0 {
				c.listed[m.kind]--
				c.same[m.kind]++
			}
			continue
		}
		m.undo()
	}
}

// fairQuestions asks about a snapshot what fair decides, verdicts that are not checked and a plan that is.
func fairQuestions(snapshot *apportionv1.Snapshot, most int) []*apportionv1.Step {
	steps := []*apportionv1.Step{
		{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Queues{Queues: &apportionv1.Selector{}}}}},
	}
	pending, number := &apportionv1.Selector{}, uint32(0)
	for _, j := range snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, task := range g.GetTasks() {
				if task.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING && len(pending.GetIndices()) < most {
					pending.Indices = append(pending.GetIndices(), number)
				}
				number++
			}
		}
	}
	if len(pending.GetIndices()) == 0 {
		return steps
	}
	return append(steps,
		&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: pending, Explain: true}}},
		&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{
			Claimant: &apportionv1.Selector{Indices: pending.GetIndices()[:1]}, Room: apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES,
		}}})
}

// preset is the policy `fair`.
const preset = `tiers { plugins { priority {} } plugins { gang {} } plugins { conformance {} } plugins { fair { base: FAIR_BASE_GUARANTEE } } }`

// TestEveryMutantIsFound changes each field of recorded answers, one at a time: a mutant is refused, or its field is on the list of what
// was not checked, or it means the same. With -mutants all of them are tried.
func TestEveryMutantIsFound(t *testing.T) {
	raced.Skip(t)
	count, every, stride := newTally(), 97, 13
	if *allMutants {
		every, stride = 41, 1
	}
	seed := 0
	eachCase(t, every, func(t *testing.T, r *apportionv1.SimulateRequest) {
		t.Helper()
		r.Steps = append(r.Steps, fairQuestions(r.GetInput().GetSnapshot(), 4)...)
		seed++
		count.try(t, r, answered(t, r), seed, stride)
	})
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			for seed := range uint64(3) {
				s := generate.Snapshot(generate.Shape{Queues: 5, Jobs: 8, Tasks: 30, Nodes: 4, Seed: seed, Depth: int(seed), Dimensions: 3, UIDs: true})
				r := asked(t, s, policy, fairQuestions(s, 3)...)
				count.try(t, r, answered(t, r), int(seed), stride)
			}
		})
	}
	t.Logf("%d mutants\nrefused %v\non the list %v\nthe same %v", count.total(), count.refused, count.listed, count.same)
	for _, field := range slices.Sorted(maps.Keys(count.unchecked)) {
		t.Logf("not checked: %s: %s", field, count.unchecked[field])
	}
}
