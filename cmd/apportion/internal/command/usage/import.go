package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/internal/moment"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/history"
)

// newUsageImport is `apportion usage import`.
func newUsageImport(s cli.Streams) *cobra.Command {
	var kept question.KeptLedger
	a := &cli.Answering{Streams: s}
	from := string(history.Slurm)
	var given importFlags
	var asked rangeFlags
	command := &cobra.Command{
		Use:   "import --ledger FILE --from FORMAT {HISTORY...|--url URL}",
		Short: "Fill a ledger from Slurm's sacct, a range query of Prometheus, or CSV",
		Long: `Fill a ledger, new or not, from the history of another system; - is standard input. Rows that cannot be
read are left out and counted, with an example of each kind.

Each row counts once by its identity, in any number of imports, in any order, overlapping or not. Once a
server has used the ledger its older epochs are closed: what lies there is left out, and said. A task without
an end counts until the time of its history (the newest time in it, or --as-of); the end corrects it in a
later import.

sacct: TZ=UTC sacct -X -a -P -D -o JobID,Cluster,Account,User,Start,End,AllocTRES,Suspended, with its first line.
The account is the queue, the user the owner. Without -D runs before a requeue are missing. Times are UTC.
prometheus: the JSON of query_range. Each series is a use of the queue that --queue-label names; --metric says of
what. With --url the server is asked for --query from --since to --until, every --step; of a file --step is
the distance of two samples.
csv: columns task, queue, owner, start, end, and one for each resource, with quantities such as 8 and 64Gi.

A queue is directly below the root unless --queues or --path says where it is. Import with the tree: usage stays
where it was charged.`,
		Example: `  TZ=UTC sacct -X -a -P -D -S 2026-01-01 -o JobID,Cluster,Account,User,Start,End,AllocTRES,Suspended > sacct.txt
  apportion usage import --ledger usage.ledger --from sacct sacct.txt
  apportion usage import --ledger usage.ledger --from prometheus --url http://prometheus:9090 --query gpus_by_queue --since 2026-10-01
  apportion usage import --ledger usage.ledger --from csv --path vision/research/root history.csv`,
		RunE: func(command *cobra.Command, args []string) error {
			o, err := given.options(command.Context())
			if err != nil {
				return err
			}
			switch {
			case (asked.URL == "") == (len(args) == 0):
				return errors.New("name files, or a server with --url")
			case asked.URL == "":
				if command.Flags().Changed("step") {
					o.Step = int64(asked.Step / time.Second)
				}
				return importUsage(a, &kept, args, func(to *ledger.Ledger, name string) (*history.Report, error) {
					return importFile(s, to, history.Format(from), o, name)
				})
			case history.Format(from) != history.Prometheus:
				return errors.New("--url needs --from prometheus")
			}
			query, err := asked.query(o.Now)
			if err != nil {
				return err
			}
			return importUsage(a, &kept, []string{asked.URL}, func(to *ledger.Ledger, _ string) (*history.Report, error) {
				return history.ReadRange(command.Context(), query, o, to)
			})
		},
	}
	a.Register(command)
	kept.Register(command)
	cli.Choose(command, &from, "from", "", "format of the history", string(history.Slurm), string(history.Prometheus), string(history.CSV))
	given.register(command)
	asked.register(command)
	return command
}

// importFlags say how a history is read.
type importFlags struct {
	history.Options

	queues, asOf string
	paths        []string
}

func (f *importFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.queues, "queues", "",
		"`FILE` of the queues, as convert --from and kubectl get queues -o yaml write it: it says where each is in the tree")
	flags.StringSliceVar(&f.paths, "path", nil,
		"path of a queue that is not directly below the root, the queue first: vision/research/root, or my_lab=my-lab/research/root for a "+
			"queue of another name (repeatable)")
	flags.StringVar(&f.asOf, "as-of", "", "`TIME` of the history, until when tasks without an end ran; default: the newest time in it")
	flags.StringVar(&f.Metric, "metric", "nvidia.com/gpu", "resource that a range query of Prometheus counts")
	flags.StringVar(&f.QueueLabel, "queue-label", "queue", "label of the queue in a range query")
	flags.StringVar(&f.OwnerLabel, "owner-label", "user", "label of the owner in a range query")
	cli.Must(command, command.MarkFlagFilename("queues", cli.FormatYAML, "yml"))
}

// options returns how a history is read by the flags, now.
func (f *importFlags) options(ctx context.Context) (history.Options, error) {
	o := f.Options
	var err error
	if o.Queues, err = pathsOf(ctx, f.queues); err != nil {
		return o, err
	}
	o.Now, o.Tree = time.Now().Unix(), f.queues != ""
	if f.asOf != "" {
		at, err := moment.Parse(f.asOf)
		if err != nil {
			return o, fmt.Errorf("--as-of: %w", err)
		}
		o.AsOf = at.Unix()
	}
	for _, path := range f.paths {
		name, renamed, is := strings.Cut(path, "=")
		if !is {
			name, _, _ = strings.Cut(path, "/")
			renamed = path
		}
		o.Queues[name] = strings.Split(renamed, "/")
	}
	return o, nil
}

// pathsOf returns the path of each queue of a file, the queue first. Without a file there are none.
func pathsOf(ctx context.Context, file string) (map[string][]string, error) {
	paths := map[string][]string{}
	if file == "" {
		return paths, nil
	}
	sources, err := (&question.InputFlags{Files: []string{file}}).Sources(ctx, nil)
	if err != nil {
		return nil, err
	}
	cluster, err := volcano.ReadManifests(sources)
	if err != nil {
		return nil, err
	}
	parents := map[string]string{}
	for _, q := range cluster.Snapshot.GetQueues() {
		parents[q.GetName()] = cmp.Or(q.GetParent(), "root")
	}
	for name := range parents {
		path := []string{name}
		for at := name; at != "root" && len(path) <= len(parents); path = append(path, at) {
			at = cmp.Or(parents[at], "root")
		}
		if path[len(path)-1] != "root" {
			return nil, fmt.Errorf("%s: the parents of queue %s form a circle", file, name)
		}
		paths[name] = path
	}
	return paths, nil
}

// rangeFlags are those of a range query.
type rangeFlags struct {
	history.Range

	since, until, token string
}

func (f *rangeFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.URL, "url", "", "`URL` of a server of Prometheus to ask, instead of files")
	flags.StringVar(&f.Query, "query", "", "query of --url, such as kai_queue_allocated_gpus")
	flags.StringVar(&f.since, "since", "", "first `DAY` of --url, such as 2026-10-01")
	flags.StringVar(&f.until, "until", "", "`DAY` before which --url ends; default: now")
	cli.DurationVar(flags, &f.Step, "step", 5*time.Minute,
		"distance of two samples of --url, and of a file; default of a file: that of all its samples")
	flags.StringVar(&f.token, "token-file", "", "`FILE` of a bearer token for --url")
	cli.DurationVar(flags, &f.Timeout, "timeout", time.Minute, "longest time for an answer of --url")
	flags.Int64Var(&f.Bytes, "max-bytes", 256<<20, "most bytes of an answer of --url")
	cli.Must(command, command.MarkFlagFilename("token-file"))
}

// query returns the range query; now is the time in Unix seconds.
func (f *rangeFlags) query(now int64) (*history.Range, error) {
	var err error
	if f.Begin, err = time.Parse(time.DateOnly, f.since); err != nil {
		return nil, fmt.Errorf("--since: a day such as 2026-10-01 is expected, not %q", f.since)
	}
	if f.End = time.Unix(now, 0); f.until != "" {
		if f.End, err = time.Parse(time.DateOnly, f.until); err != nil {
			return nil, fmt.Errorf("--until: a day such as 2026-10-01 is expected, not %q", f.until)
		}
	}
	if f.token != "" {
		token, err := os.ReadFile(f.token)
		if err != nil {
			return nil, err
		}
		f.Token = strings.TrimSpace(string(token))
	}
	return &f.Range, nil
}

// imported is the answer of `apportion usage import`, in its JSON form.
type imported struct {
	Ledger    string            `json:"ledger"`
	Histories []importedHistory `json:"histories"`
	// Warnings say what of the histories does not count because of what the ledger has.
	Warnings []string `json:"warnings,omitempty"`
}

// importedHistory counts the rows of one history.
type importedHistory struct {
	Name         string   `json:"name"`
	Rows         int      `json:"rows"`
	WithUsage    int      `json:"withUsage"`
	WithoutUsage int      `json:"withoutUsage"`
	StillRunning int      `json:"stillRunning,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
}

// importUsage fills a ledger from several histories, each read by a function.
func importUsage(
	a *cli.Answering, kept *question.KeptLedger, names []string, read func(*ledger.Ledger, string) (*history.Report, error),
) error {
	options, err := kept.Options()
	if err != nil {
		return err
	}
	filled, err := ledger.New(options)
	if err != nil {
		return err
	}
	answer := imported{Ledger: kept.Name}
	for _, name := range names {
		report, err := read(filled, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, warning := range report.Warnings() {
			fmt.Fprintf(a.Err, "apportion: %s: %s\n", name, warning)
		}
		answer.Histories = append(answer.Histories,
			importedHistory{name, report.Rows, report.Tasks, report.Skipped, report.Running, report.Warnings()})
	}
	if answer.Warnings, err = importInto(kept, filled); err != nil {
		return err
	}
	for _, warning := range answer.Warnings {
		fmt.Fprintf(a.Err, "apportion: %s: %s\n", kept.Name, warning)
	}
	return a.Write(answer, func(p *render.Printer) {
		for _, h := range answer.Histories {
			running := ""
			if h.StillRunning > 0 {
				running = fmt.Sprintf(", %d still ran", h.StillRunning)
			}
			p.Line("%s: %d rows, %d with usage, %d without%s", h.Name, h.Rows, h.WithUsage, h.WithoutUsage, running)
		}
	})
}

func importFile(s cli.Streams, to *ledger.Ledger, format history.Format, o history.Options, name string) (*history.Report, error) {
	from, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	defer from.Close() //nolint:errcheck // It is only read.
	return history.Read(format, from, o, to)
}

// importInto takes what histories said into the ledger of a file, and returns what is to say of it. If that fails, the file is as it was.
func importInto(kept *question.KeptLedger, from *ledger.Ledger) ([]string, error) {
	if err := history.Check(from); err != nil {
		return nil, err
	}
	f, err := kept.Open()
	if err != nil {
		return nil, err
	}
	var warnings []string
	f.Change(func(l *ledger.Ledger) { warnings, err = history.Import(l, from) })
	if err == nil {
		err = f.Update(func(*ledger.Ledger) error { return nil })
	}
	return warnings, errors.Join(err, f.Close())
}

// mergeInto merges a ledger into that of a file. The file is as it was if that fails.
func mergeInto(kept *question.KeptLedger, from *ledger.Ledger) error {
	f, err := kept.Open()
	if err != nil {
		return err
	}
	return errors.Join(f.Update(func(l *ledger.Ledger) error { return l.Merge(from) }), f.Close())
}

// newUsageMerge is `apportion usage merge`.
func newUsageMerge(s cli.Streams) *cobra.Command {
	var kept question.KeptLedger
	a := &cli.Answering{Streams: s}
	command := &cobra.Command{
		Use:   "merge --ledger FILE OTHER...",
		Short: "Merge the ledgers of several replicas that followed one cluster",
		Long: `Merge other ledgers into FILE: open epochs exactly, in any order and any number of times, closed ones by the
greater amount. The ledger of another cluster is refused: apportion usage adopt says that it is of this one.`,
		Example: "  apportion usage merge --ledger usage.ledger other.ledger",
		Args:    cli.Arguments(1, 0, "one ledger or more"),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, name := range args {
				from := kept
				from.Name = name
				other, err := from.Read()
				if err != nil {
					return err
				}
				var merged error
				other.Change(func(l *ledger.Ledger) { merged = mergeInto(&kept, l) })
				if err := errors.Join(merged, other.Close()); err != nil {
					return err
				}
			}
			answer := struct {
				Ledger string   `json:"ledger"`
				Merged []string `json:"merged"`
			}{kept.Name, args}
			return a.Write(answer, func(p *render.Printer) { p.Line("merged %s into %s", strings.Join(args, ", "), kept.Name) })
		},
	}
	a.Register(command)
	kept.Register(command)
	return command
}

// newUsageCopy is `apportion usage copy`.
func newUsageCopy(s cli.Streams) *cobra.Command {
	var kept question.KeptLedger
	a := &cli.Answering{Streams: s}
	command := &cobra.Command{
		Use:   "copy --ledger FILE COPY",
		Short: "Check a ledger and write a copy of it",
		Long: `Read every value of a ledger that no server uses, with its checksum, and write a copy to a file that does not
exist yet.`,
		Example: "  apportion usage copy --ledger usage.ledger backup.ledger",
		Args:    cli.Arguments(1, 1, "one file for the copy"),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := kept.Read()
			if err != nil {
				return err
			}
			out, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return errors.Join(err, f.Close())
			}
			if err := errors.Join(f.Backup(out), out.Sync(), out.Close(), f.Close()); err != nil {
				return err
			}
			answer := struct {
				Ledger string `json:"ledger"`
				Copy   string `json:"copy"`
			}{kept.Name, args[0]}
			return a.Write(answer, func(p *render.Printer) { p.Line("copied %s to %s", kept.Name, args[0]) })
		},
	}
	a.Register(command)
	kept.Register(command)
	return command
}
