// Package rehearsal runs a history of jobs on a cluster under a policy, in simulated time, and measures how it went.
//
// It is a scheduler without decisions of its own. Which jobs enter, which queue and job come next, whether a queue may use more, which
// node is best, and which tasks are evicted for which job is what package engine answers; this package keeps time and carries out the
// answers, as examples/scheduler does. The rules of the simulation are:
//
//   - A job has as much work as its tasks take with all of them running. It works while at least its minimum runs, at the rate of its
//     running tasks, and ends when all its work is done.
//   - An evicted task loses the work that it has done since it started, or since its last checkpoint, and waits again. If fewer than the
//     minimum of its job run then, the whole job stops: its other tasks leave their nodes and lose their work in the same way.
//   - Decisions are taken when a job has arrived or ended, but at most once in Options.Every. A round in which tasks were evicted is
//     followed by another one.
//
// Equal inputs have equal results, to the last bit.
package rehearsal
