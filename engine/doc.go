// Package engine decides about shares of queues, admission, allocation, reclaim and preemption, and returns reasons. It takes values and
// returns values; it uses no wire format, clock, log or goroutine, and equal input gives bit-for-bit equal answers.
//
// A snapshot is compiled once into a model (package model). Open combines a model with a Policy into a Session, which answers questions,
// follows events, and undoes what-ifs exactly; the examples show it. Questions are grouped by their subject: Session.Order for orders,
// Session.Job for one job, Session.Nodes for nodes, Session.Reclaim and Session.Preempt for victims. Host is for programs that open
// sessions to others, and for packages that answer further questions about a session. These are place (nodes for several tasks), judge
// (could a job start at once), plan (what to evict for it), forecast (when it starts), explain (why it waits) and remedy (what would make
// it run).
//
// What holds of every session:
//   - The state changes by events, Change and admission alone. Each is in the journal of the view, so that Rollback to a mark, and Try of
//     what fails, restore every answer bit for bit.
//   - Any other question changes nothing. What it tries in order to answer is undone before it returns, also if it fails.
//   - After Change every answer is that of a session opened on a snapshot of the result.
//   - A task is booked by the plugins exactly if its status holds resources, except those in diverged, whose status was set without them.
//   - A *policy.WorkError, like every error, leaves the session as it was.
//   - A plugin that keeps room for waiting jobs (policy.Keeper) is asked when the session opens, after all others, and is not among the
//     plugins that answer what it asks meanwhile.
//
// A Session may be used by one goroutine at a time; a model may be shared by any number of sessions.
package engine

// Version is the version of the semantics of this engine. Equal version, snapshot and policy give equal answers.
const Version = "0.1.0"
