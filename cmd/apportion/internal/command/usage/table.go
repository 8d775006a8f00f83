package usage

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/ledger"
)

// used is one row of `apportion usage`: what a queue, or an owner in a queue, used of a resource in a period.
type used struct {
	Begin    string `json:"begin"`
	End      string `json:"end"`
	Queue    string `json:"queue"`
	Owner    string `json:"owner,omitempty"`
	Resource string `json:"resource"`
	// Hours of a whole unit: a device, a core, a GiB.
	Hours float64 `json:"hours"`
	// QuantumSeconds is exact, in the unit of snapshots.
	QuantumSeconds int64 `json:"quantumSeconds"`
}

// hoursIn returns hours of whole units of an amount: of a device, a core, a GiB, a pod.
func hoursIn(r *apportionv1alpha1.GetUsageResponse, d uint32, amount int64) float64 {
	return float64(amount) * float64(r.GetQuanta()[d]) / ledger.Unit(r.GetDimensions()[d]) / 3600
}

// ownerOf returns the owner of a use as people read it, empty for a queue.
func ownerOf(q *apportionv1alpha1.QueueUse) string {
	if q.Owner != nil && q.GetOwner() == "" {
		return "(none)"
	}
	return q.GetOwner()
}

func timeOf(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339) }

// usesOf lists the uses of an answer, one row for each resource.
func usesOf(r *apportionv1alpha1.GetUsageResponse) []used {
	rows := []used{}
	for _, interval := range r.GetIntervals() {
		for _, q := range interval.GetQueues() {
			for i, d := range q.GetUsed().GetDimensions() {
				amount := q.GetUsed().GetQuantumSeconds()[i]
				rows = append(rows, used{
					Begin: timeOf(interval.GetStartTime()), End: timeOf(interval.GetEndTime()), Queue: q.GetQueue(), Owner: ownerOf(q),
					Resource: r.GetDimensions()[d], Hours: hoursIn(r, d, amount), QuantumSeconds: amount,
				})
			}
		}
	}
	return rows
}

func textOfHours(hours float64) string { return strconv.FormatFloat(hours, 'f', 2, 64) }

// dayOf returns the day of a time, with the time of the day unless it is midnight.
func dayOf(text string) string {
	day, clock, _ := strings.Cut(text, "T")
	if clock == "" || clock == "00:00:00Z" {
		return day
	}
	return day + " " + clock[:len("15:04")]
}

func printUsage(p *render.Printer, rows []used) {
	if len(rows) == 0 {
		fmt.Fprintln(p.Out, "nothing was used")
		return
	}
	t := p.NewTable("FROM", "UNTIL", "QUEUE", "OWNER", "RESOURCE", ">HOURS")
	for i := range rows {
		r := &rows[i]
		t.Row(dayOf(r.Begin), dayOf(r.End), r.Queue, r.Owner, r.Resource, textOfHours(r.Hours))
	}
	t.Write(p.Out)
}

// exactHours writes hours for a spreadsheet.
func exactHours(hours float64) string { return strconv.FormatFloat(hours, 'f', 4, 64) }

// writeCSV writes the cells of rows below the names of columns. No cell is a formula to a spreadsheet.
func writeCSV[R any](out io.Writer, columns string, rows []R, cells func(*R) []string) error {
	w := csv.NewWriter(out)
	_ = w.Write(strings.Split(columns, ","))
	for i := range rows {
		row := cells(&rows[i])
		for k := range row {
			row[k] = text.Cell(row[k])
		}
		_ = w.Write(row)
	}
	w.Flush()
	return w.Error()
}

// writeUsage writes rows as CSV. quantum_seconds is exact.
func writeUsage(out io.Writer, rows []used) error {
	return writeCSV(out, "begin,end,queue,owner,resource,hours,quantum_seconds", rows, func(r *used) []string {
		return []string{r.Begin, r.End, r.Queue, r.Owner, r.Resource, exactHours(r.Hours), strconv.FormatInt(r.QuantumSeconds, 10)}
	})
}

// spent is one row of `apportion usage --by budget`: what was spent of a resource of a budget in one of its periods, by all or by one user.
type spent struct {
	Begin string `json:"begin"`
	// End is empty for the last period.
	End    string `json:"end,omitempty"`
	Budget string `json:"budget"`
	Kind   string `json:"kind"`
	// User is a queue below that of the budget, or the queue of Owner. Empty: all of the budget's queue.
	User     string `json:"user,omitempty"`
	Owner    string `json:"owner,omitempty"`
	Resource string `json:"resource"`
	// Granted hours of the period, and Hours that were spent.
	Granted float64 `json:"grantedHours"`
	Hours   float64 `json:"hours"`
	// QuantumSeconds is what was spent, exact, in the unit of snapshots.
	QuantumSeconds int64 `json:"quantumSeconds"`
}

// left returns the hours that are left, at least 0.
func (s *spent) left() float64 { return max(0, s.Granted-s.Hours) }

// spentOf lists what was spent, each budget before its users.
func spentOf(r *apportionv1alpha1.GetUsageResponse) []spent {
	rows := []spent{}
	for _, b := range r.GetBudgets() {
		for i, d := range b.GetGranted().GetDimensions() {
			of := spent{
				Begin: timeOf(b.GetStartTime()), Budget: b.GetQueue(), Kind: "soft", Resource: r.GetDimensions()[d],
				Granted: hoursIn(r, d, b.GetGranted().GetQuantumSeconds()[i]),
			}
			if b.EndTime != nil {
				of.End = timeOf(b.GetEndTime())
			}
			if b.GetKind() == apportionv1.BudgetKind_BUDGET_KIND_HARD {
				of.Kind = "hard"
			}
			row := func(user, owner string, amounts *apportionv1.Usage) {
				one := of
				if at := slices.Index(amounts.GetDimensions(), d); at >= 0 {
					one.QuantumSeconds = amounts.GetQuantumSeconds()[at]
					one.Hours = hoursIn(r, d, one.QuantumSeconds)
				}
				if one.User, one.Owner = user, owner; user == "" || one.QuantumSeconds > 0 {
					rows = append(rows, one)
				}
			}
			row("", "", b.GetSpent())
			for _, q := range b.GetUsers() {
				row(q.GetQueue(), ownerOf(q), q.GetUsed())
			}
		}
	}
	return rows
}

func (u *usage) writeBudgets(answer *apportionv1alpha1.GetUsageResponse) error {
	rows := spentOf(answer)
	if u.Format == cli.FormatCSV {
		return u.budgetsAsCSV(rows)
	}
	return u.Write(rows, func(p *render.Printer) { printBudgets(p, rows) })
}

func printBudgets(p *render.Printer, rows []spent) {
	if len(rows) == 0 {
		fmt.Fprintln(p.Out, "no period of a budget has begun")
		return
	}
	t := p.NewTable("BUDGET", "FROM", "UNTIL", "RESOURCE", "USED BY", "OWNER", ">HOURS", ">OF BUDGET", ">GRANTED", ">LEFT")
	for i := range rows {
		r := &rows[i]
		part := "-"
		if r.Granted > 0 {
			part = fmt.Sprintf("%.0f%%", 100*r.Hours/r.Granted)
		}
		if r.User != "" {
			t.Row("", "", "", "", r.User, r.Owner, textOfHours(r.Hours), part, "", "")
			continue
		}
		t.Row(r.Budget+", "+r.Kind, dayOf(r.Begin), cmp.Or(dayOf(r.End), "-"), r.Resource, "all", "", textOfHours(r.Hours), part,
			textOfHours(r.Granted), textOfHours(r.left()))
	}
	t.Write(p.Out)
}

// budgetsAsCSV writes rows as CSV. quantum_seconds is exact.
func (u *usage) budgetsAsCSV(rows []spent) error {
	const columns = "begin,end,budget,kind,user,owner,resource,granted_hours,hours,quantum_seconds"
	return writeCSV(u.Out, columns, rows, func(r *spent) []string {
		return []string{
			r.Begin, r.End, r.Budget, r.Kind, r.User, r.Owner, r.Resource, exactHours(r.Granted), exactHours(r.Hours),
			strconv.FormatInt(r.QuantumSeconds, 10),
		}
	})
}
