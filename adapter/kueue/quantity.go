package kueue

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// quantity is a quantity as it is written.
type quantity string

// UnmarshalJSON accepts a text or a number. null is 0, as in Kubernetes.
func (q *quantity) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); string(data) == "null" {
		*q = "0"
		return nil
	}
	if len(data) > 0 && data[0] != '"' {
		*q = quantity(data)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*q = quantity(text)
	return nil
}

// cpu is the resource that is counted in thousandths.
const cpu = "cpu"

var (
	unlimitedCPU = resource.NewQuantity(math.MaxInt64/1000, resource.DecimalSI)
	unlimited    = resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
)

// amountOf returns the amount of a resource: thousandths of a CPU, whole units of everything else, rounded up; from MaxInt64 on unlimited.
func amountOf(name string, q *resource.Quantity) int64 {
	switch {
	case name == cpu && q.Cmp(*unlimitedCPU) >= 0, name != cpu && q.Cmp(*unlimited) >= 0:
		return math.MaxInt64
	case name == cpu:
		return q.MilliValue()
	}
	return q.Value()
}

// amount reads the amount of a resource, which must not be negative.
func (r *reader) amount(name string, q quantity, path string) int64 {
	parsed, ok := r.parse(q, path)
	if !ok {
		return 0
	}
	if parsed.Sign() < 0 {
		r.Fault(path, "%s is negative", q)
		return 0
	}
	return amountOf(name, &parsed)
}

// parse reads a quantity.
func (r *reader) parse(q quantity, path string) (resource.Quantity, bool) {
	parsed, err := objects.Quantity(strings.TrimSpace(string(q)))
	if err != nil {
		r.Fault(path, "%v", err)
	}
	return parsed, err == nil
}

// quantity adds the amount of a resource, which must not be negative, to a Resource; nil is absent.
func (r *reader) quantity(to **apportionv1.Resource, name string, q *quantity, path string) {
	if q != nil {
		r.put(to, name, r.amount(name, *q, path), path)
	}
}

// consumed adds a usage, which may be a fraction of Kueue's unit. Thousandths are exact.
func (r *reader) consumed(to *apportionv1.Resource, name string, q *resource.Quantity) *apportionv1.Resource {
	if to == nil {
		to = &apportionv1.Resource{}
	}
	amount := q.AsApproximateFloat64()
	if name == cpu || wirekueue.Unit(name) > 1 {
		if amount *= 1000; math.Abs(amount) < 1<<53 {
			amount = float64(q.MilliValue())
		}
	}
	to.Dimensions, to.Amounts = append(to.Dimensions, r.number(name)), append(to.Amounts, amount)
	return to
}

// fairSharing has the fair weight of an object.
type fairSharing struct {
	Weight *quantity `json:"weight"`
}

// weight reads a fair weight; nil if it is absent.
func (r *reader) weight(f *fairSharing) *float64 {
	if f == nil || f.Weight == nil {
		return nil
	}
	const path = "spec.fairSharing.weight"
	parsed, ok := r.parse(*f.Weight, path)
	if ok && parsed.Sign() < 0 {
		r.Fault(path, "%s is negative", *f.Weight)
		return nil
	}
	return new(parsed.AsFloat64Slow())
}
