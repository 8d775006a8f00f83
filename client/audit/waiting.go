package audit

import (
	"fmt"
	"slices"

	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
)

// waiting lists the blocks that wait, in order, at most as many as the limits say. The list is valid until the next call.
func (s *state) waiting() ([][]uint32, error) {
	jobs, err := s.inOrder()
	list := s.listed[:0]
	for _, j := range jobs {
		list = append(list, s.blocks(j)...)
	}
	s.listed, s.within = list, nil
	if len(list) > s.limits.Blocks {
		s.report.Partial = fmt.Sprintf("of %d gangs and single tasks that wait only the first %d were tried", len(list), s.limits.Blocks)
		list = list[:s.limits.Blocks]
		s.within = map[uint32]bool{}
		for _, block := range list {
			s.within[block[0]] = true
		}
	}
	return list, err
}

// Plans is true for every policy: what is free is given out before and after each eviction until nothing more may start.
func (*state) Plans() bool { return true }

// Waiting lists the jobs of which a block may be tried. What has no room is not asked about again until something is evicted, what was
// refused only in the next pass: room only shrinks, but a refusal may rest on what others could be given. Victims are sought for each block
// once in a round, also where something moved meanwhile.
func (s *state) Waiting(action cycle.Action) (begun, others []model.JobID, err error) {
	if action == cycle.Allocate {
		clear(s.refused)
		if s.tooManyMoves() {
			return nil, nil, nil
		}
	}
	// There are no more blocks than tasks in them.
	if s.within = nil; s.pending > s.limits.Blocks {
		if _, err := s.waiting(); err != nil {
			return nil, nil, err
		}
	}
	for i := range s.jobs {
		if s.opens(&s.jobs[i], action) {
			others = append(others, model.JobID(i))
		}
	}
	return nil, others, nil
}

// QueueOf returns the queue of a job.
func (s *state) QueueOf(j model.JobID) model.QueueID { return model.QueueID(s.jobs[j].queue) }

// Before compares jobs by priority and age.
func (s *state) Before(l, r model.JobID) bool { return older(&s.jobs[l], &s.jobs[r]) < 0 }

// Queues sorts queues as the policy does.
func (s *state) Queues(queues []model.QueueID, _ bool) ([]model.QueueID, error) {
	if s.within != nil {
		if _, err := s.waiting(); err != nil {
			return nil, err
		}
	}
	return s.queuesInOrder(queues)
}

// Serve starts the first block of a job that can be started, or that can be started in the place of others.
func (s *state) Serve(number model.JobID, action cycle.Action) (done, more bool, err error) {
	j := &s.jobs[number]
	for _, block := range s.blocks(j) {
		if !s.open(block, action) {
			continue
		}
		if action == cycle.Allocate {
			done, err = s.allocate(block)
		} else {
			s.looked[block[0]] = true
			done, err = s.evictAndStart(block)
		}
		if done || err != nil {
			return done, s.opens(j, action), err
		}
	}
	return false, false, nil
}

// open reports whether an action may try a block, opens whether it may try one of a job.
func (s *state) open(block []uint32, action cycle.Action) bool {
	first := block[0]
	switch {
	case s.within != nil && !s.within[first]:
		return false
	case action == cycle.Allocate:
		if !s.roomless[first] && slices.ContainsFunc(block, s.crowded) {
			s.roomless[first] = true
		}
		return !s.roomless[first] && !s.refused[first] && !s.tooManyMoves()
	default:
		return !s.looked[first]
	}
}

func (s *state) opens(j *job, action cycle.Action) bool {
	return slices.ContainsFunc(s.blocks(j), func(block []uint32) bool { return s.open(block, action) })
}

// tooManyMoves reports whether nothing more may be tried.
func (s *state) tooManyMoves() bool {
	if s.moves < s.limits.Moves {
		return false
	}
	s.report.Partial = fmt.Sprintf("only the first %d moves were tried", s.limits.Moves)
	return true
}
