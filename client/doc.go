// Package client is the Go client of Apportion: it builds snapshots from names and Kubernetes quantities, calls a service over gRPC, or
// decides in the caller's own process with the same methods, and returns answers by name.
//
// Dial returns a client of a service. It balances over all healthy addresses of a name, sets a deadline for every question, and retries on
// another replica when one is lost or busy, within a budget; sessions move with their state. WithFallback sets what answers when no server
// does: no (FailClosed), yes (FailOpen), or the engine of this library (FallbackEngine). WithTLS, WithToken, WithMeter, WithTracer and
// WithLogger configure security and telemetry. InProcess is the same without a service.
//
// A Mirror follows a cluster that changes little between two questions, and sends only the changes.
//
// Client.Upload sends a snapshot once for several questions. Steps that depend on one another run in one call (Client.Simulate), or in a
// session (Client.OpenSession).
//
// docs/adding-to-a-scheduler.md shows how to use it in an existing scheduler.
package client
