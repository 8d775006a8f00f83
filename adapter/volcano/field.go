package volcano

import (
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Each method below reads a value of one type. An absent value gives the zero value; a wrong one adds a problem and gives the zero value.

// textAt reads a text.
func (r *reader) textAt(v *value) string {
	if v == nil {
		return ""
	}
	if v.kind != text && v.kind != word {
		r.found.add(r.doc, v, "not a text")
		return ""
	}
	return v.text
}

// flagAt reads true or false; nil: absent.
func (r *reader) flagAt(v *value) *bool {
	if v == nil {
		return nil
	}
	flag, ok := v.truth()
	if !ok {
		r.found.add(r.doc, v, "neither true nor false%s", shown(v))
		return nil
	}
	return &flag
}

// wholeAt reads a whole number of 32 bits.
func (r *reader) wholeAt(v *value) int32 {
	if v == nil {
		return 0
	}
	parsed, err := strconv.ParseInt(v.text, 10, 32)
	if v.kind != number || err != nil {
		r.found.add(r.doc, v, "not a whole number between %d and %d%s", math.MinInt32, math.MaxInt32, shown(v))
		return 0
	}
	return int32(parsed)
}

// countAt reads a whole number that is not negative.
func (r *reader) countAt(v *value) uint32 {
	count := r.wholeAt(v)
	if count < 0 {
		r.found.add(r.doc, v, "negative: %d", count)
		return 0
	}
	return uint32(count)
}

// momentAt reads a time in Unix nanoseconds.
func (r *reader) momentAt(v *value) int64 {
	if v == nil {
		return 0
	}
	moment, err := time.Parse(time.RFC3339, v.text)
	if v.kind != text || err != nil {
		r.found.add(r.doc, v, "not a time like 2006-01-02T15:04:05Z%s", shown(v))
		return 0
	}
	if year := moment.UTC().Year(); year < 1678 || year > 2261 {
		r.found.add(r.doc, v, "not between the years 1678 and 2261%s", shown(v))
		return 0
	}
	return moment.UnixNano()
}

// textsAt reads a list of texts.
func (r *reader) textsAt(v *value) []string {
	if !r.is(v, array) {
		return nil
	}
	var texts []string
	for _, item := range v.items {
		texts = append(texts, r.textAt(item))
	}
	return texts
}

// resourcesAt reads quantities by resource name. nil: absent. Names that Volcano drops are left out.
func (r *reader) resourcesAt(v *value) *amounts {
	if !r.is(v, object) {
		return nil
	}
	list := &amounts{entries: make([]entry, 0, len(v.items)+1)}
	for _, item := range v.items {
		q, ok := r.quantityAt(item)
		if !ok {
			continue
		}
		dim, fresh := r.units.of(item.key)
		if dim.unit == dropped {
			if fresh {
				r.warnDropped(item, "%q is not a resource that Volcano accounts for", item.key)
			}
			continue
		}
		amount := amountOf(&q, dim.unit)
		if overflows(&q, dim.unit) {
			if amount < 0 {
				r.found.add(r.doc, item, "exceeds Volcano's range: %q", item.text)
				continue
			}
			r.warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, item,
				"exceeds Volcano's range; it reads %q as %g", item.text, amount)
		}
		place, _ := list.at(dim.name)
		place.amount = amount
	}
	return list
}

// quantityAt reads a quantity, which must not be negative.
func (r *reader) quantityAt(v *value) (resource.Quantity, bool) {
	if v.kind != text && v.kind != number {
		r.found.add(r.doc, v, "not a quantity")
		return resource.Quantity{}, false
	}
	q, err := objects.Quantity(v.text)
	if err != nil {
		r.found.add(r.doc, v, "%v", err)
		return resource.Quantity{}, false
	}
	if q.Sign() < 0 {
		r.found.add(r.doc, v, "negative: %q", v.text)
		return resource.Quantity{}, false
	}
	return q, true
}

// is reports whether v is present and has a kind, and adds a problem if it has another one.
func (r *reader) is(v *value, want kind) bool {
	if v == nil {
		return false
	}
	if v.kind == want {
		return true
	}
	if want == array {
		r.found.add(r.doc, v, "not a list")
	} else {
		r.found.add(r.doc, v, "not an object")
	}
	return false
}

// shown returns a scalar for a message.
func shown(v *value) string {
	switch v.kind {
	case text, word, number, boolean:
		return ": " + strconv.Quote(v.text)
	case null, array, object, skipped:
	}
	return ""
}
