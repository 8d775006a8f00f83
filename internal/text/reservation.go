package text

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/visible"
)

// Reserved says what a reservation keeps of a node, for what, and when, in the words of the page too: `the whole node for maintenance from
// 2026-03-02 15:00:00 UTC to 2026-03-02 17:00:00 UTC`. holder is the name of the job that may use it, empty if no job may.
func Reserved(names Names, holder string, r *apportionv1.NodeReservation) string {
	what := Say("reservedWhole")
	if r.GetRequest() != nil {
		what = Amounts(names, r.GetRequest())
	}
	switch {
	case holder != "" && r.GetReason() != "":
		what += Say("reservedForBoth", "holder", holder, "reason", r.GetReason())
	case holder != "" || r.GetReason() != "":
		what += Say("reservedFor", "what", holder+r.GetReason())
	}
	return what + period(r.GetStartUnixNano(), r.GetEndUnixNano())
}

// period is when a reservation begins and ends: ` from 2026-07-01 14:30:00 UTC on`.
func period(from, until int64) string {
	switch {
	case from == 0 && until == 0:
		return ""
	case from == 0:
		return Say("reservedUntil", "until", moment(until))
	case until == 0:
		return Say("reservedFrom", "from", moment(from))
	}
	return Say("reservedDuring", "from", moment(from), "until", moment(until))
}

// reservation tells which room is kept from when on: for the job, or for the one that keeps it back.
func reservation(names Names, e *apportionv1.Explanation) string {
	r := e.GetReservation()
	if r == nil {
		return ""
	}
	if r.GetJob() == e.GetJob() {
		room, _ := roomOf(r)
		return fmt.Sprintf("It holds %s from %s on.", room, moment(r.GetStartTime()))
	}
	return Reservation(names.job(r.GetJob()), r)
}

// Reservation says which room is kept for a job of that name, and from when on.
func Reservation(job string, r *apportionv1.Reservation) string {
	room, are := roomOf(r)
	room = strings.ToUpper(room[:1]) + room[1:]
	return visible.Text(fmt.Sprintf("%s %s kept free for %s from %s on.", room, are, job, moment(r.GetStartTime())))
}

// roomOf names the room of a reservation, with its verb.
func roomOf(r *apportionv1.Reservation) (room, are string) {
	switch nodes := slices.Compact(slices.Sorted(slices.Values(r.GetNodes()))); len(nodes) {
	case 0:
		return "room for " + Count(len(r.GetTasks()), "task"), "is"
	case 1:
		return "1 node", "is"
	default:
		return Count(len(nodes), "node"), "are"
	}
}
