package suite

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/cmd/apportion/internal/document"
)

// Suite is a file of tests.
type Suite struct {
	File  string
	Tests []*Test
}

// Test is one test with the values of one of its cases.
type Test struct {
	// Name is that of the test; with cases, that of the case behind a slash.
	Name string
	Line int
	Input
	Steps []Step
}

// Input is what a test asks about, as the flags of these names say it.
type Input struct {
	Cluster                  []string
	Snapshot, Config, Policy string
}

// Step is a step of a scenario, and what its answer must say.
type Step struct {
	Ask *yaml.Node
	// Expect is nil where nothing is expected but an answer.
	Expect *yaml.Node
}

// extensions are how files of tests end.
var extensions = []string{".test.yaml", ".test.yml"}

// Find returns the files that are named, and those of tests in directories and below.
func Find(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		stat, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !stat.IsDir() {
			files = append(files, path)
			continue
		}
		found := len(files)
		err = filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && isSuite(name) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(files) == found {
			return nil, fmt.Errorf("%s: no file of tests (%s) is in it", path, strings.Join(extensions, ", "))
		}
	}
	return files, nil
}

func isSuite(name string) bool {
	return slices.ContainsFunc(extensions, func(e string) bool { return strings.HasSuffix(name, e) })
}

// Read reads a file of tests: a mapping with `tests`, or a scenario, which is one test.
func Read(file string, data []byte) (*Suite, error) {
	root, err := document.Parse(file, data)
	if err != nil {
		return nil, err
	}
	r := reader{file: file}
	common, err := r.keys(root, "", slices.Concat(inputKeys, []string{"variables", "tests", "steps"}))
	if err != nil {
		return nil, err
	}
	variables, err := r.variables(common["variables"], nil)
	if err != nil {
		return nil, err
	}
	suite := &Suite{File: file}
	switch tests, steps := common["tests"], common["steps"]; {
	case tests != nil && steps != nil:
		return nil, r.fault(steps, "steps", "excludes tests, which are given too")
	case steps != nil:
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		test, err := r.test(name, root, []map[string]*yaml.Node{common}, variables)
		suite.Tests = []*Test{test}
		return suite, err
	case tests == nil || tests.Kind != yaml.SequenceNode || len(tests.Content) == 0:
		return nil, r.fault(root, "tests", "a list of tests is needed")
	default:
		for i, n := range tests.Content {
			list, err := r.cases(n, fmt.Sprintf("tests[%d]", i), common, variables)
			if err != nil {
				return nil, err
			}
			suite.Tests = append(suite.Tests, list...)
		}
	}
	return suite, nil
}

var inputKeys = []string{"cluster", "snapshot", "config", "policy"}

type reader struct{ file string }

func (r reader) fault(n *yaml.Node, key, message string) error {
	return &document.FaultError{File: r.file, Line: n.Line, Key: key, Message: message}
}

// keys returns the values of a mapping by key. Unknown keys, and keys given twice, are faults.
func (r reader) keys(n *yaml.Node, path string, known []string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, r.fault(n, path, "keys are expected: "+strings.Join(known, ", "))
	}
	values := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if !slices.Contains(known, key.Value) {
			return nil, r.fault(key, join(path, key.Value), "no such key; there are "+strings.Join(known, ", "))
		}
		if values[key.Value] != nil {
			return nil, r.fault(key, join(path, key.Value), "given twice")
		}
		values[key.Value] = n.Content[i+1]
	}
	return values, nil
}

// variables adds the variables of a mapping to others, which it may replace.
func (r reader) variables(n *yaml.Node, others map[string]*yaml.Node) (map[string]*yaml.Node, error) {
	all := map[string]*yaml.Node{}
	maps.Copy(all, others)
	if n == nil {
		return all, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, r.fault(n, "variables", "values by name are expected")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		all[n.Content[i].Value] = n.Content[i+1]
	}
	return all, nil
}

// cases returns the tests of an entry of `tests`: one for each of its cases.
func (r reader) cases(n *yaml.Node, path string, common map[string]*yaml.Node, variables map[string]*yaml.Node) ([]*Test, error) {
	own, err := r.keys(n, path, slices.Concat([]string{"name"}, inputKeys, []string{"variables", "cases", "steps"}))
	if err != nil {
		return nil, err
	}
	if own["name"] == nil || own["name"].Value == "" {
		return nil, r.fault(n, join(path, "name"), "is needed")
	}
	if own["steps"] == nil {
		return nil, r.fault(n, join(path, "steps"), "is needed")
	}
	variables, err = r.variables(own["variables"], variables)
	if err != nil {
		return nil, err
	}
	name, scopes := own["name"].Value, []map[string]*yaml.Node{own, common}
	if own["cases"] == nil {
		test, err := r.test(name, n, scopes, variables)
		return []*Test{test}, err
	}
	if own["cases"].Kind != yaml.SequenceNode || len(own["cases"].Content) == 0 {
		return nil, r.fault(own["cases"], join(path, "cases"), "a list of values by name is expected")
	}
	var tests []*Test
	for i, c := range own["cases"].Content {
		values, err := r.variables(c, variables)
		if err != nil {
			return nil, err
		}
		test, err := r.test(name+"/"+caseName(c, i), c, scopes, values)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	return tests, nil
}

// caseName is the case's `name`, or its values.
func caseName(c *yaml.Node, position int) string {
	var values []string
	for i := 0; i+1 < len(c.Content); i += 2 {
		if c.Content[i].Value == "name" {
			return c.Content[i+1].Value
		}
		if c.Content[i+1].Kind == yaml.ScalarNode {
			values = append(values, c.Content[i].Value+"="+c.Content[i+1].Value)
		}
	}
	if len(values) == 0 {
		return fmt.Sprintf("%d", position+1)
	}
	return strings.Join(values, ",")
}

// test makes a test: what the first scope does not say, the next one says.
func (r reader) test(name string, n *yaml.Node, scopes []map[string]*yaml.Node, variables map[string]*yaml.Node) (*Test, error) {
	test := &Test{Name: name, Line: n.Line}
	value := func(key string) (*yaml.Node, error) {
		for _, scope := range scopes {
			if scope[key] != nil {
				return r.filled(scope[key], key, variables)
			}
		}
		return nil, nil //nolint:nilnil // A key that is not given is no fault.
	}
	for key, place := range map[string]*string{"snapshot": &test.Snapshot, "config": &test.Config, "policy": &test.Policy} {
		n, err := value(key)
		if err != nil {
			return nil, err
		}
		if n != nil {
			*place = n.Value
		}
	}
	cluster, err := value("cluster")
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		test.Cluster = texts(cluster)
	}
	r.place(&test.Input)
	steps, err := value("steps")
	if err != nil {
		return nil, err
	}
	if steps.Kind != yaml.SequenceNode {
		return nil, r.fault(steps, "steps", "a list is expected")
	}
	for _, n := range steps.Content {
		ask, expect := Split(n)
		if expect != nil && expect.Kind != yaml.MappingNode {
			return nil, r.fault(expect, "expect", "values by path are expected, as in deserved.gpu: 8")
		}
		test.Steps = append(test.Steps, Step{Ask: ask, Expect: expect})
	}
	return test, nil
}

// place makes the files of an input relative to the directory of the suite. A policy is a file if it ends like one.
func (r reader) place(in *Input) {
	near := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(r.file), name)
	}
	for i := range in.Cluster {
		in.Cluster[i] = near(in.Cluster[i])
	}
	in.Snapshot, in.Config = near(in.Snapshot), near(in.Config)
	if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(in.Policy)) {
		in.Policy = near(in.Policy)
	}
}

// Split takes what is expected out of a step; nil if nothing is.
func Split(n *yaml.Node) (ask, expect *yaml.Node) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 4 {
		return n, nil
	}
	for i := 0; i < 4; i += 2 {
		if n.Content[i].Value == "expect" {
			rest := *n
			rest.Content = n.Content[2-i : 4-i]
			return &rest, n.Content[i+1]
		}
	}
	return n, nil
}

// variable is ${name} in a text.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// filled returns a copy of a value with the variables in its texts replaced. A text that is a variable alone becomes its value, whatever
// that is.
func (r reader) filled(n *yaml.Node, key string, variables map[string]*yaml.Node) (*yaml.Node, error) {
	if n.Kind == yaml.ScalarNode {
		return r.replaced(n, key, variables)
	}
	if n.Kind == yaml.AliasNode {
		return nil, r.fault(n, key, "aliases are not read")
	}
	copied := *n
	copied.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		var err error
		if copied.Content[i], err = r.filled(child, key, variables); err != nil {
			return nil, err
		}
	}
	return &copied, nil
}

func (r reader) replaced(n *yaml.Node, key string, variables map[string]*yaml.Node) (*yaml.Node, error) {
	matches := variable.FindAllStringSubmatch(n.Value, -1)
	if len(matches) == 0 {
		return n, nil
	}
	copied := *n
	for _, match := range matches {
		value := variables[match[1]]
		switch {
		case value == nil:
			return nil, r.fault(n, key, fmt.Sprintf("no variable %q", match[1]))
		case match[0] == n.Value:
			whole := *value
			whole.Line, whole.Column = n.Line, 0
			return &whole, nil
		case value.Kind != yaml.ScalarNode:
			return nil, r.fault(n, key, fmt.Sprintf("variable %q is not a text, and stands within one", match[1]))
		}
		copied.Value = strings.ReplaceAll(copied.Value, match[0], value.Value)
	}
	// What was a text for its variables may be a number now.
	copied.Column = 0
	if copied.Style == 0 {
		copied.Tag = ""
	}
	return &copied, nil
}
