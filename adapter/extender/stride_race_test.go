//go:build race

package extender

// Stride is the distance of the recorded cases that are tried: answers do not depend on the race detector, only the time does.
const Stride = 12
