// Command apidoc is a plugin of protoc that writes the reference of the contract as Markdown, of the comments in proto/. `make generate`
// builds it as protoc-gen-apidoc.
package main

import (
	"flag"
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	var flags flag.FlagSet
	order := flags.String("order", "", "names of files without .proto in the order of reading, joined by +; others follow by name")
	protogen.Options{ParamFunc: flags.Set}.Run(func(plugin *protogen.Plugin) error {
		plugin.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL)
		packages := map[string][]*protogen.File{}
		for _, file := range plugin.Files {
			if file.Generate {
				name := string(file.Desc.Package())
				packages[name] = append(packages[name], file)
			}
		}
		for name, files := range packages {
			sortFiles(files, strings.Split(*order, "+"))
			r := reference{out: plugin.NewGeneratedFile(name+".md", "")}
			if err := r.write(name, files); err != nil {
				return err
			}
		}
		return nil
	})
}

// sortFiles puts files into the order of reading.
func sortFiles(files []*protogen.File, order []string) {
	rank := func(f *protogen.File) string {
		name := baseOf(f)
		if i := slices.Index(order, name); i >= 0 {
			return fmt.Sprintf("%03d", i)
		}
		return "999" + name
	}
	slices.SortFunc(files, func(a, b *protogen.File) int { return strings.Compare(rank(a), rank(b)) })
}

func baseOf(f *protogen.File) string { return strings.TrimSuffix(path.Base(f.Desc.Path()), ".proto") }

// reference is the document of one package.
type reference struct {
	out *protogen.GeneratedFile
	// own are the names that have a heading, by their anchor.
	own map[string]string
	pkg string
}

func (r *reference) write(name string, files []*protogen.File) error {
	r.pkg, r.own = name, map[string]string{}
	for _, file := range files {
		for _, m := range file.Messages {
			if err := r.learn(m); err != nil {
				return err
			}
		}
		for _, e := range file.Enums {
			if err := r.claim(string(e.Desc.FullName())); err != nil {
				return err
			}
		}
	}
	r.line("# Reference of `%s`", name)
	r.line("")
	r.line("Made of the comments in [`proto/`](../../proto/%s) by `make generate`; do not edit.", strings.ReplaceAll(name, ".", "/"))
	r.line("[A tour of the contract](../contract.md) shows every call by an example.")
	r.contents(files)
	for _, file := range files {
		for _, s := range file.Services {
			r.service(s)
		}
	}
	for _, file := range files {
		r.line("\n## %s.proto", baseOf(file))
		for _, m := range file.Messages {
			r.message(m)
		}
		for _, e := range file.Enums {
			r.enum(e)
		}
	}
	return nil
}

// learn notes a message and what is nested in it.
func (r *reference) learn(m *protogen.Message) error {
	if m.Desc.IsMapEntry() {
		return nil
	}
	if err := r.claim(string(m.Desc.FullName())); err != nil {
		return err
	}
	for _, inner := range m.Messages {
		if err := r.learn(inner); err != nil {
			return err
		}
	}
	for _, e := range m.Enums {
		if err := r.claim(string(e.Desc.FullName())); err != nil {
			return err
		}
	}
	return nil
}

// claim notes a heading. Two headings with one anchor would make links that lead astray.
func (r *reference) claim(full string) error {
	anchor := anchorOf(r.short(full))
	if other, taken := r.own[anchor]; taken {
		return fmt.Errorf("%s and %s have the same anchor", other, full)
	}
	r.own[anchor] = full
	return nil
}

// short is a name without the package.
func (r *reference) short(full string) string { return strings.TrimPrefix(full, r.pkg+".") }

// anchorOf returns the anchor of a heading: letters, digits and dashes alone, in lower case.
func anchorOf(heading string) string {
	return strings.Map(func(c rune) rune {
		if c == '.' {
			return -1
		}
		return c
	}, strings.ToLower(heading))
}

// link is a type by name, with a link if it is described here.
func (r *reference) link(full string) string {
	short := r.short(full)
	if r.own[anchorOf(short)] == full {
		return fmt.Sprintf("[%s](#%s)", short, anchorOf(short))
	}
	return "`" + full + "`"
}

func (r *reference) line(format string, args ...any) { r.out.P(fmt.Sprintf(format, args...)) }

// text writes a comment as paragraphs.
func (r *reference) text(comment protogen.Comments) {
	if lines := linesOf(comment); len(lines) > 0 {
		r.line("")
		r.line("%s", strings.Join(lines, "\n"))
	}
}

func linesOf(comment protogen.Comments) []string {
	var lines []string
	for line := range strings.Lines(string(comment)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// cell is a comment in one line.
func cell(comments ...protogen.Comments) string {
	var lines []string
	for _, comment := range comments {
		lines = append(lines, linesOf(comment)...)
	}
	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`)
}

// contents lists the calls, and the messages and enums of each file.
func (r *reference) contents(files []*protogen.File) {
	r.line("")
	for _, file := range files {
		var names []string
		for _, s := range file.Services {
			for _, m := range s.Methods {
				names = append(names, fmt.Sprintf("[%s](#%s)", m.Desc.Name(), anchorOf("rpc-"+string(m.Desc.Name()))))
			}
			r.line("- calls of %s: %s", s.Desc.Name(), strings.Join(names, ", "))
		}
	}
	for _, file := range files {
		var names []string
		for _, m := range file.Messages {
			names = append(names, r.link(string(m.Desc.FullName())))
		}
		for _, e := range file.Enums {
			names = append(names, r.link(string(e.Desc.FullName())))
		}
		r.line("- %s.proto: %s", baseOf(file), strings.Join(names, ", "))
	}
}

func (r *reference) service(s *protogen.Service) {
	r.line("\n## %s", s.Desc.Name())
	r.text(s.Comments.Leading)
	for _, m := range s.Methods {
		r.line("\n### rpc %s", m.Desc.Name())
		r.text(m.Comments.Leading)
		r.line("\n%s → %s",
			streamed(m.Desc.IsStreamingClient())+r.link(string(m.Input.Desc.FullName())),
			streamed(m.Desc.IsStreamingServer())+r.link(string(m.Output.Desc.FullName())))
		options, ok := m.Desc.Options().(*descriptorpb.MethodOptions)
		if ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
			r.line("\nIt changes nothing, and may be repeated.")
		}
	}
}

func streamed(stream bool) string {
	if stream {
		return "stream of "
	}
	return ""
}

func (r *reference) message(m *protogen.Message) {
	if m.Desc.IsMapEntry() {
		return
	}
	r.line("\n### %s", r.short(string(m.Desc.FullName())))
	r.text(m.Comments.Leading)
	if len(m.Fields) > 0 {
		r.line("\n| number | field | type | |\n|---:|---|---|---|")
	}
	for _, f := range m.Fields {
		note := ""
		if f.Oneof != nil && !f.Oneof.Desc.IsSynthetic() {
			note = "*One of `" + string(f.Oneof.Desc.Name()) + "`.* "
			if f == f.Oneof.Fields[0] {
				note += cell(f.Oneof.Comments.Leading) + " "
			}
		}
		r.line("| %d | `%s` | %s | %s |", f.Desc.Number(), f.Desc.Name(), r.typeOf(f),
			strings.TrimSpace(note+cell(f.Comments.Leading, f.Comments.Trailing)))
	}
	for _, inner := range m.Messages {
		r.message(inner)
	}
	for _, e := range m.Enums {
		r.enum(e)
	}
}

// typeOf is the type of a field, with whether it may be absent or repeated.
func (r *reference) typeOf(f *protogen.Field) string {
	name := f.Desc.Kind().String()
	switch {
	case f.Message != nil:
		name = r.link(string(f.Message.Desc.FullName()))
	case f.Enum != nil:
		name = r.link(string(f.Enum.Desc.FullName()))
	}
	switch {
	case f.Desc.IsList():
		return "repeated " + name
	case f.Desc.HasOptionalKeyword():
		return "optional " + name
	}
	return name
}

func (r *reference) enum(e *protogen.Enum) {
	r.line("\n### %s", r.short(string(e.Desc.FullName())))
	r.text(e.Comments.Leading)
	r.line("\n| number | value | |\n|---:|---|---|")
	for _, v := range e.Values {
		r.line("| %d | `%s` | %s |", v.Desc.Number(), v.Desc.Name(), cell(v.Comments.Leading, v.Comments.Trailing))
	}
}
