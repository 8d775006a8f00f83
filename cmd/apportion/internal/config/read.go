package config

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/tree"
)

// Sources are the sources of a configuration.
type Sources struct {
	// File to read; "": the one that the variable APPORTION_CONFIG names, if any.
	File string
	// Environment as os.Environ gives it.
	Environment []string
	// Flags contains the values on the command line, one or several for each path of a setting.
	Flags map[string][]string
}

// FileVariable is the environment variable with the file, if no flag names it.
const FileVariable = variablePrefix + "CONFIG"

// Effective is a complete and valid configuration, with the origin of each value.
type Effective struct {
	Config

	// File that was read, "" if none was.
	File string

	origins map[string]string
}

// byDefault is the origin of default values.
const byDefault = "default"

// Origin returns the origin of a setting's value: "default", file:line, a variable or a flag.
func (e *Effective) Origin(path string) string {
	for at := path; at != ""; at = parentOf(at) {
		if origin, ok := e.origins[at]; ok {
			return origin
		}
	}
	return byDefault
}

// parentOf removes the last name or index from a path.
func parentOf(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// Default returns the default configuration.
func Default() Config {
	var c Config
	setting.SetDefaults(reflect.ValueOf(&c).Elem())
	return c
}

// Read reads all sources, the stronger over the weaker, and checks the result. An error is a tree.Faults with all faults.
func Read(s Sources) (*Effective, error) {
	e := &Effective{Config: Default(), File: s.File, origins: map[string]string{}}
	if e.File == "" {
		e.File = lookup(s.Environment, FileVariable)
	}
	var faults tree.Faults
	if e.File != "" {
		faults.Add(e.readFile())
	}
	faults.Add(e.readEnvironment(s.Environment))
	for _, of := range Settings() {
		if texts := s.Flags[of.Path]; len(texts) > 0 {
			faults.Add(e.apply("flag --"+of.Flag(), of, texts))
		}
	}
	if len(faults) == 0 {
		faults = e.check()
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return e, nil
}

func lookup(environment []string, name string) string {
	for _, entry := range slices.Backward(environment) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

func (e *Effective) readFile() error {
	data, err := readAtMost(e.File, maxFile+1)
	if err != nil {
		return err
	}
	err = decoder{e.origins}.document(e.File, data, reflect.ValueOf(&e.Config).Elem())
	e.resolvePaths(filepath.Dir(e.File))
	return err
}

func readAtMost(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, limit))
	return data, errors.Join(err, file.Close())
}

// resolvePaths makes the files that the configuration file names relative to it, so that they are found from wherever the server starts.
func (e *Effective) resolvePaths(directory string) {
	resolve := func(name string) string {
		if name == "" || filepath.IsAbs(name) || strings.HasPrefix(name, presetPrefix) {
			return name
		}
		return filepath.Join(directory, name)
	}
	for _, s := range Settings() {
		if s.field.Tag.Get("path") == "" {
			continue
		}
		switch v := s.in(&e.Config); v.Kind() {
		case reflect.Map:
			for _, key := range v.MapKeys() {
				v.SetMapIndex(key, reflect.ValueOf(resolve(v.MapIndex(key).String())))
			}
		default:
			v.SetString(resolve(v.String()))
		}
	}
}

// apply sets one setting from the texts of a variable or a flag.
func (e *Effective) apply(origin string, s *Setting, texts []string) error {
	maps.DeleteFunc(e.origins, func(path, _ string) bool { return within(path, s.Path) })
	return decoder{e.origins}.text(origin, s, texts, s.in(&e.Config))
}

func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// clusterVariable is the form of the variables that Kubernetes sets for a Service whose name begins with ours: no setting has that form.
var clusterVariable = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_.*)?$|_PORT$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?$`)

func (e *Effective) readEnvironment(environment []string) error {
	values := map[string]string{}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if rest, ours := strings.CutPrefix(name, variablePrefix); ours && name != FileVariable && !clusterVariable.MatchString(name) {
			values[rest] = value
		}
	}
	var faults tree.Faults
	known := []string{strings.TrimPrefix(FileVariable, variablePrefix)}
	for _, s := range Settings() {
		name := strings.TrimPrefix(s.Variable(), variablePrefix)
		known = append(known, name)
		if value, given := values[name]; given {
			faults.Add(e.apply("environment "+s.Variable(), s, []string{value}))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			text := "there is no such variable"
			if similar := spelling.Similar(name, slices.Values(known)); similar != "" {
				text += "; did you mean " + variablePrefix + similar + "?"
			}
			faults.Add(&tree.Fault{Source: "environment", Path: tree.Printable(variablePrefix + name), Text: text})
		}
	}
	return faults.Err()
}
