//go:build race

package web_test

// raced tells that the race detector is at work.
const raced = true
