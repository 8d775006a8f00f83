// Package kubescheduler makes random clusters, and reads the recorded answers of Kubernetes' scheduler about them: the nodes that pass its
// filters for each waiting pod, and its reasons for the others.
package kubescheduler

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Cluster is a cluster with the scheduler's answers about its waiting pods.
type Cluster struct {
	// Seed is the seed that Generate makes the cluster from.
	Seed uint64 `json:"seed"`
	// Objects is a List of all objects as the API server returned them, without what differs from run to run.
	Objects json.RawMessage `json:"objects"`
	// Pods has an answer for each waiting pod, in order of namespace and name.
	Pods []Answer `json:"pods"`
}

// Answer is the scheduler's answer about a waiting pod.
type Answer struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Feasible are the names of the nodes that passed every filter, sorted.
	Feasible []string `json:"feasible"`
	// Reasons counts the other nodes by the scheduler's reason. A node counts once for each resource that it lacks, or else once, for the
	// first filter that it failed.
	Reasons map[string]int `json:"reasons"`
	// Rejected is the reason for which the scheduler rejected the pod before it looked at nodes; empty if it looked at them.
	Rejected string `json:"rejected,omitempty"`
}

// Pod returns the name of the pod with its namespace.
func (a *Answer) Pod() string { return a.Namespace + "/" + a.Name }

// RefusedByOthers is the scheduler's reason for nodes whose pods have an anti-affinity to the waiting pod.
const RefusedByOthers = "node(s) didn't satisfy existing pods anti-affinity rules"

// Passed is the reason with which the recorder rejects nodes that passed every filter, so that the pod stays where it is.
const Passed = "node(s) passed every filter" //nolint:gosec // This is no password.

var (
	unavailable = regexp.MustCompile(`^0/\d+ nodes are available: (.*)\.$`)
	counted     = regexp.MustCompile(`(?:^|, )(\d+) `)
)

// Explain sets the reasons from the message of the pod's condition PodScheduled.
func (a *Answer) Explain(message string) error {
	match := unavailable.FindStringSubmatch(message)
	if match == nil {
		return fmt.Errorf("not a message about nodes: %q", message)
	}
	a.Reasons, a.Rejected = map[string]int{}, ""
	starts := counted.FindAllStringSubmatchIndex(match[1], -1)
	if len(starts) == 0 || starts[0][0] != 0 {
		a.Rejected = match[1]
		return nil
	}
	for i, start := range starts {
		end := len(match[1])
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		count, err := strconv.Atoi(match[1][start[2]:start[3]])
		if err != nil {
			return err
		}
		if reason := match[1][start[1]:end]; reason != Passed {
			a.Reasons[reason] += count
		} else if count != len(a.Feasible) {
			return fmt.Errorf("%d nodes passed every filter, not %d: %q", count, len(a.Feasible), message)
		}
	}
	if passed := strings.Contains(match[1], Passed); passed != (len(a.Feasible) > 0) {
		return fmt.Errorf("%d nodes passed every filter: %q", len(a.Feasible), message)
	}
	return nil
}

// Read reads a file that Write wrote.
func Read(file string) ([]Cluster, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var clusters []Cluster
	for from := json.NewDecoder(bufio.NewReader(unzipped)); ; {
		var c Cluster
		switch err := from.Decode(&c); {
		case errors.Is(err, io.EOF):
			return clusters, nil
		case err != nil:
			return nil, fmt.Errorf("%s: cluster %d: %w", file, len(clusters)+1, err)
		}
		clusters = append(clusters, c)
	}
}

// Write writes one cluster a line, compressed.
func Write(file string, clusters []Cluster) error {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	to := json.NewEncoder(zipped)
	to.SetEscapeHTML(false)
	for i := range clusters {
		if err := to.Encode(&clusters[i]); err != nil {
			return err
		}
	}
	if err := zipped.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}
