package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apportion/apportion/internal/test/replica"
)

// conf is what is decided by.
const conf = `tiers: [{plugins: [{name: priority}, {name: gang}, {name: conformance}]}, {plugins: [{name: drf}, {name: proportion}]}]`

// server is `apportion serve` in a process of its own.
type server struct {
	command    *exec.Cmd
	directory  string
	url, admin string
}

func serve(ctx context.Context, binary, buffer string) (*server, error) {
	directory, err := os.MkdirTemp("", "extender-")
	if err != nil {
		return nil, err
	}
	s := &server{directory: directory}
	if err := s.start(ctx, binary, buffer); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) start(ctx context.Context, binary, buffer string) error {
	policy := filepath.Join(s.directory, "volcano-scheduler.conf")
	if err := os.WriteFile(policy, []byte(conf), 0o600); err != nil {
		return err
	}
	extender, err := replica.Free(ctx)
	if err == nil {
		s.admin, err = replica.Free(ctx)
	}
	if err != nil {
		return err
	}
	s.url = "http://" + extender + "/volcano"
	//nolint:gosec // G204: the caller's own server.
	s.command = exec.CommandContext(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--admin-listen", s.admin, "--log-level", "warn",
		"--drain-delay", "0s", "--policies", "cluster="+policy, "--extender-listen", extender, "--extender-schedulers", "/volcano=cluster",
		"--extender-buffer-bytes", buffer)
	s.command.Stderr = os.Stderr
	if err := s.command.Start(); err != nil {
		return err
	}
	for range 100 {
		if response, err := get(ctx, "http://"+s.admin+"/readyz"); err == nil {
			return response.Body.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the server at %s did not become ready", s.admin)
}

// stop tells the process to end, and waits for it.
func (s *server) stop() error {
	var err error
	if s.command != nil && s.command.Process != nil {
		err = errors.Join(s.command.Process.Signal(syscall.SIGTERM), s.command.Wait())
	}
	return errors.Join(err, os.RemoveAll(s.directory))
}

// peak is the most memory that the process ever held, in bytes; 0 where the system does not say.
func (s *server) peak() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// abstentions is how many questions the server left unanswered; -1 if it does not say.
func (s *server) abstentions(ctx context.Context) int {
	response, err := get(ctx, "http://"+s.admin+"/metrics")
	if err != nil {
		return -1
	}
	defer func() { _ = response.Body.Close() }()
	total := 0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if name, value, _ := strings.Cut(lines.Text(), "} "); strings.HasPrefix(name, "apportion_extender_abstentions_total{") {
			count, _ := strconv.ParseFloat(value, 64)
			total += int(count)
		}
	}
	return total
}

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(response.Status), response.Body.Close())
	}
	return response, err
}
