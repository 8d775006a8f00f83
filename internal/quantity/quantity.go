// Package quantity converts between the amounts of a Resource and Kubernetes quantities: 500m, 4Gi, 8.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
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
	if amount, ok := thousandths(text); ok {
		if whole(dimension) {
			amount = amount/1000 + min(amount%1000, 1)
		}
		return float64(amount), nil
	}
	number, err := Number(text)
	if err != nil {
		return 0, err
	}
	if number.Sign() < 0 {
		return 0, fmt.Errorf("negative: %q", text)
	}
	if !whole(dimension) {
		number.Mul(number, thousand)
	}
	amount, fits := RoundUp(number)
	if !fits {
		return 0, fmt.Errorf("too large: %q", text)
	}
	return float64(amount), nil
}

var thousand = big.NewRat(1000, 1)

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
		return inBinary(int64(rounded))
	case dimension == "pods":
		return decimals(amount, 3)
	case storage(dimension) && math.Mod(rounded, 1000) == 0:
		return inBinary(int64(rounded / 1000))
	case rounded == amount:
		return inDecimal(int64(amount), milli)
	}
	return decimals(amount/1000, 3)
}

// Short formats an amount for display, in people's units: cores, devices and pods with at most two decimals, less than one with three if
// that is exact; bytes in the largest binary unit that divides them, or a larger one where that takes five digits, with at most two
// decimals.
func Short(dimension string, amount float64) string { return UnitOf(dimension, amount).Format(amount) }

// Alike formats amounts of one dimension that are read together: as Short does, but all in one unit.
func Alike(dimension string, amounts ...float64) []string {
	unit, list := UnitOf(dimension, amounts...), make([]string, len(amounts))
	for i, amount := range amounts {
		list[i] = unit.Format(amount)
	}
	return list
}

// Unit is a unit for amounts of a dimension. Amounts of one resource in a sentence have one unit.
type Unit struct {
	// size is the number of the contract's units in it, suffix what follows numbers of it.
	size   float64
	suffix string
	// exact says that numbers have all their decimals; otherwise they have two, or three below one core or device.
	exact, bytes bool
	// least: amounts that two decimals would show as 0 are shown as less than 0.01.
	least bool
}

// UnitOf returns the unit in which Short shows amounts of a dimension. Where they differ in it, it is the largest of theirs that two
// decimals of every amount are enough for, and otherwise the smallest.
func UnitOf(dimension string, amounts ...float64) Unit {
	one := 1000.0
	if whole(dimension) {
		one = 1
	}
	if dimension != "memory" && !storage(dimension) {
		return Unit{size: one}
	}
	least, most := len(binary), -1
	for _, amount := range amounts {
		if amount != 0 && !math.IsInf(amount, 0) && !math.IsNaN(amount) {
			own := binaryOf(amount / one)
			least, most = min(least, own), max(most, own)
		}
	}
	if most < 0 {
		return Unit{size: one, bytes: true}
	}
	for at := most; at > least; at-- {
		if unit := unitAt(at, one); unit.holds(100, amounts) {
			return unit
		}
	}
	return unitAt(least, one)
}

// UnitOfText returns the unit for amounts of a dimension in sentences: that of UnitOf, or, where the largest amount has more than six
// digits in it, that of UnitOfTable.
func UnitOfText(dimension string, amounts ...float64) Unit {
	unit := UnitOf(dimension, amounts...)
	for _, amount := range amounts {
		if !math.IsInf(amount, 0) && math.Abs(amount)/unit.size >= mostDigits {
			return UnitOfTable(dimension, amounts...)
		}
	}
	return unit
}

// mostDigits bounds the amounts of a unit: people read no more than six digits.
const mostDigits = 1e6

// UnitOfTable returns the unit for amounts of a dimension in a table: that of UnitOf, or, where two decimals of it are not enough or the
// largest amount has more than six digits in it, that of the amount in the middle, or the smallest larger one in which six digits do.
func UnitOfTable(dimension string, amounts ...float64) Unit {
	unit := UnitOf(dimension, amounts...)
	var sorted []float64
	for _, amount := range amounts {
		if amount != 0 && !math.IsInf(amount, 0) && !math.IsNaN(amount) {
			sorted = append(sorted, math.Abs(amount))
		}
	}
	if !unit.bytes || len(sorted) == 0 {
		return unit
	}
	slices.Sort(sorted)
	middle, largest := sorted[len(sorted)/2], sorted[len(sorted)-1]
	if unit.holds(100, amounts) && largest/unit.size < mostDigits {
		return unit
	}
	at, one := 0, unit.size/math.Pow(1024, float64(slices.Index(binary[:], unit.suffix)))
	for at < len(binary)-1 && (middle/unitAt(at, one).size >= 1024 || largest/unitAt(at, one).size >= mostDigits) {
		at++
	}
	unit = unitAt(at, one)
	unit.least = true
	return unit
}

// Exactly returns the unit, or a smaller one, in which Parse reads the same amounts. Fractions of a thousandth of a core, of a device or of
// a byte are dropped.
func (u Unit) Exactly(amounts ...float64) Unit {
	for at := slices.Index(binary[:], u.suffix); u.bytes && at > 0 && !u.holds(100, amounts); at-- {
		u.size, u.suffix = u.size/1024, binary[at-1]
	}
	u.exact = true
	return u
}

// Rounded returns the unit for amounts that need not be read as the same: with at most two decimals.
func (u Unit) Rounded() Unit {
	u.exact = false
	return u
}

// Format formats an amount in the unit.
func (u Unit) Format(amount float64) string {
	if text, special := formatSpecial(amount); special {
		return text
	}
	var text string
	switch number := amount / u.size; {
	case u.bytes:
		text = decimals(number, 2)
	case u.size > 1 && (u.exact || math.Abs(number) < 1 && math.Trunc(amount) == amount):
		text = decimals(number, 3)
	default:
		text = decimals(number, 2)
	}
	switch {
	case text != "0":
		return text + u.suffix
	case u.least && amount > 0:
		return "<0.01" + u.suffix
	case u.least && amount < 0:
		return ">-0.01" + u.suffix
	}
	return text
}

// holds reports whether all amounts are multiples of a part of the unit.
func (u Unit) holds(parts float64, amounts []float64) bool {
	return !slices.ContainsFunc(amounts, func(amount float64) bool {
		number := amount / u.size * parts
		return math.Trunc(number) != number && !math.IsNaN(number) && !math.IsInf(number, 0)
	})
}

func unitAt(at int, one float64) Unit {
	return Unit{size: one * math.Pow(1024, float64(at)), suffix: binary[at], bytes: true}
}

// binaryOf returns the position of the unit for bytes that are shown alone.
func binaryOf(amount float64) int {
	unit := 0
	for unit < len(binary)-1 && (math.Abs(amount) >= 10*1024 || math.Abs(amount) >= 1024 && math.Mod(amount, 1024) == 0) {
		amount /= 1024
		unit++
	}
	return unit
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

// The units of numbers: each is 1000 times the one before it in decimal, and 1024 times in binary, which are the units of bytes.
var (
	decimal = [...]string{"n", "u", "m", "", "k", "M", "G", "T", "P", "E"}
	binary  = [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
)

// milli and one are places in decimal.
const (
	milli = 2
	one   = 3
)

// maxLength and maxExponent are beyond those of any real quantity. They bound what it costs to read one.
const maxLength, maxExponent = 100, 100

var (
	errUnreal = errors.New("not a quantity: longer, or with a larger exponent, than any real one")
	errForm   = errors.New("not a quantity")
)

// Check refuses a text that is longer, or has a larger exponent, than any real quantity. Kubernetes' reader would compute it.
func Check(text string) error {
	if len(text) > maxLength {
		return errUnreal
	}
	if e := strings.LastIndexAny(text, "eE"); e >= 0 {
		if _, err := exponentOf(text[e+1:]); errors.Is(err, errUnreal) {
			return err
		}
	}
	return nil
}

// exponentOf reads an exponent of ten.
func exponentOf(text string) (int, error) {
	exponent, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && max(exponent, -exponent) > maxExponent:
		return 0, errUnreal
	case err != nil:
		return 0, errForm
	}
	return exponent, nil
}

// Number reads the number that a quantity of Kubernetes means: decimal digits, with a fraction, and then a unit or an exponent of ten.
func Number(text string) (*big.Rat, error) {
	if err := Check(text); err != nil {
		return nil, err
	}
	unsigned := strings.TrimLeft(text, "+-")
	suffix := strings.TrimLeft(unsigned, "0123456789.")
	scale, err := scaleOf(suffix)
	number, fine := new(big.Rat).SetString(strings.TrimSuffix(text, suffix))
	if err != nil || !fine || len(text)-len(unsigned) > 1 {
		return nil, fmt.Errorf("%w: %q", errForm, text)
	}
	return number.Mul(number, scale), nil
}

// scaleOf returns the factor that follows the digits of a number.
func scaleOf(suffix string) (*big.Rat, error) {
	if at := slices.Index(decimal[:], suffix); at >= 0 {
		return power(1000, at-one), nil
	}
	if at := slices.Index(binary[:], suffix); at >= 0 {
		return power(1024, at), nil
	}
	if suffix[0] != 'e' && suffix[0] != 'E' {
		return nil, errForm
	}
	exponent, err := exponentOf(suffix[1:])
	return power(10, exponent), err
}

func power(base int64, exponent int) *big.Rat {
	n := big.NewInt(int64(max(exponent, -exponent)))
	scale := new(big.Rat).SetInt(n.Exp(big.NewInt(base), n, nil))
	if exponent < 0 {
		scale.Inv(scale)
	}
	return scale
}

// thousandths returns the thousandths of a number that is written as most are, with digits and a unit alone; false for any other, and for
// one that does not fit into 64 bits. It takes a twelfth of Number's time: see BenchmarkParse.
func thousandths(text string) (int64, bool) {
	unit := strings.TrimLeft(text, "0123456789")
	factor := units[unit]
	number, err := strconv.ParseInt(text[:len(text)-len(unit)], 10, 64)
	return number * factor, err == nil && factor > 0 && number <= math.MaxInt64/factor
}

// units are the thousandths of units.
var units = map[string]int64{
	"m": 1, "": 1e3, "k": 1e6, "M": 1e9, "G": 1e12, "Ki": 1e3 << 10, "Mi": 1e3 << 20, "Gi": 1e3 << 30,
}

// RoundUp returns a number that is not negative, rounded up to a whole one; false if that does not fit into 64 bits.
func RoundUp(number *big.Rat) (int64, bool) {
	whole, rest := new(big.Int).QuoRem(number.Num(), number.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64(), whole.IsInt64()
}

// inDecimal writes an amount of a unit in the largest unit of which it is a whole number.
func inDecimal(amount int64, unit int) string {
	if amount == 0 {
		return "0"
	}
	for amount%1000 == 0 && unit < len(decimal)-1 {
		amount /= 1000
		unit++
	}
	return strconv.FormatInt(amount, 10) + decimal[unit]
}

// inBinary writes a number of bytes in the largest binary unit of which it is a whole number; less than 1 Ki in decimal units.
func inBinary(bytes int64) string {
	if -1024 < bytes && bytes < 1024 {
		return inDecimal(bytes, one)
	}
	unit := 0
	for bytes%1024 == 0 && unit < len(binary)-1 {
		bytes /= 1024
		unit++
	}
	return strconv.FormatInt(bytes, 10) + binary[unit]
}
