package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/apportion/apportion/internal/test/replica"
)

// raced asks a server that is built with the race detector all kinds of questions at a time. It breaks if the server reports a race or ends
// early, and if a kind of question was never answered, because nothing is known of that.
func raced(ctx context.Context, t target) (f finding, err error) {
	directory, err := os.MkdirTemp("", "attack")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(directory) //nolint:errcheck // It is temporary.
	t.binary = filepath.Join(directory, "apportion")
	build := exec.CommandContext(ctx, "go", "build", "-race", "-o", t.binary, "./cmd/apportion") //nolint:gosec // This project.
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return f, fmt.Errorf("%w: %s", err, out)
	}
	if err := os.Setenv("GORACE", "exitcode=0 log_path="+filepath.Join(directory, "race")); err != nil {
		return f, err
	}
	defer os.Unsetenv("GORACE") //nolint:errcheck // It was set.
	cluster, err := readCluster(filepath.Join("examples", "clusters", "research"))
	if err != nil {
		return f, err
	}
	api := httptest.NewServer(cluster)
	defer api.Close()
	m := &mixture{directory: directory, tallies: map[string]*tallyOf{}}
	if err := m.configure(ctx, t.binary, api.URL); err != nil {
		return f, err
	}
	several := func(r *replica.Replica) { r.Processors = max(2, runtime.NumCPU()) }
	servers, err := launch(ctx, t.binary, 1, several, "--config", m.configuration)
	if err != nil {
		return f, err
	}
	defer servers.kill()
	m.server = servers[0]
	done, changed := make(chan struct{}), make(chan error, 1)
	go func() { changed <- cluster.change(done) }()
	err = m.ask(ctx, t.raceTime)
	close(done)
	if err := errors.Join(err, <-changed); err != nil {
		return f, err
	}
	if err := m.server.End(); err != nil {
		return f, fmt.Errorf("the server ended: %w", err)
	}
	races, err := reportedRaces(directory)
	if err != nil {
		return f, err
	}
	answered, asked, silent := m.sum()
	f.measured = fmt.Sprintf("%d data races in %v; %d of %d calls of %d kinds answered",
		len(races), t.raceTime, answered, asked, len(m.tallies))
	if len(silent) > 0 {
		f.measured += "; none of " + strings.Join(silent, ", ")
	}
	for _, race := range races {
		fmt.Fprintln(os.Stderr, race)
	}
	f.held = len(races) == 0 && len(silent) == 0 && ctx.Err() == nil
	return f, nil
}

// reportedRaces returns the reports of a race detector that wrote to a directory.
func reportedRaces(directory string) (reports []string, err error) {
	files, err := filepath.Glob(filepath.Join(directory, "race.*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for report := range strings.SplitSeq(string(data), "==================\n") {
			if strings.Contains(report, "DATA RACE") {
				reports = append(reports, report)
			}
		}
	}
	return reports, nil
}

// madeToken returns a new bearer token and its hash.
func madeToken(ctx context.Context, binary string) (token, hash string, err error) {
	made, err := exec.CommandContext(ctx, binary, "config", "token").Output()
	fields := map[string]string{}
	for line := range strings.Lines(string(made)) {
		if words := strings.Fields(line); len(words) == 2 {
			fields[strings.TrimSuffix(words[0], ":")] = words[1]
		}
	}
	return fields["token"], fields["hash"], err
}
