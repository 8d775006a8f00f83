package review

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// checked is the result of the check of an input, in its JSON form.
type checked struct {
	Valid bool `json:"valid"`
	counts
	Faults   []diagnostic `json:"faults"`
	Warnings []diagnostic `json:"warnings"`
	// Omitted counts the faults that are not listed.
	Omitted  int             `json:"omittedFaults,omitempty"`
	Findings []audit.Finding `json:"findings"`
	Partial  string          `json:"partial,omitempty"`

	warnings []*apportionv1.Warning
	// audited is true if more than the input was checked.
	audited bool
	// unjudged says that much of it could not be judged, because the nodes are not known or objects of another system were not read.
	unjudged bool
}

// diagnostic is a fault or a warning. Place is file:line and the key, or the known part of these.
type diagnostic struct {
	Code    string `json:"code,omitempty"`
	Place   string `json:"place,omitempty"`
	Message string `json:"message"`
}

// counts contains the numbers of entities of a snapshot and a policy.
type counts struct {
	Queues  int `json:"queues"`
	Jobs    int `json:"jobs"`
	Tasks   int `json:"tasks"`
	Nodes   int `json:"nodes"`
	Plugins int `json:"plugins"`
	Tiers   int `json:"tiers"`

	manifests bool
}

// String lists the counts in words.
func (c counts) String() string {
	tiers := fmt.Sprintf("%s in %s", text.Count(c.Plugins, "plugin"), text.Count(c.Tiers, "tier"))
	if !c.manifests {
		return tiers
	}
	return strings.Join([]string{
		text.Count(c.Queues, "queue"), text.Count(c.Jobs, "job"), text.Count(c.Tasks, "task"), text.Count(c.Nodes, "node"), tiers,
	}, ", ")
}

// count counts the entities of an input, and copies its warnings.
func (c *checked) count(in *question.Loaded) {
	c.Tiers, c.Plugins = policy.Count(in.Policy)
	c.manifests, c.Jobs = true, len(in.Lookup.GetJobs())
	for _, q := range in.Lookup.GetQueues() {
		// Cohorts hold no jobs of their own.
		if !q.GetKueue().GetCohort() {
			c.Queues++
		}
	}
	c.Tasks, c.Nodes = len(in.Lookup.Tasks), len(in.Lookup.GetNodes())
	c.warnings = in.Warnings
}

// complete adds the warnings, and the faults in an error.
func (c *checked) complete(err error) {
	c.Valid, c.Faults, c.Warnings = err == nil, []diagnostic{}, []diagnostic{}
	c.Findings = append([]audit.Finding{}, c.Findings...)
	for _, w := range c.warnings {
		c.Warnings = append(c.Warnings, diagnostic{
			Code: strings.TrimPrefix(w.GetCode().String(), "WARNING_CODE_"), Place: w.GetPath(), Message: w.GetMessage(),
		})
	}
	if err == nil {
		return
	}
	if faults, ok := errors.AsType[*objects.Error](err); ok {
		for _, p := range faults.Problems {
			place := fmt.Sprintf("%s:%d", p.File, p.Line)
			if p.Path != "" {
				place += ": " + p.Path
			}
			c.Faults = append(c.Faults, diagnostic{Place: place, Message: p.Message})
		}
		c.Omitted = faults.Total - len(faults.Problems)
		return
	}
	lines := []string{cli.Describe(err)}
	if _, total := client.Violations(err); total > 1 {
		lines = strings.Split(lines[0], "\n")
	}
	for _, line := range lines {
		c.Faults = append(c.Faults, diagnostic{Message: line})
	}
}

// object is an object of JSON.
type object = map[string]any

// writeSARIF writes findings in the Static Analysis Results Interchange Format 2.1.0, with the parts that code hosts read. The levels
// error, warning and note are the severities. Each result names the queue or job; file is the first file of the input, "" for none, because
// code hosts show only results in a file.
func writeSARIF(to io.Writer, findings []audit.Finding, file string) error {
	rules, results := []object{}, []object{}
	for _, rule := range audit.Rules() {
		rules = append(rules, object{
			"id": rule.ID, "shortDescription": object{"text": rule.Text}, "help": object{"text": rule.Help},
			"defaultConfiguration": object{"level": rule.Severity},
		})
	}
	for i := range findings {
		f := &findings[i]
		location := object{}
		if file != "" {
			location["physicalLocation"] = object{"artifactLocation": object{"uri": file}}
		}
		switch {
		case f.Job != "":
			location["logicalLocations"] = []object{{"fullyQualifiedName": f.Job, "kind": "job"}}
		case f.Queue != "":
			location["logicalLocations"] = []object{{"fullyQualifiedName": f.Queue, "kind": "queue"}}
		}
		results = append(results, object{
			"ruleId": f.Rule, "level": f.Severity, "message": object{"text": f.Witness + ". " + f.Help}, "locations": []object{location},
		})
	}
	driver := object{"name": "apportion", "version": engine.Version, "rules": rules}
	raw, err := cli.Marshal(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": driver}, "results": results}},
	})
	if err != nil {
		return err
	}
	_, err = to.Write(raw)
	return err
}
