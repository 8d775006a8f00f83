package main

import (
	"io"

	"github.com/apportion/apportion/client/audit"
	"github.com/apportion/apportion/engine"
)

// The parts of SARIF 2.1.0 that code hosts read.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifRule struct {
		ID            string    `json:"id"`
		Short         sarifText `json:"shortDescription"`
		Help          sarifText `json:"help"`
		Configuration struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// writeSARIF writes findings in the Static Analysis Results Interchange Format. The levels error, warning and note are the severities. Each
// result names the queue or job; file is the first file of the input, "" for none, because code hosts show only results in a file.
func writeSARIF(to io.Writer, findings []audit.Finding, file string) error {
	log := sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: make([]sarifRun, 1)}
	run := &log.Runs[0]
	run.Tool.Driver = sarifDriver{Name: "apportion", Version: engine.Version, Rules: []sarifRule{}}
	for _, rule := range audit.Rules() {
		r := sarifRule{ID: rule.ID, Short: sarifText{rule.Text}, Help: sarifText{rule.Help}}
		r.Configuration.Level = string(rule.Severity)
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, r)
	}
	run.Results = []sarifResult{}
	for i := range findings {
		f := &findings[i]
		var location sarifLocation
		if file != "" {
			location.Physical = &sarifPhysical{}
			location.Physical.Artifact.URI = file
		}
		switch {
		case f.Job != "":
			location.Logical = []sarifLogical{{f.Job, "job"}}
		case f.Queue != "":
			location.Logical = []sarifLogical{{f.Queue, "queue"}}
		}
		run.Results = append(run.Results, sarifResult{
			Rule: f.Rule, Level: string(f.Severity), Message: sarifText{f.Witness + ". " + f.Help}, Locations: []sarifLocation{location},
		})
	}
	raw, err := marshal(log)
	if err != nil {
		return err
	}
	_, err = to.Write(raw)
	return err
}
