package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Sources are what a configuration is made of.
type Sources struct {
	// File to read; "": the one that the variable APPORTION_CONFIG names, if any.
	File string
	// Environment as os.Environ gives it.
	Environment []string
	// Flags given on the command line: by the path of the setting, what was written, once or several times.
	Flags map[string][]string
}

// FileVariable names the file where no flag does.
const FileVariable = variablePrefix + "CONFIG"

// Effective is a configuration that is complete and valid, and knows where each value came from.
type Effective struct {
	Config

	// File that was read, "" if none was.
	File string

	origins map[string]string
}

// byDefault is the origin of values that are not given.
const byDefault = "default"

// Origin tells where a setting's value came from: "default", file:line, a variable or a flag.
func (e *Effective) Origin(path string) string {
	for at := path; at != ""; at = parentOf(at) {
		if origin, ok := e.origins[at]; ok {
			return origin
		}
	}
	return byDefault
}

// parentOf cuts the last name or index off a path.
func parentOf(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// Default returns the configuration where nothing is given.
func Default() Config {
	var c Config
	setDefaults(reflect.ValueOf(&c).Elem())
	return c
}

// Read reads all sources, the stronger over the weaker, and checks the result. An error is Faults, all that there are.
func Read(s Sources) (*Effective, error) {
	e := &Effective{Config: Default(), File: s.File, origins: map[string]string{}}
	if e.File == "" {
		e.File = lookup(s.Environment, FileVariable)
	}
	var faults Faults
	if e.File != "" {
		faults = e.readFile()
	}
	faults = append(faults, e.readEnvironment(s.Environment)...)
	for _, setting := range Settings() {
		if texts := s.Flags[setting.Path]; len(texts) > 0 {
			faults = append(faults, e.apply("flag --"+setting.Flag(), setting, texts)...)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if err := e.check().err(); err != nil {
		return nil, err
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

func (e *Effective) readFile() Faults {
	data, err := readAtMost(e.File, maxFile+1)
	if err != nil {
		return Faults{{Text: err.Error()}}
	}
	d := &decoder{name: e.File, lined: true, origins: e.origins}
	if n := d.parse(data); n != nil {
		d.structure(n, reflect.ValueOf(&e.Config).Elem(), "")
	}
	e.resolvePaths(filepath.Dir(e.File))
	return d.faults
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
func (e *Effective) apply(origin string, s *Setting, texts []string) Faults {
	for path := range e.origins {
		if within(path, s.Path) {
			delete(e.origins, path)
		}
	}
	d := &decoder{name: origin, origins: e.origins}
	d.text(s, texts, s.in(&e.Config))
	return d.faults
}

func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// clusterVariable is the form of the variables that Kubernetes sets for a Service whose name begins with ours: no setting has that form.
var clusterVariable = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_.*)?$|_PORT$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?$`)

func (e *Effective) readEnvironment(environment []string) Faults {
	var faults Faults
	known := map[string]*Setting{}
	names := []string{FileVariable}
	for _, s := range Settings() {
		known[s.Variable()] = s
		names = append(names, s.Variable())
	}
	values := map[string]string{}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || name == FileVariable || clusterVariable.MatchString(name) {
			continue
		}
		if known[name] == nil {
			faults.add("environment", printable(name), "there is no such variable"+meant(name, names))
		}
		values[name] = value
	}
	faults = faults.sortedByPath()
	for _, s := range Settings() {
		if value, given := values[s.Variable()]; given {
			faults = append(faults, e.apply("environment "+s.Variable(), s, []string{value})...)
		}
	}
	return faults
}
