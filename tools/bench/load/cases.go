package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// settings of cases.
type settings struct {
	ghz, out string
	only     *regexp.Regexp
	strict   bool
}

// runCases makes the calls of cases.json one case after the other, each with a service of its own: the questions of requests/, about
// generated snapshots, inline and by digest, with 1, 8 and 64 at a time. It writes a report of every case in HTML and JSON and the
// configuration to repeat it, compares with the thresholds, and ends with one line of its main figures. A call that fails is an error; a
// threshold that is exceeded is one with -strict only.
func runCases(ctx context.Context, s settings) error {
	cases, err := readCases()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o750); err != nil {
		return err
	}
	table := sample.NewTable("case", "calls", "at a time", "errors", "calls/s", "p50 ms", "p95 ms", "p99 ms",
		"threshold p99 ms", "", "server CPU ms/call", "server peak MB")
	line := sample.NewLine("bench-load")
	var faults []error
	exceeded := 0
	for _, c := range cases {
		if !s.only.MatchString(c.Name) {
			continue
		}
		r, err := c.run(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		verdict := "held"
		if r.percentile(99) > c.P99 {
			verdict = "EXCEEDED"
			exceeded++
		}
		if r.failed() > 0 {
			verdict = "FAILED"
			faults = append(faults, fmt.Errorf("%s: %d calls failed: %v", c.Name, r.failed(), r.Errors))
		}
		table.Add(c.Name, r.Count, c.Concurrency, r.failed(), r.Rate, r.percentile(50), r.percentile(95), r.percentile(99), c.P99, verdict,
			sample.Milliseconds(r.usage.CPU)/float64(max(r.Count, 1)), float64(r.usage.Peak)/1e6)
		line.Add(figure(c.Name)+"_per_s", r.Rate)
		line.Add(figure(c.Name)+"_p99_ms", r.percentile(99))
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	fmt.Printf("\nReports: %s/*.html and *.json\n\n", s.out)
	line.Add("exceeded", float64(exceeded))
	fmt.Println(line)
	if s.strict && exceeded > 0 {
		faults = append(faults, fmt.Errorf("%d thresholds exceeded", exceeded))
	}
	return errors.Join(faults...)
}

// report holds the parts of ghz's report that are used.
type report struct {
	Count        int            `json:"count"`
	Rate         float64        `json:"rps"`
	Errors       map[string]int `json:"errorDistribution"`
	Distribution []struct {
		Percentage int           `json:"percentage"`
		Latency    time.Duration `json:"latency"`
	} `json:"latencyDistribution"`

	usage peer.Usage
}

func readReport(path string) (*report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &report{}
	return r, json.Unmarshal(data, r)
}

// failed counts the calls that did not succeed.
func (r *report) failed() int {
	n := 0
	for _, k := range r.Errors {
		n += k
	}
	return n
}

// percentile returns a percentile of the latencies in milliseconds, 0 if ghz did not report it.
func (r *report) percentile(p int) float64 {
	for _, d := range r.Distribution {
		if d.Percentage == p {
			return sample.Milliseconds(d.Latency)
		}
	}
	return 0
}

// figure is a case's name as part of the name of a figure.
func figure(name string) string { return strings.ReplaceAll(name, "-", "_") }
