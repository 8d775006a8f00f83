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
	"time"

	"google.golang.org/grpc/metadata"
)

// overloaded runs `load overload` at twice and ten times the sustainable rate, in turns, as a process that leaves the server a processor.
func overloaded(ctx context.Context, t target) (f finding, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	rounds := strconv.Itoa(scaled(5, t.scale))
	//nolint:gosec // This very program.
	command := exec.CommandContext(ctx, self, "overload", "-server", t.binary, "-rates", "2,10", "-rounds", rounds)
	out, err := command.Output()
	values := valuesOf(out, "show-overload")
	if values == nil {
		return f, errors.Join(errors.New("load overload printed no result"), err)
	}
	f.measured = fmt.Sprintf("%s of the peak, %s by processor time used; %s of %s MiB", values["good_at_10x_of_peak"],
		values["good_at_10x_of_peak_by_cpu"], values["peak_memory_mib"], values["memory_bound_mib"])
	f.held = err == nil
	return f, nil
}

// valuesOf returns the values of the line that a program ended its output with, by name, or nil if there is none.
func valuesOf(out []byte, name string) map[string]string {
	_, line, ok := strings.Cut(string(out), name+": ")
	if !ok {
		return nil
	}
	values := map[string]string{}
	for pair := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
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

// tokenless floods a server with calls without a token, from the address of a caller with one.
func tokenless(ctx context.Context, t target) (f finding, err error) {
	const flooding = 16
	token, hash, err := madeToken(ctx, t.binary)
	if err != nil {
		return f, err
	}
	directory, err := os.MkdirTemp("", "attack")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(directory) //nolint:errcheck // It is temporary.
	configuration := filepath.Join(directory, "apportion.yaml")
	text := fmt.Sprintf("identities:\n  - name: good\n    tokens: [%q]\n", hash)
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
	good, err := beside(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), server.Address, flood)
	if err != nil {
		return f, err
	}
	f.measured = fmt.Sprintf("%d calls without a token in %v; %s", sent.Load(), span, good.fate("good calls"))
	f.held = good.failed() == 0
	return f, nil
}
