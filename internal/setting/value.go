package setting

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/duration"
)

// Bytes is a number of bytes, written as 1024, 64KiB, 2MiB or 1GiB.
type Bytes int64

var byteUnits = []struct {
	name string
	size Bytes
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1},
}

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
		return 0, errors.New(wantBytes)
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

// Form describes the notation of a type's values.
type Form struct {
	// Placeholder stands for the value in the help of flags, Description describes it in the reference.
	Placeholder, Description string
	// Tags are the tags of YAML scalars that may be a value. A text that YAML takes for something else must be quoted, so that a file means
	// the same to every reader.
	Tags []string
	// Fault is the text of the error for other scalars: what is expected.
	Fault string
	// Schema of the value in JSON Schema.
	Schema string
	// String returns the text that Parse reads.
	String func(reflect.Value) string
	// Parse sets a value to what a text says.
	Parse func(string, reflect.Value) error
}

// How booleans are written.
const (
	True  = "true"
	False = "false"
)

const (
	wantBytes    = "a number of bytes is expected, such as 4096, 64KiB or 16MiB"
	wantDuration = "a duration is expected, such as 500ms, 25s, 1m30s or 7d"
	wantBoolean  = "true or false is expected"
	wantNumber   = "a whole number is expected"
	textTag      = "!!str"
	numberTag    = "!!int"
)

var bytesForm = &Form{
	Placeholder: "BYTES", Description: "bytes, such as `4096`, `64KiB`, `16MiB` or `1GiB`", Tags: []string{numberTag, textTag},
	Fault:  wantBytes,
	Schema: `{"oneOf": [{"pattern": "^[0-9]+(B|KiB|MiB|GiB|TiB)?$", "type": "string"}, {"minimum": 0, "type": "integer"}]}`,
	String: func(v reflect.Value) string { return Bytes(v.Int()).String() },
	Parse: func(text string, into reflect.Value) error {
		size, err := ParseBytes(text)
		into.SetInt(int64(size))
		return err
	},
}

// durationForm is the form of duration.Parse without signs.
var durationForm = &Form{
	Placeholder: "DURATION", Description: "duration, such as `500ms`, `25s`, `1m30s` or `7d`", Tags: []string{textTag}, Fault: wantDuration,
	Schema: `{"type": "string", "pattern": "^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|ms|s|m|h|d)` +
		`(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|ms|s|m|h))*$"}`,
	String: func(v reflect.Value) string { return duration.Format(time.Duration(v.Int())) },
	Parse: func(text string, into reflect.Value) error {
		d, err := duration.Parse(text)
		if err != nil || strings.ContainsAny(text, "+-") || text == "0" {
			return errors.New(wantDuration)
		}
		into.SetInt(int64(d))
		return nil
	},
}

var booleanForm = &Form{
	Placeholder: "bool", Description: "`true` or `false`", Tags: []string{"!!bool"}, Fault: wantBoolean, Schema: `{"type": "boolean"}`,
	String: func(v reflect.Value) string { return strconv.FormatBool(v.Bool()) },
	Parse: func(text string, into reflect.Value) error {
		if text != True && text != False {
			return errors.New(wantBoolean)
		}
		into.SetBool(text == True)
		return nil
	},
}

var numberForm = &Form{
	Placeholder: "NUMBER", Description: "whole number", Tags: []string{numberTag}, Fault: wantNumber, Schema: `{"type": "integer"}`,
	String: func(v reflect.Value) string { return strconv.FormatInt(v.Int(), 10) },
	Parse: func(text string, into reflect.Value) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New(wantNumber)
		}
		into.SetInt(n)
		return nil
	},
}

var textForm = &Form{
	Placeholder: "TEXT", Description: "text", Tags: []string{textTag}, Fault: "a text is expected; put it into quotes",
	Schema: `{"type": "string"}`,
	String: reflect.Value.String,
	Parse:  func(text string, into reflect.Value) error { into.SetString(text); return nil },
}

// FormOf returns the form of a type whose values are written as one word, nil for other types.
func FormOf(t reflect.Type) *Form {
	switch {
	case t == reflect.TypeFor[Bytes]():
		return bytesForm
	case t == reflect.TypeFor[time.Duration]():
		return durationForm
	}
	return map[reflect.Kind]*Form{
		reflect.Bool: booleanForm, reflect.Int: numberForm, reflect.Int64: numberForm, reflect.String: textForm,
	}[t.Kind()]
}

// SetDefaults sets every field of a struct to the default in its tag.
func SetDefaults(into reflect.Value) {
	for f, v := range into.Fields() {
		text, given := f.Tag.Lookup("default")
		switch {
		case f.Type.Kind() == reflect.Struct:
			SetDefaults(v)
		case !given:
		case f.Type.Kind() == reflect.Slice:
			v.Set(reflect.ValueOf(strings.Split(text, ",")))
		default:
			if err := FormOf(f.Type).Parse(text, v); err != nil {
				continue // A test reads every default.
			}
		}
	}
}

// Default returns a section whose settings have their defaults.
func Default[Section any]() Section {
	var section Section
	SetDefaults(reflect.ValueOf(&section).Elem())
	return section
}

// Complete sets the numbers of a section that are not above zero, and the empty texts with fixed values, to their defaults. It leaves
// numbers for which zero is allowed, and times below zero, which mean no limit.
func Complete[Section any](section *Section) {
	defaults := reflect.ValueOf(Default[Section]())
	for f, v := range reflect.ValueOf(section).Elem().Fields() {
		_, bounded := f.Tag.Lookup("min")
		_, chosen := f.Tag.Lookup("oneof")
		if bounded && (v.Int() == 0 || v.Int() < 0 && f.Type != reflect.TypeFor[time.Duration]()) || chosen && v.IsZero() {
			v.Set(defaults.FieldByIndex(f.Index))
		}
	}
}
