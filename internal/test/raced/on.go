//go:build race

package raced

// On reports whether the race detector is at work.
const On = true
