package suite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/cmd/apportion/internal/suite"
)

func node(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var root yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &root))
	return root.Content[0]
}

// answer is an example of the answers to a question about shares and one about victims.
func answer() *suite.Fact {
	leaf := func(key string, value any) *suite.Fact { return &suite.Fact{Key: key, Value: value} }
	group := func(key string, below ...*suite.Fact) *suite.Fact { return &suite.Fact{Key: key, Below: below} }
	queue := func(name string, gpus float64) *suite.Fact {
		return group(name,
			group("deserved", leaf("cpu", suite.Amount{Dimension: "cpu", Value: 26666.7, Present: true}),
				leaf("memory", suite.Amount{Dimension: "memory", Value: 1 << 30, Present: true}),
				leaf("nvidia.com/gpu", suite.Amount{Dimension: "nvidia.com/gpu", Value: gpus, Present: true})),
			group("guarantee", leaf("nvidia.com/gpu", suite.Amount{Dimension: "nvidia.com/gpu"})),
			leaf("overused", true))
	}
	return group("",
		group("plugins", group("proportion", group("queues", queue("language", 26666.67), queue("vision", 8000)))),
		group("standings",
			group("language", leaf("overused", false), leaf("rank", 2.0)),
			group("vision", leaf("overused", true), leaf("reason", "uses 40 of 26.67 GPUs"))),
		leaf("victims", []string{"ml/a-0", "ml/b-0"}),
		group("ml/train", leaf("permitted", false), leaf("reason", "the cluster admits 16")),
		leaf("share", 0.33333))
}

func TestAnExpectationIsMet(t *testing.T) {
	for _, expect := range []string{
		"language.deserved.gpu: 26.67", "language.deserved.nvidia.com/gpu: 26.7", "language: {deserved: {gpu: 26.667, cpu: 26.67}}",
		"vision.deserved.gpu: 8", "vision.deserved.memory: 1Gi", "vision.deserved.gpu: \">= 8\"", "vision.deserved.gpu: < 8500m",
		"vision.guarantee.gpu: absent", "vision.guarantee.gpu: 0", "vision.deserved.gpu: not 9", "vision.deserved.gpu: not >= 9",
		"vision.deserved.gpu: \">=8\"", "vision.deserved.gpu: <8500m", "vision.reason: not contains memory", "vision.deserved.gpu: not absent",
		"queues.language.overused: true",
		"language.overused: false", "rank: 2", "vision.reason: contains 40 of", "vision: contains GPUs", "vision.reason: matches ^uses \\d+",
		"victims: [ml/a-0, ml/b-0]", "victims: [a-0, b-0]", "victims: {includes: [b-0], excludes: [c-0], count: 2}", "victims: contains a-0",
		"ml/train: false", "train.permitted: false", "share: 0.33", "nothing.of.the.kind: absent",
	} {
		t.Run(expect, func(t *testing.T) {
			require.Empty(t, suite.Compare(node(t, expect), node(t, "shares"), answer()))
		})
	}
}

func TestAnExpectationIsNotMet(t *testing.T) {
	for expect, got := range map[string]string{
		"language.deserved.gpu: 26.66":         "26.67",
		"language.deserved.gpu: 26":            "26.67",
		"language.deserved.gpu: < 26":          "26.67",
		"language.deserved.gpu: many":          "26.67",
		"language.deserved.gpu: not many":      "26.67",
		"language.deserved.gpu: not >= 26":     "26.67",
		"language.deserved.gpu: not >= many":   "26.67",
		"language.deserved.gpu: \">27\"":       "26.67",
		"rank: not second":                     "2",
		"train.reason: not matches cluster":    "the cluster admits 16",
		"train.reason: 'not matches ['":        "the cluster admits 16",
		"vision.deserved.gpu: absent":          "8",
		"language.overused: true":              "false",
		"victims: [b-0, a-0]":                  "[ml/a-0, ml/b-0]",
		"victims: {count: 3}":                  "2",
		"victims: {excludes: [a-0]}":           "[ml/a-0, ml/b-0]",
		"train: {permitted: true}":             "false",
		"train.reason: not contains 16":        "the cluster admits 16",
		"langage.deserved.gpu: 1":              `no such part of the answer; did you mean "language"?`,
		"deserved.gpu: 8":                      "2 parts of the answer have this name, such as plugins.proportion.queues.language.deserved.nvidia.com/gpu",
		"vision.reason: matches ^40":           "uses 40 of 26.67 GPUs",
		"vision.deserved.memory: 1.01Gi":       "1Gi",
		"vision: {deserved.gpu: 8, rank: 1, }": "no such part of the answer",
	} {
		t.Run(expect, func(t *testing.T) {
			differences := suite.Compare(node(t, expect), node(t, "shares"), answer())
			require.Len(t, differences, 1)
			require.Contains(t, differences[0].Got, got)
			require.Equal(t, 1, differences[0].Line)
		})
	}
}

func TestAStepThatFailsIsADifferenceUnlessAnErrorIsExpected(t *testing.T) {
	failed := &suite.Fact{Below: []*suite.Fact{{Key: "error", Value: "no task"}}}
	require.Len(t, suite.Compare(nil, node(t, "shares"), failed), 1)
	require.Len(t, suite.Compare(node(t, "rank: 1"), node(t, "shares"), failed), 1)
	require.Empty(t, suite.Compare(node(t, "error: contains task"), node(t, "shares"), failed))
}

func TestCasesFillVariables(t *testing.T) {
	read, err := suite.Read("a/b.test.yaml", []byte(`
cluster: c.yaml
variables: {job: ml/train, keep: {gpu: 1}}
tests:
- name: each
  policy: ${policy}
  cases:
  - {policy: capacity, gpu: 8}
  - {name: other, policy: p.yaml, gpu: 9}
  steps:
  - shares: {queues: ["q-${policy}"]}
    expect: {deserved.gpu: "${gpu}", deserved: "${keep}"}
`))
	require.NoError(t, err)
	require.Len(t, read.Tests, 2)
	require.Equal(t, "each/policy=capacity,gpu=8", read.Tests[0].Name)
	require.Equal(t, "each/other", read.Tests[1].Name)
	require.Equal(t, suite.Input{Cluster: []string{filepath.Join("a", "c.yaml")}, Policy: "capacity"}, read.Tests[0].Input)
	require.Equal(t, filepath.Join("a", "p.yaml"), read.Tests[1].Policy)
	expect, err := yaml.Marshal(read.Tests[1].Steps[0].Expect)
	require.NoError(t, err)
	require.Equal(t, "{deserved.gpu: 9, deserved: {gpu: 1}}\n", string(expect))
}

func TestFaultsNameFileLineAndKey(t *testing.T) {
	for _, test := range []struct{ text, fault string }{
		{"tests: []", "f:1: tests: a list of tests is needed"},
		{"test: []", `f:1: test: no such key; did you mean "tests"?`},
		{"others: []", "f:1: others: no such key; there are cluster, policy, snapshot, steps, tests, variables"},
		{"tests: [{steps: []}]", "f:1: tests[0].name: is needed"},
		{"tests:\n- name: a", "f:2: tests[0].steps: is needed"},
		{"tests: []\nsteps: []", "f:2: steps: cannot be used together with tests"},
		{"steps: [shares: '${x}']", `f:1: steps: no variable "x"`},
		{"steps: [{shares, expect: 1}]", "f:1: expect: values by path are expected, as in deserved.gpu: 8"},
		{"variables: {a: []}\nsteps: [shares: 'a${a}']", `f:2: steps: variable "a" is used within a text, but its value is not a text`},
	} {
		t.Run(test.text, func(t *testing.T) {
			_, err := suite.Read("f", []byte(test.text))
			require.EqualError(t, err, test.fault)
		})
	}
}

func TestFindTakesFilesOfTestsBelowADirectory(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"a.test.yaml", "b/c.test.yml", "b/d.yaml"} {
		path := filepath.Join(directory, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	files, err := suite.Find([]string{directory, filepath.Join(directory, "b", "d.yaml")})
	require.NoError(t, err)
	require.Equal(t, []string{
		filepath.Join(directory, "a.test.yaml"), filepath.Join(directory, "b", "c.test.yml"), filepath.Join(directory, "b", "d.yaml"),
	}, files)
	_, err = suite.Find([]string{t.TempDir()})
	require.ErrorContains(t, err, "no file of tests")
}

func TestUpdateReplacesWhatCanBe(t *testing.T) {
	text := `steps:
- shares: {} # ä
  expect: {vision.deserved.gpu: 9, victims: [c], train.reason: "x, y", rank: ">= 3", none: 1} # kept
`
	read, err := suite.Read("f", []byte(text))
	require.NoError(t, err)
	step := read.Tests[0].Steps[0]
	failed := []suite.FailedStep{{Differences: suite.Compare(step.Expect, step.Ask.Node, answer())}}
	updated, replaced, left := suite.Update([]byte(text), []*suite.Result{{Test: read.Tests[0], Failed: failed}})
	require.Equal(t, `steps:
- shares: {} # ä
  expect: {vision.deserved.gpu: 8, victims: [ml/a-0, ml/b-0], train.reason: the cluster admits 16, rank: ">= 3", none: 1} # kept
`, string(updated))
	require.Equal(t, []int{3, 2}, []int{replaced, left})
}
