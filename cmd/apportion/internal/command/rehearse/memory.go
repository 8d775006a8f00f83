package rehearse

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/budget"
)

// memoryFlags say how usage is remembered in a rehearsal.
type memoryFlags struct {
	halfLives    []string
	epoch        time.Duration
	kept, budget string
	budgets      []ledger.Budget
}

const noMemory = "none"

func (f *memoryFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&f.halfLives, "half-life", nil,
		"`TIME` after which usage counts half, such as 7d: policies with fair remember what queues use, and kueue with usage_sharing "+
			"what local queues use; none: they do not (repeatable); default: as the snapshot says")
	cli.DurationVar(flags, &f.epoch, "epoch", 6*time.Hour, "`TIME` for which usage is stated, a part of the half-life")
	flags.StringVar(&f.kept, "ledger", "",
		"`FILE` of a ledger: what queues had used when the trace begins; default: what the snapshot says")
	flags.StringVar(&f.budget, "budgets", "", "`FILE` of the budgets of queues, as a server reads it")
	for _, name := range []string{"ledger", "budgets"} {
		cli.Must(command, command.MarkFlagFilename(name))
	}
}

func (f *memoryFlags) check() error {
	if len(f.halfLives) == 0 && (f.kept != "" || f.budget != "") {
		return errors.New("--half-life: say how long usage counts, because of --ledger or --budgets")
	}
	for _, text := range f.halfLives {
		if text == noMemory {
			continue
		}
		if _, err := f.of(text); err != nil {
			return fmt.Errorf("--half-life: %w", err)
		}
	}
	var err error
	f.budgets, err = budget.ReadFile(f.budget, ledger.Options{})
	return err
}

// of returns the memory of a half-life.
func (f *memoryFlags) of(given string) (*rehearsal.Memory, error) {
	halfLife, err := duration.Parse(given)
	if err != nil {
		return nil, fmt.Errorf("%q is neither a time such as 7d nor none", given)
	}
	if f.epoch < time.Second || f.epoch%time.Second != 0 || halfLife%f.epoch != 0 {
		return nil, fmt.Errorf("%s is not a multiple of the epoch, %s, which is whole seconds", given, duration.Format(f.epoch))
	}
	m := &rehearsal.Memory{Epoch: f.epoch, HalfLife: int(halfLife / f.epoch), Budgets: f.budgets}
	if m.HalfLife < 1 || m.HalfLife > ledger.MaxHalfLife {
		return nil, fmt.Errorf("%s is not from 1 to %d epochs of %s", given, ledger.MaxHalfLife, duration.Format(f.epoch))
	}
	return m, nil
}

// remembered is a choice of memory, nil for none, and its part of a name. Under kueue it is the half-life of local queues.
type remembered struct {
	name   string
	memory *rehearsal.Memory
	local  time.Duration
}

// choices returns the memories with which a policy is rehearsed.
func (f *memoryFlags) choices(s *apportionv1.Snapshot, p *apportionv1.Policy) ([]remembered, error) {
	if sharesUsage(s, p) {
		return f.ofLocals()
	}
	if !policy.ByFair(p) {
		return []remembered{{}}, nil
	}
	if len(f.halfLives) == 0 {
		m := s.GetMemory()
		if m == nil {
			return []remembered{{}}, nil
		}
		return []remembered{{memory: &rehearsal.Memory{
			Epoch: time.Duration(m.GetEpochSeconds()) * time.Second, HalfLife: int(m.GetHalfLifeEpochs()),
			Used: ledger.UsageIn(s), Owners: ownersOf(s),
		}}}, nil
	}
	return f.each(func(m *rehearsal.Memory) remembered {
		if s.GetMemory() != nil {
			m.Used, m.Owners = ledger.UsageIn(s), ownersOf(s)
		}
		return remembered{memory: m}
	})
}

// ofLocals returns the half-lives of local queues.
func (f *memoryFlags) ofLocals() ([]remembered, error) {
	if len(f.halfLives) == 0 {
		return []remembered{{}}, nil
	}
	return f.each(func(m *rehearsal.Memory) remembered { return remembered{local: m.Epoch * time.Duration(m.HalfLife)} })
}

// each returns what is remembered with each half-life that was named, by the name of its run.
func (f *memoryFlags) each(with func(*rehearsal.Memory) remembered) ([]remembered, error) {
	var list []remembered
	for _, text := range f.halfLives {
		if text == noMemory {
			list = append(list, remembered{name: "no memory"})
			continue
		}
		m, err := f.of(text)
		if err != nil {
			return nil, err
		}
		one := with(m)
		one.name = "half-life " + text
		list = append(list, one)
	}
	return list, nil
}

// sharesUsage reports whether a policy orders the workloads of some queue of Kueue by the usage of local queues.
func sharesUsage(s *apportionv1.Snapshot, p *apportionv1.Policy) bool {
	usageBased := func(q *apportionv1.Queue) bool { return q.GetKueue().GetUsageBased() }
	return slices.ContainsFunc(s.GetQueues(), usageBased) && policy.Plugin(p, (*apportionv1.Plugin).GetKueue).GetUsageSharing() != nil
}

// requireHeeded returns an error if a half-life is given but no variant heeds it.
func (f *memoryFlags) requireHeeded(variants []*rehearsal.Variant) error {
	given := slices.ContainsFunc(f.halfLives, func(text string) bool { return text != noMemory })
	if given && !slices.ContainsFunc(variants, func(v *rehearsal.Variant) bool { return v.Memory != nil || v.LocalHalfLife > 0 }) {
		return errors.New("--half-life: none of the policies has the plugin fair, or kueue with usage_sharing and queues in the mode " +
			"UsageBasedAdmissionFairSharing, which alone heed past usage")
	}
	return nil
}

// ownersOf returns what the owners in the queues of a snapshot used, by queue, owner and name of the resource.
func ownersOf(s *apportionv1.Snapshot) map[string]map[string]map[string]int64 {
	owners := map[string]map[string]map[string]int64{}
	for _, q := range s.GetQueues() {
		for _, o := range q.GetOwners() {
			if owners[q.GetName()] == nil {
				owners[q.GetName()] = map[string]map[string]int64{}
			}
			owners[q.GetName()][o.GetOwner()] = namedUsage(s, o.GetUsage())
		}
	}
	return owners
}

func namedUsage(s *apportionv1.Snapshot, u *apportionv1.Usage) map[string]int64 {
	of := map[string]int64{}
	for i, d := range u.GetDimensions() {
		of[s.GetDimensions()[d]] = u.GetQuantumSeconds()[i]
	}
	return of
}

// start reads from the ledger what queues had used when the trace begins, or when the ledger ends, if the trace does not say when it was.
func (f *memoryFlags) start(variants []*rehearsal.Variant, t *trace.Trace) error {
	if f.kept == "" {
		return nil
	}
	for _, v := range variants {
		if v.Memory == nil {
			continue
		}
		kept := question.KeptLedger{Name: f.kept, Epoch: v.Memory.Epoch, HalfLife: v.Memory.Epoch * time.Duration(v.Memory.HalfLife)}
		from, err := kept.Read()
		if err != nil {
			return fmt.Errorf("--ledger: %w", err)
		}
		from.View(func(l *ledger.Ledger) { v.Memory.Used, v.Memory.Owners = usedBefore(l, v.Snapshot, t) })
		if err := from.Close(); err != nil {
			return fmt.Errorf("--ledger: %w", err)
		}
	}
	return nil
}

// usedBefore returns what the queues of a snapshot, and the owners in them, had used when a trace begins.
func usedBefore(
	l *ledger.Ledger, s *apportionv1.Snapshot, t *trace.Trace,
) (used map[string]map[string]int64, owners map[string]map[string]map[string]int64) {
	_, last, _ := l.Span()
	epoch := last + 1
	if !t.Start.IsZero() {
		epoch = l.EpochOf(t.Start.Unix() + t.Jobs[0].Arrival)
	}
	names := l.Dimensions()
	named := func(v []int64) map[string]int64 {
		of := map[string]int64{}
		for d, n := range v {
			of[names[d]] = n
		}
		return of
	}
	used, owners = map[string]map[string]int64{}, map[string]map[string]map[string]int64{}
	usage := l.Usage(epoch)
	for _, q := range s.GetQueues() {
		used[q.GetName()] = named(usage[ledger.Line{Queue: q.GetName()}])
	}
	for to, v := range usage {
		switch {
		case !to.Owned || used[to.Queue] == nil:
			continue
		case owners[to.Queue] == nil:
			owners[to.Queue] = map[string]map[string]int64{}
		}
		owners[to.Queue][to.Owner] = named(v)
	}
	return used, owners
}
