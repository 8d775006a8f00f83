// Package quantity converts between the amounts of a Resource and Kubernetes quantities: 500m, 4Gi, 8.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Unlimited is the text of +Infinity.
const Unlimited = "unlimited"

// whole says whether amounts of a dimension count ones; the others count thousandths.
func whole(dimension string) bool { return dimension == "memory" || dimension == "pods" }

// storage says whether a dimension counts thousandths of bytes.
func storage(dimension string) bool {
	return dimension == "ephemeral-storage" || strings.HasPrefix(dimension, "hugepages-")
}

// Parse parses a quantity as the amount of a dimension: cpu in milli-cores, memory in bytes, pods in ones, everything else in thousandths,
// with fractions rounded up as in Kubernetes.
func Parse(dimension, text string) (float64, error) {
	if text == Unlimited {
		return math.Inf(1), nil
	}
	q, err := Read(text)
	if err != nil {
		return 0, err
	}
	if q.Sign() < 0 {
		return 0, fmt.Errorf("negative: %q", text)
	}
	value, largest := q.MilliValue, largestMilli
	if whole(dimension) {
		value, largest = q.Value, largestWhole
	}
	// Kubernetes returns 0, or any number, for what does not fit into 64 bits.
	if q.Cmp(*largest) > 0 {
		return 0, fmt.Errorf("too large: %q", text)
	}
	return float64(value()), nil
}

var (
	largestWhole = resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
	largestMilli = resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
)

// Read reads a quantity as Kubernetes does. It refuses a text that is longer, or has a larger exponent, than any real quantity: Kubernetes
// computes 1e999999999 before it limits it.
func Read(text string) (resource.Quantity, error) {
	const maxLength, maxExponent = 100, 100
	long := len(text) > maxLength
	if e := strings.LastIndexAny(text, "eE"); !long && e >= 0 && e < len(text)-1 {
		exponent, err := strconv.ParseInt(text[e+1:], 10, 64)
		long = errors.Is(err, strconv.ErrRange) || exponent > maxExponent || exponent < -maxExponent
	}
	if long {
		return resource.Quantity{}, errors.New("not a quantity: longer, or with a larger exponent, than any real one")
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("not a quantity: %q", text)
	}
	return q, nil
}

// Format formats an amount so that Parse returns the same amount, to the thousandth of a unit (to the byte for memory).
func Format(dimension string, amount float64) string {
	if text, special := formatSpecial(amount); special {
		return text
	}
	rounded := math.Round(amount)
	switch {
	case math.Abs(rounded) >= math.MaxInt64:
		if !whole(dimension) {
			rounded /= 1000
		}
		return strconv.FormatFloat(rounded, 'e', -1, 64)
	case dimension == "memory":
		return resource.NewQuantity(int64(rounded), resource.BinarySI).String()
	case dimension == "pods":
		return decimals(amount, 3)
	case storage(dimension) && math.Mod(rounded, 1000) == 0:
		return resource.NewQuantity(int64(rounded/1000), resource.BinarySI).String()
	case rounded == amount:
		return resource.NewMilliQuantity(int64(amount), resource.DecimalSI).String()
	}
	return decimals(amount/1000, 3)
}

// Short formats an amount for display: at most two decimals, memory in a binary unit with at most four digits before them, less than one of
// anything else in thousandths if that is exact.
func Short(dimension string, amount float64) string {
	if text, special := formatSpecial(amount); special {
		return text
	}
	if dimension == "memory" {
		return shortBytes(amount)
	}
	if storage(dimension) {
		return shortBytes(amount / 1000)
	}
	if dimension == "pods" {
		return decimals(amount, 2)
	}
	if magnitude := math.Abs(amount); magnitude < 1000 && magnitude >= 1 && math.Trunc(amount) == amount {
		return strconv.FormatFloat(amount, 'f', 0, 64) + "m"
	}
	return decimals(amount/1000, 2)
}

// shortBytes writes bytes in the largest binary unit that divides them, or a larger one where that takes five digits.
func shortBytes(amount float64) string {
	units := [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	unit := 0
	for unit < len(units)-1 && (math.Abs(amount) >= 10*1024 || math.Abs(amount) >= 1024 && math.Mod(amount, 1024) == 0) {
		amount /= 1024
		unit++
	}
	return decimals(amount, 2) + units[unit]
}

func formatSpecial(amount float64) (text string, special bool) {
	switch {
	case math.IsNaN(amount):
		return "NaN", true
	case math.IsInf(amount, 1):
		return Unlimited, true
	case math.IsInf(amount, -1):
		return "-" + Unlimited, true
	}
	return "", false
}

// decimals writes a number with at most so many decimals, without trailing zeros.
func decimals(number float64, places int) string {
	text := strconv.FormatFloat(number, 'f', places, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}
