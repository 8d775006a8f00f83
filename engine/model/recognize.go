package model

import "bytes"

// recognized is what a change's builder, or a part of it, finds of its jobs in the base.
type recognized struct {
	// was are the positions in the base of the jobs that were set, None for those that the base does not have.
	was []JobID
	// met are the tasks whose uid another task of the base has, in order.
	met []meeting
}

// meeting is a task that was set, and the one of the base that has its uid.
type meeting struct{ task, earlier TaskID }

// recognize looks for the newest job in the base, and for the uids of its tasks. Whether a task of the base stays is known only when all
// jobs were given.
func (b *Builder) recognize() {
	at := len(b.recognized.was)
	if at == len(b.jobs) {
		return
	}
	base, job, was := b.change.base, &b.jobs[at], Job{}
	j, found := base.Job(job.UID)
	if found {
		was = *base.Jobs.At(j)
	}
	b.recognized.was = append(b.recognized.was, j)
	of := flatTexts{&b.flat}
	for t, same := job.FirstTask, was.FirstTask; t < job.EndTask; t, same = t+1, same+1 {
		uid := of.uid(int32(t))
		// Most jobs that are set have their tasks in the order in which they had them.
		if len(uid) == 0 || same < was.EndTask && bytes.Equal(uid, base.at(base.Tasks.At(same).uid)) {
			continue
		}
		if earlier, found := base.TaskOf(string(uid)); found {
			b.recognized.met = append(b.recognized.met, meeting{t, earlier})
		}
	}
}
