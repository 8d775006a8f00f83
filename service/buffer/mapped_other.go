//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package buffer

import "errors"

// mapMemory returns no memory, so that all lies in Go's heap.
func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapMemory([]byte) error { return errors.ErrUnsupported }

// Protect cannot protect memory here.
func Protect(int) (end func(), ok bool) { return nil, false }
