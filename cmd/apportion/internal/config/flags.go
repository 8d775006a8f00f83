package config

import (
	"reflect"
	"strings"

	"github.com/spf13/pflag"

	"github.com/apportion/apportion/internal/setting"
)

// Flags are the settings as flags of a command line.
type Flags struct {
	file  string
	given map[string][]string
}

// AddFlags adds a flag for every setting, and --config for the file.
func AddFlags(flags *pflag.FlagSet) *Flags {
	f := &Flags{given: map[string][]string{}}
	flags.StringVarP(&f.file, "config", "c", "", "read settings from this `FILE`; default: the one that "+FileVariable+" names, if any")
	for _, s := range Settings() {
		added := flags.VarPF(&flag{s, f}, s.Flag(), "", usage(s))
		if s.field.Type.Kind() == reflect.Bool {
			added.NoOptDefVal = setting.True
		}
	}
	return f
}

// Sources are the flags that were given, over an environment as os.Environ gives it.
func (f *Flags) Sources(environment []string) Sources {
	return Sources{File: f.file, Environment: environment, Flags: f.given}
}

func usage(s *Setting) string {
	text := strings.ReplaceAll(strings.TrimSuffix(s.Help, "."), "`", "'")
	if s.Default != "" {
		text += " (default " + s.Default + ")"
	}
	return text
}

// flag stores the text of a setting's flag. It is parsed when all sources are known.
type flag struct {
	setting *Setting
	flags   *Flags
}

// String returns the stored texts.
func (f *flag) String() string {
	if f.flags == nil {
		return ""
	}
	return strings.Join(f.flags.given[f.setting.Path], " ")
}

// Set stores one occurrence.
func (f *flag) Set(text string) error {
	f.flags.given[f.setting.Path] = append(f.flags.given[f.setting.Path], text)
	return nil
}

// Type returns the placeholder in the help.
func (f *flag) Type() string {
	t := f.setting.field.Type
	if form := setting.FormOf(t); form != nil {
		return form.Placeholder
	}
	if _, ok := listed(t); ok {
		return "YAML"
	}
	if t.Kind() == reflect.Map {
		return "NAME=VALUE"
	}
	return "TEXTS"
}
