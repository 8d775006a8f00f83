//go:build !race

// Package raced reports to tests whether the race detector is on, which makes them several times slower and needs memory of its own. All
// tests also run without it, at full length: see the target test of the Makefile.
package raced

// On reports whether the race detector is at work.
const On = false
