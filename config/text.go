package config

import (
	"reflect"
	"regexp"
	"strings"
)

// text sets a setting from what a variable or a flag says, which may be given several times: a list gets the elements of all, a mapping the
// entries of all, anything else the last.
func (d *decoder) text(s *Setting, texts []string, into reflect.Value) {
	d.origins[s.Path] = d.name
	if isScalar(s.field.Type) {
		if err := parseScalar(texts[len(texts)-1], into); err != nil {
			d.faults.add(d.name, "", err.Error())
		}
		return
	}
	into.SetZero()
	for _, text := range texts {
		part := reflect.New(s.field.Type).Elem()
		switch text = strings.TrimSpace(text); {
		case text == "":
			continue
		case isStructured(s.field.Type, text):
			d.structured(s, text, part)
		case s.field.Type.Kind() == reflect.Map:
			d.pairs(text, part)
		default:
			part.Set(reflect.ValueOf(trimmed(strings.Split(text, ","))))
		}
		merge(into, part)
	}
}

// bracketed is an IPv6 address with its port, [::1]:7171, which begins as a list of YAML does and is none: a port follows the bracket.
var bracketed = regexp.MustCompile(`^\[[^]["',{ ]*\]:[0-9]`)

// isStructured reports whether a text is YAML rather than the short form: always for a list of structs, for others if it begins with a
// bracket or a brace that is not part of an address.
func isStructured(t reflect.Type, text string) bool {
	if _, ok := listed(t); ok {
		return true
	}
	return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") && !bracketed.MatchString(text)
}

func (d *decoder) structured(s *Setting, text string, into reflect.Value) {
	if n := d.parse([]byte(text)); n != nil {
		d.value(n, into, s.Path)
	}
}

// pairs reads a=x,b=y.
func (d *decoder) pairs(text string, into reflect.Value) {
	m := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if _, twice := m[name]; !ok || twice {
			d.faults.add(d.name, "", "NAME=VALUE is expected, each name once")
			return
		}
		m[name] = strings.TrimSpace(value)
	}
	into.Set(reflect.ValueOf(m))
}

func trimmed(texts []string) []string {
	for i, text := range texts {
		texts[i] = strings.TrimSpace(text)
	}
	return texts
}

func merge(into, part reflect.Value) {
	switch {
	case into.Kind() == reflect.Slice:
		into.Set(reflect.AppendSlice(into, part))
	case into.IsNil():
		into.Set(part)
	default:
		for _, key := range part.MapKeys() {
			into.SetMapIndex(key, part.MapIndex(key))
		}
	}
}
