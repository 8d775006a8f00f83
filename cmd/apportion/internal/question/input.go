package question

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// Loaded is the cluster and the policy of a question.
type Loaded struct {
	client.Input
	// Lookup is the snapshot of the input, whose parts it finds by name.
	Lookup   *lookup.Snapshot
	Warnings []*apportionv1.Warning
	// Configuration is the volcano-scheduler.conf that the policy was read from; nil if there is none.
	Configuration *objects.Source
	// Cluster is nil for a snapshot in the contract's own form, which file names.
	Cluster *volcano.Cluster
	file    string
	// both are the manifests if they have objects of Kueue beside those of Volcano, which are judged.
	both []objects.Source
	// filled is the time until which a ledger says what queues used.
	filled time.Time
}

// InputFlags name the cluster and the policy.
type InputFlags struct {
	Files      []string
	Snapshot   string
	Policy     string
	PolicyName string
	AsOf       string
	schedulers []string
	// Strict makes objects that are left out an error. own is the file that always contains them.
	Strict bool
	own    string
	// Joined makes the snapshot of a cluster with Kueue one that kueue and fair judge alike.
	Joined bool
	Ledger LedgerFlags
	Live   cluster.Flags
	// unread lists the objects of the live cluster that could not be read.
	unread []*apportionv1.Warning
	// missing are the kinds that may not be read, and why.
	missing map[string]string
	// SnapshotName names a snapshot that the server maintains.
	SnapshotName string
	server       *ServerFlags
}

// RegisterCluster adds the flags that name the cluster.
func (f *InputFlags) RegisterCluster(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP(&f.Files, "file", "f", nil,
		"`FILE` or directory of manifests as printed by kubectl, YAML or JSON; - is standard input (repeatable)")
	flags.StringVar(&f.Snapshot, "snapshot", "",
		"snapshot `FILE` written by convert or generate, instead of manifests; - is standard input")
	flags.StringVar(&f.AsOf, "as-of", "",
		"`TIME` of the decisions, as 2006-01-02T15:04:05Z or now; default: that of the snapshot, else now if the policy uses it, else none")
	flags.StringSliceVar(&f.schedulers, "scheduler", nil,
		"consider the waiting pods of the scheduler with this `NAME` (repeatable); default: volcano")
	flags.BoolVar(&f.Strict, "strict", false, "treat objects that are left out because they are invalid as errors")
	f.Live.Register(flags)
	cli.Must(command, command.MarkFlagFilename("file", cli.FormatYAML, "yml", cli.FormatJSON))
}

// PolicyForms says in the help what names a policy.
func PolicyForms() string {
	return "a preset (" + strings.Join(client.Presets(), ", ") + "), a volcano-scheduler.conf or a dump of its ConfigMap, or a file " +
		"written by convert"
}

// DefaultPolicy says in the help which policy decides if none is named.
const DefaultPolicy = "that of the ConfigMap " + schedulerconf.ConfigMapName +
	" in the input, or of another with the key volcano-scheduler.conf, else " +
	policy.InstalledName

// Register adds the flags that name the cluster and the policy.
func (f *InputFlags) Register(command *cobra.Command) {
	f.RegisterCluster(command)
	f.Ledger.register(command)
	flags := command.Flags()
	flags.StringVar(&f.Policy, "policy", "", "decide by this `POLICY`: "+PolicyForms()+"; default: "+DefaultPolicy)
	flags.StringVar(&f.PolicyName, "policy-name", "", "decide by the policy with this `NAME` on the server")
	cli.MustComplete(command, "policy", client.Presets()...)
}

// Given reports whether a cluster is named, by files or --cluster.
func (f *InputFlags) Given() bool {
	return len(f.Files) > 0 || f.Snapshot != "" || f.SnapshotName != "" || f.Live.Named()
}

// Load reads the files, or the cluster, that the flags name.
func (f *InputFlags) Load(ctx context.Context, s cli.Streams) (*Loaded, error) {
	if f.SnapshotName != "" {
		return f.kept(ctx)
	}
	sources, err := f.Sources(ctx, s.In)
	if err != nil {
		return nil, err
	}
	return f.Read(s, sources)
}

// kept gets the snapshot that the server maintains.
func (f *InputFlags) kept(ctx context.Context) (*Loaded, error) {
	switch {
	case len(f.Files) > 0 || f.Snapshot != "" || f.Live.Named():
		return nil, errors.New("--snapshot-name cannot be used with -f, --snapshot or --cluster")
	case f.server == nil || f.server.Address == "":
		return nil, errors.New("--snapshot-name: name the server that follows the cluster with --server")
	case f.Ledger.file != "" || f.Ledger.budgets != "":
		return nil, errors.New("--snapshot-name cannot be used with --ledger or --budgets: the server has its own")
	case f.AsOf != "" || len(f.schedulers) > 0:
		return nil, errors.New("--snapshot-name cannot be used with --as-of or --scheduler, which apply to manifests")
	}
	rules, err := f.Rules(nil)
	if err != nil {
		return nil, err
	}
	decider, ctx, done, err := f.server.Decider(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	upload, view, err := decider.Kept(ctx, f.SnapshotName)
	if err != nil {
		return nil, err
	}
	for _, l := range view.GetLeftOuts() {
		if f.Strict {
			return nil, errors.New(text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l}))
		}
	}
	loaded := &Loaded{
		Input:  client.Input{Upload: upload, Snapshot: upload.Snapshot(), Policy: rules.Message, PolicyName: f.PolicyName},
		Lookup: lookup.Of(upload.Snapshot()), Warnings: slices.Concat(Staleness(view), rules.Warnings),
	}
	return loaded, nil
}

// Staleness returns warnings about missing kinds and the age of a maintained snapshot.
func Staleness(view *apportionv1.SnapshotView) []*apportionv1.Warning {
	const old = 5 * time.Second
	var warnings []*apportionv1.Warning
	warn := func(format string, args ...any) {
		warnings = append(warnings, dropped(format, args...))
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
		if n := kind.GetLeftOutCount(); n > 0 {
			warn("%d of %d %s %s left out", n, kind.GetCount(), kind.GetResource(), text.Verb(int(n), "is", "are"))
		}
	}
	for _, l := range view.GetLeftOuts() {
		warn("%s", text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l}))
	}
	return warnings
}

// Read returns the input from manifests.
func (f *InputFlags) Read(s cli.Streams, sources []objects.Source) (*Loaded, error) {
	rules, err := f.Rules(sources)
	if err != nil {
		return nil, err
	}
	if f.Snapshot == "" && (policy.ByKueue(rules.Message) || policy.ByFair(rules.Message) && manifest.OfKueue(sources)) {
		return f.ReadKueue(sources, rules.Message)
	}
	TellOrigin(s.Err, rules)
	loaded := &Loaded{Input: client.Input{Policy: rules.Message, PolicyName: f.PolicyName}, Warnings: rules.Warnings}
	loaded.Configuration = rules.Configuration
	moment, given, err := f.Moment(rules.Message)
	if err != nil {
		return nil, err
	}
	if f.Snapshot != "" {
		snapshot := &apportionv1.Snapshot{}
		source, err := ReadInput(f.Snapshot, s.In)
		if err != nil {
			return nil, err
		}
		if err := parseMessage(source, "snapshot", snapshot); err != nil {
			return nil, err
		}
		// What a snapshot states is the default, so that equal files have equal answers.
		if given && (f.AsOf != "" || snapshot.GetAsOf() == 0) {
			snapshot.AsOf = moment.UnixNano()
		}
		loaded.Snapshot, loaded.file = snapshot, f.Snapshot
	} else {
		cluster, missing, err := f.manifests(s, sources, f.Options(moment, given))
		if err != nil {
			return nil, err
		}
		loaded.Snapshot, loaded.Cluster = cluster.Snapshot, cluster
		loaded.Warnings = slices.Concat(missing, f.unread, manifest.LeftOut(cluster.Faulty), cluster.Warnings, rules.Warnings)
		if manifest.OfBoth(sources) {
			loaded.both = sources
			loaded.Warnings = append(loaded.Warnings, manifest.ShareOfKueue(sources, time.Now())...)
		}
	}
	setTime(loaded.Snapshot)
	loaded.Lookup = lookup.Of(loaded.Snapshot)
	return loaded, f.Remember(loaded, moment, given)
}

// setTime sets the time of a snapshot that has none to the current one if reservations of nodes depend on it.
func setTime(s *apportionv1.Snapshot) {
	reserved := slices.ContainsFunc(s.GetNodes(), func(n *apportionv1.Node) bool { return len(n.GetReservations()) > 0 })
	if reserved && s.GetAsOf() == 0 {
		s.AsOf = time.Now().UnixNano()
	}
}

// manifests returns the cluster of manifests, and warnings about kinds of objects that they lack.
func (f *InputFlags) manifests(s cli.Streams, sources []objects.Source, options []volcano.Option) (
	*volcano.Cluster, []*apportionv1.Warning, error,
) {
	progress, end := showReading(s.Err, sources)
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

// Options returns the options for reading manifests.
func (f *InputFlags) Options(moment time.Time, given bool) []volcano.Option {
	options := []volcano.Option{volcano.WithUnread(f.missing)}
	if !f.Strict {
		options = append(options, volcano.LeaveOutFaulty())
	}
	if given {
		options = append(options, volcano.WithAsOf(moment))
	}
	if len(f.schedulers) > 0 {
		options = append(options, volcano.WithSchedulers(f.schedulers...))
	}
	if f.Ledger.file != "" {
		options = append(options, volcano.WithStarts())
	}
	return options
}

// Instead reads the manifests of a file and, unless alone, the rest of the cluster: the queues of the file replace those of the cluster.
func (f *InputFlags) Instead(ctx context.Context, s cli.Streams, file string, alone bool) (*Loaded, error) {
	own := *f
	own.Files, own.own, own.Live.On = []string{file}, file, false
	sources, err := own.Sources(ctx, s.In)
	if err == nil && !alone {
		var rest []objects.Source
		rest, err = f.Sources(ctx, s.In)
		for _, source := range rest {
			source.Background = true
			sources = append(sources, source)
		}
		own.unread, own.missing = f.unread, f.missing
	}
	if err != nil {
		return nil, err
	}
	return own.Read(s, sources)
}

// Rules returns the policy that the flags name, and otherwise that of the sources. It is empty for a policy of the server.
func (f *InputFlags) Rules(sources []objects.Source) (*policy.Policy, error) {
	switch {
	case f.Policy != "" && f.PolicyName != "":
		return nil, errors.New("only one of --policy and --policy-name is allowed")
	case f.PolicyName != "" && f.server != nil && f.server.Address == "":
		return nil, errors.New("--policy-name: name the server that has the policy with --server; in process there are none")
	case f.PolicyName != "":
		return &policy.Policy{}, nil
	case f.Policy != "":
		return policy.Read(f.Policy)
	case manifest.OfKueue(sources):
		preset, _ := client.Preset(kueuePolicy)
		return &policy.Policy{Message: preset}, nil
	}
	if held, err := policy.Held(sources); held != nil || err != nil {
		return held, err
	}
	return policy.Installed(), nil
}

// TellOrigin writes which file decides, if no flag names it.
func TellOrigin(out io.Writer, rules *policy.Policy) {
	if rules.Object != "" {
		fmt.Fprintf(out, "policy: %s\n", visible.Text(rules.Origin()))
	}
}

// Moment returns the time of the decisions. Without a flag it is set only if a plugin uses it, so that equal files have equal answers.
func (f *InputFlags) Moment(rules *apportionv1.Policy) (moment time.Time, given bool, err error) {
	switch f.AsOf {
	case "now":
		return time.Now(), true, nil
	case "":
		if catalogue.Clocked(rules) {
			return time.Now(), true, nil
		}
		return time.Time{}, false, nil
	}
	moment, err = time.Parse(time.RFC3339, f.AsOf)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("--as-of: a time such as 2006-01-02T15:04:05Z is expected, got %q", f.AsOf)
	}
	return moment, true, nil
}

// By returns the same input with another policy.
func (f *InputFlags) By(name string) InputFlags {
	other := *f
	other.Policy = name
	return other
}
