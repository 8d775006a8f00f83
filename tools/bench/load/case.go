package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/peer"
)

//go:embed cases.json requests/*.json
var files embed.FS

// testCase is one of cases.json.
type testCase struct {
	Name string `json:"name"`
	// Request is a file of requests/, without its extension.
	Request string `json:"request"`
	// Snapshot is `small` (10 queues, 1,000 tasks) or `standard` (1,000 queues, 100,000 tasks); Source is `inline` or `digest`.
	Snapshot string `json:"snapshot"`
	Source   string `json:"source"`
	// Concurrency is how many calls are made at a time, Total how many altogether.
	Concurrency int `json:"concurrency"`
	Total       int `json:"total"`
	// P99 is the threshold, in milliseconds.
	P99 float64 `json:"p99_ms"` //nolint:tagliatelle // Written by hand.
}

func readCases() ([]testCase, error) {
	data, err := files.ReadFile("cases.json")
	if err != nil {
		return nil, err
	}
	var cases []testCase
	err = json.Unmarshal(data, &cases)
	return cases, err
}

// question is a file of requests/: the method, and the message without the source of its input.
type question struct {
	Call    string          `json:"call"`
	Message json.RawMessage `json:"message"`
}

// asked is a request that has an input.
type asked interface {
	proto.Message
	GetInput() *apportionv1.Input
}

// messages are empty requests by method.
var messages = map[string]func() asked{
	"EvaluateShares":   func() asked { return &apportionv1.EvaluateSharesRequest{} },
	"CheckEnqueue":     func() asked { return &apportionv1.CheckEnqueueRequest{} },
	"CheckAllocatable": func() asked { return &apportionv1.CheckAllocatableRequest{} },
	"SelectVictims":    func() asked { return &apportionv1.SelectVictimsRequest{} },
	"ScoreNodes":       func() asked { return &apportionv1.ScoreNodesRequest{} },
	"Simulate":         func() asked { return &apportionv1.SimulateRequest{} },
}

// question reads what a case asks.
func (c *testCase) question() (method string, message asked, err error) {
	data, err := files.ReadFile("requests/" + c.Request + ".json")
	if err != nil {
		return "", nil, err
	}
	var q question
	if err := json.Unmarshal(data, &q); err != nil {
		return "", nil, err
	}
	empty, ok := messages[q.Call]
	if !ok {
		return "", nil, fmt.Errorf("no call %q", q.Call)
	}
	message = empty()
	return q.Call, message, protojson.Unmarshal(q.Message, message)
}

// snapshot makes what a case asks about.
func (c *testCase) snapshot() (*apportionv1.Snapshot, error) {
	switch c.Snapshot {
	case "small":
		return generate.Snapshot(fixture.Small()), nil
	case "standard":
		return generate.Snapshot(generate.Standard()), nil
	}
	return nil, fmt.Errorf("no snapshot %q", c.Snapshot)
}

// run makes a case's calls to a service of its own.
func (c *testCase) run(ctx context.Context, s settings) (*report, error) {
	method, message, err := c.question()
	if err != nil {
		return nil, err
	}
	server, err := peer.Start(ctx, peer.Patient)
	if err != nil {
		return nil, err
	}
	r, err := c.load(ctx, s, server, method, message)
	return r, errors.Join(err, server.Stop())
}

func (c *testCase) load(ctx context.Context, s settings, server *peer.Peer, method string, message asked) (*report, error) {
	if err := c.source(ctx, server, message.GetInput()); err != nil {
		return nil, err
	}
	data, err := proto.Marshal(message)
	if err != nil {
		return nil, err
	}
	path := func(extension string) string { return filepath.Join(s.out, c.Name+extension) }
	if err := os.WriteFile(path(".binpb"), data, 0o600); err != nil {
		return nil, err
	}
	configuration, err := json.MarshalIndent(map[string]any{
		"name": c.Name, "call": "apportion.v1.ApportionService." + method, "host": server.Address, "insecure": true,
		"concurrency": c.Concurrency, "total": c.Total, "binary-file": path(".binpb"), "timeout": "60s",
		"tags": map[string]string{"request": c.Request, "snapshot": c.Snapshot, "source": c.Source},
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path(".ghz.json"), configuration, 0o600); err != nil {
		return nil, err
	}
	before, err := server.Usage()
	if err != nil {
		return nil, err
	}
	ghz := exec.CommandContext(ctx, s.ghz, path(".ghz.json"), path(".json"), path(".html")) //nolint:gosec // Its user names it.
	if out, err := ghz.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	r, err := readReport(path(".json"))
	if err != nil {
		return nil, err
	}
	if r.usage, err = server.Usage(); err != nil {
		return nil, err
	}
	r.usage.CPU -= before.CPU
	return r, nil
}

// source gives an input its snapshot: the snapshot, or its digest once the service holds it.
func (c *testCase) source(ctx context.Context, server *peer.Peer, in *apportionv1.Input) error {
	snapshot, err := c.snapshot()
	if err != nil {
		return err
	}
	if c.Source == "inline" {
		in.Source = &apportionv1.Input_Snapshot{Snapshot: snapshot}
		return nil
	}
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return err
	}
	conn, err := server.Dial()
	if err != nil {
		return err
	}
	digest, err := peer.Upload(ctx, conn, data)
	in.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}
	return errors.Join(err, conn.Close())
}
