package service

import (
	"strconv"
	"time"

	"github.com/apportion/apportion/wire"
)

// Limits bounds what one request, or one batch of a session, may hold. Each is known by its field's name in snake case, which an error
// tells with the value and the maximum.
type Limits struct {
	// Dimensions, Nodes, Queues, Jobs, Groups and Tasks bound a snapshot, and what a batch of steps adds to it; QueueDepth how deep queues
	// are nested, TextBytes each name and uid, NodeSets the node sets. 0: 64, 1,000,000, 100,000, 2,000,000, 4,000,000, 10,000,000, 1,000,
	// 4 KiB and 100,000.
	wire.Limits

	// Steps of one call or batch. 0: 100,000.
	Steps int64
	// QuestionBytes is all of a message but its snapshot: questions, steps, the policy. 0: 2 MiB.
	QuestionBytes int64
	// PolicyBytes bounds a policy. 0: 64 KiB.
	PolicyBytes int64
	// Chunks of one snapshot. 0: 100,000.
	Chunks int64
}

func (l *Limits) complete() {
	l.Dimensions = orDefault(l.Dimensions, 64)
	l.Nodes = orDefault(l.Nodes, 1_000_000)
	l.NodeSets = orDefault(l.NodeSets, 100_000)
	l.Queues = orDefault(l.Queues, 100_000)
	l.QueueDepth = orDefault(l.QueueDepth, 1000)
	l.Jobs = orDefault(l.Jobs, 2_000_000)
	l.Groups = orDefault(l.Groups, 4_000_000)
	l.Tasks = orDefault(l.Tasks, 10_000_000)
	l.TextBytes = orDefault(l.TextBytes, 4<<10)
	l.Steps = orDefault(l.Steps, 100_000)
	l.QuestionBytes = orDefault(l.QuestionBytes, 2<<20)
	l.PolicyBytes = orDefault(l.PolicyBytes, 64<<10)
	l.Chunks = orDefault(l.Chunks, 100_000)
}

// Overload says how work is admitted where more comes than can be done.
type Overload struct {
	// Running is how many calls are worked on at a time. 0: as many as there are processors.
	Running int
	// Reserve is how many more may be, one of each identity that has none under way. 0: as many as Running.
	Reserve int
	// Memory bounds, by an estimate made beforehand, what the calls that are worked on take. 0: 2 GiB.
	Memory int64
	// Waiting is how many calls may wait for their turn, Wait for how long. 0: 1,000 and a quarter of a second.
	Waiting int
	Wait    time.Duration
	// Calls bounds the unary calls and uploads that have begun, received or not. 0: 2,000.
	Calls int
	// Receiving bounds what messages take from when their length is known until their calls are answered. 0: 512 MiB.
	Receiving int64
}

func (o *Overload) complete() {
	o.Memory = orDefault(o.Memory, 2<<30)
	o.Waiting = orDefault(o.Waiting, 1000)
	o.Wait = orDefault(o.Wait, 250*time.Millisecond)
	o.Calls = orDefault(o.Calls, 2000)
	o.Receiving = orDefault(o.Receiving, 512<<20)
}

// exceeded returns a fault if a value is above a limit.
func exceeded(limit string, value, maximum int64, text string) error {
	if value <= maximum {
		return nil
	}
	return wire.Exceeded(limit, value, maximum,
		text+": "+strconv.FormatInt(value, 10)+", at most "+strconv.FormatInt(maximum, 10)+" are taken")
}
