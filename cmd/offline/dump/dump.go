// Package dump reads the files that a person gives the page where there is no server: what kubectl prints, or a snapshot of the contract.
// It reads them as the command line does, with the same warnings.
package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/lookup"
)

// Dump is what was read.
type Dump struct {
	Snapshot *apportionv1.Snapshot
	// Policy is that of the ConfigMap of Volcano's scheduler in the files, or the one that stands beside a snapshot; nil: there is none.
	// Title names it.
	Policy *apportionv1.Policy
	Title  string
	// Preset is the name of the preset to begin with; empty: the first one.
	Preset   string
	Warnings []*apportionv1.Warning

	// cluster is nil for a snapshot and for objects of Kueue.
	cluster *volcano.Cluster
	indexed *lookup.Snapshot
}

// Given is the name of the policy of a dump beside those of presets.
const Given = "given"

// hint says what a person does about files without objects.
var hint = "give the output of: kubectl get " + objects.Listing(volcano.Kinds()) + " -A -o yaml"

// Read reads files; now is the time at which a policy that depends on the time judges them. It calls progress with the number of bytes that
// were read so far.
func Read(sources []objects.Source, now time.Time, progress func(read int)) (*Dump, error) {
	if len(sources) == 0 {
		return nil, errors.New("no file was given")
	}
	if len(sources) == 1 && IsSnapshot(sources[0].Data) {
		return readSnapshot(sources[0])
	}
	if manifest.OfKueue(sources) {
		return readKueue(sources, now)
	}
	return readVolcano(sources, now, progress)
}

func readVolcano(sources []objects.Source, now time.Time, progress func(read int)) (*Dump, error) {
	d := &Dump{}
	options := []volcano.Option{volcano.LeaveOutFaulty(), volcano.WithProgress(progress)}
	objects, configuration, err := parted(sources)
	if err != nil {
		return nil, err
	}
	var said []*apportionv1.Warning
	if configuration != nil {
		d.Title = "Volcano's configuration"
		if configuration.Release != "" {
			d.Title += ", " + configuration.Release
		}
		if d.Policy, said, err = schedulerconf.Read(*configuration); err != nil {
			return nil, fmt.Errorf("the configuration of Volcano's scheduler: %w", err)
		}
		if catalogue.Clocked(d.Policy) {
			options = append(options, volcano.WithAsOf(now))
		}
	}
	cluster, err := volcano.ReadManifests(objects, options...)
	if err != nil {
		return nil, err
	}
	missing, err := manifest.Missing(objects, cluster, nil, hint)
	if err != nil {
		return nil, err
	}
	s := cluster.Snapshot
	if len(s.GetQueues())+len(s.GetNodes())+len(s.GetJobs()) == 0 {
		if err := cluster.Fault(""); err != nil {
			return nil, err
		}
	}
	d.Snapshot, d.cluster, d.indexed = s, cluster, lookup.Of(s)
	d.Warnings = slices.Concat(missing, manifest.LeftOut(cluster.Faulty), cluster.Warnings, said)
	if manifest.OfBoth(objects) {
		d.Warnings = append(d.Warnings, manifest.ShareOfKueue(objects, now)...)
	}
	return d, nil
}

// parted returns the files of objects, and the configuration of Volcano's scheduler: a file that ends in .conf or, without one, that of the
// ConfigMap among the objects; nil if there is none.
func parted(sources []objects.Source) (objects []objects.Source, configuration *objects.Source, err error) {
	for _, source := range sources {
		if path.Ext(source.Name) != ".conf" {
			objects = append(objects, source)
			continue
		}
		if configuration != nil {
			return nil, nil, fmt.Errorf("%s and %s: give one configuration of Volcano's scheduler", configuration.Name, source.Name)
		}
		configuration = &source
	}
	if configuration != nil {
		return objects, configuration, nil
	}
	held, err := schedulerconf.InCluster(objects)
	if held == nil || err != nil {
		return objects, nil, err
	}
	return objects, &held.Source, nil
}

func readKueue(sources []objects.Source, now time.Time) (*Dump, error) {
	cluster, err := kueue.Read(sources, now, kueue.LeaveOutFaulty())
	if err != nil {
		return nil, err
	}
	return &Dump{Snapshot: cluster.Snapshot, Preset: "kueue", Warnings: manifest.LeftOutOfKueue(cluster)}, nil
}

// IsSnapshot reports whether a file is a snapshot in JSON as `apportion convert -o json` and `apportion generate` write it, alone or in an
// Input of the contract.
func IsSnapshot(data []byte) bool {
	head := bytes.TrimSpace(data)
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	const first = 4 << 10
	head = head[:min(len(head), first)]
	return !bytes.Contains(head, []byte(`"apiVersion"`)) && !bytes.Contains(head, []byte(`"kind"`))
}

func readSnapshot(source objects.Source) (*Dump, error) {
	d, input := &Dump{Snapshot: &apportionv1.Snapshot{}}, &apportionv1.Input{}
	var into proto.Message = d.Snapshot
	if isInput(source.Data) {
		into = input
	}
	if err := protojson.Unmarshal(source.Data, into); err != nil {
		const format = "%s is neither a dump of kubectl nor a snapshot as `apportion convert -o json` writes it: %w"
		return nil, fmt.Errorf(format, source.Name, err)
	}
	if into == input {
		d.Snapshot, d.Policy, d.Title = input.GetSnapshot(), input.GetPolicy(), "Policy of "+source.Name
	}
	if proto.Size(d.Snapshot) == 0 {
		return nil, fmt.Errorf("%s has no queue, no job and no node", source.Name)
	}
	return d, nil
}

// isInput reports whether a document in JSON begins with a field of Input that a Snapshot does not have.
func isInput(data []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	_, err := decoder.Token()
	first, ends := decoder.Token()
	return err == nil && ends == nil && (first == "snapshot" || first == "policy")
}

// patches of remedies bound the request, as `apportion ui` does.
const mostAnswers = 1 << 20

// Patches returns, of a SimulateResponse in JSON about the dump whose first answer has remedies, the changes of objects that make each
// remedy, as JSON.
func (d *Dump) Patches(response []byte) ([]byte, error) {
	if len(response) > mostAnswers {
		return nil, errors.New("the answer is too large")
	}
	var asked apportionv1.SimulateResponse
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(response, &asked); err != nil {
		return nil, err
	}
	changes := [][]objects.Patch{}
	if answers := asked.GetAnswers(); len(answers) > 0 && d.cluster != nil {
		answer, names := answers[0].GetRemedies(), d.indexed.Names(asked.GetBasis())
		for _, remedy := range answer.GetRemedies() {
			changes = append(changes, volcano.Patches(d.indexed, names, d.cluster, answer.GetJob(), remedy))
		}
	}
	return json.Marshal(changes)
}

// Patchable reports whether the dump has objects that remedies can change.
func (d *Dump) Patchable() bool { return d.cluster != nil }
