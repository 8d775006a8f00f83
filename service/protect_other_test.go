//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package service

// Protect cannot protect memory here.
func Protect() (end func(), ok bool) { return nil, false }
