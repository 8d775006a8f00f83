// Command cli measures the commands that take long on the standard cluster (make bench-cli): each in a fresh process, beside the floor, a
// process that reads the cluster alone. It prints a table, and ends with one line of its figures.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// floor is the argument with which this program reads a cluster alone.
const floor = "-read-alone"

// commands are measured by default, each with what its targets are; 0: none.
var commands = []struct {
	line    string
	seconds float64
}{
	{"get queues", 0},
	{"shares", 0},
	{"verify", 2},
	{"whatif --set queue/queue-00002.weight=5", 0.7},
	{"diff proportion capacity --no-audit", 0},
	{"diff proportion capacity", 5},
	{"diff proportion capacity-hierarchical --no-audit", 0},
	{"diff proportion fair --no-audit", 0},
	{"diff proportion fair", 5},
	{"audit", 5},
	{"audit --policy capacity", 5},
	{"audit --policy fair", 5},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cli:", err)
		os.Exit(1)
	}
}

// read reads a cluster as a command does that then asks nothing.
func read(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return proto.Unmarshal(data, &apportionv1.Snapshot{})
}

func run(args []string) (err error) {
	if len(args) == 2 && args[0] == floor {
		return read(args[1])
	}
	flags := flag.NewFlagSet("cli", flag.ContinueOnError)
	program := flags.String("program", "bin/apportion", "`FILE` of the program")
	rounds := flags.Int("rounds", 3, "how often each command is measured; the table has the medians")
	only := flags.String("only", "", "measure only the commands with this `TEXT`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	directory, err := os.MkdirTemp("", "bench-cli")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	b := bench{program: *program, rounds: max(1, *rounds), file: filepath.Join(directory, "standard.pb")}
	if err := b.generate(ctx); err != nil {
		return err
	}
	return b.measureAll(ctx, *only)
}

// bench measures a program on the cluster in a file.
type bench struct {
	program, file string
	rounds        int
}

// generate writes the standard cluster.
func (b *bench) generate(ctx context.Context) error {
	file, err := os.Create(b.file)
	if err != nil {
		return err
	}
	//nolint:gosec // G204: the program that is measured.
	generate := exec.CommandContext(ctx, b.program, "generate", "--standard", "-o", "binary")
	generate.Stdout, generate.Stderr = file, os.Stderr
	return errors.Join(generate.Run(), file.Close())
}

func (b *bench) measureAll(ctx context.Context, only string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("%d CPUs, %s %s/%s, median of %d rounds, each in a fresh process; load when it began: %s.\n"+
		"Processor time is that of user and system, load that when a command's last round ended.\n\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, b.rounds, load())
	table := sample.NewTable("command", "wall s", "target s", "processor s", "peak MB", "waiting jobs looked at", "load")
	line := sample.NewLine("bench-cli")
	add := func(name, target string, u usage) {
		table.Add(name, fmt.Sprintf("%.2f", u.wall), target, fmt.Sprintf("%.2f", u.processor), fmt.Sprintf("%.0f", u.peak), u.looked,
			load())
		key := strings.Map(letter, name)
		line.Add(key+"_wall_s", u.wall)
		line.Add(key+"_processor_s", u.processor)
		line.Add(key+"_peak_mb", u.peak)
	}
	least, err := b.measure(ctx, self, floor, b.file)
	if err != nil {
		return err
	}
	add("the floor: read the file", "", least)
	for _, c := range commands {
		if !strings.Contains(c.line, only) {
			continue
		}
		u, err := b.measure(ctx, b.program, append(strings.Fields(c.line), "--snapshot", b.file)...)
		if err != nil {
			return fmt.Errorf("%s: %w", c.line, err)
		}
		target := ""
		if c.seconds > 0 {
			target = fmt.Sprint(c.seconds)
		}
		if verb, _, _ := strings.Cut(c.line, " "); u.looked == "" && (verb == "audit" || verb == "diff") {
			u.looked = "all"
		}
		add(c.line, target, u)
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	fmt.Println("\n" + line.String())
	return nil
}

// letter makes a name of a command line.
func letter(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '_'
}

// load returns the load of the machine, where the system reports it.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

// usage is what a process took, in seconds and megabytes, and what it says of waiting jobs that it did not look at.
type usage struct {
	wall, processor, peak float64
	looked                string
}

// unseen returns what a command says of waiting jobs that it did not look at; empty if it looked at all.
func unseen(shown string) string {
	for line := range strings.Lines(shown) {
		if strings.Contains(line, "not compared") || strings.Contains(line, "victims were sought") {
			return strings.Trim(strings.TrimSpace(line), "()")
		}
	}
	return ""
}

// measure returns the median of what a process takes.
func (b *bench) measure(ctx context.Context, program string, arguments ...string) (usage, error) {
	var wall, processor, peak []float64
	looked := ""
	for range b.rounds {
		u, err := once(ctx, program, arguments...)
		if err != nil {
			return usage{}, err
		}
		looked = u.looked
		wall, processor, peak = append(wall, u.wall), append(processor, u.processor), append(peak, u.peak)
	}
	return usage{sample.Median(wall), sample.Median(processor), sample.Median(peak), looked}, nil
}

// once runs a process to its end. That it decides no is no error.
func once(ctx context.Context, program string, arguments ...string) (usage, error) {
	const decidedNo = 2
	var told, shown bytes.Buffer
	process := exec.CommandContext(ctx, program, arguments...) //nolint:gosec // G204: the program that is measured.
	process.Stdout, process.Stderr = &shown, &told
	begun := time.Now()
	if err := process.Start(); err != nil {
		return usage{}, err
	}
	ended, watched := make(chan struct{}), make(chan int64)
	go func() { watched <- watch(process.Process.Pid, ended) }()
	err := process.Wait()
	u := usage{wall: time.Since(begun).Seconds()}
	close(ended)
	u.peak = float64(<-watched) / 1e6
	if process.ProcessState.ExitCode() != decidedNo && err != nil {
		return u, fmt.Errorf("%w: %s", err, strings.TrimSpace(told.String()))
	}
	u.looked = unseen(shown.String())
	u.processor = (process.ProcessState.UserTime() + process.ProcessState.SystemTime()).Seconds()
	return u, nil
}

// watch reads the peak memory of a process until it has ended.
func watch(pid int, ended <-chan struct{}) (peak int64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		peak = max(peak, peer.Peak(pid))
		select {
		case <-ended:
			return peak
		case <-tick.C:
		}
	}
}
