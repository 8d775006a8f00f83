package question

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/budget"
	"github.com/apportion/apportion/ledger/file"
)

// halfLife is that of the server by default.
const halfLife = 7 * 24 * time.Hour

// LedgerFlags name the ledger whose usage a snapshot states.
type LedgerFlags struct {
	file, budgets string
	half          time.Duration
}

func (f *LedgerFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.file, "ledger", "", "ledger `FILE` with what queues and owners used, for policy fair")
	flags.StringVar(&f.budgets, "budgets", "", "budgets `FILE`, as a server reads it, with --ledger")
	cli.DurationVar(flags, &f.half, "ledger-half-life", 0,
		"`TIME` after which usage of --ledger counts half, as a server says it; default: 7d")
	cli.Must(command, command.MarkFlagFilename("ledger"))
	cli.Must(command, command.MarkFlagFilename("budgets", cli.FormatYAML, "yml"))
}

// fill states in a snapshot what its queues used until a time. half is the half-life of a question, 0 for that of the flags.
func (f *LedgerFlags) fill(s *apportionv1.Snapshot, at time.Time, half time.Duration) ([]*apportionv1.Warning, error) {
	if f.file == "" {
		switch {
		case f.budgets != "":
			return nil, errors.New("--budgets: name the ledger, which knows what is spent, with --ledger")
		case f.half != 0:
			return nil, errors.New("--ledger-half-life: name the ledger, which knows when queues used what, with --ledger")
		}
		return nil, nil
	}
	kept, budgets, err := f.open(half)
	if err != nil {
		return nil, err
	}
	const old = 4 // Epochs in which nothing ran, or of which the ledger knows nothing.
	var warnings []*apportionv1.Warning
	kept.Change(func(l *ledger.Ledger) {
		l.Assume(s, at.Unix())
		if half != 0 {
			l.Renew(at.Unix())
		}
		l.Fill(s, at.Unix(), budgets)
		warnings = unknownQueues(l, s, budgets)
		_, last, some := l.Span()
		if behind := l.EpochOf(at.Unix()) - 1 - last; some && behind >= old {
			warnings = append(warnings, &apportionv1.Warning{
				Code: apportionv1.WarningCode_WARNING_CODE_MEMORY_STALE,
				Message: fmt.Sprintf("the newest usage in %s is %s old: if tasks ran since then, it lacks them", f.file,
					duration.Format(time.Duration(behind)*l.Options().Epoch)),
			})
		}
	})
	return warnings, kept.Close()
}

// open opens the ledger, which must be named, and reads the budgets. half is the half-life of a question, 0 for that of the flags.
func (f *LedgerFlags) open(half time.Duration) (*file.File, []ledger.Budget, error) {
	epoch, err := file.Epoch(f.file)
	if err != nil {
		return nil, nil, err
	}
	o, err := optionsOf(epoch, cmp.Or(half, f.half))
	if err != nil {
		return nil, nil, err
	}
	budgets, err := budget.ReadFile(f.budgets, o)
	if err != nil {
		return nil, nil, err
	}
	kept, err := file.Read(f.file, o)
	return kept, budgets, err
}

// Read returns the ledger, in memory, and the budgets; nil if none is named.
func (f *LedgerFlags) Read() (*file.File, []ledger.Budget, error) {
	if f.file == "" {
		return nil, nil, nil
	}
	kept, budgets, err := f.open(0)
	if err != nil {
		return nil, nil, err
	}
	if err := kept.Close(); err != nil {
		return nil, nil, err
	}
	return kept, budgets, nil
}

// unknownQueues returns warnings about usage and budgets of queues that a snapshot does not have.
func unknownQueues(l *ledger.Ledger, s *apportionv1.Snapshot, budgets []ledger.Budget) []*apportionv1.Warning {
	known := map[string]bool{"root": true}
	for _, q := range s.GetQueues() {
		known[q.GetName()] = true
	}
	used := map[string]bool{}
	for to := range l.Usage(s.GetMemory().GetEpoch()) {
		used[to.Queue] = true
	}
	var warnings []*apportionv1.Warning
	warn := func(format string, names []string) {
		const most = 5
		if names = slices.DeleteFunc(names, func(name string) bool { return known[name] }); len(names) == 0 {
			return
		}
		list := strings.Join(names[:min(most, len(names))], ", ")
		if more := len(names) - most; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		warnings = append(warnings, dropped(format, list))
	}
	warn("the ledger has usage of queues that do not exist, which counts only above them: %s", slices.Sorted(maps.Keys(used)))
	var named []string
	for i := range budgets {
		named = append(named, budgets[i].Queue)
	}
	warn("budgets of queues that do not exist have no effect: %s", named)
	return warnings
}

// optionsOf returns the options of a ledger whose epochs have a length, with a half-life, 0 for 7 days.
func optionsOf(epoch, half time.Duration) (ledger.Options, error) {
	if epoch < time.Second {
		return ledger.Options{}, fmt.Errorf("an epoch of %s is too short", duration.Format(epoch))
	}
	half = cmp.Or(half, max(halfLife, epoch))
	if half < epoch || half%epoch != 0 || half/epoch > ledger.MaxHalfLife {
		return ledger.Options{}, fmt.Errorf("the half-life is %s, not 1 to %d epochs of %s",
			duration.Format(half), ledger.MaxHalfLife, duration.Format(epoch))
	}
	o := ledger.Options{Epoch: epoch, HalfLife: int(half / epoch)}
	const retained = 400 * 24 * time.Hour
	o.Retain = max(8*o.HalfLife, int(retained/epoch))
	return o, nil
}

// Remember states in a loaded snapshot what its queues used until the time of the decisions, or now.
func (f *InputFlags) Remember(in *Loaded, moment time.Time, given bool) error {
	if in.filled = moment; !given {
		in.filled = time.Now()
	}
	warnings, err := f.Ledger.fill(in.Snapshot, in.filled, 0)
	in.Warnings = append(in.Warnings, warnings...)
	return err
}

// Refill returns the queues of a loaded snapshot with what the ledger says with another half-life.
func (f *InputFlags) Refill(in *Loaded, half time.Duration) (*apportionv1.Snapshot, error) {
	if f.Ledger.file == "" {
		return nil, errors.New("--half-life: name the ledger, which knows when queues used what, with --ledger")
	}
	// What the cluster offers counts as what it offered, where the ledger does not say.
	other := &apportionv1.Snapshot{
		AsOf: in.Snapshot.GetAsOf(), Dimensions: in.Snapshot.GetDimensions(), Nodes: in.Snapshot.GetNodes(), Total: in.Snapshot.GetTotal(),
	}
	for _, q := range in.Snapshot.GetQueues() {
		other.Queues = append(other.Queues, proto.CloneOf(q))
	}
	_, err := f.Ledger.fill(other, in.filled, half)
	return other, err
}

// KeptLedger says which ledger, and with which epochs.
type KeptLedger struct {
	Name            string
	Epoch, HalfLife time.Duration
}

// Register adds the flags of a ledger, which must be named.
func (k *KeptLedger) Register(command *cobra.Command) {
	k.Flags(command)
	cli.Must(command, command.MarkFlagRequired("ledger"))
}

// Flags adds the flags of a ledger.
func (k *KeptLedger) Flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&k.Name, "ledger", "", "file of the ledger")
	cli.DurationVar(flags, &k.Epoch, "epoch", 0, "length of an epoch; default: that of the ledger, 6h for a new one")
	cli.DurationVar(flags, &k.HalfLife, "half-life", 0, "time after which usage counts half; default: 7d")
	cli.Must(command, command.MarkFlagFilename("ledger"))
}

// Open opens the ledger to change it, and makes a new one if there is no file.
func (k *KeptLedger) Open() (*file.File, error) {
	o, err := k.Options()
	if err != nil {
		return nil, err
	}
	return file.Open(k.Name, o)
}

// Options returns the epochs and the half-life of the ledger: those of its file, if the flags name none.
func (k *KeptLedger) Options() (ledger.Options, error) {
	epoch, err := k.Epoch, error(nil)
	if epoch == 0 {
		if epoch, err = file.Epoch(k.Name); errors.Is(err, fs.ErrNotExist) {
			epoch, err = 6*time.Hour, nil
		}
	}
	if err != nil {
		return ledger.Options{}, err
	}
	return optionsOf(epoch, k.HalfLife)
}

// Read opens the ledger, which exists, without changing it.
func (k *KeptLedger) Read() (*file.File, error) {
	o, err := k.Options()
	if err != nil {
		return nil, err
	}
	return file.Read(k.Name, o)
}
