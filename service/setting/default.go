package setting

import (
	"reflect"
	"strings"
	"time"
)

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

// Complete sets the numbers of a section that are not above zero to their defaults. It leaves numbers for which zero is allowed, and times
// below zero, which mean no limit.
func Complete[Section any](section *Section) {
	var defaults Section
	SetDefaults(reflect.ValueOf(&defaults).Elem())
	otherwise := reflect.ValueOf(defaults)
	for f, v := range reflect.ValueOf(section).Elem().Fields() {
		_, needed := f.Tag.Lookup("min")
		if needed && (v.Int() == 0 || v.Int() < 0 && f.Type != reflect.TypeFor[time.Duration]()) {
			v.Set(otherwise.FieldByIndex(f.Index))
		}
	}
}
