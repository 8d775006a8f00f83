package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire/catalogue"
)

// input is what a command asks about.
type input struct {
	client.Input
	snapshot *lookup.Snapshot
	warnings []*apportionv1.Warning
	// cluster is nil for a snapshot in the contract's own form, which file names.
	cluster *volcano.Cluster
	file    string
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

// kept asks the server for the snapshot that it keeps.
func (f *inputFlags) kept(ctx context.Context) (*input, error) {
	switch {
	case len(f.files) > 0 || f.snapshot != "" || f.live.Named():
		return nil, errors.New("--snapshot-name takes the place of -f, --snapshot and --cluster: give one of them")
	case f.server == nil || f.server.address == "":
		return nil, errors.New("--snapshot-name: name the server that follows the cluster with --server")
	case f.asOf != "" || len(f.schedulers) > 0:
		return nil, errors.New("--snapshot-name: --as-of and --scheduler are for manifests")
	}
	policy, warnings, err := f.rules()
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
	loaded := &input{
		Input:    client.Input{Upload: upload, Snapshot: upload.Snapshot(), Policy: policy, PolicyName: f.policyName},
		snapshot: lookup.Of(upload.Snapshot()), warnings: slices.Concat(staleness(view), warnings),
	}
	return loaded, nil
}

// staleness returns warnings of what is missing in a kept snapshot, and of one that is old.
func staleness(view *apportionv1.SnapshotView) []*apportionv1.Warning {
	const old = 5 * time.Second
	var warnings []*apportionv1.Warning
	warn := func(format string, args ...any) {
		warnings = append(warnings, &apportionv1.Warning{
			Code: apportionv1.WarningCode_WARNING_CODE_DROPPED, Message: fmt.Sprintf(format, args...),
		})
	}
	if age := time.Duration(view.GetAge()); age > old {
		warn("snapshot %s is %v old", view.GetName(), age.Round(time.Second))
	}
	for _, kind := range view.GetKinds() {
		switch {
		case !kind.GetRead():
			warn("%s cannot be read by the server and are left out: %s", kind.GetResource(), kind.GetFault())
		case kind.GetFault() != "":
			warn("changes of %s do not arrive at the server: %s", kind.GetResource(), kind.GetFault())
		}
	}
	return warnings
}

// read makes an input of manifests that were read.
func (f *inputFlags) read(s streams, sources []volcano.Source) (*input, error) {
	policy, warnings, err := f.rules()
	if err != nil {
		return nil, err
	}
	loaded := &input{Input: client.Input{Policy: policy, PolicyName: f.policyName}, warnings: warnings}
	moment, given, err := f.moment(policy)
	if err != nil {
		return nil, err
	}
	if f.snapshot != "" {
		snapshot, err := readSnapshot(f.snapshot)
		if err != nil {
			return nil, err
		}
		if given {
			snapshot.AsOf = moment.UnixNano()
		}
		loaded.Snapshot, loaded.file = snapshot, f.snapshot
	} else {
		progress := newProgress(s.err, sources)
		cluster, err := volcano.ReadManifests(sources, append(f.options(moment, given), progress.option()...)...)
		progress.end()
		if err != nil {
			return nil, perhapsSnapshot(err, sources)
		}
		missing, err := emptiness(sources, cluster)
		if err != nil {
			return nil, err
		}
		loaded.Snapshot, loaded.cluster = cluster.Snapshot, cluster
		loaded.warnings = slices.Concat(f.unread, cluster.Warnings, missing, warnings)
	}
	loaded.snapshot = lookup.Of(loaded.Snapshot)
	return loaded, nil
}

// options say how manifests are read.
func (f *inputFlags) options(moment time.Time, given bool) []volcano.Option {
	var options []volcano.Option
	if given {
		options = append(options, volcano.WithAsOf(moment))
	}
	if len(f.schedulers) > 0 {
		options = append(options, volcano.WithSchedulers(f.schedulers...))
	}
	return options
}

// readSnapshot reads a snapshot in the contract's own form.
func readSnapshot(file string) (*apportionv1.Snapshot, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%s is empty: a snapshot is expected, as `apportion convert` writes it", file)
	}
	snapshot := &apportionv1.Snapshot{}
	return snapshot, document.Unmarshal(file, data, snapshot)
}

// perhapsSnapshot adds a hint to faults of a source that looks like a snapshot of the contract.
func perhapsSnapshot(err error, sources []volcano.Source) error {
	for _, source := range sources {
		head := source.Data[:min(len(source.Data), 4<<10)]
		if bytes.Contains(head, []byte("dimensions")) && !bytes.Contains(head, []byte("kind")) {
			return fmt.Errorf("%w\n%s may be a snapshot as written by convert: name it with --snapshot", err, source.Name)
		}
	}
	return err
}

// emptiness returns an error if the manifests hold no object at all, and else warnings of what is missing in them.
func emptiness(sources []volcano.Source, cluster *volcano.Cluster) ([]*apportionv1.Warning, error) {
	var lines []string
	var warnings []*apportionv1.Warning
	for _, source := range sources {
		if !slices.Contains(cluster.Empty, source.Name) {
			continue
		}
		what := "holds no object of Kubernetes, such as a list without items"
		if len(bytes.TrimSpace(source.Data)) == 0 {
			what = "is empty"
		}
		lines = append(lines, source.Name+" "+what)
		warnings = append(warnings, &apportionv1.Warning{Path: source.Name, Message: "the file " + what})
	}
	if len(sources) > 0 && len(cluster.Empty) == len(sources) {
		return nil, fmt.Errorf("nothing to ask about: %s; `apportion help` shows the kubectl command that lists a cluster",
			strings.Join(lines, ", "))
	}
	snapshot := cluster.Snapshot
	for _, kind := range []struct {
		count int
		words string
	}{
		{len(snapshot.GetQueues()), "no Queue is in the input: no job has a queue to be in"},
		{len(snapshot.GetNodes()), "no Node is in the input: no task has room anywhere"},
	} {
		if kind.count == 0 {
			warnings = append(warnings, &apportionv1.Warning{Message: kind.words})
		}
	}
	return warnings, nil
}

// sources are the manifests: files, the files of directories in the order of their names, standard input, or the lists of a live cluster.
func (f *inputFlags) sources(ctx context.Context, in io.Reader) ([]volcano.Source, error) {
	if given := len(f.files) > 0 || f.snapshot != ""; f.live.Named() && given {
		return nil, errors.New("--cluster takes the place of -f and --snapshot: give one of them")
	} else if f.live.On && !given {
		return f.cluster(ctx)
	}
	if len(f.files) == 0 {
		if f.snapshot == "" {
			return nil, errors.New("nothing to ask about: name manifests with -f FILE (- is standard input), --snapshot FILE, " +
				"or the live cluster with --cluster")
		}
		return nil, nil
	}
	if f.snapshot != "" {
		return nil, errors.New("--snapshot takes the place of -f: give one of them")
	}
	var sources []volcano.Source
	for _, name := range f.files {
		if name == "-" {
			data, err := io.ReadAll(in)
			if err != nil {
				return nil, err
			}
			sources = append(sources, volcano.Source{Name: "stdin", Data: data})
			continue
		}
		files, err := expand(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			sources = append(sources, volcano.Source{Name: file, Data: data})
		}
	}
	return sources, nil
}

// cluster reads the live cluster. What may not be read becomes a warning.
func (f *inputFlags) cluster(ctx context.Context) ([]volcano.Source, error) {
	read, err := f.live.Read(ctx)
	if err != nil {
		return nil, err
	}
	f.unread = nil
	for _, sentence := range read.Unread {
		f.unread = append(f.unread, &apportionv1.Warning{Code: apportionv1.WarningCode_WARNING_CODE_DROPPED, Message: sentence})
	}
	return read.Sources, nil
}

// expand is a file itself, or the manifests in a directory.
func expand(name string) ([]string, error) {
	stat, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !stat.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no .yaml, .yml or .json file is in it", name)
	}
	return files, nil
}

// rules are the policy to decide by; nil: the server's of that name.
func (f *inputFlags) rules() (*apportionv1.Policy, []*apportionv1.Warning, error) {
	given := 0
	for _, flag := range []string{f.config, f.policy, f.policyName} {
		if flag != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, nil, errors.New("--config, --policy and --policy-name exclude each other")
	case f.policyName != "":
		return nil, nil, nil
	case f.config != "":
		data, err := os.ReadFile(f.config)
		if err != nil {
			return nil, nil, err
		}
		return volcano.ReadConfiguration(volcano.Source{Name: f.config, Data: data})
	case f.policy != "":
		policy, err := readPolicy(f.policy)
		return policy, nil, err
	}
	return client.VolcanoDefault(), nil, nil
}

// readPolicy is a preset, which may be named as a server's settings name it, or what a file holds.
func readPolicy(name string) (*apportionv1.Policy, error) {
	if preset, ok := client.Preset(strings.TrimPrefix(name, "preset:")); ok {
		return preset, nil
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, "./\\") {
		return nil, fmt.Errorf("no policy %q: neither a preset (%s) nor a file", name, strings.Join(client.Presets(), ", "))
	}
	if err != nil {
		return nil, err
	}
	policy := &apportionv1.Policy{}
	return policy, document.Unmarshal(name, data, policy)
}

// moment is the clock of the decisions. Without a flag it is only given if some plugin looks at it, so that equal files have equal
// answers.
func (f *inputFlags) moment(policy *apportionv1.Policy) (moment time.Time, given bool, err error) {
	switch f.asOf {
	case "now":
		return time.Now(), true, nil
	case "":
		for _, tier := range policy.GetTiers() {
			for _, plugin := range tier.GetPlugins() {
				if row, ok := catalogue.Of(plugin); ok && row.Clock {
					return time.Now(), true, nil
				}
			}
		}
		return time.Time{}, false, nil
	}
	moment, err = time.Parse(time.RFC3339, f.asOf)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("--as-of: not a moment like 2006-01-02T15:04:05Z: %q", f.asOf)
	}
	return moment, true, nil
}

// options say how the server is reached, and who asks.
func (f *serverFlags) options() ([]client.Option, error) {
	options := []client.Option{client.WithPlaintext()}
	if f.tls || f.authority != "" || f.certificate != "" || f.key != "" {
		config, err := client.TLSFiles(f.authority, f.certificate, f.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca, --tls-certificate, --tls-key: %w", err)
		}
		options = []client.Option{client.WithTLS(config)}
	}
	if f.token != "" {
		options = append(options, client.WithToken(client.TokenFile(f.token)))
	}
	return options, nil
}

// decider is who decides. The context ends with the flags' timeout if a server is asked.
func (f *serverFlags) decider(ctx context.Context) (*client.Client, context.Context, func(), error) {
	if f.address == "" {
		return client.InProcess(), ctx, func() {}, nil
	}
	options, err := f.options()
	if err != nil {
		return nil, nil, nil, err
	}
	decider, err := client.Dial(f.address, options...)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("--server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	return decider, ctx, func() {
		cancel()
		if err := decider.Close(); err != nil {
			return
		}
	}, nil
}
