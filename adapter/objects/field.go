package objects

import (
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Warn adds a warning about a value of the object being read.
func (r *Reader) Warn(code apportionv1.WarningCode, v *Value, format string, args ...any) {
	doc := r.Doc
	r.Warnings.Add(code, func() string { return Place(doc, v) }, format, args...)
}

// WarnDropped adds a warning that something was left out.
func (r *Reader) WarnDropped(v *Value, format string, args ...any) {
	r.Warn(apportionv1.WarningCode_WARNING_CODE_DROPPED, v, format, args...)
}

// Each method below reads a value of one type. An absent value gives the zero value; a wrong one adds a problem and gives the zero value.

// TextAt reads a text.
func (r *Reader) TextAt(v *Value) string {
	if v == nil {
		return ""
	}
	if v.Type != Text && v.Type != Word {
		r.Found.Add(r.Doc, v, "not a text")
		return ""
	}
	return v.Text
}

// FlagAt reads true or false; nil: absent.
func (r *Reader) FlagAt(v *Value) *bool {
	if v == nil {
		return nil
	}
	flag, ok := v.Truth()
	if !ok {
		r.Found.Add(r.Doc, v, "neither true nor false%s", Shown(v))
		return nil
	}
	return &flag
}

// WholeAt reads a whole number of 32 bits.
func (r *Reader) WholeAt(v *Value) int32 {
	if v == nil {
		return 0
	}
	parsed, err := strconv.ParseInt(v.Text, 10, 32)
	if v.Type != Number || err != nil {
		r.Found.Add(r.Doc, v, "not a whole number between %d and %d%s", math.MinInt32, math.MaxInt32, Shown(v))
		return 0
	}
	return int32(parsed)
}

// CountAt reads a whole number that is not negative.
func (r *Reader) CountAt(v *Value) uint32 {
	count := r.WholeAt(v)
	if count < 0 {
		r.Found.Add(r.Doc, v, "negative: %d", count)
		return 0
	}
	return uint32(count)
}

// MomentAt reads a time in Unix nanoseconds.
func (r *Reader) MomentAt(v *Value) int64 {
	if v == nil {
		return 0
	}
	moment, err := time.Parse(time.RFC3339, v.Text)
	if v.Type != Text || err != nil {
		r.Found.Add(r.Doc, v, "not a time like 2006-01-02T15:04:05Z%s", Shown(v))
		return 0
	}
	if year := moment.UTC().Year(); year < 1678 || year > 2261 {
		r.Found.Add(r.Doc, v, "not between the years 1678 and 2261%s", Shown(v))
		return 0
	}
	return moment.UnixNano()
}

// TextsAt reads a list of texts.
func (r *Reader) TextsAt(v *Value) []string {
	if !r.Is(v, List) {
		return nil
	}
	var texts []string
	for _, item := range v.Items {
		texts = append(texts, r.TextAt(item))
	}
	return texts
}

// QuantityAt reads a quantity, which must not be negative.
func (r *Reader) QuantityAt(v *Value) (resource.Quantity, bool) {
	if v.Type != Text && v.Type != Number {
		r.Found.Add(r.Doc, v, "not a quantity")
		return resource.Quantity{}, false
	}
	q, err := Quantity(v.Text)
	if err != nil {
		r.Found.Add(r.Doc, v, "%v", err)
		return resource.Quantity{}, false
	}
	if q.Sign() < 0 {
		r.Found.Add(r.Doc, v, "negative: %q", v.Text)
		return resource.Quantity{}, false
	}
	return q, true
}

// Is reports whether v is present and has a kind, and adds a problem if it has another one.
func (r *Reader) Is(v *Value, want Type) bool {
	if v == nil {
		return false
	}
	if v.Type == want {
		return true
	}
	if want == List {
		r.Found.Add(r.Doc, v, "not a list")
	} else {
		r.Found.Add(r.Doc, v, "not an object")
	}
	return false
}

// Shown returns a scalar for a message.
func Shown(v *Value) string {
	switch v.Type {
	case Text, Word, Number, Boolean:
		return ": " + strconv.Quote(v.Text)
	case Null, List, Map, Skipped:
	}
	return ""
}
