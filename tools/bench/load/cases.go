package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// settings of cases.
type settings struct {
	ghz, out, binary string
	only             *regexp.Regexp
	strict           bool
}

// ghzCase is calls that ghz makes.
type ghzCase struct {
	name     string
	question caseQuestion
	snapshot generate.Shape
	// held says that the server holds the snapshot, and the calls name it.
	held bool
	// total calls are made, so many at a time.
	atATime, total int
	// p99 is the threshold in milliseconds.
	p99 float64
}

// caseQuestion is what calls ask: by a policy, with a method, a message about an input.
type caseQuestion struct {
	policy, method string
	about          func(*apportionv1.Input) proto.Message
}

var ghzCases = []ghzCase{
	{"inline-small-1", shareQuestion, fixture.Small(), false, 1, 1000, 10},
	{"inline-small-8", shareQuestion, fixture.Small(), false, 8, 4000, 25},
	{"inline-small-64", shareQuestion, fixture.Small(), false, 64, 8000, 100},
	{"inline-100k-1", shareQuestion, generate.Standard(), false, 1, 30, 1000},
	{"inline-100k-8", shareQuestion, generate.Standard(), false, 8, 48, 4000},
	{"inline-100k-64", shareQuestion, generate.Standard(), false, 64, 64, 30_000},
	{"digest-1", taskQuestion, generate.Standard(), true, 1, 5000, 5},
	{"digest-8", taskQuestion, generate.Standard(), true, 8, 20_000, 15},
	{"digest-64", taskQuestion, generate.Standard(), true, 64, 40_000, 60},
	{"digest-shares-8", shareQuestion, generate.Standard(), true, 8, 1000, 100},
	{"digest-enqueue-8", enqueueQuestion, generate.Standard(), true, 8, 1000, 100},
}

var (
	shareQuestion = caseQuestion{
		"proportion", apportionv1.DecisionService_EvaluateShares_FullMethodName,
		func(in *apportionv1.Input) proto.Message { return &apportionv1.EvaluateSharesRequest{Input: in} },
	}
	taskQuestion = caseQuestion{
		"default", apportionv1.DecisionService_Simulate_FullMethodName,
		func(in *apportionv1.Input) proto.Message {
			tasks := &apportionv1.Selector{Indices: []uint32{7, 1007, 2007, 3007, 4007, 5007, 6007, 7007, 8007, 9007}}
			first := &apportionv1.Selector{Indices: tasks.GetIndices()[:1]}
			return &apportionv1.SimulateRequest{Input: in, Steps: []*apportionv1.Step{
				{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: tasks}}},
				{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{Tasks: first}}},
			}}
		},
	}
	enqueueQuestion = caseQuestion{
		"default", apportionv1.DecisionService_CheckEnqueue_FullMethodName,
		func(in *apportionv1.Input) proto.Message {
			return &apportionv1.CheckEnqueueRequest{
				Input: in, Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION},
			}
		},
	}
)

// runCases lets ghz make the calls of one case after the other, each of a server of its own. ghz writes a report of each in HTML and JSON,
// beside the configuration to repeat it. A call that fails is an error; a threshold that is exceeded is one with -strict only.
func runCases(ctx context.Context, s settings) error {
	if err := os.MkdirAll(s.out, 0o750); err != nil {
		return err
	}
	table := sample.NewTable("case", "calls", "at a time", "errors", "calls/s", "p50 ms", "p95 ms", "p99 ms", "threshold p99 ms", "")
	line := sample.NewLine("bench-load")
	var faults []error
	exceeded := 0
	for _, c := range ghzCases {
		if !s.only.MatchString(c.name) {
			continue
		}
		r, err := c.run(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		verdict := "held"
		if r.percentile(99) > c.p99 {
			verdict = "EXCEEDED"
			exceeded++
		}
		failed := 0
		for _, n := range r.Errors {
			failed += n
		}
		if failed > 0 {
			verdict = "FAILED"
			faults = append(faults, fmt.Errorf("%s: %d calls failed: %v", c.name, failed, r.Errors))
		}
		table.Add(c.name, r.Count, c.atATime, failed, r.Rate, r.percentile(50), r.percentile(95), r.percentile(99), c.p99, verdict)
		figure := strings.ReplaceAll(c.name, "-", "_")
		line.Add(figure+"_per_s", r.Rate)
		line.Add(figure+"_p99_ms", r.percentile(99))
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

// run lets ghz call a server that lets calls wait for a minute, because the latency is measured and not which of them are refused.
func (c *ghzCase) run(ctx context.Context, s settings) (r *report, err error) {
	servers, err := launch(ctx, s.binary, 1, func(r *replica.Replica) { r.Processors = 0 },
		"--overload-wait", "1m", "--overload-memory", "8GiB", "--overload-receiving", "4GiB", "--limit-message-bytes", "256MiB")
	if err != nil {
		return nil, err
	}
	defer servers.kill()
	in, err := fixture.Input(generate.Snapshot(c.snapshot), c.question.policy)
	if err != nil {
		return nil, err
	}
	if c.held {
		conn, err := dial(servers[0].Address, 1)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(hold(ctx, conn, in), conn.Close()); err != nil {
			return nil, err
		}
	}
	data, err := proto.Marshal(c.question.about(in))
	if err != nil {
		return nil, err
	}
	path := func(extension string) string { return filepath.Join(s.out, c.name+extension) }
	configuration, err := json.MarshalIndent(map[string]any{
		"name": c.name, "call": strings.ReplaceAll(c.question.method[1:], "/", "."), "host": servers[0].Address, "insecure": true,
		"concurrency": c.atATime, "total": c.total, "binary-file": path(".binpb"), "timeout": "60s",
	}, "", "  ")
	err = errors.Join(err, os.WriteFile(path(".binpb"), data, 0o600), os.WriteFile(path(".ghz.json"), configuration, 0o600))
	if err != nil {
		return nil, err
	}
	ghz := exec.CommandContext(ctx, s.ghz, path(".ghz.json"), path(".json"), path(".html")) //nolint:gosec // Its user names it.
	if out, err := ghz.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	if data, err = os.ReadFile(path(".json")); err != nil {
		return nil, err
	}
	r = &report{}
	return r, json.Unmarshal(data, r)
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
