package reference

import (
	"slices"
	"strconv"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Volcano keeps the ancestors of each queue in a Go slice that it makes by append from its parent's: the list of a queue at level n below
// root has n names, root first. Append makes a new array of twice the length when the array is full, as lists of 1, 2, 4, 8, … names are.
// So the list of a queue at level s = 5, 9, 17, … (2^k + 1) begins an array of 2(s-1) places, and all queues below it down to level 2(s-1)
// share that array. The list of a queue at level l+1 has its ancestor of level l at place l. Each queue of level l+1 writes that place when
// its list is made, and a leaf of level l writes itself there whenever it is asked whether something can be allocated or enqueued. All of
// them write the same name unless the subtree has a second queue at level l. Arrays that begin at levels 1 to 3 end before that can happen.

// aliasing holds the queues whose accounts or lists of ancestors Volcano may confuse.
type aliasing struct {
	// queues are the queues of a subtree from the first confused level on.
	queues map[string]bool
	// tasks and jobs are those of these queues.
	tasks, jobs map[string]bool
	// enqueue is the position in script.enqueueOrder of the first of these jobs. From there on, a wrong verdict may have changed the
	// inqueue amounts of queues that are not confused.
	enqueue int
	script  *Script
}

// aliasingOf returns what Volcano may confuse in a case, nil if nothing.
func aliasingOf(s *subject, script *Script) *aliasing {
	a := &aliasing{queues: confused(s.input.GetSnapshot().GetQueues()), tasks: map[string]bool{}, jobs: map[string]bool{}, script: script}
	if len(a.queues) == 0 {
		return nil
	}
	for name, job := range s.jobs {
		a.jobs[name] = a.queues[s.queueNames[s.ofJob[job]]]
	}
	for name, task := range s.tasks {
		a.tasks[name] = a.queues[s.queueNames[s.ofJob[s.ofTask[task]]]]
	}
	a.enqueue = len(script.EnqueueOrder)
	if first := slices.IndexFunc(script.EnqueueOrder, func(job string) bool { return a.jobs[job] }); first >= 0 {
		a.enqueue = first
	}
	return a
}

// confused returns the queues of a tree without cycles that share an array of ancestors with others whose ancestors differ: below a queue
// at level s, all from the first level on that has another queue and a level below it.
func confused(queues []*apportionv1.Queue) map[string]bool {
	children := map[string][]string{}
	for _, q := range queues {
		if q.Name != root {
			children[parentOf(q)] = append(children[parentOf(q)], q.Name)
		}
	}
	found := map[string]bool{}
	level := []string{root}
	for depth := 0; len(level) > 0; depth++ {
		// 2^k + 1
		if n := depth - 1; n >= 4 && n&(n-1) == 0 {
			for _, q := range level {
				markConfused(children, q, depth, found)
			}
		}
		level = below(children, level)
	}
	return found
}

// markConfused marks the confused queues below one whose list of ancestors begins an array.
func markConfused(children map[string][]string, queue string, at int, found map[string]bool) {
	level, end, marking := below(children, []string{queue}), 2*(at-1), false
	for depth := at + 1; len(level) > 0; depth++ {
		next := below(children, level)
		marking = marking || depth < end && len(level) > 1 && len(next) > 0
		if marking {
			for _, q := range level {
				found[q] = true
			}
		}
		level = next
	}
}

// below returns the children of all queues of a level.
func below(children map[string][]string, level []string) []string {
	var next []string
	for _, q := range level {
		next = append(next, children[q]...)
	}
	return next
}

func parentOf(q *apportionv1.Queue) string {
	if q.Parent == "" {
		return root
	}
	return q.Parent
}

// concerns reports whether path leads to an answer that depends on confused accounts or lists of ancestors. want is the recorded value
// there.
func (a *aliasing) concerns(path []string, want any) bool {
	enqueued := path[0] != queuesKey
	if path[0] == afterEvents {
		path = path[1:]
	}
	switch {
	case len(path) < 2:
		return false
	case path[0] == queuesKey, path[0] == "queuesAfterEnqueue":
		return a.isAccount(path[1:], enqueued)
	case path[0] == "events":
		return len(path) > 3 && path[2] == queuesKey && a.isAccount(path[3:], enqueued)
	case path[0] == "verdicts":
		return len(path) == 3 && a.isVerdict(path[1], path[2])
	case path[0] == "queueOrder":
		return a.isOrder(path[1:], want, true)
	case path[0] == "victimQueueOrder":
		question, _ := elementAt(a.script.VictimQueues, path[1])
		return a.isOrder(path[2:], want, slices.ContainsFunc(question.Queues, a.has))
	case path[0] == "reclaims":
		question, _ := elementAt(a.script.Reclaims, path[1])
		return a.isReclaim(path[2:]) && a.isEviction(question)
	case path[0] == "preempts":
		question, _ := elementAt(a.script.Preempts, path[1])
		return len(path) > 2 && path[2] == "victimPopOrder" && a.isEviction(question)
	case path[0] == "simulate":
		question, _ := elementAt(a.script.Simulate, path[1])
		return a.tasks[question.Task] || slices.ContainsFunc(question.Steps, func(o Operation) bool { return a.tasks[o.Task] })
	case path[0] == "enqueue":
		i, err := strconv.Atoi(path[1])
		return err == nil && i >= a.enqueue
	}
	return false
}

func (a *aliasing) has(queue string) bool { return a.queues[queue] }

// booked are the parts of an account that Volcano forms over lists of ancestors. The others come from above.
var booked = []string{partAllocated, "request", "elastic", partInqueue, partShare, "ancestors"}

// isAccount reports whether path (plugin, queue, field) leads to a confused part of an account. enqueued says that jobs were enqueued
// before.
func (a *aliasing) isAccount(path []string, enqueued bool) bool {
	if len(path) < 3 {
		return false
	}
	if enqueued && path[2] == partInqueue && a.enqueue < len(a.script.EnqueueOrder) {
		return true
	}
	return path[0] == capacity && a.queues[path[1]] && slices.Contains(booked, path[2])
}

// isVerdict reports whether a verdict is about a task or a job of a confused queue.
func (a *aliasing) isVerdict(kind, name string) bool {
	switch kind {
	case allocatableKey, "preemptive":
		return a.tasks[name]
	case "preemptiveAllPendingOfJob":
		return a.jobs[name]
	}
	return false
}

// isOrder reports whether path leads to the comparison of a confused queue, or to an order in which one is. among says whether one is.
func (a *aliasing) isOrder(path []string, want any, among bool) bool {
	if len(path) == 0 {
		return false
	}
	if path[0] != "pairs" {
		return among
	}
	pair, ok := want.(object)
	if len(path) != 2 || !ok {
		return false
	}
	l, _ := pair["l"].(string)
	r, _ := pair["r"].(string)
	return a.queues[l] || a.queues[r]
}

// isReclaim reports whether path, within the answers to one question, leads to what capacity has a part in.
func (a *aliasing) isReclaim(path []string) bool {
	if len(path) == 0 {
		return false
	}
	return path[0] != "byPlugin" || len(path) > 1 && path[1] == capacity
}

func (a *aliasing) isEviction(question Eviction) bool {
	return a.tasks[question.Task] || slices.ContainsFunc(question.Candidates, func(task string) bool { return a.tasks[task] })
}
