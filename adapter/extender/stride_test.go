//go:build !race

package extender

// Stride is the distance of the recorded cases that are tried.
const Stride = 1
