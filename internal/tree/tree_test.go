package tree_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/tree"
)

// job is the type that the tests read.
type job struct {
	name     string
	queues   []string
	replicas uint32
	gang     bool
}

func read(text string) (job, error) {
	root, err := tree.Parse("f", []byte(text))
	if err != nil {
		return job{}, err
	}
	var j job
	err = root.Read(tree.Fields{
		"name": tree.Text(&j.name), "queues": tree.Texts(&j.queues),
		"spec": func(n tree.Node) error {
			return n.Read(tree.Fields{"replicas": tree.Whole(&j.replicas), "gang": tree.Flag(&j.gang)})
		},
	})
	return j, err
}

func TestFieldsAreReadIntoTheirPlaces(t *testing.T) {
	j, err := read("name: a\nqueues: [b, c]\nspec: {replicas: 3, gang: true}\n")
	require.NoError(t, err)
	require.Equal(t, job{"a", []string{"b", "c"}, 3, true}, j)
	for _, text := range []string{"", "# nothing\n", "null", "{}"} {
		j, err = read(text)
		require.NoError(t, err, text)
		require.Equal(t, job{}, j, text)
	}
	j, err = read("queues: b")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, j.queues)
}

func TestAFaultNamesSourceLineAndPath(t *testing.T) {
	for text, want := range map[string]string{
		"anme: a":                         `f:1: anme: no such key; did you mean "name"?`,
		"spec:\n  other: 1":               "f:2: spec.other: no such key; there are gang, replicas",
		"spec:\n  replicas: -1":           "f:2: spec.replicas: not a whole number that is possible here: -1",
		"spec:\n  replicas: 1\n  gang: 2": "f:3: spec.gang: neither true nor false",
		"name: [a]":                       "f:1: name: a text is expected",
		"name: a\nname: b":                "f:2: name: is given twice",
		"? [a]\n: b":                      "f:1: a name is expected",
		"[a]":                             "f:1: keys are expected: name, queues, spec",
		"name: a\n---\nname: b":           "f:3: a second document; one is expected",
		"name: *a":                        "f: not YAML: an alias without its anchor",
		"\x1f\x8b\x08":                    "f: compressed by gzip: unpack it first, as gunzip does",
		"a\x00":                           "f: not YAML: control characters are not allowed",
		"x: 1\nname: {}":                  "f:1: x: no such key; there are name, queues, spec\nf:2: name: a text is expected",
		`"a b": 1`:                        "f:1: a b: no such key; there are name, queues, spec",
		`"a\nb": 1`:                       `f:1: "a\nb": no such key; there are name, queues, spec`,
	} {
		_, err := read(text)
		require.EqualError(t, err, want, text)
	}
	_, err := read(strings.Repeat("x", 100) + ": 1")
	require.ErrorContains(t, err, "f:1: "+strings.Repeat("x", 64)+"…: no such key")
}

func TestANodeIsFoundByItsPath(t *testing.T) {
	root, err := tree.Parse("f", []byte("spec:\n  tasks:\n  - name: a\n  - name: b\n    replicas: 2\n"))
	require.NoError(t, err)
	for path, want := range map[string]string{
		"spec.tasks[1].replicas": "f:5: spec.tasks[1].replicas: x", "spec.tasks[1].other": "f:4: spec.tasks[1]: x",
		"spec.tasks[7].name": "f:3: spec.tasks: x", "other": "f:1: x",
	} {
		require.EqualError(t, root.At(path).Fault("x"), want, path)
	}
}

func TestATextOfOneLineIsOnThatLine(t *testing.T) {
	root, err := tree.ParseText("stdin", 7, "a: {b: [c]}")
	require.NoError(t, err)
	require.EqualError(t, root.At("a.b[0]").Fault("x"), "stdin:7: a.b[0]: x")
	_, err = tree.ParseText("flag --a", 0, "{")
	require.ErrorContains(t, err, "flag --a: not YAML: ")
}

func TestFaultsAreBounded(t *testing.T) {
	_, err := read(strings.Repeat("{}: 1\n", 200))
	require.Len(t, strings.Split(err.Error(), "\n"), 100)
}
