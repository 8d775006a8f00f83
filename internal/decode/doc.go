// Package decode reads what a client sends into the engine's form: snapshots and changes to models, policies to the engine's policies. It
// measures encoded messages before they are read, holds them to limits, and names every violated field by its path; SnapshotOf is the way
// back. It contains no decisions and knows no questions: those are in package wire.
//
//	m, err := decode.Compile(snapshot)
//
// Every error is a *Fault, which Status converts to a google.rpc.Status.
package decode
