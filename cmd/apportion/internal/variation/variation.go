// Package variation makes edits of the changes that users try on a cluster: another weight, more nodes, a job that has ended.
package variation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/editing"
	"github.com/apportion/apportion/internal/lookup"
)

// Variation contains the changes of a cluster from flags. Each list is in the order of the flags.
type Variation struct {
	// Set holds KIND/NAME.FIELD=VALUE.
	Set []string
	// Add is the number of added nodes, and Like, in parallel, the name of the node that they copy.
	Add  []int
	Like []string
	// Remove, Cordon and Uncordon name nodes, Finish jobs.
	Remove, Cordon, Uncordon, Finish []string
	// Remembered has the same queues with other usage, and another memory. nil: the usage stays.
	Remembered *apportionv1.Snapshot
	// Now is the time in Unix nanoseconds of a cluster that states none, if reservations of nodes depend on it.
	Now int64
	// Forget removes the memory, without which usage, budgets and owners are ignored.
	Forget bool
}

// Flags adds the flags of the changes.
func (v *Variation) Flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&v.Set, "set", nil,
		"set `KIND/NAME.FIELD=VALUE`, such as queue/vision.weight=5 or queue/vision.capability.gpu=64 (repeatable)")
	flags.IntSliceVar(&v.Add, "add-nodes", nil, "number of nodes to add, as copies of the node of --like (repeatable, with --like)")
	flags.StringArrayVar(&v.Like, "like", nil, "`NODE` to copy for added nodes")
	flags.StringArrayVar(&v.Remove, "remove-node", nil, "`NODE` to remove (repeatable)")
	flags.StringArrayVar(&v.Cordon, "cordon", nil, "`NODE` that takes no new tasks (repeatable)")
	flags.StringArrayVar(&v.Uncordon, "uncordon", nil, "`NODE` that takes new tasks again (repeatable)")
	flags.StringArrayVar(&v.Finish, "finish", nil, "`JOB` to remove as finished (repeatable)")
}

// Empty reports whether there are no changes.
func (v *Variation) Empty() bool {
	return v.Remembered == nil && !v.Forget &&
		len(v.Set)+len(v.Add)+len(v.Like)+len(v.Remove)+len(v.Cordon)+len(v.Uncordon)+len(v.Finish) == 0
}

// Made is what happens to a cluster.
type Made struct {
	// Events are a change, or none, and Edits are made of the state after it.
	Events []*apportionv1.Event
	Edits  []*apportionv1.Edit
	// Lines describe the changes.
	Lines []string
	// flags are those of the edits.
	flags []string
}

// After returns the input of questions about what an input becomes.
func (m *Made) After(in client.Input) client.Input {
	in.Events, in.Edits = slices.Concat(in.Events, m.Events), slices.Concat(in.Edits, m.Edits)
	return in
}

// flag is a flag, and the edit for which it stands.
type flag struct{ name, edit string }

// settings returns the edits of the flags, in the order in which they are made.
func (v *Variation) settings() []flag {
	var list []flag
	if v.Forget {
		list = append(list, flag{"--no-memory", "memory=none"})
	}
	each := func(name string, of []string, edit string) {
		for _, n := range of {
			list = append(list, flag{name + " " + n, fmt.Sprintf(edit, n)})
		}
	}
	each("--remove-node", v.Remove, "node/%q.removed=true")
	each("--cordon", v.Cordon, "node/%q.cordoned=true")
	each("--uncordon", v.Uncordon, "node/%q.cordoned=false")
	for i, n := range v.Add[:min(len(v.Add), len(v.Like))] {
		list = append(list, flag{"--like " + v.Like[i], fmt.Sprintf("node/%q.copies=%d", v.Like[i], n)})
	}
	each("--finish", v.Finish, "job/%q.ended=true")
	for _, set := range v.Set {
		list = append(list, flag{"--set " + set, set})
	}
	return list
}

// Of returns what happens to a cluster, or an error for each flag that does not apply to it. Jobs are submitted to it too.
func (v *Variation) Of(cluster *lookup.Snapshot, jobs []*apportionv1.Job) (*Made, error) {
	var faults []error
	made, change := &Made{}, &apportionv1.Change{Jobs: jobs}
	v.remember(cluster, made, change)
	if len(v.Add) != len(v.Like) {
		nodes := make([]string, len(cluster.GetNodes()))
		for i := range nodes {
			nodes[i] = cluster.NodeName(uint32(i))
		}
		slices.Sort(nodes)
		faults = append(faults, fmt.Errorf(
			"--add-nodes: each --add-nodes N needs a --like NODE, and the other way round; nodes are %s", lookup.Some(nodes)))
	}
	reader := editing.NewReader(cluster)
	for _, f := range v.settings() {
		edit, err := reader.Read(f.edit)
		if err != nil && f.name == "--no-memory" {
			err = fmt.Errorf("%w: name a ledger with --ledger", err)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.name, err))
			continue
		}
		made.Edits, made.Lines = append(made.Edits, edit.Edit), append(made.Lines, edit.Said)
		made.flags = append(made.flags, f.name)
		if edit.GetKind() == apportionv1.EditKind_EDIT_KIND_MAINTENANCE && edit.GetText() != "" && cluster.GetAsOf() == 0 {
			change.AsOf = new(v.Now)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	for _, job := range jobs {
		made.Lines = append(made.Lines, fmt.Sprintf("submit %s to queue %s", lookup.JobName(job), job.GetQueue()))
	}
	if len(reader.Names) > len(cluster.GetDimensions()) {
		change.Dimensions = reader.Names
	}
	if proto.Size(change) > 0 {
		made.Events = []*apportionv1.Event{{Event: &apportionv1.Event_Change{Change: change}}}
	}
	return made, nil
}

// remember takes other usage into a change.
func (v *Variation) remember(cluster *lookup.Snapshot, made *Made, change *apportionv1.Change) {
	if v.Remembered == nil {
		return
	}
	change.Memory = v.Remembered.GetMemory()
	for i, q := range v.Remembered.GetQueues() {
		if !proto.Equal(q, cluster.GetQueues()[i]) {
			change.Queues = append(change.Queues, q)
		}
	}
	made.Lines = append(made.Lines, fmt.Sprintf("set the half-life of usage to %s (now %s)",
		render.HalfLife(v.Remembered.GetMemory()), render.HalfLife(cluster.GetMemory())))
}

// editPath matches the path of an edit, and of a field of it.
var editPath = regexp.MustCompile(`(?:^.*\.)?edits\[(\d{1,9})\](?:\.[a-z_.]+)?`)

// Flagged says what is wrong with edits by their flags.
func (m *Made) Flagged(err error) error {
	listed, _ := client.Violations(err)
	var lines []string
	name := func(text string) string {
		at, wrong := strconv.Atoi(editPath.FindStringSubmatch(text)[1])
		if wrong != nil || at >= len(m.flags) {
			return text
		}
		return m.flags[at]
	}
	for _, v := range listed {
		if !editPath.MatchString(v.Path) {
			return err
		}
		lines = append(lines, name(v.Path)+": "+editPath.ReplaceAllStringFunc(v.Detail, name))
	}
	if len(lines) == 0 {
		return err
	}
	return errors.New(strings.Join(lines, "\n"))
}
