//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package service

import "syscall"

// Protect keeps messages above spareBytes in mapped memory that cannot be accessed after it was given back, until end is called. No server
// may run while either is called.
func Protect() (end func(), ok bool) {
	before := pool.mapped.Load()
	m := newMapped(spareBytes+1, nil)
	m.once = true
	pool.mapped.Store(m)
	stop := Spoil(func(memory []byte) {
		if len(memory) == 0 {
			return
		}
		m.mutex.Lock()
		_, mapped := m.regions[firstOf(&memory)]
		m.mutex.Unlock()
		if mapped {
			if err := syscall.Mprotect(memory, syscall.PROT_NONE); err != nil {
				panic(err)
			}
		}
	})
	return func() {
		stop()
		pool.mapped.Store(before)
	}, true
}
