package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
)

// used is one row of `apportion usage`: what a queue, or an owner in a queue, used of a resource in a period.
type used struct {
	Begin    string `json:"begin"`
	End      string `json:"end"`
	Queue    string `json:"queue"`
	Owner    string `json:"owner,omitempty"`
	Resource string `json:"resource"`
	// Hours of a whole unit: a device, a core, a GiB.
	Hours float64 `json:"hours"`
	// QuantumSeconds is exact, in the unit of snapshots.
	QuantumSeconds int64 `json:"quantumSeconds"`
}

// usage is `apportion usage` with its flags.
type usage struct {
	answering
	kept            keptLedger
	by, from, until string
	queues          []string
	owners          bool
}

// keptLedger says which ledger, and with which epochs.
type keptLedger struct {
	name            string
	epoch, halfLife time.Duration
}

func (k *keptLedger) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&k.name, "ledger", "", "file of the ledger")
	flags.DurationVar(&k.epoch, "epoch", 0, "length of an epoch; default: that of the ledger, 6h for a new one")
	flags.DurationVar(&k.halfLife, "half-life", 0, "time after which usage counts half; default: 168h")
	must(command, command.MarkFlagRequired("ledger"))
	must(command, command.MarkFlagFilename("ledger"))
}

func (k *keptLedger) options() (ledger.Options, error) {
	epoch, err := k.epoch, error(nil)
	if epoch == 0 {
		if epoch, err = file.Epoch(k.name); errors.Is(err, fs.ErrNotExist) {
			epoch, err = 6*time.Hour, nil
		}
	}
	if err != nil {
		return ledger.Options{}, err
	}
	return optionsOf(epoch, k.halfLife)
}

// read opens the ledger, which exists, without changing it.
func (k *keptLedger) read() (*file.File, error) {
	o, err := k.options()
	if err != nil {
		return nil, err
	}
	return file.Read(k.name, o)
}

// newUsage is `apportion usage`.
func newUsage(s streams) *cobra.Command {
	u := &usage{answering: answering{streams: s}, by: "week"}
	command := &cobra.Command{
		Use:   "usage --ledger FILE",
		Short: "Show who used what, from a ledger",
		Long: `Show what queues used of each resource, by day, week or month: from the ledger that a server keeps
with --ledger, or that import makes of the history of another system. A server has its file for itself: ask a
copy, which apportion usage copy makes of a file that no server uses. The usage of a queue contains that of the
queues below it. It is not decayed. -o csv is for chargeback.`,
		Example: `  apportion usage --ledger usage.ledger --by week
  apportion usage --ledger usage.ledger --by month --owners -o csv
  sacct -X -a -P -S 2026-01-01 -o JobID,Account,User,Start,End,AllocTRES | apportion usage import --ledger usage.ledger --from sacct -`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return u.run() },
	}
	u.register(command, formatCSV)
	u.kept.register(command)
	choose(command, &u.by, "by", "", "length of a period, which begins at midnight UTC, a week on Monday", "week", "day", "month", "total")
	flags := command.Flags()
	flags.StringVar(&u.from, "from", "", "first day, such as 2026-10-01; default: where the ledger begins")
	flags.StringVar(&u.until, "until", "", "day before which to end; default: the last finished epoch")
	flags.StringSliceVar(&u.queues, "queue", nil, "show these queues only")
	flags.BoolVar(&u.owners, "owners", false, "show the owners of jobs in each queue as well")
	flags.StringSliceVar(&u.resources, "resource", nil, "show these resources only, such as gpu")
	command.AddCommand(newUsageImport(s), newUsageMerge(s), newUsageCopy(s))
	return command
}

func (u *usage) run() error {
	f, err := u.kept.read()
	if err != nil {
		return err
	}
	var rows []used
	f.View(func(l *ledger.Ledger) { rows, err = u.rows(l) })
	if failure := f.Close(); err == nil {
		err = failure
	}
	if err != nil {
		return err
	}
	if u.format == formatCSV {
		return writeUsage(u.out, rows)
	}
	if rows == nil {
		rows = []used{}
	}
	return u.write(rows, func(p *render.Printer) { printUsage(p, rows) })
}

// rows lists what was used, period by period.
func (u *usage) rows(l *ledger.Ledger) ([]used, error) {
	first, last, some := l.Span()
	if !some {
		return nil, nil
	}
	seconds := int64(l.Options().Epoch / time.Second)
	begin, end := time.Unix(first*seconds, 0).UTC(), time.Unix((last+1)*seconds, 0).UTC()
	for text, at := range map[*string]*time.Time{&u.from: &begin, &u.until: &end} {
		if *text == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, *text)
		if err != nil {
			return nil, fmt.Errorf("a day such as 2026-10-01 is expected, not %q", *text)
		}
		*at = day
	}
	var out []used
	for at := begin; at.Before(end); {
		next := u.next(at)
		if next.After(end) || next.Equal(at) {
			next = end
		}
		for to, v := range l.Spent(l.EpochOf(at.Unix()+seconds-1), l.EpochOf(next.Unix()+seconds-1)) {
			out = append(out, u.row(l, at, next, to, v)...)
		}
		at = next
	}
	slices.SortFunc(out, func(a, b used) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Queue, b.Queue), strings.Compare(a.Owner, b.Owner),
			cmp.Compare(a.Resource, b.Resource))
	})
	return out, nil
}

// next returns where the period after the one that contains a time begins; the same time for a single period.
func (u *usage) next(at time.Time) time.Time {
	day := at.Truncate(24 * time.Hour)
	switch u.by {
	case "day":
		return day.AddDate(0, 0, 1)
	case "week":
		return day.AddDate(0, 0, 7-(int(day.Weekday())+6)%7)
	case "month":
		return time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	default:
		return at
	}
}

func (u *usage) row(l *ledger.Ledger, begin, end time.Time, to ledger.Line, v []int64) []used {
	if to.Owned && !u.owners || len(u.queues) > 0 && !slices.Contains(u.queues, to.Queue) {
		return nil
	}
	var out []used
	options := l.Options()
	for d, name := range l.Dimensions() {
		asked := len(u.resources) == 0 || slices.ContainsFunc(u.resources, func(r string) bool {
			return r == name || strings.HasSuffix(name, "/"+r)
		})
		if d >= len(v) || v[d] == 0 || !asked {
			continue
		}
		unit := 1000.0
		switch name {
		case "memory":
			unit = 1 << 30
		case "pods":
			unit = 1
		}
		owner := to.Owner
		if to.Owned && owner == "" {
			owner = "(none)"
		}
		out = append(out, used{
			Begin: begin.Format(time.RFC3339), End: end.Format(time.RFC3339), Queue: to.Queue, Owner: owner, Resource: name,
			Hours: float64(v[d]) * float64(options.Quantum(name)) / unit / 3600, QuantumSeconds: v[d],
		})
	}
	return out
}

func hoursOf(u *used) string { return strconv.FormatFloat(u.Hours, 'f', 2, 64) }

// dayOf returns the day of a time, with the time of the day unless it is midnight.
func dayOf(text string) string {
	day, clock, _ := strings.Cut(text, "T")
	if clock == "00:00:00Z" {
		return day
	}
	return day + " " + clock[:len("15:04")]
}

func printUsage(p *render.Printer, rows []used) {
	if len(rows) == 0 {
		fmt.Fprintln(p.Out, "nothing was used")
		return
	}
	t := p.NewTable("FROM", "UNTIL", "QUEUE", "OWNER", "RESOURCE", ">HOURS")
	for i := range rows {
		r := &rows[i]
		t.Row(dayOf(r.Begin), dayOf(r.End), r.Queue, r.Owner, r.Resource, hoursOf(r))
	}
	t.Write(p.Out)
}

// writeUsage writes rows as CSV. quantum_seconds is exact.
func writeUsage(out io.Writer, rows []used) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"begin", "end", "queue", "owner", "resource", "hours", "quantum_seconds"})
	for i := range rows {
		r := &rows[i]
		_ = w.Write([]string{
			r.Begin, r.End, r.Queue, r.Owner, r.Resource, strconv.FormatFloat(r.Hours, 'f', 4, 64), strconv.FormatInt(r.QuantumSeconds, 10),
		})
	}
	w.Flush()
	return w.Error()
}
