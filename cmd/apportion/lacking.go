package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// nodeKind, podKind and classKind are kinds of objects on which some answers do not depend.
const nodeKind, podKind, classKind = "Node", "Pod", "PriorityClass"

// unknown returns an error if kinds of objects other than these were not read.
func (q *question) unknown(except ...string) error {
	kinds, _ := lookup.Unread(q.snapshot.Snapshot)
	kinds = slices.DeleteFunc(kinds, func(l *apportionv1.LeftOut) bool { return slices.Contains(except, l.GetKind()) })
	if len(kinds) == 0 {
		return nil
	}
	return errors.New(text.Unread(kinds))
}

// unread names the kinds of objects that were not read and may be jobs: those of Kueue, and all kinds if the input has no Queue and no
// PodGroup.
func (in *input) unread() string {
	if in.cluster == nil {
		return ""
	}
	const kueue = "kueue.x-k8s.io/"
	empty := len(in.snapshot.GetQueues())+len(in.snapshot.GetJobs())+len(in.snapshot.GetLeftOut()) == 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(in.cluster.Unread)) {
		if empty || strings.HasPrefix(kind, kueue) {
			kinds = append(kinds, fmt.Sprintf("%d of kind %s", in.cluster.Unread[kind], kind))
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	return "Not judged: objects that this program does not read, " + strings.Join(kinds, ", ") + "."
}

// lacking adds to an error, such as of a name that is not found, the kinds of objects that were not read.
func (q *question) lacking(err error) error {
	if _, answered := status.FromError(err); err == nil || answered || errors.Is(err, errDecidedNo) {
		return err
	}
	if unknown := q.unknown(nodeKind); unknown != nil && unknown.Error() != err.Error() {
		return fmt.Errorf("%w; %w", unknown, err)
	}
	return err
}

// undivided returns an error if what there is to divide is not known: then no queue deserves or may use anything that is known. A kind that
// was not read is said first.
func (q *question) undivided() error {
	if why := q.whyUnknown(); why != "" {
		if err := q.unknown(); err != nil {
			return err
		}
		return errors.New("what there is to divide is not known, and so no share: " + why)
	}
	return nil
}

// divided answers only if what there is to divide is known.
func divided(ask func(context.Context, *question, []string) error) func(context.Context, *question, []string) error {
	return func(ctx context.Context, q *question, names []string) error {
		if err := q.undivided(); err != nil {
			return err
		}
		return ask(ctx, q, names)
	}
}

// whyUnknown says why the total to divide is not known; "" if it is known.
func (q *question) whyUnknown() string {
	offers := func(n *apportionv1.Node) bool {
		return slices.ContainsFunc(n.GetAllocatable().GetAmount(), func(x float64) bool { return x > 0 })
	}
	switch nodes := q.snapshot.GetNodes(); {
	case q.snapshot.GetKueue() != nil || q.snapshot.GetTotal() != nil || slices.ContainsFunc(nodes, offers):
		return ""
	case len(nodes) == 0:
		return "the input has no nodes" + q.whyNoNodes()
	default:
		return "no node states what it offers (allocatable)"
	}
}

// whyNoNodes is a note that the nodes of the cluster may not be read, "" if they may.
func (q *question) whyNoNodes() string {
	for _, w := range q.warnings {
		if strings.HasPrefix(w.GetMessage(), "nodes may not be read") || strings.HasPrefix(w.GetMessage(), "nodes cannot be read") {
			return "; " + w.GetMessage()
		}
	}
	return ""
}
