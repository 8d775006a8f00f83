package reference

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apportion/apportion/internal/test/recording"
)

// Keys of cases that stand in several places.
const (
	allocatableKey = "allocatable"
	queuesKey      = "queues"
)

// Schema is the version of the case schema that is read.
const Schema = 1

// Case is one recorded case: the state of the cluster, the questions, and Volcano's answers.
type Case struct {
	Schema  int    `json:"schema"`
	Profile string `json:"profile"`
	Seed    int64  `json:"seed"`
	// Name is set for hand-made cases.
	Name      string            `json:"name"`
	Conf      string            `json:"conf"`
	Manifests []json.RawMessage `json:"manifests"`
	Script    Script            `json:"script"`
	// Expect is the answers as decoded JSON.
	Expect map[string]any `json:"expect"`
	// Unstable are JSON pointers into Expect.
	Unstable []string `json:"unstable"`
}

// Script contains the questions of a case in addition to those of every case.
type Script struct {
	Reclaims     []Eviction     `json:"reclaims"`
	Preempts     []Eviction     `json:"preempts"`
	VictimQueues []VictimQueues `json:"victimQueues"`
	Simulate     []Simulation   `json:"simulate"`
	NodeTasks    []string       `json:"nodeTasks"`
	EnqueueOrder []string       `json:"enqueueOrder"`
	Events       []Operation    `json:"events"`
}

// Eviction asks which of the candidates a task may evict.
type Eviction struct {
	Task       string   `json:"task"`
	Candidates []string `json:"candidates"`
}

// VictimQueues asks in which order queues lose tasks to a queue.
type VictimQueues struct {
	PreemptorQueue string   `json:"preemptorQueue"`
	Queues         []string `json:"queues"`
}

// Simulation is a what-if about a task.
type Simulation struct {
	Task  string      `json:"task"`
	Steps []Operation `json:"steps"`
}

// Operation changes something about a task, or asks something.
type Operation struct {
	Op   string `json:"op"`
	Task string `json:"task"`
}

// ReadCase decodes a case.
func ReadCase(line recording.Line) (*Case, error) {
	var c Case
	if err := json.Unmarshal(line.Data, &c); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", line.File, line.Number, err)
	}
	if c.Schema != Schema {
		return nil, fmt.Errorf("%s:%d: schema %d is not known, only %d is", line.File, line.Number, c.Schema, Schema)
	}
	if c.Expect == nil {
		return nil, fmt.Errorf("%s:%d: nothing is expected", line.File, line.Number)
	}
	return &c, nil
}

// probes is the group of all hand-made cases.
const probes = "probes"

// Group is the profile, or `probes` for all hand-made cases together.
func (c *Case) Group() string {
	if strings.HasPrefix(c.Profile, "probe:") {
		return probes
	}
	return c.Profile
}

// Label distinguishes the case within its group.
func (c *Case) Label() string {
	if c.Name != "" {
		return c.Name
	}
	return fmt.Sprint(c.Seed)
}
