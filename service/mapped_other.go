//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package service

import "errors"

// mapMemory returns no memory, so that all lies in Go's heap.
func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapMemory([]byte) error { return errors.ErrUnsupported }
