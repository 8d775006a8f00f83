package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/apportion/apportion/adapter/extender/extendertest"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/peer"
)

// extending sends pushes as stock Volcano does, with its default timeout, to a server in a process of its own, and says how long the
// scheduler waited: on an idle machine and on a busy one. It writes a line of name=value for each.
type extending struct {
	binary       string
	buffer       string
	shape        extendertest.Shape
	pushes, load int
	timeout      time.Duration
}

func (s *extending) measure(ctx context.Context) error {
	push, question := extendertest.Push(s.shape), extendertest.Job(s.shape)
	for _, load := range slices.Compact([]int{0, s.load}) {
		if err := s.run(ctx, push, question, load); err != nil {
			return err
		}
	}
	return nil
}

// run starts a server, measures it, and writes a line.
func (s *extending) run(ctx context.Context, push, question []byte, load int) (err error) {
	directory, err := os.MkdirTemp("", "extender-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	server, url, err := s.serve(ctx, directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.End()) }()
	end, err := burden(ctx, load)
	if err != nil {
		return err
	}
	defer end()
	client := &http.Client{Timeout: s.timeout, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	waits, readies, missed := make([]time.Duration, 0, s.pushes), make([]time.Duration, 0, s.pushes), 0
	for range s.pushes {
		begun := time.Now()
		if err := send(ctx, client, url+"/onSessionOpen", push); err != nil {
			missed++
			continue
		}
		waits = append(waits, time.Since(begun))
		if err := send(ctx, client, url+"/jobReady", question); err != nil {
			return err
		}
		readies = append(readies, time.Since(begun))
	}
	slices.Sort(waits)
	slices.Sort(readies)
	abstentions, err := server.Metric(ctx, "apportion_extender_abstentions_total")
	if err != nil {
		return err
	}
	fmt.Printf("pods=%d push_bytes=%d timeout_ms=%d buffer=%s busy=%d processors=%d pushes=%d missed=%d ",
		s.shape.Pods, len(push), s.timeout.Milliseconds(), s.buffer, load, runtime.NumCPU(), s.pushes, missed)
	fmt.Printf("%s %s peak_bytes=%d abstentions=%g\n",
		figures("wait", waits), figures("ready", readies), peer.Peak(server.Process().Pid), abstentions)
	return nil
}

// schedulerConf is the configuration whose plugins decide.
const schedulerConf = `tiers: [{plugins: [{name: priority}, {name: gang}, {name: conformance}]},
  {plugins: [{name: drf}, {name: proportion}]}]`

// serve starts a server that takes pushes at the URL it returns.
func (s *extending) serve(ctx context.Context, directory string) (*replica.Replica, string, error) {
	policy := filepath.Join(directory, "volcano-scheduler.conf")
	if err := os.WriteFile(policy, []byte(schedulerConf), 0o600); err != nil {
		return nil, "", err
	}
	extender, err := replica.Free(ctx)
	if err != nil {
		return nil, "", err
	}
	servers, err := launch(ctx, s.binary, 1, func(r *replica.Replica) { r.Processors = runtime.NumCPU() },
		"--log-level", "warn", "--drain-delay", "0s", "--policies", "cluster="+policy,
		"--extender-listen", extender, "--extender-schedulers", "/volcano=cluster", "--extender-buffer-bytes", s.buffer)
	if err != nil {
		return nil, "", err
	}
	return servers[0], "http://" + extender + "/volcano", nil
}

func figures(name string, sorted []time.Duration) string {
	if len(sorted) == 0 {
		return name + "=none"
	}
	return fmt.Sprintf("%s_min_ms=%d %s_p50_ms=%d %s_max_ms=%d", name, sorted[0].Milliseconds(),
		name, sorted[len(sorted)/2].Milliseconds(), name, sorted[len(sorted)-1].Milliseconds())
}

// send sends a request as Volcano's plugin does, and reads the answer.
func send(ctx context.Context, client *http.Client, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return err
}

// burden starts a process that keeps the machine busy, until the function that it returns is called.
func burden(ctx context.Context, goroutines int) (end func(), err error) {
	if goroutines == 0 {
		return func() {}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	const most = "2m"
	command := exec.CommandContext(ctx, self, "burn", most, fmt.Sprint(goroutines)) //nolint:gosec // G204: this program.
	command.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", goroutines))
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}, nil
}

// busy computes in so many goroutines.
func busy(goroutines int, span time.Duration) {
	until := time.Now().Add(span)
	done := make(chan uint64)
	for seed := range goroutines {
		go func() {
			sum := uint64(seed)
			for time.Now().Before(until) {
				for range 1 << 20 {
					sum = sum*6364136223846793005 + 1442695040888963407
				}
			}
			done <- sum
		}()
	}
	for range goroutines {
		<-done
	}
}
