package main

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/apportion/apportion/bench/internal/peer"
	"github.com/apportion/apportion/bench/internal/sample"
)

// report is what is read of a report of ghz.
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
