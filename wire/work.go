package wire

import (
	"errors"
	"math/bits"

	"github.com/apportion/apportion/engine/policy"
)

// ofWork returns the fault of a question that exceeds its bound of work, if an error reports that.
func ofWork(err error) *Fault {
	e, ok := errors.AsType[*policy.WorkError](err)
	if !ok {
		return nil
	}
	return Exceeded("work", e.Needed(), e.Maximum, "the question costs more than is allowed: "+e.Error())
}

// workOfTask is the work of a step for each task that it names.
func (s *Session) workOfTask() int { return s.engine.View().Dims.Len() * s.plugins * s.depth }

// selection is a list of things by index and by uid.
type selection interface {
	comparable
	GetIndex() []uint32
	GetUid() []string
}

// selected returns how many things a selection names, which are all if it is absent.
func selected[S selection](s S, all int) int {
	var absent S
	if s == absent {
		return all
	}
	return len(s.GetIndex()) + len(s.GetUid())
}

// sorting is about how many comparisons sorting n things takes.
func sorting(n int) int { return n * bits.Len(uint(n)) }
