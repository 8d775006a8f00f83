// Package client is the Go side of Apportion: it builds snapshots from names and Kubernetes quantities, asks a service over gRPC, or
// decides in the caller's own process with the same calls, and reads answers by name.
//
// Dial asks a service. It takes turns among all addresses of a name that say that they serve, gives every question a deadline, and asks
// again elsewhere when a replica is lost or busy, within a budget; sessions move with their state. WithFallback says what answers when
// no server does: no (FailClosed), yes (FailOpen), or the engine of this library (FallbackEngine). WithTLS, WithToken, WithMeter,
// WithTracer and WithLogger join the client to what surrounds it. InProcess is the same without a service.
//
// A Mirror follows a cluster of which little changes between two questions, and sends what changed.
//
// A snapshot about which more than one question is asked is sent once: Client.Upload. Steps that build on one another are asked in one call
// (Client.Simulate), or as a scheduler goes along (Client.OpenSession).
//
// docs/adding-to-a-scheduler.md goes through all of it for a scheduler that exists.
package client
