//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package service

import "syscall"

// mapMemory returns memory of the system, filled with zeros.
func mapMemory(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func unmapMemory(memory []byte) error { return syscall.Munmap(memory) }
