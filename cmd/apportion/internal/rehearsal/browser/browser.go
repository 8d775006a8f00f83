// Package browser rehearses a history in the page without a server: what `apportion rehearse` does for one policy without memory, from
// bytes to bytes.
package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// MostJobs is the most jobs of a trace: more take a browser longer than people wait.
const MostJobs = 20_000

// Settings are what a person chose.
type Settings struct {
	// Name is that of the run.
	Name string `json:"name"`
	// Policy is the message in protobuf's JSON.
	Policy json.RawMessage `json:"policy"`
	// Entitled has the presets that may say what queues are entitled to, by name.
	Entitled map[string]json.RawMessage `json:"entitled"`
	// Every is the least time between two rounds of decisions, in seconds.
	Every int64 `json:"every"`
}

// Report is what a run found. Its parts are those of `apportion rehearse -o json`.
type Report struct {
	Trace struct {
		Jobs         int      `json:"jobs"`
		FirstArrival int64    `json:"firstArrival"`
		LastArrival  int64    `json:"lastArrival"`
		Notes        []string `json:"notes"`
	} `json:"trace"`
	Resource   string            `json:"resource"`
	EntitledBy string            `json:"entitledBy"`
	Run        *rehearsal.Result `json:"run"`
}

// Run runs a trace, a file of CSV, on the nodes and queues of an encoded Snapshot, and returns a Report in
// JSON. It calls progress with the part that is done.
func Run(snapshot, settings []byte, name string, data []byte, progress func(part float64)) ([]byte, error) {
	chosen := Settings{}
	if err := json.Unmarshal(settings, &chosen); err != nil {
		return nil, fmt.Errorf("the settings: %w", err)
	}
	if chosen.Every < 1 {
		return nil, errors.New("the least time between two rounds of decisions is 1 second or more")
	}
	cluster := &apportionv1.Snapshot{}
	if err := proto.Unmarshal(snapshot, cluster); err != nil {
		return nil, fmt.Errorf("the snapshot: %w", err)
	}
	history, err := read(name, data)
	if err != nil {
		return nil, err
	}
	options := &rehearsal.Options{Every: chosen.Every, Resource: rehearsal.ResourceOf(cluster, ""), Progress: progress}
	out := Report{Resource: options.Resource, EntitledBy: rehearsal.EntitledBy(cluster)}
	if options.Entitlement, err = policyOf(chosen.Entitled[out.EntitledBy]); err != nil {
		return nil, err
	}
	variant := &rehearsal.Variant{Name: chosen.Name, Snapshot: cluster}
	if variant.Policy, err = policyOf(chosen.Policy); err != nil {
		return nil, err
	}
	if out.Run, err = rehearsal.Run(context.Background(), variant, history, options); err != nil {
		return nil, err
	}
	out.Trace.Jobs, out.Trace.Notes = len(history.Jobs), append([]string{}, history.Notes...)
	out.Trace.FirstArrival, out.Trace.LastArrival = history.Jobs[0].Arrival, history.Jobs[len(history.Jobs)-1].Arrival
	return json.Marshal(out)
}

// read reads a trace with jobs.
func read(name string, data []byte) (*trace.Trace, error) {
	if path.Ext(name) != ".csv" {
		return nil, fmt.Errorf("%s is not a trace that the page reads: give a .csv, as docs/rehearse.md describes it. "+
			"The command apportion rehearse reads more formats", name)
	}
	history, err := trace.ReadCSV(name, bytes.NewReader(data), trace.Strict)
	switch {
	case err != nil:
		return nil, err
	case len(history.Jobs) == 0:
		return nil, fmt.Errorf("%s has no jobs", name)
	case len(history.Jobs) > MostJobs:
		return nil, fmt.Errorf("%s has %s. The page rehearses up to %d; the command apportion rehearse runs traces of any size",
			name, text.Count(len(history.Jobs), "job"), MostJobs)
	}
	return history, nil
}

func policyOf(text json.RawMessage) (*apportionv1.Policy, error) {
	policy := &apportionv1.Policy{}
	if err := protojson.Unmarshal(text, policy); err != nil {
		return nil, fmt.Errorf("the policy: %w", err)
	}
	return policy, nil
}
