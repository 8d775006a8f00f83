package client

import (
	"iter"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// defaultLogBytes is the default number of bytes of steps that a session keeps.
const defaultLogBytes = 4 << 20

// replayBatch is the number of bytes of steps in one batch of a replay.
const replayBatch = 256 << 10

// stepLog contains the steps that produced the state of a session: those that were answered and change something, without those that a
// rollback undid.
type stepLog struct {
	limit, bytes int
	steps        []kept
	// marks are the lengths of steps and their bytes after each mark.
	marks []extent
	// full means that there were too many steps, and none are kept.
	full bool
}

type kept struct {
	step *apportionv1.Step
	size int
}

type extent struct{ steps, bytes int }

func (l *stepLog) len() int { return len(l.steps) }

// add adds those of the steps that changed the session, as their answers say.
func (l *stepLog) add(steps []*apportionv1.Step, answers []*apportionv1.Answer) {
	for i, step := range steps {
		if l.full || !answers[i].GetChanged() {
			continue
		}
		if back := step.GetRollback(); back != nil {
			if mark := int(back.GetMark()); mark < len(l.marks) {
				l.marks = l.marks[:mark+1]
				clear(l.steps[l.marks[mark].steps:])
				l.steps, l.bytes = l.steps[:l.marks[mark].steps], l.marks[mark].bytes
			}
			continue
		}
		l.append(step)
		if step.GetMark() != nil {
			l.marks = append(l.marks, extent{len(l.steps), l.bytes})
		}
	}
}

// append adds a copy of a step, because the caller may modify the original.
func (l *stepLog) append(step *apportionv1.Step) {
	size := proto.Size(step) + stepBytes
	if l.bytes += size; l.bytes > l.limit {
		*l = stepLog{limit: l.limit, full: true}
		return
	}
	l.steps = append(l.steps, kept{proto.CloneOf(step), size})
}

// stepBytes is the approximate memory of a step besides its content.
const stepBytes = 64

// batches returns the steps in order, in batches of limited size.
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
