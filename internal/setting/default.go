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
