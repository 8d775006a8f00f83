package wire

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

const (
	// answerFactor is the maximum memory of an answer for each byte of its estimated size: messages of a few numbers need most.
	answerFactor = 6
	// explainFactor is the same factor for derivations, which are lists of numbers.
	explainFactor = 4
	// stepBytes is the memory of the smallest answer to a step.
	stepBytes = 256
	// explainedJob is the memory of the explanation of a job, and of the search for it; each task takes explainedTask in addition.
	// explainedWorkload is that of a job by the policy kueue, without its nomination.
	explainedJob, explainedTask, explainedWorkload = 4 << 10, 96, 2 << 10
)

// asking estimates what steps take.
type asking struct {
	decode.Extent

	// explain bounds what derivations take.
	explain int64
	// named are the dimensions that changes name.
	named map[string]bool
	// undo is the memory for rollbacks of the steps, added the memory that they add to the model.
	undo, added int64
	// marked: a step sets a mark, without which nothing is left to be undone. reopened: a step opens the session anew.
	marked, reopened bool
}

// reopen notes that a step adds so much to the model, and opens the session on the result.
func (a *asking) reopen(size decode.Size) {
	a.reopened = true
	a.Extent = a.With(&size)
	a.added += size.Memory()
	a.undo += a.session() + size.Memory()
}

func (a *asking) resource() int64 {
	return decode.BytesOf[apportionv1.Resource](1) + 8 + 16*a.Dimensions
}

func (a *asking) reason() int64 { return decode.BytesOf[apportionv1.Reason](1) + 32 }

// verdict returns the memory of a verdict with two reasons.
func (a *asking) verdict() int64 { return decode.BytesOf[apportionv1.Verdict](1) + 8 + 2*a.reason() }

// session returns the memory for opening a session again on a changed model.
func (a *asking) session() int64 {
	row := decode.RowBytes(int(a.Dimensions))
	return (40*a.Queues+10*a.Jobs+2*a.Nodes)*row + decode.BytesOf[model.Queue](int(a.Queues)) + decode.BytesOf[model.Node](int(a.Nodes)) +
		(decode.BytesOf[model.Job](1)+decode.BytesOf[model.Account](1)+256)*a.Jobs + 16*a.Tasks
}

// jobs returns the number of jobs in a selection, which are all if it is absent or empty.
func (a *asking) jobs(selection *apportionv1.Jobs) int64 {
	if n := selected(selection, 0); n > 0 {
		return int64(n)
	}
	return a.Jobs
}

// nomination returns the memory of what the policy kueue finds out about one job: an attempt, and what it lacks, for each flavor that may
// be tried for each request. What answers say of it is booked when it is known.
func (a *asking) nomination() int64 {
	return a.Flavors * a.Asked * (decode.BytesOf[kueue.Attempt](1) + decode.BytesOf[kueue.Lack](1))
}

func (a *asking) moved(n int64) int64 {
	return n*(128+4*decode.RowBytes(int(a.Dimensions))) + 16*a.Jobs
}
