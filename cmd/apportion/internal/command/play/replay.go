package play

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/internal/difference"
	"github.com/apportion/apportion/service/decisionlog"
)

// NewReplay is `apportion replay`.
func NewReplay(s cli.Streams) *cobra.Command {
	r := &replaying{Answering: cli.Answering{Streams: s}}
	command := &cobra.Command{
		Use:    "replay LOG...",
		Hidden: true, // The first help lists what people ask about a cluster.
		Short:  "Repeat the decisions of a decision log, and list the differences",
		Long: `Repeat the decisions of a decision log, and list the differences. Give several files of one log oldest
first. Snapshots and policies are found by digest in the store of the server (decision_log.store). A
line that is not an entry is reported and skipped.

The exit code is 2 if a decision differs.`,
		Example: `  apportion replay decisions.jsonl.1 decisions.jsonl --store decisions`,
		Args:    cli.Arguments(1, 0, "the files of a log"),
		RunE:    func(_ *cobra.Command, files []string) error { return r.run(files) },
	}
	r.Register(command)
	command.Flags().StringVar(&r.store, "store", "", "`DIRECTORY` of snapshots and policies; default: store next to the first file")
	cli.Must(command, command.MarkFlagDirname("store"))
	return command
}

// replaying is a replay in progress.
type replaying struct {
	cli.Answering
	store string

	found replayed
}

// replayed is the result of a replay, in its JSON form.
type replayed struct {
	Engine    string         `json:"engine"`
	Entries   int            `json:"entries"`
	Same      int            `json:"same"`
	Different []apart        `json:"different"`
	Skipped   map[string]int `json:"skipped"`
	Lost      uint64         `json:"lost"`
	// Faulty contains the first lines that are not entries; Skipped counts all of them.
	Faulty []faulty `json:"faulty,omitempty"`
}

// faulty is a line that is not an entry.
type faulty struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Fault string `json:"fault"`
}

// mostFaulty is the maximum number of listed lines.
const mostFaulty = 20

// apart is an entry whose decision differs.
type apart struct {
	File        string                  `json:"file"`
	Line        int                     `json:"line"`
	Time        string                  `json:"time"`
	Method      string                  `json:"method"`
	Engine      string                  `json:"engine"`
	TraceID     string                  `json:"traceId,omitempty"`
	Differences []difference.Difference `json:"differences"`
}

func (r *replaying) run(files []string) error {
	if r.store == "" {
		r.store = filepath.Join(filepath.Dir(files[0]), "store")
	}
	r.found = replayed{Engine: engine.Version, Different: []apart{}, Skipped: map[string]int{}}
	again := decisionlog.NewReplayer(r.store)
	for _, name := range files {
		if err := r.file(again, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := r.Write(r.found, r.print); err != nil {
		return err
	}
	if r.found.Same+len(r.found.Different) == 0 {
		return errors.New("the log has no entry whose decision could be repeated")
	}
	return cli.Verdict(len(r.found.Different) == 0)
}

func (r *replaying) file(again *decisionlog.Replayer, name string) error {
	log, err := r.Open(name)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // It is only read.
	return again.Replay(log, func(o decisionlog.Outcome) error {
		f := &r.found
		f.Entries++
		f.Lost += o.Entry.Lost
		switch {
		case o.Skipped != "":
			f.Skipped[o.Skipped]++
			if o.Fault != "" && len(f.Faulty) < mostFaulty {
				f.Faulty = append(f.Faulty, faulty{name, o.Line, o.Fault})
			}
		case len(o.Differences) > 0:
			f.Different = append(f.Different, apart{
				File: name, Line: o.Line, Time: o.Entry.Time.Format("2006-01-02T15:04:05.000Z07:00"), Method: o.Entry.Method,
				Engine: o.Entry.EngineVersion, TraceID: o.Entry.TraceID, Differences: o.Differences,
			})
		default:
			f.Same++
		}
		return nil
	})
}

func (r *replaying) print(p *render.Printer) {
	f := &r.found
	for _, a := range f.Different {
		p.Line("%s", p.Paint(render.Bad, fmt.Sprintf("%s:%d %s %s (engine %s)", a.File, a.Line, a.Time, a.Method, a.Engine)))
		for _, d := range a.Differences {
			p.Line("  %s", d)
		}
	}
	for _, l := range f.Faulty {
		p.Line("%s:%d: not an entry: %s", l.File, l.Line, l.Fault)
	}
	p.Line("%d entries: %d decided the same by engine %s, %d otherwise", f.Entries, f.Same, f.Engine, len(f.Different))
	for _, why := range slices.Sorted(maps.Keys(f.Skipped)) {
		p.Line("%d not decided again: %s", f.Skipped[why], why)
	}
	if f.Lost > 0 {
		p.Line("%d entries were never written: the log had no room for them", f.Lost)
	}
}
