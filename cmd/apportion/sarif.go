package main

import (
	"io"

	"github.com/apportion/apportion/client/audit"
	"github.com/apportion/apportion/engine"
)

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
	raw, err := marshal(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": driver}, "results": results}},
	})
	if err != nil {
		return err
	}
	_, err = to.Write(raw)
	return err
}
