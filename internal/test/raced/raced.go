//go:build !race

// Package raced tells tests whether the race detector is at work, which makes them several times slower and takes memory of its own. Tests
// run without it too, and whole: see the target test of the Makefile.
package raced

// On reports whether the race detector is at work.
const On = false
