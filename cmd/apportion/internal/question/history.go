package question

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/service/decisionlog"
)

// The formats of traces.
const (
	formatSWF = "swf"
	formatLog = "log"
	// formatWorkloads is manifests of Kueue.
	formatWorkloads = "workloads"
	// formatLedger is a ledger, which keeps jobs that ended.
	formatLedger = "ledger"
)

// HistoryFlags name the trace and its format.
type HistoryFlags struct {
	// name is that of the flag of the files, and strictness what to do about faulty lines.
	name          string
	Strictness    trace.Strictness
	Files         []string
	format, store string
	queueOf       string
	queues        map[string]string
	processor     map[string]string
	perTask       int
	repeat        int
	period        time.Duration
	swf           trace.SWF
}

// Register adds the flags. The files are those of the flag of a name.
func (f *HistoryFlags) Register(command *cobra.Command, name string) {
	flags := command.Flags()
	f.name, f.repeat, f.period = name, 1, week
	f.queueOf = "queue"
	cli.Choose(command, &f.queueOf, "queue-of", "", "column of an SWF trace that tells the queue", trace.QueueColumns...)
	flags.StringArrayVar(&f.Files, name, nil,
		"`FILE` of the jobs: .csv, .swf, .jsonl, .ledger, or .yaml with Kueue's workloads, .gz too; - is standard input "+
			"(repeatable for the files of a decision log, oldest first)")
	cli.Choose(command, &f.format, name+"-format", "", "format of that; default: by the name of the file",
		cli.FormatCSV, formatSWF, formatLog, formatWorkloads, formatLedger)
	flags.StringVar(&f.store, "store", "", "`DIRECTORY` of the snapshots of a decision log; default: store next to the first file")
	flags.StringToStringVar(&f.queues, "map", nil,
		"`VALUE=QUEUE`: the queue of a value of that column; * is every other value (repeatable)")
	flags.StringToStringVar(&f.processor, "processor", map[string]string{"cpu": "1"},
		"`RESOURCE=QUANTITY` that a processor of an SWF trace asks for (repeatable)")
	flags.IntVar(&f.perTask, "processors-per-task", 1, "`NUMBER` of processors of an SWF trace that make one task")
}

const week = 7 * 24 * time.Hour

// RegisterRepeat adds the flags that repeat the trace.
func (f *HistoryFlags) RegisterRepeat(command *cobra.Command) {
	command.Flags().IntVar(&f.repeat, "repeat", 1, "`NUMBER` of times to run the trace, each time --period later")
	cli.DurationVar(command.Flags(), &f.period, "period", week, "`TIME` from one repetition to the next")
}

// Check returns an error that names the flag whose value cannot be used, and finds the format of the files.
func (f *HistoryFlags) Check() error {
	if len(f.Files) == 0 {
		return fmt.Errorf("--%s: name a file of jobs", f.name)
	}
	if f.format == "" {
		name := strings.TrimSuffix(f.Files[0], ".gz")
		switch filepath.Ext(name) {
		case ".csv":
			f.format = cli.FormatCSV
		case ".swf":
			f.format = formatSWF
		case ".yaml", ".yml", ".json":
			f.format = formatWorkloads
		case ".jsonl":
			f.format = formatLog
		case ".ledger":
			f.format = formatLedger
		default:
			// The files of a log that was rotated end in a number.
			if !strings.Contains(filepath.Base(name), ".jsonl.") {
				return fmt.Errorf("--%s-format: the format of %s is unknown; set csv, swf, log, workloads or ledger", f.name, f.Files[0])
			}
			f.format = formatLog
		}
	}
	if len(f.Files) > 1 && f.format != formatLog {
		return fmt.Errorf("--%s: only a decision log may have several files", f.name)
	}
	if f.perTask < 1 || f.perTask > trace.MaxTasks {
		return fmt.Errorf("--processors-per-task: %d is not a number from 1 to %d", f.perTask, trace.MaxTasks)
	}
	if f.repeat < 1 {
		return fmt.Errorf("--repeat: %d is below 1", f.repeat)
	}
	if f.period < time.Second || f.period%time.Second != 0 {
		return fmt.Errorf("--period: %s is not a whole number of seconds, 1s or more", duration.Format(f.period))
	}
	f.swf = trace.SWF{QueueOf: f.queueOf, Queues: f.queues, PerTask: f.perTask, Strictness: f.Strictness}
	for _, resource := range slices.Sorted(maps.Keys(f.processor)) {
		name := resource
		if name == "gpu" {
			name = "nvidia.com/gpu"
		}
		amount, err := quantity.Parse(name, f.processor[resource])
		if err != nil {
			return fmt.Errorf("--processor: %s: %w", resource, err)
		}
		f.swf.Processor = append(f.swf.Processor, trace.Amount{Resource: name, Amount: amount})
	}
	return nil
}

// Read reads the trace.
func (f *HistoryFlags) Read(in io.Reader) (*trace.Trace, error) {
	t, err := f.jobs(in)
	if err != nil {
		return nil, err
	}
	if err := t.Repeat(f.repeat, int64(f.period/time.Second)); err != nil {
		return nil, fmt.Errorf("--repeat: %w", err)
	}
	return t, nil
}

// jobs reads the trace once.
func (f *HistoryFlags) jobs(in io.Reader) (*trace.Trace, error) {
	if f.format == formatLedger {
		kept, _, err := (&LedgerFlags{file: f.Files[0]}).open(0)
		if err != nil {
			return nil, err
		}
		var t *trace.Trace
		kept.View(func(l *ledger.Ledger) { t = trace.OfLedger(f.Files[0], l) })
		return t, kept.Close()
	}
	all, closeAll, err := f.open(in)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	return f.parse(all)
}

func (f *HistoryFlags) parse(all io.Reader) (*trace.Trace, error) {
	source := f.Files[0]
	switch f.format {
	case formatSWF:
		return f.swf.Read(source, all)
	case formatWorkloads:
		return trace.ReadWorkloads(source, all)
	case formatLog:
		if f.store == "" {
			f.store = filepath.Join(filepath.Dir(source), "store")
		}
		return trace.ReadLog(source, all, decisionlog.NewReplayer(f.store).Model, f.Strictness)
	}
	return trace.ReadCSV(source, all, f.Strictness)
}

// open returns a reader of the concatenated files, and a function that closes them.
func (f *HistoryFlags) open(in io.Reader) (io.Reader, func(), error) {
	var files []io.Reader
	var opened []*os.File
	closeAll := func() {
		for _, file := range opened {
			_ = file.Close()
		}
	}
	for _, name := range f.Files {
		file := in
		if name != cli.Stdin {
			one, err := os.Open(name)
			if err != nil {
				closeAll()
				return nil, nil, err
			}
			opened, file = append(opened, one), one
		}
		plain, err := unpacked(name, file)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		// Separates a file whose last line has no end from the next file.
		files = append(files, plain, strings.NewReader("\n"))
	}
	return io.MultiReader(files...), closeAll, nil
}

// unpacked returns a reader of text that decompresses gzip, without the mark with which editors of Windows begin UTF-8. Its errors name the
// source.
func unpacked(source string, r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	// An empty file is for the reader to refuse.
	if head, _ := buffered.Peek(2); string(head) == "\x1f\x8b" {
		packed, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("%s: cannot be unpacked by gzip: %w", source, err)
		}
		buffered = bufio.NewReader(&packedReader{source, packed})
	}
	const mark = "\ufeff"
	head, _ := buffered.Peek(len(mark))
	switch {
	case string(head) == mark:
		_, err := buffered.Discard(len(mark))
		return buffered, err
	case strings.HasPrefix(string(head), "\xff\xfe"), strings.HasPrefix(string(head), "\xfe\xff"):
		return nil, fmt.Errorf("%s: the text is UTF-16; save it as UTF-8", source)
	}
	return buffered, nil
}

// packedReader reads what gzip packed; its errors name the source.
type packedReader struct {
	source string
	from   io.Reader
}

func (r *packedReader) Read(to []byte) (int, error) {
	n, err := r.from.Read(to)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s: cannot be unpacked by gzip: %w", r.source, err)
	}
	return n, err
}
