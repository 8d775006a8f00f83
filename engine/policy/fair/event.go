package fair

import "github.com/apportion/apportion/engine/model"

// Moved books a task whose status or node has changed; before that they were the ones given.
func (s *State) Moved(t model.TaskID, from model.Status, node model.NodeID) {
	to, on := s.v.Status(t), s.v.NodeOf(t)
	s.v.Journal.UndoWith(s.again, s.version, 0)
	version := s.version
	s.move(t, from, node, to, on)
	s.follow(version, t, from, to)
	s.v.Journal.UndoWith(s.back, uint64(uint32(t))|uint64(from)<<32|uint64(to)<<40, uint64(uint32(node))|uint64(uint32(on))<<32)
}

// moveBack undoes what Moved did. Its arguments have the form in which Moved saves them.
func (s *State) moveBack(a, b uint64) {
	t, from, to := model.TaskID(uint32(a)), model.Status(uint8(a>>32)), model.Status(uint8(a>>40))
	s.unfollow(t, model.NodeID(uint32(b>>32)))
	s.move(t, to, model.NodeID(uint32(b>>32)), from, model.NodeID(uint32(b)))
}

// versionAgain returns to the version of the accounts before a move, once it is undone.
func (s *State) versionAgain(version, _ uint64) { s.version = version }

func (s *State) move(t model.TaskID, from model.Status, was model.NodeID, to model.Status, is model.NodeID) {
	s.latest++
	s.version = s.latest
	task := s.v.Tasks.At(t)
	r, p := s.requestOf(t), s.leafOf(task.Job)
	if s.rooms.idle != nil {
		s.bookRoom(was, from, p == none, r, -1)
		s.bookRoom(is, to, p == none, r, 1)
	}
	if p == none {
		if from.Occupies() != to.Occupies() {
			addTimes(s.accounts.aside, r, sign(to.Occupies()))
			s.division.stale |= r.positive
		}
		return
	}
	s.bookCluster(from, r, -1)
	s.bookCluster(to, r, 1)
	s.order.touch(p)
	s.owned.touch(task.Job, p)
	if from.Granted() != to.Granted() {
		s.hold(task.Job, p, r, sign(to.Granted()))
	}
	if w := s.waitOf(task.Job); w != nil {
		w.stale = true
		if pended, pends := from == model.Pending, to == model.Pending; pended != pends && s.waits(t) {
			s.await(w, t, int32(sign(pends)))
		}
	}
	counts := s.tree.open[p] && s.fitsTask(t)
	if before, after := demanded(from, task.Gate, counts), demanded(to, task.Gate, counts); before != after {
		addTimes(s.row(s.accounts.demand, p), r, sign(after))
		s.division.stale |= r.positive
	}
}

// hold adds n times a request to what a job and the places of its path hold.
func (s *State) hold(j model.JobID, p place, r *request, n int64) {
	for a := p; a != none; a = s.tree.parent[a] {
		addTimes(s.row(s.accounts.held, a), r, n)
	}
	if a := s.inqueue.jobs[j]; a != nil {
		addTimes(a.held, r, n)
		s.updateLack(a, p)
	}
}

// waitOf returns what a job waits for; nil if it never waits, or was not asked for yet.
func (s *State) waitOf(j model.JobID) *wait {
	if !s.blocks.known {
		return nil
	}
	return s.blocks.of[j]
}

func sign(more bool) int64 {
	if more {
		return 1
	}
	return -1
}
