package rehearse

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/report"
	"github.com/apportion/apportion/cmd/apportion/internal/sweep"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// sweepFlags say which of the runs a process takes, and where results are kept.
type sweepFlags struct {
	results, shard string
	// index, from 1 on, and count are those of the shard; 0: all runs are taken.
	index, count int
}

// completionIndex is the variable in which Kubernetes gives the pods of an Indexed Job their number, from 0 on.
const completionIndex = "JOB_COMPLETION_INDEX"

func (f *sweepFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.results, "results", "",
		"keep the result of each run in this `DIRECTORY`, and take from there those that are done")
	flags.StringVar(&f.shard, "shard", "", "take each N-th run only, from run I on: `I/N`; I is auto for the number of the pod in an "+
		"Indexed Job of Kubernetes ("+completionIndex+" + 1). `rehearse merge` prints the report")
	cli.Must(command, command.MarkFlagDirname("results"))
}

func (f *sweepFlags) check() error {
	if strings.Contains(f.results, "://") {
		return fmt.Errorf("--results: %q is the address of a store, and not a directory; copy the results there, with rclone for example",
			f.results)
	}
	if f.shard == "" {
		return nil
	}
	if f.results == "" {
		return errors.New("--shard: name the directory in which all shards keep their results, --results")
	}
	index, count, _ := strings.Cut(f.shard, "/")
	var err error
	if f.count, err = strconv.Atoi(count); err != nil || f.count < 1 {
		return fmt.Errorf("--shard: %q is not I/N, such as 3/40 or auto/40", f.shard)
	}
	if index == "auto" {
		pod, err := strconv.Atoi(os.Getenv(completionIndex))
		if err != nil || pod < 0 || pod >= f.count {
			return fmt.Errorf("--shard: the variable %s is %q, and not a number from 0 to %d", completionIndex, os.Getenv(completionIndex),
				f.count-1)
		}
		f.index = pod + 1
		return nil
	}
	if f.index, err = strconv.Atoi(index); err != nil || f.index < 1 || f.index > f.count {
		return fmt.Errorf("--shard: %q is not a number from 1 to %d", index, f.count)
	}
	return nil
}

// checkSweep returns an error if other flags do not go with those of a sweep.
func (r *rehearsing) checkSweep() error {
	switch {
	case r.sweep.shard == "":
		return nil
	case r.report != "" || r.plot != "":
		return errors.New("--shard: the report and the plot are of all runs; give --report and --plot to `rehearse merge`")
	case r.input.Live.Named():
		return errors.New("--shard: processes that each read the cluster may see different ones; give them one dump of it with -f")
	}
	return nil
}

// seeded returns a variant for each seed, or the variant itself without seeds.
func seeded(v *rehearsal.Variant, seeds []uint) []*rehearsal.Variant {
	if len(seeds) == 0 {
		return []*rehearsal.Variant{v}
	}
	var list []*rehearsal.Variant
	for _, seed := range seeds {
		one := *v
		if one.Seed = seed; len(seeds) > 1 {
			one.Name = fmt.Sprintf("%s, seed %d", v.Name, seed)
		}
		list = append(list, &one)
	}
	return list
}

// sweepOf returns the sweep of variants.
func (r *rehearsing) sweepOf(
	about *report.Report, variants []*rehearsal.Variant, history *trace.Trace, options *rehearsal.Options,
) (*sweep.Sweep, error) {
	of, err := history.Digest()
	if err != nil {
		return nil, err
	}
	own, err := release(r.Version)
	if err != nil {
		return nil, err
	}
	s := &sweep.Sweep{Version: own, Shards: max(1, r.sweep.count), Report: *about}
	for _, v := range variants {
		inputs, err := v.Digest(history, of, options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		s.Runs = append(s.Runs, sweep.Run{Name: v.Name, Digest: sweep.Digest(own, inputs)})
	}
	return s, nil
}

// release names the program in sweeps. Builds without a version have the digest of their file.
func release(version string) (string, error) {
	name := version + ", engine " + engine.Version
	if version != "development" {
		return name, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // It is only read.
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, file %x", name, sum.Sum(nil)[:8]), nil
}

// takeSweep runs what has no result yet of the runs of this process, and writes the report, or for a shard what it did.
func (r *rehearsing) takeSweep(
	ctx context.Context, about *report.Report, variants []*rehearsal.Variant, history *trace.Trace, options *rehearsal.Options,
) error {
	s, err := r.sweepOf(about, variants, history, options)
	if err != nil {
		return err
	}
	kept := sweep.Directory(r.sweep.results)
	if err := kept.Begin(s); err != nil {
		return fmt.Errorf("--results: %w", err)
	}
	answer := &shardAnswer{Shard: r.sweep.index, Shards: r.sweep.count, Runs: []string{}, Results: r.sweep.results}
	var left []*rehearsal.Variant
	var runs []sweep.Run
	for i, run := range s.Runs {
		if r.sweep.index != 0 && s.Shard(i) != r.sweep.index {
			continue
		}
		answer.Runs = append(answer.Runs, run.Name)
		switch _, done, err := kept.Load(run); {
		case err != nil:
			return fmt.Errorf("--results: %w", err)
		case done:
			answer.Before++
		default:
			left, runs = append(left, variants[i]), append(runs, run)
		}
	}
	err = r.runAll(ctx, left, history, options, func(i int, found *rehearsal.Result) error { return kept.Save(runs[i], found) })
	switch {
	case err != nil:
		return err
	case r.sweep.index != 0:
		return r.Write(answer, answer.print)
	}
	whole, err := kept.Merge(s)
	if err != nil {
		return err
	}
	return r.writeReport(whole)
}

// runAll runs variants at the same time, as many as there are processors, and calls done with each result.
func (r *rehearsing) runAll(
	ctx context.Context, variants []*rehearsal.Variant, history *trace.Trace, options *rehearsal.Options,
	done func(i int, found *rehearsal.Result) error,
) error {
	show, end := showAdvance(r.Err, variants)
	defer end()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, v := range variants {
		own := *options
		own.Progress = func(part float64) { show(i, part) }
		group.Go(func() error {
			found, err := rehearsal.Run(ctx, v, history, &own)
			if err == nil {
				err = done(i, found)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", v.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// shardAnswer is the answer of a process that took a part of the runs.
type shardAnswer struct {
	Shard  int `json:"shard"`
	Shards int `json:"shards"`
	// Runs are those of the shard, of which Before were done before.
	Runs    []string `json:"runs"`
	Before  int      `json:"before"`
	Results string   `json:"results"`
}

func (a *shardAnswer) print(p *render.Printer) {
	before := ""
	if a.Before > 0 {
		before = fmt.Sprintf(", %d done before", a.Before)
	}
	p.Wrapped("Shard %d/%d: %s%s. Once all shards are done, `apportion rehearse merge %s` prints the report.", a.Shard, a.Shards,
		text.Count(len(a.Runs), "run"), before, render.Quoted([]string{a.Results}))
}

// newRehearseMerge is `apportion rehearse merge`.
func newRehearseMerge(s cli.Streams) *cobra.Command {
	r := &rehearsing{Answering: cli.Answering{Streams: s}}
	command := &cobra.Command{
		Use:   "merge RESULTS",
		Short: "Print the report of a rehearsal whose runs several processes shared",
		Long: `Print the report of the runs that several processes shared (rehearse --shard): to the last byte what one process
prints. RESULTS is the directory of --results or, if that has results of different inputs or versions, the
file sweep-….json of one of them. Runs without a result are named, with the shards to run again.`,
		Example: `  apportion rehearse merge results
  apportion rehearse merge results/sweep-0123456789ab.json -o json --report report.html`,
		Args: cli.Arguments(1, 1, "the directory of the results"),
		RunE: func(_ *cobra.Command, args []string) error {
			found, kept, err := sweep.Find(args[0])
			if err != nil {
				return err
			}
			own, err := release(r.Version)
			if err != nil {
				return err
			}
			if found.Version != own {
				return fmt.Errorf("the results are of another version of this program, %s; this one is %s",
					visible.Text(found.Version), own)
			}
			whole, err := kept.Merge(found)
			if err != nil {
				return err
			}
			return r.writeReport(whole)
		},
	}
	r.registerReport(command)
	return command
}

// showAdvance shows the progress of simulations on a terminal until end is called. The returned function reports the progress.
func showAdvance(out io.Writer, variants []*rehearsal.Variant) (show func(i int, part float64), end func()) {
	line := cli.NewStatusLine(out)
	var lock sync.Mutex
	texts := make([]string, len(variants))
	for i, v := range variants {
		texts[i] = v.Name + " 0 %"
	}
	return func(i int, part float64) {
		lock.Lock()
		defer lock.Unlock()
		texts[i] = fmt.Sprintf("%s %d %%", variants[i].Name, int(100*part))
		line.Show("%s", strings.Join(texts, ", "))
	}, line.End
}
