package audit

import (
	"fmt"
	"iter"
	"slices"

	"github.com/apportion/apportion/engine/cycle"
)

// waiting lists the blocks that wait, in order, at most as many as the limits say. The list is valid until the next call.
func (s *state) waiting() ([][]uint32, error) {
	jobs, err := s.inOrder()
	list := s.listed[:0]
	for _, j := range jobs {
		list = append(list, s.blocks(j)...)
	}
	s.listed = list
	if len(list) > s.limits.Blocks {
		s.report.Partial = fmt.Sprintf("of %d gangs and single tasks that wait only the first %d were tried", len(list), s.limits.Blocks)
		list = list[:s.limits.Blocks]
	}
	return list, err
}

// Waiting yields the blocks that wait, and after each that was started those that wait then. What has no room is not asked about again
// until something is evicted, what was refused only in the next round: room only shrinks, but a refusal may rest on what others could be
// given.
func (s *state) Waiting(action cycle.Action) iter.Seq2[[]uint32, error] {
	if action == cycle.Reclaim {
		return s.claiming
	}
	return func(yield func([]uint32, error) bool) {
		clear(s.refused)
		// There are no more blocks than tasks in them.
		if s.pending < s.limits.Blocks {
			s.startable(yield)
		} else if blocks, err := s.waiting(); err != nil {
			yield(nil, err)
		} else if len(blocks) < s.limits.Blocks {
			s.startable(yield)
		} else {
			s.startableOf(blocks, yield)
		}
		if s.moves >= s.limits.Moves {
			s.report.Partial = fmt.Sprintf("only the first %d moves were tried", s.limits.Moves)
		}
	}
}

// startableOf yields what may start of the first blocks that wait, listed again after each that was started.
func (s *state) startableOf(blocks [][]uint32, yield func([]uint32, error) bool) {
	var err error
	for moves := -1; moves != s.moves && s.moves < s.limits.Moves; blocks, err = s.waiting() {
		if err != nil {
			yield(nil, err)
			return
		}
		moves = s.moves
		for _, block := range blocks {
			if s.roomless[block[0]] || s.refused[block[0]] {
				continue
			}
			if !yield(block, nil) {
				return
			}
			if s.moves != moves {
				break
			}
		}
	}
}

// claiming yields each block that waits once in a round, also where something moved meanwhile, and begins another round after each in which
// something moved.
func (s *state) claiming(yield func([]uint32, error) bool) {
	for {
		moves := s.moves
		blocks, err := s.waiting()
		if err != nil {
			yield(nil, err)
			return
		}
		for _, block := range blocks {
			if s.looked[block[0]] {
				continue
			}
			s.looked[block[0]] = true
			if !yield(block, nil) {
				return
			}
			if s.moves != moves {
				break
			}
		}
		if s.moves != moves {
			continue
		}
		if s.roundMoves == s.moves {
			return
		}
		clear(s.looked)
		s.rounds, s.roundMoves = s.rounds+1, s.moves
	}
}

// startable yields what Waiting yields for allocations, without listing all that waits after each: in a queue in which nothing could be
// started, nothing can be until the next round.
func (s *state) startable(yield func([]uint32, error) bool) {
	queues, err := s.queuesInOrder(nil)
	if err != nil {
		yield(nil, err)
		return
	}
	queues = slices.DeleteFunc(queues, s.exhausted)
	for len(queues) > 0 && s.moves < s.limits.Moves {
		moves := s.moves
		if !s.startableIn(queues[0], yield) {
			return
		}
		if s.moves == moves {
			queues = queues[1:]
			continue
		}
		if s.exhausted(queues[0]) {
			queues = queues[1:]
		}
		if len(queues) > 1 {
			if queues, err = s.queuesInOrder(queues); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// exhausted reports whether nothing of a queue can be started before something is evicted or the next round begins.
func (s *state) exhausted(queue uint32) bool {
	for _, j := range s.byQueue[queue] {
		for _, block := range s.blocks(j) {
			if !s.roomless[block[0]] && !s.refused[block[0]] && !slices.ContainsFunc(block, s.crowded) {
				return false
			}
		}
	}
	return true
}

// startableIn yields what may start in a queue until something was started. It returns false if yield does.
func (s *state) startableIn(queue uint32, yield func([]uint32, error) bool) bool {
	moves := s.moves
	for _, j := range s.byQueue[queue] {
		for _, block := range s.blocks(j) {
			if s.roomless[block[0]] || s.refused[block[0]] {
				continue
			}
			if !yield(block, nil) {
				return false
			}
			if s.moves != moves {
				return true
			}
		}
	}
	return true
}
