package question

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

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

// whyUnknown says why the total to divide is not known; "" if it is known.
func (q *Question) whyUnknown() string {
	offers := func(n *apportionv1.Node) bool {
		return slices.ContainsFunc(n.GetAllocatable().GetAmounts(), func(x float64) bool { return x > 0 })
	}
	switch nodes := q.Lookup.GetNodes(); {
	case q.Lookup.GetKueue() != nil || q.Lookup.GetTotal() != nil || slices.ContainsFunc(nodes, offers):
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
