package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Bytes is a number of bytes, written as 1024, 64KiB, 2MiB or 1GiB.
type Bytes int64

var byteUnits = []struct {
	name string
	size Bytes
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1},
}

const bytesPattern = `^[0-9]+(B|KiB|MiB|GiB|TiB)?$`

var errBytes = errors.New("a number of bytes is expected, such as 4096, 64KiB or 16MiB")

// ParseBytes reads what String writes.
func ParseBytes(text string) (Bytes, error) {
	number, size := text, Bytes(1)
	for _, unit := range byteUnits {
		if rest, ok := strings.CutSuffix(text, unit.name); ok {
			number, size = rest, unit.size
			break
		}
	}
	count, err := strconv.ParseUint(number, 10, 63)
	if err != nil || Bytes(count) > math.MaxInt64/size {
		return 0, errBytes
	}
	return Bytes(count) * size, nil
}

// String gives the largest unit of which it is a whole number.
func (b Bytes) String() string {
	for _, unit := range byteUnits {
		if b >= unit.size && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

var (
	bytesType    = reflect.TypeFor[Bytes]()
	durationType = reflect.TypeFor[time.Duration]()
)

// durationPattern is what time.ParseDuration reads, without signs.
const durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`

// How booleans are written.
const (
	yes = "true"
	no  = "false"
)

var errBool = errors.New("true or false is expected")

var errDuration = errors.New("a duration is expected, such as 500ms, 25s or 1m30s")

// isScalar reports whether values of a type are written as one word.
func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
		return true
	default:
		return false
	}
}

// parseScalar sets a value to what a text says.
func parseScalar(text string, into reflect.Value) error {
	switch into.Type() {
	case bytesType:
		size, err := ParseBytes(text)
		into.SetInt(int64(size))
		return err
	case durationType:
		d, err := time.ParseDuration(text)
		if err != nil || strings.ContainsAny(text, "+-") || text == "0" {
			return errDuration
		}
		into.SetInt(int64(d))
		return nil
	}
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
	case reflect.Bool:
		if text != yes && text != no {
			return errBool
		}
		into.SetBool(text == yes)
	case reflect.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("a whole number is expected")
		}
		into.SetInt(n)
	default:
		return fmt.Errorf("no setting has type %s", into.Type())
	}
	return nil
}

// formatScalar gives the text of which parseScalar makes the value.
func formatScalar(v reflect.Value) string {
	switch {
	case v.Type() == bytesType:
		return Bytes(v.Int()).String()
	case v.Type() == durationType:
		return formatDuration(time.Duration(v.Int()))
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// formatDuration leaves out the units that are zero: 1m, not 1m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 && d >= time.Minute {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 && d >= time.Hour {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
