package model

import "fmt"

// recognized relates the jobs and tasks of a change's builder, or of a part of it, to those of the base.
type recognized struct {
	// was lists the positions in the base of the jobs that were set, None for jobs that the base does not have.
	was []JobID
	// next is the task of the base with which the next task is compared, and end the one after the last of its job.
	next, end TaskID
	// met lists the tasks whose uid another task of the base has, in order.
	met []meeting
	// entries are the tasks' entries for a sorted index of uids, in the order of the tasks.
	entries []uint64
}

// meeting is a task that was set, and the one of the base that has its uid.
type meeting struct{ task, earlier TaskID }

// noJob is an empty job.
var noJob = Job{Queue: None}

func (r *recognized) expect(jobs, tasks int) {
	r.was, r.entries = room(r.was, jobs), room(r.entries, tasks)
}

// recognize returns the base's job with the same uid as s, or an empty one.
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

// recognizeTask sets the texts of a task, sharing those of an equal task of the base, and looks up its uid in the base. Most jobs keep the
// order of their tasks. Whether a task of the base remains is known only after the last job.
func (b *Builder) recognizeTask(task *Task, s *TaskSpec) {
	base, r := b.change.base, &b.recognized
	var uid, name span
	if r.next < r.end {
		was := base.Tasks.At(r.next)
		uid, name = was.uid, was.name
		r.next++
	}
	task.uid, task.name = b.writeOrShare(uid, s.UID), b.writeOrShare(name, s.Name)
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

// writeOrShare is write for a text that the base may have at known.
func (b *Builder) writeOrShare(known span, s string) span {
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

// claim is the position at which a job is set or removed.
type claim struct {
	at      int32
	removed bool
}

func (c claim) String() string {
	if c.removed {
		return fmt.Sprintf("remove_jobs[%d]", c.at)
	}
	return fmt.Sprintf("jobs[%d].uid", c.at)
}

// claims are the jobs of the base that a change sets or removes.
type claims struct {
	// set has a bit for each job of the base.
	set  []uint64
	list []claimed
}

type claimed struct {
	job JobID
	by  claim
}

// expect reserves memory for n more.
func (c *claims) expect(n int) { c.list = room(c.list, n) }

// has reports whether a job of the base is claimed.
func (c *claims) has(j JobID) bool { return c.set != nil && c.set[j>>6]>>(j&63)&1 != 0 }

// add claims one of n jobs.
func (c *claims) add(j JobID, by claim, n int) {
	if c.set == nil {
		c.set = make([]uint64, (n+63)>>6)
	}
	c.set[j>>6] |= 1 << (j & 63)
	c.list = append(c.list, claimed{j, by})
}

// of returns the claim of a claimed job. Only error paths need it.
func (c *claims) of(j JobID) claim {
	for i := range c.list {
		if c.list[i].job == j {
			return c.list[i].by
		}
	}
	return claim{}
}
