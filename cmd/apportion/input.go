package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// input is the cluster and the policy of a question.
type input struct {
	client.Input
	snapshot *lookup.Snapshot
	warnings []*apportionv1.Warning
	// configuration is the volcano-scheduler.conf that the policy was read from; nil if there is none.
	configuration *objects.Source
	// cluster is nil for a snapshot in the contract's own form, which file names.
	cluster *volcano.Cluster
	file    string
	// both are the manifests if they have objects of Kueue beside those of Volcano, which are judged.
	both []objects.Source
	// filled is the time until which a ledger says what queues used.
	filled time.Time
}

// inputFlags name the cluster and the policy.
type inputFlags struct {
	files      []string
	snapshot   string
	policy     string
	policyName string
	asOf       string
	schedulers []string
	// strict makes objects that are left out an error. own is the file that always contains them.
	strict bool
	own    string
	// joined makes the snapshot of a cluster with Kueue one that kueue and fair judge alike.
	joined bool
	// defaults gives queues of manifests those of new queues for what they do not state.
	defaults bool
	ledger   ledgerFlags
	live     cluster.Flags
	// unread lists the objects of the live cluster that could not be read.
	unread []*apportionv1.Warning
	// missing are the kinds that may not be read, and why.
	missing map[string]string
	// snapshotName names a snapshot that the server maintains.
	snapshotName string
	server       *serverFlags
}

// registerCluster adds the flags that name the cluster.
func (f *inputFlags) registerCluster(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP(&f.files, "file", "f", nil,
		"`FILE` or directory of manifests as printed by kubectl, YAML or JSON; - is standard input (repeatable)")
	flags.StringVar(&f.snapshot, "snapshot", "",
		"snapshot `FILE` written by convert or generate, instead of manifests; - is standard input")
	flags.StringVar(&f.asOf, "as-of", "",
		"`TIME` of the decisions, as 2006-01-02T15:04:05Z or now; default: that of the snapshot, else now if the policy uses it, else none")
	flags.StringSliceVar(&f.schedulers, "scheduler", nil,
		"consider the waiting pods of the scheduler with this `NAME` (repeatable); default: volcano")
	flags.BoolVar(&f.strict, "strict", false, "treat objects that are left out because they are invalid as errors")
	f.live.Register(flags)
	must(command, command.MarkFlagFilename("file", formatYAML, "yml", formatJSON))
}

// policyForms says in the help what names a policy.
func policyForms() string {
	return "a preset (" + strings.Join(client.Presets(), ", ") + "), a volcano-scheduler.conf or a dump of its ConfigMap, or a file " +
		"written by convert"
}

// defaultPolicy says in the help which policy decides if none is named.
const defaultPolicy = "that of the ConfigMap " + schedulerconf.ConfigMapName + " in the input, else Volcano's default configuration"

// register adds the flags that name the cluster and the policy.
func (f *inputFlags) register(command *cobra.Command) {
	f.registerCluster(command)
	f.ledger.register(command)
	flags := command.Flags()
	flags.StringVar(&f.policy, "policy", "", "decide by this `POLICY`: "+policyForms()+"; default: "+defaultPolicy)
	flags.StringVar(&f.policyName, "policy-name", "", "decide by the policy with this `NAME` on the server")
	mustComplete(command, "policy", client.Presets()...)
}

// given reports whether a cluster is named, by files or --cluster.
func (f *inputFlags) given() bool {
	return len(f.files) > 0 || f.snapshot != "" || f.snapshotName != "" || f.live.Named()
}

// load reads the files, or the cluster, that the flags name.
func (f *inputFlags) load(ctx context.Context, s streams) (*input, error) {
	if f.snapshotName != "" {
		return f.kept(ctx)
	}
	sources, err := f.sources(ctx, s.in)
	if err != nil {
		return nil, err
	}
	return f.read(s, sources)
}

// kept gets the snapshot that the server maintains.
func (f *inputFlags) kept(ctx context.Context) (*input, error) {
	switch {
	case len(f.files) > 0 || f.snapshot != "" || f.live.Named():
		return nil, errors.New("--snapshot-name cannot be used with -f, --snapshot or --cluster")
	case f.server == nil || f.server.address == "":
		return nil, errors.New("--snapshot-name: name the server that follows the cluster with --server")
	case f.ledger.file != "" || f.ledger.budgets != "":
		return nil, errors.New("--snapshot-name cannot be used with --ledger or --budgets: the server has its own")
	case f.asOf != "" || len(f.schedulers) > 0:
		return nil, errors.New("--snapshot-name cannot be used with --as-of or --scheduler, which apply to manifests")
	}
	rules, err := f.rules(nil)
	if err != nil {
		return nil, err
	}
	decider, ctx, done, err := f.server.decider(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	upload, view, err := decider.Kept(ctx, f.snapshotName)
	if err != nil {
		return nil, err
	}
	for _, l := range view.GetLeftOut() {
		if f.strict {
			return nil, errors.New(text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l}))
		}
	}
	loaded := &input{
		Input:    client.Input{Upload: upload, Snapshot: upload.Snapshot(), Policy: rules.Message, PolicyName: f.policyName},
		snapshot: lookup.Of(upload.Snapshot()), warnings: slices.Concat(staleness(view), rules.Warnings),
	}
	return loaded, nil
}

// staleness returns warnings about missing kinds and the age of a maintained snapshot.
func staleness(view *apportionv1.SnapshotView) []*apportionv1.Warning {
	const old = 5 * time.Second
	var warnings []*apportionv1.Warning
	warn := func(format string, args ...any) {
		warnings = append(warnings, &apportionv1.Warning{
			Code: apportionv1.WarningCode_WARNING_CODE_DROPPED, Message: fmt.Sprintf(format, args...),
		})
	}
	if age := time.Duration(view.GetAge()); age > old {
		warn("snapshot %s is %s old", view.GetName(), duration.Format(age.Round(time.Second)))
	}
	for _, kind := range view.GetKinds() {
		switch {
		case !kind.GetRead():
			warn("%s cannot be read by the server and are left out: %s", kind.GetResource(), kind.GetFault())
		case kind.GetFault() != "":
			warn("the server receives no changes of %s: %s", kind.GetResource(), kind.GetFault())
		}
		if n := kind.GetLeftOut(); n > 0 {
			warn("%d of %d %s %s left out", n, kind.GetCount(), kind.GetResource(), text.Verb(int(n), "is", "are"))
		}
	}
	for _, l := range view.GetLeftOut() {
		warn("%s", text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l}))
	}
	return warnings
}

// read returns the input from manifests.
func (f *inputFlags) read(s streams, sources []objects.Source) (*input, error) {
	rules, err := f.rules(sources)
	if err != nil {
		return nil, err
	}
	if f.snapshot == "" && (byKueue(rules.Message) || byFair(rules.Message) && manifest.OfKueue(sources)) {
		return f.readKueue(sources, rules.Message)
	}
	tellOrigin(s.err, rules)
	loaded := &input{Input: client.Input{Policy: rules.Message, PolicyName: f.policyName}, warnings: rules.Warnings}
	loaded.configuration = rules.Configuration
	moment, given, err := f.moment(rules.Message)
	if err != nil {
		return nil, err
	}
	if f.snapshot != "" {
		snapshot := &apportionv1.Snapshot{}
		source, err := readInput(f.snapshot, s.in)
		if err != nil {
			return nil, err
		}
		if err := parseMessage(source, "snapshot", snapshot); err != nil {
			return nil, err
		}
		// What a snapshot states is the default, so that equal files have equal answers.
		if given && (f.asOf != "" || snapshot.GetAsOf() == 0) {
			snapshot.AsOf = moment.UnixNano()
		}
		loaded.Snapshot, loaded.file = snapshot, f.snapshot
	} else {
		cluster, missing, err := f.manifests(s, sources, f.options(moment, given))
		if err != nil {
			return nil, err
		}
		loaded.Snapshot, loaded.cluster = cluster.Snapshot, cluster
		loaded.warnings = slices.Concat(missing, f.unread, manifest.LeftOut(cluster.Faulty), cluster.Warnings, rules.Warnings)
		if manifest.OfBoth(sources) {
			loaded.both = sources
			loaded.warnings = append(loaded.warnings, manifest.ShareOfKueue(sources, time.Now())...)
		}
	}
	setTime(loaded.Snapshot)
	loaded.snapshot = lookup.Of(loaded.Snapshot)
	return loaded, f.remember(loaded, moment, given)
}

// setTime sets the time of a snapshot that has none to the current one if reservations of nodes depend on it.
func setTime(s *apportionv1.Snapshot) {
	reserved := slices.ContainsFunc(s.GetNodes(), func(n *apportionv1.Node) bool { return len(n.GetReservations()) > 0 })
	if reserved && s.GetAsOf() == 0 {
		s.AsOf = time.Now().UnixNano()
	}
}

// manifests returns the cluster of manifests, and warnings about kinds of objects that they lack.
func (f *inputFlags) manifests(s streams, sources []objects.Source, options []volcano.Option) (
	*volcano.Cluster, []*apportionv1.Warning, error,
) {
	progress, end := showReading(s.err, sources)
	cluster, err := volcano.ReadManifests(sources, append(options, progress...)...)
	end()
	if err != nil {
		return nil, nil, perhapsSnapshot(err, sources)
	}
	if f.own != "" && cluster.Nothing {
		return nil, nil, fmt.Errorf("%s holds no Queue, nor another object that is read: it would change nothing", f.own)
	}
	missing, err := manifest.Missing(sources, cluster, f.missing, "`apportion help` shows the kubectl command that lists a cluster")
	if err != nil {
		return nil, nil, err
	}
	of := cluster.Snapshot
	if nothing := len(of.GetQueues())+len(of.GetNodes())+len(of.GetJobs()) == 0; nothing || f.own != "" {
		if err := cluster.Fault(f.own); err != nil {
			return nil, nil, perhapsSnapshot(err, sources)
		}
	}
	return cluster, missing, nil
}

// options returns the options for reading manifests.
func (f *inputFlags) options(moment time.Time, given bool) []volcano.Option {
	options := []volcano.Option{volcano.WithUnread(f.missing)}
	if !f.strict {
		options = append(options, volcano.LeaveOutFaulty())
	}
	if given {
		options = append(options, volcano.WithAsOf(moment))
	}
	if len(f.schedulers) > 0 {
		options = append(options, volcano.WithSchedulers(f.schedulers...))
	}
	if f.defaults {
		options = append(options, volcano.WithQueueDefaults())
	}
	if f.ledger.file != "" {
		options = append(options, volcano.WithStarts())
	}
	return options
}

// instead reads the manifests of a file and, unless alone, the rest of the cluster: the queues of the file replace those of the cluster.
func (f *inputFlags) instead(ctx context.Context, s streams, file string, alone bool) (*input, error) {
	own := *f
	own.files, own.own, own.live.On = []string{file}, file, false
	sources, err := own.sources(ctx, s.in)
	if err == nil && !alone {
		var rest []objects.Source
		rest, err = f.sources(ctx, s.in)
		for _, source := range rest {
			source.Background = true
			sources = append(sources, source)
		}
		own.unread, own.missing = f.unread, f.missing
	}
	if err != nil {
		return nil, err
	}
	return own.read(s, sources)
}
