//go:build !race

package wire

// raced tells that the race detector is at work.
const raced = false
