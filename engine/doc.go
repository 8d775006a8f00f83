// Package engine decides about shares of queues, admission, allocation, reclaim and preemption, and returns reasons. It takes values and
// returns values; it uses no wire format, clock, log or goroutine, and equal input gives bit-for-bit equal answers.
//
// A snapshot is compiled once into a model (package model). Open combines a model with a Policy into a Session, which answers questions,
// follows events, and undoes what-ifs exactly; the examples show it. Questions are grouped by their subject: Session.Order for orders,
// Session.Job for one job, Session.Nodes for placement, Session.Reclaim and Session.Preempt for victims. Host is for programs that open
// sessions to others.
//
// A Session may be used by one goroutine at a time; a model may be shared by any number of sessions.
package engine

// Version is the version of the semantics of this engine. Equal version, snapshot and policy give equal answers.
const Version = "0.1.0"
