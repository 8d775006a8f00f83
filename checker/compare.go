package checker

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Report is what a check found.
type Report struct {
	// Faults has a sentence for each field that is wrong.
	Faults []string
	// Checked counts the fields that were compared.
	Checked int
	// Unchecked lists the fields of the response that were not, by field.
	Unchecked []Unchecked
	// Errors counts the answers that are errors: these say nothing that could be checked.
	Errors int
}

// Unchecked is a field of a response that was not checked.
type Unchecked struct {
	// Field is its path in the response, in which [*] stands for each entry of a list; answers and plugins have positions. The fields below
	// it were not checked either.
	Field string `json:"field"`
	// Why it was not checked.
	Why string `json:"why"`
}

// findings collects what is wrong and what is not checked.
type findings struct {
	// width is the number of dimensions.
	width     int
	faults    []string
	checked   int
	errors    int
	unchecked map[string]string
}

func (f *findings) report() *Report {
	r := &Report{Faults: f.faults, Checked: f.checked, Errors: f.errors}
	for _, field := range slices.Sorted(maps.Keys(f.unchecked)) {
		r.Unchecked = append(r.Unchecked, Unchecked{field, f.unchecked[field]})
	}
	return r
}

func (f *findings) wrong(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

var positions = regexp.MustCompile(`(answers|plugins)?\[\d+\]`)

// everyEntry puts [*] in place of positions but for those of answers and plugins.
func everyEntry(path string) string {
	return positions.ReplaceAllStringFunc(path, func(position string) string {
		if position[0] == '[' {
			return "[*]"
		}
		return position
	})
}

// omit notes that a field is not checked. The first reason stands.
func (f *findings) omit(path, why string) {
	if path = everyEntry(path); f.unchecked[path] == "" {
		f.unchecked[path] = why
	}
}

// omitted are fields that are not checked, by the names of message and field, with the reason.
type omitted map[string]string

// compare notes each field of a message that is not as in another, but for those that are omitted. Fields that the contract does not have
// are wrong.
func (f *findings) compare(path string, got, want proto.Message, but omitted) {
	f.message(path, got.ProtoReflect(), want.ProtoReflect(), but)
}

func (f *findings) message(path string, got, want protoreflect.Message, but omitted) {
	if resource, ok := got.Interface().(*apportionv1.Resource); ok {
		expected, _ := want.Interface().(*apportionv1.Resource)
		f.resource(path, resource, expected)
		return
	}
	if len(got.GetUnknown()) > 0 {
		f.wrong("%s has fields that the contract does not have", path)
	}
	if reason, ok := want.Interface().(*apportionv1.Reason); ok && reason.GetCode() == apportionv1.ReasonCode_REASON_CODE_NOT_CALM {
		given, _ := got.Interface().(*apportionv1.Reason)
		got = f.rounded(given, reason).ProtoReflect()
	}
	fields := got.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		why, omitted := but[strings.TrimPrefix(string(field.FullName()), contractPackage)]
		if !omitted && f.equal(field, got, want) {
			continue
		}
		at := string(field.Name())
		if path != "" {
			at = path + "." + at
		}
		if omitted {
			f.omit(at, why)
			continue
		}
		f.field(at, field, got, want, but)
	}
}

// contractPackage is what full names of the contract's fields begin with.
const contractPackage = "apportion.v1."

// equal reports whether a field has the same value in two messages, and counts it. It is false for what has parts to compare.
func (f *findings) equal(field protoreflect.FieldDescriptor, got, want protoreflect.Message) bool {
	switch {
	case field.IsList():
		return !got.Has(field) && !want.Has(field)
	case got.Has(field) != want.Has(field):
		return false
	case field.Message() != nil:
		return !got.Has(field)
	case !equalValues(got.Get(field), want.Get(field)):
		return false
	}
	f.checked++
	return true
}

// rounded is a reason with the numbers of another where they differ by rounding alone. Both are sums over the dimensions of one quotient
// each, none below 0: each quotient and each addition errs by at most 2^-53 of its result.
func (f *findings) rounded(got, want *apportionv1.Reason) *apportionv1.Reason {
	out, bound := proto.CloneOf(got), 2*float64(f.width)*0x1p-53
	if math.Abs(got.GetHave()-want.GetHave()) <= bound*want.GetHave() {
		out.Have = want.GetHave()
	}
	if math.Abs(got.GetLimit()-want.GetLimit()) <= bound*want.GetLimit() {
		out.Limit = want.GetLimit()
	}
	return out
}

func (f *findings) field(at string, field protoreflect.FieldDescriptor, got, want protoreflect.Message, but omitted) {
	switch {
	case field.IsList():
		f.list(at, field, got.Get(field).List(), want.Get(field).List(), but)
	case got.Has(field) != want.Has(field):
		f.wrong("%s is %s, not %s", at, written(field, got), written(field, want))
	case field.Message() == nil:
		f.value(at, got.Get(field), want.Get(field))
	case got.Has(field):
		f.message(at, got.Get(field).Message(), want.Get(field).Message(), but)
	}
}

func (f *findings) list(at string, field protoreflect.FieldDescriptor, got, want protoreflect.List, but omitted) {
	if got.Len() != want.Len() {
		f.wrong("%s has %d entries, not %d", at, got.Len(), want.Len())
	}
	for i := range min(got.Len(), want.Len()) {
		switch {
		case field.Message() != nil:
			f.message(at+"["+strconv.Itoa(i)+"]", got.Get(i).Message(), want.Get(i).Message(), but)
		case equalValues(got.Get(i), want.Get(i)):
			f.checked++
		default:
			f.value(fmt.Sprintf("%s[%d]", at, i), got.Get(i), want.Get(i))
		}
	}
}

func (f *findings) value(at string, got, want protoreflect.Value) {
	f.checked++
	if !equalValues(got, want) {
		f.wrong("%s is %v, not %v", at, got, want)
	}
}

func equalValues(got, want protoreflect.Value) bool {
	if x, ok := got.Interface().(float64); ok {
		return same(x, want.Float())
	}
	return got.Equal(want)
}

// written returns a field as faults write it.
func written(field protoreflect.FieldDescriptor, m protoreflect.Message) string {
	switch {
	case !m.Has(field):
		return "absent"
	case field.Message() != nil:
		return "present"
	}
	return m.Get(field).String()
}

// resource notes the dimensions in which a resource is not what it must be. A dimension that is not named is 0.
func (f *findings) resource(path string, got, want *apportionv1.Resource) {
	f.checked++
	if len(got.GetDimension()) != len(got.GetAmount()) {
		f.wrong("%s has %d dimensions and %d amounts", path, len(got.GetDimension()), len(got.GetAmount()))
		return
	}
	if len(got.ProtoReflect().GetUnknown()) > 0 {
		f.wrong("%s has fields that the contract does not have", path)
	}
	left := amountsOf(want)
	for i, d := range got.GetDimension() {
		if slices.Contains(got.GetDimension()[:i], d) || int(d) >= f.width {
			f.wrong("%s names dimension %d twice, or there is none", path, d)
		}
		if !same(got.GetAmount()[i], left[d]) {
			f.wrong("%s: dimension %d is %v, not %v", path, d, got.GetAmount()[i], left[d])
		}
		delete(left, d)
	}
	for _, d := range slices.Sorted(maps.Keys(left)) {
		if left[d] != 0 {
			f.wrong("%s: dimension %d is absent, not %v", path, d, left[d])
		}
	}
}
