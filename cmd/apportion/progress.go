package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
)

// slowBytes is how large manifests are whose reading takes long enough to be shown.
const slowBytes = 16 << 20

// progress is a line on a terminal that shows how much of the manifests is read. The zero value shows nothing.
type progress struct {
	out          io.Writer
	total, shown int
}

// newProgress returns a line for reading sources, which shows nothing unless they are large and out is a terminal.
func newProgress(out io.Writer, sources []volcano.Source) *progress {
	p := &progress{shown: -1}
	for _, source := range sources {
		p.total += len(source.Data)
	}
	if p.total >= slowBytes && terminalOf(out) != nil {
		p.out = out
	}
	return p
}

// option has the reader of manifests tell how much it has read.
func (p *progress) option() []volcano.Option {
	if p.out == nil {
		return nil
	}
	return []volcano.Option{volcano.WithProgress(p.show)}
}

// show writes the line anew if a percentage has been gained.
func (p *progress) show(read int) {
	if percent := min(int(100*float64(read)/float64(p.total)), 100); percent > p.shown {
		p.shown = percent
		fmt.Fprintf(p.out, "\r\x1b[Kreading %d MiB of manifests: %d %%", p.total>>20, percent)
	}
}

// end removes the line.
func (p *progress) end() {
	if p.out != nil && p.shown >= 0 {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// advance is a line on a terminal that shows how far simulations are. The zero value shows nothing.
type advance struct {
	out   io.Writer
	lock  sync.Mutex
	names []string
	parts []int
}

// newAdvance returns a line for simulations, which shows nothing unless out is a terminal.
func newAdvance(out io.Writer, variants []*rehearsal.Variant) *advance {
	s := &advance{parts: make([]int, len(variants))}
	if terminalOf(out) != nil {
		s.out = out
	}
	for _, v := range variants {
		s.names = append(s.names, v.Name)
	}
	return s
}

// show writes the line anew if a percentage has been gained.
func (s *advance) show(i int, part float64) {
	if s.out == nil {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	percent := int(100 * part)
	if percent <= s.parts[i] {
		return
	}
	s.parts[i] = percent
	texts := make([]string, len(s.names))
	for k, name := range s.names {
		texts[k] = fmt.Sprintf("%s %d %%", name, s.parts[k])
	}
	fmt.Fprintf(s.out, "\r\x1b[K%s", strings.Join(texts, ", "))
}

// end removes the line.
func (s *advance) end() {
	if s.out != nil {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

// showWaiting shows on a terminal that something takes longer than a moment, and for how long. It removes the line when end is called.
func showWaiting(out io.Writer, what string) (end func()) {
	if terminalOf(out) == nil {
		return func() {}
	}
	const moment = 300 * time.Millisecond
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(moment)
		defer ticker.Stop()
		began, shown := time.Now(), false
		for {
			select {
			case <-ticker.C:
				shown = true
				fmt.Fprintf(out, "\r\x1b[K%s: %.1f s", what, time.Since(began).Seconds())
			case <-done:
				if shown {
					fmt.Fprint(out, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
