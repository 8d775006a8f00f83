package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/apportion/apportion/internal/setting"
)

//go:embed intro.md
var intro []byte

// Reference returns docs/configuration.md, which lists every setting.
func Reference() []byte {
	out := bytes.NewBuffer(slices.Clone(intro))
	out.WriteString("| setting | flag | variable | default |\n|---|---|---|---|\n")
	for _, s := range Settings() {
		fmt.Fprintf(out, "| [`%s`](#%s) | `--%s` | `%s` | %s |\n", s.Path, anchor(s.Path), s.Flag(), s.Variable(), code(s.Default))
	}
	section := ""
	for _, s := range Settings() {
		if parent := parentOf(s.Path); parent != section {
			section = parent
			fmt.Fprintf(out, "\n### %s\n\n%s\n", section, wrapped(sectionHelp(s)))
			writeLimits(out, section)
		}
		fmt.Fprintf(out, "\n#### %s\n\n%s\n", s.Path, wrapped(s.Help))
		if facts := factsOf(s.field, s.Default, s.Live); len(facts) > 0 {
			fmt.Fprintf(out, "\n%s\n", strings.Join(facts, " · "))
		}
		if element, ok := listed(s.field.Type); ok {
			writeElements(out, element)
		}
	}
	return out.Bytes()
}

// writeLimits writes a table of the limits of a section, with what a caller gets beyond each.
func writeLimits(out *bytes.Buffer, section string) {
	head := "\n| limit | default | beyond it |\n|---|---|---|\n"
	for _, s := range Settings() {
		if s.Beyond != "" && parentOf(s.Path) == section {
			fmt.Fprintf(out, "%s| [`%s`](#%s) | `%s` | %s |\n", head, s.Path, anchor(s.Path), s.Default, s.Beyond)
			head = ""
		}
	}
}

// anchor returns the anchor of a setting's heading.
func anchor(path string) string { return strings.ReplaceAll(path, ".", "") }

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// sectionHelp returns the comment of the section of a setting.
func sectionHelp(s *Setting) string {
	t := reflect.TypeFor[Config]()
	for _, i := range s.index[:len(s.index)-1] {
		t = t.Field(i).Type
	}
	return comments()[t.Name()].help
}

// factsOf describes the type, the tags and the default of a field.
func factsOf(f reflect.StructField, otherwise string, live bool) []string {
	facts := []string{kindOf(f.Type)}
	if allowed, ok := f.Tag.Lookup("oneof"); ok {
		facts[0] = "one of `" + strings.ReplaceAll(allowed, ",", "`, `") + "`"
	}
	if text, ok := f.Tag.Lookup("min"); ok {
		facts = append(facts, "at least `"+text+"`")
	}
	if text, ok := f.Tag.Lookup("max"); ok {
		facts = append(facts, "at most `"+text+"`")
	}
	if otherwise != "" {
		facts = append(facts, "default `"+otherwise+"`")
	}
	if f.Tag.Get("path") != "" {
		facts = append(facts, "relative to the configuration file")
	}
	if f.Tag.Get("secret") != "" {
		facts = append(facts, "never printed")
	}
	if live {
		facts = append(facts, "applied while the server runs")
	}
	return facts
}

func kindOf(t reflect.Type) string {
	if form := setting.FormOf(t); form != nil {
		return form.Description
	}
	if _, ok := listed(t); ok {
		return "list"
	}
	if t.Kind() == reflect.Map {
		return "texts by name"
	}
	return "list of texts"
}

func writeElements(out *bytes.Buffer, element reflect.Type) {
	out.WriteString("\nEach has\n\n")
	for f := range element.Fields() {
		facts := strings.Join(factsOf(f, f.Tag.Get("default"), false), " · ")
		text := code(keyOf(f)) + ": " + comments()[element.Name()+"."+f.Name].help + " (" + facts + ")"
		out.WriteString("- " + strings.ReplaceAll(wrapped(text), "\n", "\n  ") + "\n")
	}
}

// wrapped breaks a text into lines.
func wrapped(text string) string {
	const width = 120
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
