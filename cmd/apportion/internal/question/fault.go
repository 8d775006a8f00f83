package question

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/text"
)

// entityPath matches paths of a queue, job or node of a snapshot, and of a field of it.
var entityPath = regexp.MustCompile(`^snapshot\.(queue|job|node)s\[(\d{1,9})\]\.?(.*)$`)

// place returns the path of a warning or a violation in readable form. `snapshot.queues[3].capability` is `cluster.yaml:12: queue research:
// capability` in manifests, and `snapshot.yaml: queues[3] (research): capability` in a snapshot of the contract. Other paths of the
// snapshot are the name of its file; paths of a policy stay as they are.
func (in *Loaded) place(path string) string {
	if at := strings.Index(path, "input.snapshot"); at == 0 || at > 0 && path[:at] == "open." {
		path = path[at+len("input."):]
	}
	match := entityPath.FindStringSubmatch(path)
	if match == nil {
		if path == "snapshot" || strings.HasPrefix(path, "snapshot.") {
			return in.file
		}
		return path
	}
	index, err := strconv.Atoi(match[2])
	if err != nil {
		return path
	}
	name := in.nameOf(match[1], index)
	parts := []string{in.file, fmt.Sprintf("%ss[%d] (%s)", match[1], index, name)}
	if in.Cluster != nil {
		parts = []string{in.Cluster.Place(path), match[1] + " " + name}
	} else if name == "" {
		parts[1] = fmt.Sprintf("%ss[%d]", match[1], index)
	}
	if match[3] != "" {
		parts = append(parts, match[3])
	}
	return strings.Join(parts, ": ")
}

// nameOf returns the name of a queue, job or node of the snapshot, "" if it has none.
func (in *Loaded) nameOf(kind string, index int) string {
	s := in.Lookup
	switch {
	case s == nil:
	case kind == "queue" && index < len(s.GetQueues()):
		return s.GetQueues()[index].GetName()
	case kind == "job" && index < len(s.GetJobs()):
		return lookup.JobName(s.GetJobs()[index])
	case kind == "node" && index < len(s.GetNodes()):
		return s.GetNodes()[index].GetName()
	}
	return ""
}

// Placed returns warnings with readable places instead of paths.
func (in *Loaded) Placed(warnings []*apportionv1.Warning) []*apportionv1.Warning {
	out := make([]*apportionv1.Warning, len(warnings))
	for i, w := range warnings {
		out[i] = &apportionv1.Warning{Code: w.GetCode(), Path: in.place(w.GetPath()), Message: w.GetMessage(), Queue: w.Queue}
	}
	return out
}

// Named replaces the positions in the violations of an error by names.
func (in *Loaded) Named(err error) error {
	if err == nil {
		return nil
	}
	listed, total := client.Violations(err)
	if len(listed) == 0 {
		return err
	}
	lines := make([]string, 0, len(listed)+1)
	for _, v := range listed {
		if place := in.place(v.Path); place != "" {
			lines = append(lines, place+": "+v.Detail)
		} else {
			lines = append(lines, v.Detail)
		}
	}
	if total > len(listed) {
		lines = append(lines, fmt.Sprintf("and %d more", total-len(listed)))
	}
	return cli.Reworded(err, strings.Join(lines, "\n"))
}

// CheckResources returns an error for resources that the snapshot does not have.
func (a *Asking) CheckResources(snapshot *lookup.Snapshot) error {
	known := ResourceNames(snapshot)
	for _, asked := range a.Resources {
		if slices.Contains(known, asked) {
			continue
		}
		like := spelling.Suggestion(asked, slices.Values(known))
		all := "there are " + strings.Join(snapshot.GetDimensions(), ", ")
		return fmt.Errorf("--resource: no resource %q%s", asked, spelling.Then(like, all))
	}
	return nil
}

// Patches returns the changes of objects that make a remedy of a job.
func (in *Loaded) Patches(names text.Names, job uint32, remedy *apportionv1.Remedy) []objects.Patch {
	if remedy.GetKueue() == nil {
		return volcano.Patches(in.Lookup, names, in.Cluster, job, remedy)
	}
	return kueue.Patches(in.Lookup, job, remedy)
}

// These are kinds of objects on which some answers do not depend.
const (
	NodeKind  = "Node"
	PodKind   = "Pod"
	ClassKind = "PriorityClass"
)

// Unknown returns an error if kinds of objects other than these were not read.
func (q *Question) Unknown(except ...string) error {
	kinds, _ := lookup.Unread(q.Lookup.Snapshot)
	kinds = slices.DeleteFunc(kinds, func(l *apportionv1.LeftOut) bool { return slices.Contains(except, l.GetKind()) })
	if len(kinds) == 0 {
		return nil
	}
	return errors.New(text.Unread(kinds))
}

// Unread names the kinds of objects that were not read and may be jobs: those of Kueue, and all kinds if the input has no Queue and no
// PodGroup.
func (in *Loaded) Unread() string {
	if in.Cluster == nil {
		return ""
	}
	const kueue = "kueue.x-k8s.io/"
	empty := len(in.Lookup.GetQueues())+len(in.Lookup.GetJobs())+len(in.Lookup.GetLeftOuts()) == 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(in.Cluster.Unread)) {
		if empty || strings.HasPrefix(kind, kueue) {
			kinds = append(kinds, fmt.Sprintf("%d of kind %s", in.Cluster.Unread[kind], kind))
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return "Not judged: objects that this program does not read, " + strings.Join(kinds, ", ") + "."
}

// lacking adds to an error, such as of a name that is not found, the kinds of objects that were not read.
func (q *Question) lacking(err error) error {
	if _, answered := status.FromError(err); err == nil || answered || errors.Is(err, cli.ErrDecidedNo) {
		return err
	}
	if unknown := q.Unknown(NodeKind); unknown != nil && unknown.Error() != err.Error() {
		return fmt.Errorf("%w; %w", unknown, err)
	}
	return err
}

// Undivided returns an error if what there is to divide is not known: then no queue deserves or may use anything that is known. A kind that
// was not read is said first.
func (q *Question) Undivided() error {
	if why := q.whyUnknown(); why != "" {
		if err := q.Unknown(); err != nil {
			return err
		}
		return errors.New("what there is to divide is not known, and so no share: " + why)
	}
	return nil
}

// Divided answers only if what there is to divide is known.
func Divided(ask func(context.Context, *Question, []string) error) func(context.Context, *Question, []string) error {
	return func(ctx context.Context, q *Question, names []string) error {
		if err := q.Undivided(); err != nil {
			return err
		}
		return ask(ctx, q, names)
	}
}

// ofKueue reports whether a snapshot has queues of Kueue, which need no nodes.
func ofKueue(s *lookup.Snapshot) bool {
	return slices.ContainsFunc(s.GetQueues(), func(q *apportionv1.Queue) bool { return q.GetKueue() != nil })
}

// whyUnknown says why the total to divide is not known; "" if it is known.
func (q *Question) whyUnknown() string {
	offers := func(n *apportionv1.Node) bool {
		return slices.ContainsFunc(n.GetAllocatable().GetAmounts(), func(x float64) bool { return x > 0 })
	}
	switch nodes := q.Lookup.GetNodes(); {
	case ofKueue(q.Lookup) || q.Lookup.GetTotal() != nil || slices.ContainsFunc(nodes, offers):
		return ""
	case len(nodes) == 0:
		return "the input has no nodes" + q.WhyNoNodes()
	default:
		return "no node states what it offers (allocatable)"
	}
}

// WhyNoNodes is a note that the nodes of the cluster may not be read, "" if they may.
func (q *Question) WhyNoNodes() string {
	for _, w := range q.Warnings {
		if strings.HasPrefix(w.GetMessage(), "nodes may not be read") || strings.HasPrefix(w.GetMessage(), "nodes cannot be read") {
			return "; " + w.GetMessage()
		}
	}
	return ""
}
