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
