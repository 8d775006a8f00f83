package model

// recognized is what a change's builder, or a part of it, finds of its jobs in the base.
type recognized struct {
	// was are the positions in the base of the jobs that were set, None for those that the base does not have.
	was []JobID
	// next is the task of the base that the next one set is compared with, and end the one after the last of its job.
	next, end TaskID
	// met are the tasks whose uid another task of the base has, in order.
	met []meeting
	// entries are those of the tasks in a sorted index of their uids, in the order of the tasks.
	entries []uint64
}

// meeting is a task that was set, and the one of the base that has its uid.
type meeting struct{ task, earlier TaskID }

// noJob is a job with nothing in it.
var noJob = Job{Queue: None}

func (r *recognized) expect(jobs, tasks int) {
	r.was, r.entries = room(r.was, jobs), room(r.entries, tasks)
}

// recognize returns what the base of a change has of a job that is set, or a job with nothing in it.
func (b *Builder) recognize(s *JobSpec) *Job {
	if b.change == nil {
		return &noJob
	}
	base, uid, r := b.change.base, s.UID, &b.recognized
	if uid == "" {
		uid = qualified(s.Namespace, s.Name)
	}
	j, found := base.Job(uid)
	r.was = append(r.was, j)
	if !found {
		r.next, r.end = 0, 0
		return &noJob
	}
	was := base.Jobs.At(j)
	r.next, r.end = was.FirstTask, was.EndTask
	return was
}

// recognizeTask gives a task of a change its texts, which it shares with the task of the base that has the same ones, and looks for its uid
// in the base. Most jobs that are set have their tasks in the order in which they had them. Whether a task of the base stays is known
// only when all jobs were given.
func (b *Builder) recognizeTask(task *Task, s *TaskSpec) {
	base, r := b.change.base, &b.recognized
	var uid, name span
	if r.next < r.end {
		was := base.Tasks.At(r.next)
		uid, name = was.uid, was.name
		r.next++
	}
	task.uid, task.name = b.writeAs(uid, s.UID), b.writeAs(name, s.Name)
	if s.UID == "" {
		return
	}
	t := TaskID(len(b.tasks) - 1)
	r.entries = append(r.entries, uint64(tagOf(s.UID))<<32|uint64(uint32(t)))
	if task.uid == uid {
		return
	}
	if earlier, found := base.TaskOf(s.UID); found {
		r.met = append(r.met, meeting{t, earlier})
	}
}

// writeAs is write for a text that the base may have at a place.
func (b *Builder) writeAs(known span, s string) span {
	if !known.empty() && string(b.before.at(known)) == s {
		return known
	}
	return b.write(s)
}

// queueAgain returns the queue of a name, or None, for the queue of a job that was in another one, or mostly in the same.
func (b *Builder) queueAgain(was QueueID, name string) QueueID {
	if was != None && name != "" && b.m.Queues[was].Name == name {
		return was
	}
	q, _ := b.m.Queue(name)
	return q
}
