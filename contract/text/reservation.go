package text

import apportionv1 "github.com/apportion/apportion/gen/apportion/v1"

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
	return what + period(r.GetFrom(), r.GetUntil())
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
