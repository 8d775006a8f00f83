// Package scenario reads the files and lines in which people ask questions one after the other, by names and Kubernetes quantities.
package scenario

import (
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/internal/tree"
)

// Scenario is a file of questions about a cluster.
type Scenario struct {
	// Cluster are files or directories of manifests; relative ones are relative to the scenario.
	Cluster []string
	// Snapshot and Policy are as the flags of these names.
	Snapshot, Policy string
	// Steps are not translated yet, because their names are those of the cluster.
	Steps []tree.Node
}

// Read reads a scenario.
func Read(file string, data []byte) (*Scenario, error) {
	root, err := tree.Parse(file, data)
	if err != nil {
		return nil, err
	}
	scenario := &Scenario{}
	steps := func(n tree.Node) (err error) {
		scenario.Steps, err = n.Items()
		return err
	}
	if root.Kind == yaml.SequenceNode {
		return scenario, steps(root)
	}
	err = root.Read(tree.Fields{
		"cluster": tree.Texts(&scenario.Cluster), "snapshot": tree.Text(&scenario.Snapshot),
		"policy": tree.Text(&scenario.Policy), "steps": steps,
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
	scenario.Snapshot, scenario.Policy = near(scenario.Snapshot), policy.Near(file, scenario.Policy)
	return scenario, nil
}

// Line reads one step from a line: `shares`, `reclaim: ml/train-0`, `enqueue: {jobs: [ml/a, ml/b]}`. The node is null if the line is empty
// or a comment.
func Line(file string, number int, line string) (tree.Node, error) {
	step, err := tree.ParseText(file, number, line)
	// `- shares`, copied from a file.
	if err == nil && step.Kind == yaml.SequenceNode && len(step.Content) == 1 {
		step.Node = step.Content[0]
	}
	return step, err
}
