package client

import (
	"iter"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// defaultLogBytes is how many bytes of steps a session keeps.
const defaultLogBytes = 4 << 20

// replayBatch is how many bytes of steps are done again at a time.
const replayBatch = 256 << 10

// stepLog holds the steps that brought a session to its state: those that were answered and change something, without those that a
// rollback undid.
type stepLog struct {
	limit, bytes int
	steps        []kept
	// marks are the lengths of steps and their bytes after each mark.
	marks []extent
	// full: there were too many, and none are held.
	full bool
}

type kept struct {
	step *apportionv1.Step
	size int
}

type extent struct{ steps, bytes int }

func (l *stepLog) len() int { return len(l.steps) }

// add notes steps and what was answered.
func (l *stepLog) add(steps []*apportionv1.Step, answers []*apportionv1.Answer) {
	for i, step := range steps {
		if l.full || answers[i].GetError() != nil {
			continue
		}
		switch q := wire.QuestionOf(step); {
		case q == nil:
			// It is not known whether it changes something.
			l.append(step)
		case q.Undoes:
			if mark := int(step.GetRollback().GetMark()); mark < len(l.marks) {
				l.marks = l.marks[:mark+1]
				clear(l.steps[l.marks[mark].steps:])
				l.steps, l.bytes = l.steps[:l.marks[mark].steps], l.marks[mark].bytes
			}
		case q.Marks:
			l.append(step)
			l.marks = append(l.marks, extent{len(l.steps), l.bytes})
		case q.Changes:
			l.append(step)
		}
	}
}

// append holds a step: a copy, for the caller may change his.
func (l *stepLog) append(step *apportionv1.Step) {
	size := proto.Size(step) + stepBytes
	if l.bytes += size; l.bytes > l.limit {
		*l = stepLog{limit: l.limit, full: true}
		return
	}
	l.steps = append(l.steps, kept{proto.CloneOf(step), size})
}

// stepBytes is about what a step takes besides its content.
const stepBytes = 64

// batches are the steps in order, some at a time.
func (l *stepLog) batches() iter.Seq[[]*apportionv1.Step] {
	return func(yield func([]*apportionv1.Step) bool) {
		var batch []*apportionv1.Step
		bytes := 0
		for _, k := range l.steps {
			batch = append(batch, k.step)
			if bytes += k.size; bytes >= replayBatch {
				if !yield(batch) {
					return
				}
				batch, bytes = nil, 0
			}
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}
