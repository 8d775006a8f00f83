// Package scenario reads the files and lines in which people ask questions one after the other, by names and Kubernetes quantities.
package scenario

import (
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/cmd/apportion/internal/document"
)

// Scenario is a file of questions about a cluster.
type Scenario struct {
	// Cluster are files or directories of manifests; relative ones are relative to the scenario.
	Cluster []string
	// Snapshot, Config and Policy are as the flags of these names.
	Snapshot, Config, Policy string
	// Steps are not translated yet, because their names are those of the cluster.
	Steps []*yaml.Node
}

// Read reads a scenario.
func Read(file string, data []byte) (*Scenario, error) {
	root, err := document.Parse(file, data)
	if err != nil {
		return nil, err
	}
	s, scenario := source{file}, &Scenario{}
	steps := func(key string, n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return s.fault(n, key, "a list is expected")
		}
		scenario.Steps = n.Content
		return nil
	}
	if root.Kind == yaml.SequenceNode {
		return scenario, steps("", root)
	}
	err = s.mapping(root, "", readers{
		"cluster": s.texts(&scenario.Cluster), "snapshot": s.text(&scenario.Snapshot),
		"config": s.text(&scenario.Config), "policy": s.text(&scenario.Policy), "steps": steps,
	})
	if err != nil {
		return nil, err
	}
	near := func(name string) string {
		if name == "" || name == "-" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(file), name)
	}
	for i := range scenario.Cluster {
		scenario.Cluster[i] = near(scenario.Cluster[i])
	}
	scenario.Snapshot, scenario.Config = near(scenario.Snapshot), near(scenario.Config)
	return scenario, nil
}

// Line reads one step from a line: `shares`, `reclaim: ml/train-0`, `enqueue: {jobs: [ml/a, ml/b]}`. Nil: the line is empty or a comment.
func Line(file string, number int, line string) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(line), &root); err != nil {
		return nil, &document.FaultError{File: file, Line: number, Message: "not a step in one line of YAML"}
	}
	if len(root.Content) == 0 {
		return nil, nil //nolint:nilnil // nothing is on the line, and that is no fault
	}
	step := root.Content[0]
	// `- shares`, copied from a file.
	if step.Kind == yaml.SequenceNode && len(step.Content) == 1 {
		step = step.Content[0]
	}
	place(step, number)
	return step, nil
}

// place moves a tree of one line to a line of the input.
func place(n *yaml.Node, line int) {
	n.Line = line
	for _, child := range n.Content {
		place(child, line)
	}
}
