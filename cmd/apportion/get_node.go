package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

func newGetNodes(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	return a.Command(&cobra.Command{
		Use:   "nodes",
		Short: "List nodes with their tasks and what is reserved of them",
		Long: `List nodes with the number of their tasks, and whether they take new ones. If a node has reservations
that have not ended, such as planned downtime, RESERVED says what is kept, for what and when. -o wide
adds what nodes offer to tasks.`,
		Example: `  apportion get nodes -f cluster.yaml -o wide`,
		Args:    cli.NoArgs,
	}, func(_ context.Context, q *question.Question, _ []string) error { return listNodes(q) }, cli.FormatWide, cli.FormatName)
}

// nodeRow is one node in a list.
type nodeRow struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Tasks int    `json:"tasks"`
	// Reservations are those of the snapshot, and reserved says what those keep that have not ended.
	Reservations []reservationRow `json:"reservations,omitempty"`
	reserved     string
	// allocatable is what the node offers.
	allocatable *apportionv1.Resource
}

// reservationRow is a reservation of a node. Request is empty for the whole node, and Until for one without an end.
type reservationRow struct {
	From    string `json:"from"`
	Until   string `json:"until,omitempty"`
	Request string `json:"request,omitempty"`
	Holder  string `json:"holder,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

var nodeColumns = []column[nodeRow]{
	{"NODE", false, func(r *nodeRow) any { return r.Name }},
	{"STATE", false, func(r *nodeRow) any { return r.State }},
	{">TASKS", false, func(r *nodeRow) any { return r.Tasks }},
	{"ALLOCATABLE", true, func(r *nodeRow) any { return r.allocatable }},
	{reservedColumn, false, func(r *nodeRow) any { return r.reserved }},
}

const reservedColumn = "RESERVED"

// listNodes lists the nodes of the input.
func listNodes(q *question.Question) error {
	if err := q.Unknown(question.NodeKind, question.ClassKind); err != nil {
		return err
	}
	names := snapshotNames(q.Lookup)
	rows := make([]nodeRow, len(q.Lookup.GetNodes()))
	for i, node := range q.Lookup.GetNodes() {
		rows[i] = nodeRow{
			Name: node.GetName(), State: nodeState(node.GetUnschedulable()), allocatable: node.GetAllocatable(),
			reserved: q.Lookup.Reserved(names, node.GetReservations()),
		}
		for _, r := range node.GetReservations() {
			rows[i].Reservations = append(rows[i].Reservations, reservationRowOf(names, r))
		}
	}
	for _, task := range q.Lookup.Tasks {
		if task.Node != nil && int(task.GetNode()) < len(rows) {
			rows[task.GetNode()].Tasks++
		}
	}
	slices.SortStableFunc(rows, func(l, r nodeRow) int { return strings.Compare(l.Name, r.Name) })
	columns := slices.Clone(nodeColumns)
	if !slices.ContainsFunc(rows, func(r nodeRow) bool { return r.reserved != "" }) {
		columns = slices.DeleteFunc(columns, func(c column[nodeRow]) bool { return c.heading == reservedColumn })
	}
	return writeList(q, rows, columns, "no node")
}

func reservationRowOf(names text.Names, r *apportionv1.NodeReservation) reservationRow {
	at := func(nanoseconds int64) string { return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano) }
	row := reservationRow{From: at(r.GetStartUnixNano()), Holder: r.GetHolder(), Reason: r.GetReason()}
	if r.GetEndUnixNano() != 0 {
		row.Until = at(r.GetEndUnixNano())
	}
	if r.GetRequest() != nil {
		row.Request = text.Amounts(names, r.GetRequest())
	}
	return row
}

// nodeState says whether a node takes new tasks, and why not.
func nodeState(u *apportionv1.NodeUnschedulable) string {
	switch {
	case u == nil:
		return "open"
	case u.GetCause() == apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_UNSPECIFIED:
		return "closed"
	}
	return text.Enum(u.GetCause(), "UNSCHEDULABLE_CAUSE_")
}
