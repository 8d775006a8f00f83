// Package client is the Go side of Apportion: it builds snapshots from names and Kubernetes quantities, asks a service over gRPC, or
// decides in the caller's own process with the same calls, and reads answers by name.
package client
