package model

import (
	"errors"
	"hash/maphash"
	"slices"
)

// ErrTally says that a snapshot has to be read again with all its tasks: something in it is faulty or might be, or sums depend on the order
// of tasks.
var ErrTally = errors.New("the tasks of the snapshot cannot be counted only")

// tally is what a builder keeps of tasks that are only counted.
type tally struct {
	on bool
	// counts are those of the newest group.
	counts [NumStatus]int32
	// uids are the hashes of the uids of all tasks, the counted ones and the others.
	uids sorted
	// n is how many tasks were counted.
	n int
}

// Tally makes the builder take CountTask. Build then returns ErrTally wherever the model might not do for questions about what tasks add
// up to, and for any fault. Tasks of the model are found neither by uid nor by path.
func (b *Builder) Tally() { b.tally.on = true }

// ExpectTally makes room for so many groups and tasks.
func (b *Builder) ExpectTally(groups, tasks int) {
	b.tally.uids.entries = room(b.tally.uids.entries, tasks)
	// A group mostly has tasks of two statuses or fewer.
	b.counts = room(b.counts, 2*groups)
}

// CountTask adds a task without a detail to the newest group, of which the model keeps no more than that it counts.
func (b *Builder) CountTask(uid string, status Status, node NodeID) {
	b.task++
	b.counted++
	b.tally.n++
	b.tally.counts[status]++
	b.noteUID(uid)
	if node != None && !b.placed(node) {
		b.faults.Total++
	}
}

func (b *Builder) noteUID(uid string) {
	if uid != "" {
		b.tally.uids.entries = append(b.tally.uids.entries, maphash.String(seed, uid))
	}
}

// closeTally adds the tasks counted of the newest group to its counts.
func (b *Builder) closeTally() {
	for status, n := range b.tally.counts {
		if n > 0 {
			b.counts = append(b.counts, Count{Group: GroupID(len(b.groups) - 1), Status: Status(status), N: n})
			b.tally.counts[status] = 0
		}
	}
}

// distinct reports whether no two uids have the same hash, so that none is given twice.
func (t *tally) distinct() bool {
	t.uids.sort()
	list := t.uids.entries
	for i := 0; i < len(list); {
		end := i + 1
		for end < len(list) && list[end]>>32 == list[i]>>32 {
			end++
		}
		if same := list[i:end]; len(same) > 1 {
			if slices.Sort(same); len(slices.Compact(same)) < len(same) {
				return false
			}
		}
		i = end
	}
	return true
}

// reset empties t, whose memory is used again.
func (t *tally) reset() { *t = tally{uids: sorted{t.uids.entries[:0], t.uids.scratch}} }
