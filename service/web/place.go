package web

import "sync"

// places are shared by identities: an identity gets another place while it has fewer than are left free, and its first place if any is
// free. So one identity may have a half of them, two a third each, and places are left for the next.
type places struct {
	all int

	mutex sync.Mutex
	taken int
	of    map[string]int
}

func newPlaces(all int) *places { return &places{all: all, of: map[string]int{}} }

// take takes a place for an identity, or returns false. leave gives it back.
func (p *places) take(identity string) (leave func(), ok bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	mine, free := p.of[identity], p.all-p.taken
	if free <= 0 || mine > 0 && mine >= free-1 {
		return nil, false
	}
	p.taken++
	p.of[identity]++
	return func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.taken--
		if p.of[identity]--; p.of[identity] == 0 {
			delete(p.of, identity)
		}
	}, true
}
