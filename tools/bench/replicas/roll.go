package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// rolling contains the results of a rolling restart under load.
type rolling struct {
	Count  int            `json:"count"`
	Rate   float64        `json:"rps"`
	Errors map[string]int `json:"errorDistribution"`

	restarted int
	took      time.Duration
}

func (r *rolling) failed() int {
	failed := 0
	for _, n := range r.Errors {
		failed += n
	}
	return failed
}

func (r *rolling) print(line *sample.Line) {
	fmt.Printf("rolling restart under ghz: %d replicas restarted within %v, %d calls at %.0f/s, %d failed\n",
		r.restarted, r.took.Round(time.Millisecond), r.Count, r.Rate, r.failed())
	line.Add("rolling_restarts", float64(r.restarted))
	line.Add("rolling_calls", float64(r.Count))
	line.Add("rolling_failed", float64(r.failed()))
}

func (r *rolling) fault() error {
	if r.failed() > 0 {
		return fmt.Errorf("%w: %v", errFailed, r.Errors)
	}
	return nil
}

var errTooSlow = errors.New("the load ended before the last replica was restarted: give it more -time")

// roll restarts one replica after the other while ghz asks all of them.
func roll(ctx context.Context, s *setting, replicas []*replica.Replica) (*rolling, error) {
	directory, err := os.MkdirTemp("", "drain-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory) //nolint:errcheck // It is temporary.
	file := func(name string) string { return filepath.Join(directory, name) }
	if err := configure(s, replicas, file); err != nil {
		return nil, err
	}
	load := exec.CommandContext(ctx, s.ghz, file("ghz.json"), file("report.json"), file("report.html")) //nolint:gosec // Its user names it.
	load.Stderr = os.Stderr
	if err := load.Start(); err != nil {
		return nil, err
	}
	r, began := &rolling{}, time.Now()
	for _, one := range replicas {
		if err = restart(ctx, one); err != nil {
			break
		}
		r.restarted++
	}
	r.took = time.Since(began)
	if r.took > s.span {
		err = errors.Join(err, errTooSlow)
	}
	if err := errors.Join(err, load.Wait()); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file("report.json"))
	if err != nil {
		return nil, err
	}
	return r, json.Unmarshal(data, r)
}

// configure writes the configuration of ghz and its request: the shares of a snapshot of 1,000 tasks, sent with each call.
func configure(s *setting, replicas []*replica.Replica, file func(string) string) error {
	addresses := make([]string, len(replicas))
	for i, r := range replicas {
		addresses[i] = r.Address
	}
	request, err := proto.Marshal(&apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: generate.Snapshot(fixture.Small())},
		Rule:   &apportionv1.Input_Policy{Policy: client.VolcanoDefault()},
	}})
	if err != nil {
		return err
	}
	configuration, err := json.Marshal(map[string]any{
		"name": "rolling restart", "call": "apportion.v1.ApportionService.EvaluateShares", "insecure": true,
		"host": "static:///" + strings.Join(addresses, ","), "concurrency": 8, "connections": 4,
		"duration": s.span.String(), "max-duration": s.span.String(), "duration-stop": "wait",
		"binary-file": file("request.binpb"), "timeout": "20s",
	})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(file("request.binpb"), request, 0o600), os.WriteFile(file("ghz.json"), configuration, 0o600))
}

// restart ends a replica, starts it anew at its address, and waits until callers have come back to it, as a rolling update does before it
// goes on.
func restart(ctx context.Context, r *replica.Replica) error {
	if err := r.End(); err != nil {
		return fmt.Errorf("a server did not end as it should: %w", err)
	}
	if err := r.Start(ctx); err != nil {
		return err
	}
	if err := r.Ready(ctx); err != nil {
		return err
	}
	return used(ctx, r)
}

// used waits until a replica has answered calls.
func used(ctx context.Context, r *replica.Replica) error {
	const enough = 20
	for range 200 {
		answered, err := r.Answered(ctx, "EvaluateShares")
		if err != nil || answered >= enough {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("no client came back to the server at %s", r.Address)
}
