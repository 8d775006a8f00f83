package ui

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// titles are the names of the presets for people.
var titles = map[string]string{
	"proportion":            "Volcano: proportion",
	"capacity":              "Volcano: capacity",
	"capacity-hierarchical": "Volcano: capacity, hierarchical",
	"drf-hierarchical":      "Volcano: drf, hierarchical",
	"fair":                  "Apportion: fair",
}

// NewPolicy returns a policy to offer under a name.
func NewPolicy(name, title string, policy *apportionv1.Policy) (Policy, error) {
	data, err := protojson.Marshal(policy)
	if err != nil {
		return Policy{}, err
	}
	var compact json.RawMessage
	if err := json.Unmarshal(data, &compact); err != nil {
		return Policy{}, err
	}
	return Policy{Name: name, Title: title, Policy: compact}, nil
}

// Presets returns the presets of the command line, Volcano's default first.
func Presets() ([]Policy, error) {
	var all []Policy
	for _, name := range client.Presets() {
		preset, _ := client.Preset(name)
		title := titles[name]
		if title == "" {
			title = name
		}
		policy, err := NewPolicy(name, title, preset)
		if err != nil {
			return nil, err
		}
		all = append(all, policy)
	}
	return all, nil
}
