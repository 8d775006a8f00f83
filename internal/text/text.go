// Package text puts reasons and verdicts into words. The words are for people alone: nothing is to be parsed back, programs look at codes
// and numbers. Names of a cluster are as package visible shows them, so that no name can control a terminal.
package text

import (
	"fmt"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/quantity"
)

// Names gives names to the indices in answers.
type Names struct {
	// Dimensions of the answer's basis.
	Dimensions []string
	// Queues by index.
	Queues []string
	// Cohort reports whether a queue is a cohort of Kueue. nil: none is.
	Cohort func(uint32) bool
	// Job, Task and Node name jobs and nodes by index and tasks by number. nil: they are called by their number.
	Job, Task, Node func(uint32) string
	// Spent reports whether the hard budget of a queue is used up in a dimension, or what is left of it is less than one unit uses in an
	// epoch. nil: that is not known of any.
	Spent func(queue, dimension uint32) (all, almost bool)
}

// NamesOf are the names for answers about a snapshot.
func NamesOf(basis *apportionv1.Basis, snapshot *apportionv1.Snapshot) Names {
	names := Names{Dimensions: basis.GetDimensions()}
	for _, queue := range snapshot.GetQueues() {
		names.Queues = append(names.Queues, queue.GetName())
	}
	names.Cohort = func(q uint32) bool {
		return int(q) < len(snapshot.GetQueues()) && snapshot.GetQueues()[q].GetKueue().GetCohort()
	}
	return names
}

// cohort reports whether an edit is of a cohort of Kueue.
func (n Names) cohort(e *apportionv1.Edit) bool {
	return e.GetQueue() != nil && n.Cohort != nil && n.Cohort(e.GetQueue().GetIndex())
}

// Queue is the name of a queue.
func (n Names) Queue(index uint32) string {
	if int(index) < len(n.Queues) {
		return n.Queues[index]
	}
	return fmt.Sprintf("#%d", index)
}

// Dimension is the name of a dimension.
func (n Names) Dimension(index uint32) string {
	if int(index) < len(n.Dimensions) {
		return n.Dimensions[index]
	}
	return fmt.Sprintf("#%d", index)
}

func (n Names) job(index uint32) string {
	if n.Job == nil {
		return fmt.Sprintf("#%d", index)
	}
	return n.Job(index)
}

func (n Names) task(number uint32) string {
	if n.Task == nil {
		return fmt.Sprintf("#%d", number)
	}
	return n.Task(number)
}

func (n Names) node(index uint32) string {
	if n.Node == nil {
		return fmt.Sprintf("#%d", index)
	}
	return n.Node(index)
}

// Vote is a vote in one word.
func Vote(vote apportionv1.Vote) string {
	switch vote {
	case apportionv1.Vote_VOTE_PERMIT:
		return "yes"
	case apportionv1.Vote_VOTE_REJECT:
		return "no"
	case apportionv1.Vote_VOTE_ABSTAIN:
		return "no opinion"
	case apportionv1.Vote_VOTE_UNSPECIFIED:
	}
	return "?"
}

// Enum is a value of one of the contract's enums as people write it: `queue not open` for CAUSE_CODE_QUEUE_NOT_OPEN.
func Enum(value fmt.Stringer, prefix string) string {
	name := strings.TrimPrefix(value.String(), prefix)
	return strings.ToLower(strings.ReplaceAll(name, "_", " "))
}

// Reasons joins reasons, the plugin behind each; empty if there are none.
func Reasons(names Names, reasons []*apportionv1.Cause) string {
	return Sentence(reasonsOf(names, reasons))
}

// reasonsOf is Reasons for a text that Sentence completes.
func reasonsOf(names Names, reasons []*apportionv1.Cause) string {
	texts := make([]string, 0, len(reasons))
	for _, reason := range reasons {
		texts = append(texts, reasonOf(names, reason))
	}
	return strings.Join(texts, "; ")
}

// Reason is one reason as a clause with its numbers, and the plugin it comes from.
func Reason(names Names, reason *apportionv1.Cause) string { return Sentence(reasonOf(names, reason)) }

// reasonOf is Reason for a text that Sentence completes.
func reasonOf(names Names, reason *apportionv1.Cause) string {
	f := facts{names: names, reason: reason}
	clause := f.clause()
	if plugin := reason.GetPlugin(); plugin != "" {
		clause += " (" + plugin + ")"
	}
	return clause
}

// facts writes the parts of a reason.
type facts struct {
	names  Names
	reason *apportionv1.Cause
	// Of several causes of a kind: what is said in place of the queue and the resource of one.
	queues, dimensions string
	// The reason excludes nodes that have enough left.
	free bool
	// The numbers are those of the nodes that a task may use; there are others.
	some bool
}

// queue names the queue meant, `the queue` if none is.
func (f facts) queue() string {
	switch {
	case f.queues != "":
		return f.queues
	case f.reason.Queue == nil:
		return "the queue"
	}
	if name := f.names.Queue(f.reason.GetQueue()); name != HiddenQueue {
		return "queue " + name
	}
	return HiddenQueue
}

// HiddenQueue stands for the name of a queue that the reader may not know.
const HiddenQueue = "another queue"

// measured reports whether the numbers are of a dimension.
func (f facts) measured() bool { return len(f.reason.GetDimensions()) > 0 }

// measure is the name of that dimension.
func (f facts) measure() string { return f.names.Dimension(f.reason.GetDimensions()[0]) }

// of is ` of DIMENSION`, empty for several dimensions.
func (f facts) of() string {
	if !f.measured() {
		return ""
	}
	return " of " + f.measure()
}

func (f facts) amount(number float64) string {
	if !f.measured() {
		return quantity.Short("pods", number)
	}
	return Figure(f.measure(), number)
}

// with is an amount with its dimension: `24 cpu`.
func (f facts) with(number float64) string {
	if !f.measured() {
		return f.amount(number)
	}
	if f.one(number) && f.measure() == podDimension {
		return "1 pod"
	}
	return f.amount(number) + " " + f.measure()
}

// largerThan says that more is asked for than a node has.
func (f facts) largerThan(node string) string {
	return fmt.Sprintf("it asks for %s, and %s has %s", f.with(f.reason.GetNeed()), node, f.limit())
}

// nodes names the node of a reason, or says how many there are.
func (f facts) nodes() string {
	if name := f.reason.GetDetail(); name != "" {
		return name
	}
	return Count(int(f.reason.GetLimit()), "node")
}

// podDimension is the dimension of the number of pods.
const podDimension = "pods"

// one reports whether a number is shown as 1.
func (f facts) one(number float64) bool {
	dimension := podDimension
	if f.measured() {
		dimension = f.measure()
	}
	return quantity.Short(dimension, number) == "1"
}

func (f facts) have() string  { return f.amount(f.reason.GetHave()) }
func (f facts) need() string  { return f.amount(f.reason.GetNeed()) }
func (f facts) limit() string { return f.amount(f.reason.GetLimit()) }

func (f facts) duration(number float64) string {
	return duration.Format(time.Duration(number).Round(time.Second))
}

// seconds is a number of seconds in the way of a flag: 1h30m.
func seconds(number float64) string { return duration.Format(time.Duration(number) * time.Second) }

// clause says the reason. A code that is not known here, because the server is newer, is written out with its numbers.
func (f facts) clause() string {
	for _, known := range []map[apportionv1.CauseCode]func(facts) string{clauses, fairClauses, kueueClauses} {
		if write, ok := known[f.reason.GetCode()]; ok {
			return write(f)
		}
	}
	r := f.reason
	return fmt.Sprintf("%s%s: have %s, need %s, limit %s", Enum(r.GetCode(), "CAUSE_CODE_"), f.of(), f.have(), f.need(), f.limit())
}
