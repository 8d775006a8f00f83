package config

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/tree"
)

// text sets a setting from a variable or flag, which may be given several times: a list gets the elements of all, a mapping the entries of
// all, anything else the last.
func (d decoder) text(origin string, s *Setting, texts []string, into reflect.Value) error {
	d.origins[s.Path] = origin
	if form := setting.FormOf(s.field.Type); form != nil {
		return at(origin, form.Parse(texts[len(texts)-1], into))
	}
	into.SetZero()
	var faults tree.Faults
	for _, text := range texts {
		part := reflect.New(s.field.Type).Elem()
		switch text = strings.TrimSpace(text); {
		case text == "":
			continue
		case isStructured(s.field.Type, text):
			root, err := tree.ParseText(origin, 0, text)
			if root.Path = s.Path; err == nil && !root.IsNull() {
				err = d.value(root, part)
			}
			faults.Add(err)
		case s.field.Type.Kind() == reflect.Map:
			faults.Add(at(origin, pairs(text, part)))
		default:
			part.Set(reflect.ValueOf(trimmed(strings.Split(text, ","))))
		}
		merge(into, part)
	}
	return faults.Err()
}

// at gives an error its source.
func at(origin string, err error) error {
	if err == nil {
		return nil
	}
	return &tree.Fault{Source: origin, Text: err.Error()}
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

// pairs reads a=x,b=y.
func pairs(text string, into reflect.Value) error {
	m := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if _, twice := m[name]; !ok || twice {
			return errors.New("NAME=VALUE is expected, each name once")
		}
		m[name] = strings.TrimSpace(value)
	}
	into.Set(reflect.ValueOf(m))
	return nil
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
