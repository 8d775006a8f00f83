package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/bench/internal/fixture"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
)

// overloaded runs `load overload` at twice and ten times the sustainable rate, in turns, as a process that leaves the server a processor.
func overloaded(ctx context.Context, t target) (f finding, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	rounds := strconv.Itoa(scaled(5, t.scale))
	command := exec.CommandContext(ctx, self, "overload", "-rates", "2,10", "-rounds", rounds) //nolint:gosec // This very program.
	out, err := command.Output()
	values := map[string]string{}
	_, line, ok := strings.Cut(string(out), "show-overload: ")
	if !ok {
		return f, errors.Join(errors.New("load overload printed no result"), err)
	}
	for pair := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	f.measured = fmt.Sprintf("%s of the peak, by processor time %s; %s of %s MiB", values["good_at_10x_of_peak"],
		values["good_at_10x_of_peak_by_cpu"], values["peak_memory_mib"], values["memory_bound_mib"])
	f.held = err == nil
	return f, nil
}

// tested runs tests of packages whose names match.
func tested(names string, packages ...string) func(context.Context, target) (finding, error) {
	return func(ctx context.Context, _ target) (f finding, err error) {
		//nolint:gosec // G204: tests of this project.
		command := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-run", names}, packages...)...)
		out, failed := command.Output()
		passed := 0
		for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
			var event struct {
				Action string `json:"Action"`
				Test   string `json:"Test"`
			}
			if err := decoder.Decode(&event); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return f, errors.Join(err, failed)
			}
			if event.Action == "fail" && event.Test != "" {
				f.measured += event.Test + " fails; "
			}
			if event.Action == "pass" && event.Test != "" {
				passed++
			}
		}
		f.measured += fmt.Sprintf("%d tests pass", passed)
		f.held = failed == nil && passed > 0
		return f, nil
	}
}

// frozen runs the program that stops replicas.
func frozen(ctx context.Context, t target) (f finding, err error) {
	//nolint:gosec // G204: a program of this project.
	out, err := exec.CommandContext(ctx, "go", "run", "./bench/replicas", "freeze", "-binary", t.binary).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	f.measured, f.held = strings.Join(lines[min(1, len(lines)-1):], "; "), err == nil
	return f, nil
}

// tokenless floods a server with calls that show no token, from the address of a good caller, whose calls do.
func tokenless(ctx context.Context, t target) (f finding, err error) {
	const flooding = 16
	made, err := exec.CommandContext(ctx, t.binary, "config", "token").Output() //nolint:gosec // G204: the server itself.
	if err != nil {
		return f, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(made)) {
		if words := strings.Fields(line); len(words) == 2 {
			fields[strings.TrimSuffix(words[0], ":")] = words[1]
		}
	}
	directory, err := os.MkdirTemp("", "attack")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(directory) //nolint:errcheck // It is temporary.
	configuration := filepath.Join(directory, "apportion.yaml")
	text := fmt.Sprintf("identities:\n  - name: good\n    tokens: [%q]\n", fields["hash"])
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		return f, err
	}
	server, end, err := t.serve(ctx, "--config", configuration)
	if err != nil {
		return f, err
	}
	defer end()
	var sent atomic.Int64
	span := time.Duration(float64(5*time.Second) * t.scale)
	flood := func() error {
		attacking, stop := context.WithTimeout(ctx, span)
		defer stop()
		var all sync.WaitGroup
		for range flooding {
			all.Go(func() {
				small, err := smallQuestion()
				for err == nil && attacking.Err() == nil {
					conn, dialed := dial(server.Address, goodHost)
					if dialed != nil {
						return
					}
					for range 500 {
						if attacking.Err() != nil {
							break
						}
						sent.Add(1)
						_ = call(attacking, conn, small)
					}
					_ = conn.Close()
				}
			})
		}
		all.Wait()
		time.Sleep(2 * settle)
		return nil
	}
	good, err := beside(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+fields["token"]), server.Address, flood)
	if err != nil {
		return f, err
	}
	failed := good.calls.failed + good.fresh.failed
	f.measured = fmt.Sprintf("%d calls without a token in %v; %d of %d good calls failed", sent.Load(), span, failed, good.made())
	f.held = failed == 0
	return f, nil
}

// raced asks a server that is built with the race detector all kinds of questions at a time.
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
	if err := os.Setenv("GORACE", "log_path="+filepath.Join(directory, "race")); err != nil {
		return f, err
	}
	defer os.Unsetenv("GORACE") //nolint:errcheck // It was set.
	server, end, err := t.serve(ctx)
	if err != nil {
		return f, err
	}
	defer end()
	answered, asked, err := mixed(ctx, server.Address, t.raceTime)
	if err != nil {
		return f, err
	}
	if ended := server.Process().Signal(syscall.Signal(0)); ended != nil && errors.Is(ended, os.ErrProcessDone) {
		return f, ended
	}
	races, err := filepath.Glob(filepath.Join(directory, "race.*"))
	if err != nil {
		return f, err
	}
	f.measured = fmt.Sprintf("%d data races in %v; %d of %d calls answered", len(races), t.raceTime, answered, asked)
	f.held = len(races) == 0 && answered > 0
	return f, nil
}

// mixed asks all kinds of questions by eight callers, about a snapshot that is sent and about ones that the server holds.
func mixed(ctx context.Context, server string, lasts time.Duration) (answered, asked int64, err error) {
	in, err := fixture.Input(generate.Snapshot(fixture.Small()), "default")
	if err != nil {
		return 0, 0, err
	}
	// The Input is field 1 of each request.
	data, err := proto.Marshal(&apportionv1.EvaluateSharesRequest{Input: in})
	if err != nil {
		return 0, 0, err
	}
	holder, err := dial(server, 1)
	if err != nil {
		return 0, 0, err
	}
	defer holder.Close() //nolint:errcheck // It ends with the process.
	questions, err := expensiveQuestions(ctx, holder)
	if err != nil {
		return 0, 0, err
	}
	for _, m := range apportionv1.ApportionService_ServiceDesc.Methods {
		questions = append(questions, request{"/" + apportionv1.ApportionService_ServiceDesc.ServiceName + "/" + m.MethodName, data})
	}
	ctx, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	var good, made atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		conn, err := dial(server, 2+i)
		if err != nil {
			return 0, 0, err
		}
		all.Go(func() {
			defer conn.Close() //nolint:errcheck // It ends with the process.
			for n := i; ctx.Err() == nil; n++ {
				made.Add(1)
				if call(ctx, conn, questions[n%len(questions)]) == nil {
					good.Add(1)
				}
			}
		})
	}
	all.Wait()
	return good.Load(), made.Load(), nil
}
