package model

// Loader feeds a builder from a message of which not all is known to be valid: it reserves memory, reads jobs in parts, reports violations,
// and can count tasks in place of keeping them. Programs that put a model together themselves need Builder only.
type Loader struct{ *Builder }

// Loader returns a loader that feeds b.
func (b *Builder) Loader() Loader { return Loader{b} }

// Reset prepares the builder for another snapshot and reuses its memory: the model that it built, and every row of that model, must no
// longer be used. Strings taken from it stay valid.
func (l Loader) Reset(asOf int64) { l.reset(asOf) }

// ExpectPlaces reserves memory for nodes and queues. More can be added, at the cost of a reallocation.
func (l Loader) ExpectPlaces(nodes, queues int) {
	m := &l.m
	m.Nodes, m.Queues = room(m.Nodes, nodes), room(m.Queues, queues)
}

// Expect reserves memory for jobs and their contents; texts is the maximum number of bytes of all uids and names of tasks. More can be
// added, at the cost of a reallocation. Most texts of a change are those of its base, for which it needs none.
func (l Loader) Expect(jobs, groups, tasks, texts int) {
	b := l.Builder
	b.jobs, b.groups, b.tasks = room(b.jobs, jobs), room(b.groups, groups), room(b.tasks, tasks)
	if b.change != nil {
		b.recognized.expect(jobs, tasks)
		return
	}
	b.written = room(b.written, min(texts, maxText))
}

// room returns s with room for n more. slices.Grow would clear that, and so touch all of it at once: for a million tasks that takes long.
func room[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(make([]T, 0, len(s)+n), s...)
}

// Fault records a violation found by the caller, such as an invalid number.
func (l Loader) Fault(path, format string, args ...any) { l.faults.Add(path, format, args...) }

// QueueID returns the queue of a name, or None.
func (l Loader) QueueID(name string) QueueID {
	q, _ := l.m.Queue(name)
	return q
}

// RequestID returns the position in Requests of a request of the newest group or one of its tasks.
func (l Loader) RequestID(request *Amounts) int32 { return l.request(request, l.groupPath) }

// HasNodeSet reports whether there is a node set of a name.
func (l Loader) HasNodeSet(name string) bool {
	_, ok := l.m.nodeSetIndex.find(name, l.m.nodeSetName)
	return ok
}

// HasPodClass reports whether there is a class of pods of a number, or the number is 0.
func (l Loader) HasPodClass(n uint32) bool { return l.m.hasPodClass(n) }

// BuildUnless is Build, but calls stop periodically and returns ErrStopped if it returns true. each, if not nil, may do work at the same
// time: it calls f with 0 … n-1, in any order or at once, and returns when all have returned; stop must then be safe for concurrent use.
// Afterwards only Reset may be called.
func (l Loader) BuildUnless(stop func() bool, each func(n int, f func(int))) (*Model, error) {
	if each == nil {
		each = oneByOne
	}
	return l.build(stop, each)
}
