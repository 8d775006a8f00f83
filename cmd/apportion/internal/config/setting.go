package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/apportion/apportion/internal/setting"
)

// Setting is one setting: a leaf of Config.
type Setting struct {
	// Path is the name in the file, such as tls.min_version.
	Path string
	// Help is the text of the field's comment.
	Help string
	// Beyond is the result for a caller that exceeds the setting, if it is a limit.
	Beyond string
	// Default is the value where none is given, as text.
	Default string
	// Live is true if a running server applies a new value.
	Live bool

	field reflect.StructField
	index []int
}

// Flag is the name of the setting's flag, without dashes before it.
func (s *Setting) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.Path) }

// Variable is the name of the setting's environment variable.
func (s *Setting) Variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(s.Path, ".", "_"))
}

const variablePrefix = "APPORTION_"

func (s *Setting) in(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(s.index) }

// listed returns the element type of a list of structs.
func listed(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		return t.Elem(), true
	}
	return nil, false
}

func keyOf(f reflect.StructField) string { return f.Tag.Get("yaml") }

// Settings lists all settings, in the order of the struct.
var Settings = sync.OnceValue(func() []*Setting {
	var all []*Setting
	collect(reflect.TypeFor[Config](), "", nil, &all)
	return all
})

func collect(t reflect.Type, prefix string, index []int, all *[]*Setting) {
	for f := range t.Fields() {
		at := slices.Concat(index, f.Index)
		if f.Type.Kind() == reflect.Struct {
			collect(f.Type, prefix+keyOf(f)+".", at, all)
			continue
		}
		said := comments()[t.Name()+"."+f.Name]
		*all = append(*all, &Setting{
			Path: prefix + keyOf(f), Help: said.help, Beyond: said.beyond, Default: f.Tag.Get("default"), Live: f.Tag.Get("live") != "",
			field: f, index: at,
		})
	}
}

// Changed lists the settings in which two configurations differ.
func Changed(a, b *Config) []*Setting {
	var changed []*Setting
	for _, s := range Settings() {
		if !reflect.DeepEqual(s.in(a).Interface(), s.in(b).Interface()) {
			changed = append(changed, s)
		}
	}
	return changed
}

// Choices lists the valid values, if they are fixed.
func (s *Setting) Choices() []string {
	if s.field.Type.Kind() == reflect.Bool {
		return []string{setting.True, setting.False}
	}
	if allowed, ok := s.field.Tag.Lookup("oneof"); ok {
		return strings.Split(allowed, ",")
	}
	return nil
}
