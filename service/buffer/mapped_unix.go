//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package buffer

import "syscall"

// mapMemory returns memory of the system, filled with zeros.
func mapMemory(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func unmapMemory(memory []byte) error { return syscall.Munmap(memory) }

// Protect is for tests: it keeps messages of at least so many bytes in mapped memory that cannot be accessed after it was given back, until
// end is called. No server may run while either is called.
func Protect(least int) (end func(), ok bool) {
	before := Messages.mapped.Load()
	m := newMapped(least, nil)
	m.once = true
	Messages.mapped.Store(m)
	Spoil = func(memory []byte) {
		if len(memory) == 0 {
			return
		}
		m.mutex.Lock()
		_, mapped := m.regions[firstOf(&memory)]
		m.mutex.Unlock()
		if mapped {
			if err := syscall.Mprotect(memory, syscall.PROT_NONE); err != nil {
				panic(err) //nolint:forbidigo // Only tests protect memory.
			}
		}
	}
	return func() {
		Spoil = nil
		Messages.mapped.Store(before)
	}, true
}
