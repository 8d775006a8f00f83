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

	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/internal/tree"
)

// Suite is a file of tests.
type Suite struct {
	File  string
	Tests []*Test
}

// Test is one test with the values of one of its cases.
type Test struct {
	// Name is the name of the test, with cases followed by a slash and the name of the case.
	Name string
	Line int
	Input
	Steps []Step
}

// Input contains the cluster and the policy of a test. Its fields correspond to the flags of these names.
type Input struct {
	Cluster          []string
	Snapshot, Policy string
}

// Step is a step of a scenario, with the expected answer.
type Step struct {
	Ask tree.Node
	// Expect is nil if any answer is expected.
	Expect *yaml.Node
}

// extensions are the extensions of files of tests.
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
			return nil, fmt.Errorf("%s: the directory contains no file of tests (%s)", path, strings.Join(extensions, ", "))
		}
	}
	return files, nil
}

func isSuite(name string) bool {
	return slices.ContainsFunc(extensions, func(e string) bool { return strings.HasSuffix(name, e) })
}

// Read reads a file of tests: a mapping with `tests`, or a scenario, which is one test.
func Read(file string, data []byte) (*Suite, error) {
	root, err := tree.Parse(file, data)
	if err != nil {
		return nil, err
	}
	common, err := root.Keys(slices.Concat(inputKeys, []string{"variables", "tests", "steps"})...)
	if err != nil {
		return nil, err
	}
	variables, err := withVariables(nil, common["variables"])
	if err != nil {
		return nil, err
	}
	suite := &Suite{File: file}
	tests, listed := common["tests"]
	if steps, single := common["steps"]; single {
		if listed {
			return nil, steps.Fault("cannot be used together with tests")
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		test, err := readTest(name, root, []map[string]tree.Node{common}, variables)
		suite.Tests = []*Test{test}
		return suite, err
	}
	if !listed || tests.Kind != yaml.SequenceNode || len(tests.Content) == 0 {
		return nil, root.FaultAt("tests", "a list of tests is needed")
	}
	items, err := tests.Items()
	for _, item := range items {
		list, err := cases(item, common, variables)
		if err != nil {
			return nil, err
		}
		suite.Tests = append(suite.Tests, list...)
	}
	return suite, err
}

var inputKeys = []string{"cluster", "snapshot", "policy"}

// withVariables adds the variables of a mapping to others, which it may replace. n may be absent.
func withVariables(others map[string]tree.Node, n tree.Node) (map[string]tree.Node, error) {
	all := map[string]tree.Node{}
	maps.Copy(all, others)
	if n.Node == nil {
		return all, nil
	}
	return all, n.Entries(func(name string, _, value tree.Node) error {
		all[name] = value
		return nil
	})
}

// cases returns the tests of an entry of `tests`: one for each of its cases.
func cases(n tree.Node, common, variables map[string]tree.Node) ([]*Test, error) {
	own, err := n.Keys(slices.Concat([]string{"name"}, inputKeys, []string{"variables", "cases", "steps"})...)
	if err != nil {
		return nil, err
	}
	var name string
	if given, ok := own["name"]; ok {
		name = given.Value
	}
	if name == "" {
		return nil, n.FaultAt("name", "is needed")
	}
	if _, given := own["steps"]; !given {
		return nil, n.FaultAt("steps", "is needed")
	}
	variables, err = withVariables(variables, own["variables"])
	if err != nil {
		return nil, err
	}
	scopes := []map[string]tree.Node{own, common}
	list, given := own["cases"]
	if !given {
		test, err := readTest(name, n, scopes, variables)
		return []*Test{test}, err
	}
	items, err := list.Items()
	if err != nil || len(items) == 0 {
		return nil, list.Fault("a list of values by name is expected")
	}
	var tests []*Test
	for i, c := range items {
		values, err := withVariables(variables, c)
		if err != nil {
			return nil, err
		}
		test, err := readTest(name+"/"+caseName(c.Node, i), c, scopes, values)
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

// readTest returns a test. A setting that the first scope lacks comes from the next one.
func readTest(name string, n tree.Node, scopes []map[string]tree.Node, variables map[string]tree.Node) (*Test, error) {
	test := &Test{Name: name, Line: n.Line}
	var steps []tree.Node
	for _, field := range []struct {
		key  string
		read tree.Reader
	}{
		{"snapshot", content(&test.Snapshot)},
		{"policy", content(&test.Policy)},
		{"cluster", func(n tree.Node) error {
			test.Cluster = texts(n.Node)
			return nil
		}},
		{"steps", func(n tree.Node) (err error) {
			steps, err = n.Items()
			return err
		}},
	} {
		at := slices.IndexFunc(scopes, func(scope map[string]tree.Node) bool { return scope[field.key].Node != nil })
		if at < 0 {
			continue
		}
		value, err := filled(scopes[at][field.key], variables)
		if err == nil {
			err = field.read(value)
		}
		if err != nil {
			return nil, err
		}
	}
	place(n.Source, &test.Input)
	for _, n := range steps {
		ask, expect := Split(n)
		if expect != nil && expect.Kind != yaml.MappingNode {
			at := tree.Node{Node: expect, Source: n.Source, Path: "expect"}
			return nil, at.Fault("values by path are expected, as in deserved.gpu: 8")
		}
		test.Steps = append(test.Steps, Step{Ask: ask, Expect: expect})
	}
	return test, nil
}

// content returns a reader of the text of any scalar.
func content(place *string) tree.Reader {
	return func(n tree.Node) error {
		*place = n.Value
		return nil
	}
}

// place makes the files of an input relative to the directory of the suite.
func place(file string, in *Input) {
	near := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(file), name)
	}
	for i := range in.Cluster {
		in.Cluster[i] = near(in.Cluster[i])
	}
	in.Snapshot, in.Policy = near(in.Snapshot), policy.Near(file, in.Policy)
}

// Split removes the expectation from a step and returns it; nil if there is none.
func Split(n tree.Node) (ask tree.Node, expect *yaml.Node) {
	if n.Kind != yaml.MappingNode || len(n.Content) != 4 {
		return n, nil
	}
	for i := 0; i < 4; i += 2 {
		if n.Content[i].Value == "expect" {
			rest := *n.Node
			rest.Content = n.Content[2-i : 4-i]
			return tree.Node{Node: &rest, Source: n.Source}, n.Content[i+1]
		}
	}
	return n, nil
}

// variable is ${name} in a text.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// filled returns a copy of a value with the variables in its texts replaced. A text that consists of one variable becomes its value, of any
// type.
func filled(n tree.Node, variables map[string]tree.Node) (tree.Node, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return replaced(n, variables)
	case yaml.AliasNode:
		return n, n.Fault("aliases are not read")
	default:
	}
	copied := *n.Node
	copied.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		whole, err := filled(tree.Node{Node: child, Source: n.Source, Path: n.Path}, variables)
		if err != nil {
			return n, err
		}
		copied.Content[i] = whole.Node
	}
	n.Node = &copied
	return n, nil
}

func replaced(n tree.Node, variables map[string]tree.Node) (tree.Node, error) {
	matches := variable.FindAllStringSubmatch(n.Value, -1)
	if len(matches) == 0 {
		return n, nil
	}
	copied := *n.Node
	for _, match := range matches {
		value, known := variables[match[1]]
		switch {
		case !known:
			return n, n.Fault("no variable %q", match[1])
		case match[0] == n.Value:
			copied = *value.Node
			copied.Line, copied.Column = n.Line, 0
			n.Node = &copied
			return n, nil
		case value.Kind != yaml.ScalarNode:
			return n, n.Fault("variable %q is used within a text, but its value is not a text", match[1])
		}
		copied.Value = strings.ReplaceAll(copied.Value, match[0], value.Value)
	}
	// A text with variables may have become a number.
	copied.Column = 0
	if copied.Style == 0 {
		copied.Tag = ""
	}
	n.Node = &copied
	return n, nil
}
