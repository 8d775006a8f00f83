package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/internal/visible"
)

// statusLine is a line on a terminal that is updated until it is removed. If out is not a terminal, it shows nothing.
type statusLine struct {
	out  io.Writer
	lock sync.Mutex
	text string
}

func newStatusLine(out io.Writer) *statusLine {
	if terminalOf(out) == nil {
		out = nil
	}
	return &statusLine{out: out}
}

// show writes the line if its text has changed.
func (l *statusLine) show(format string, args ...any) {
	if l.out == nil {
		return
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if text := visible.Text(fmt.Sprintf(format, args...)); text != l.text {
		l.text = text
		fmt.Fprint(l.out, "\r\x1b[K"+text)
	}
}

// end removes the line.
func (l *statusLine) end() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.text != "" {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}

// slowBytes is the size of manifests from which the progress of reading is shown.
const slowBytes = 16 << 20

// showReading shows the progress of reading large manifests on a terminal until end is called. The returned option reports the progress.
func showReading(out io.Writer, sources []objects.Source) (options []volcano.Option, end func()) {
	total := 0
	for _, source := range sources {
		total += len(source.Data)
	}
	if total < slowBytes || terminalOf(out) == nil {
		return nil, func() {}
	}
	line := newStatusLine(out)
	return []volcano.Option{volcano.WithProgress(func(read int) {
		line.show("reading %d MiB of manifests: %d %%", total>>20, min(int(100*float64(read)/float64(total)), 100))
	})}, line.end
}

// showAdvance shows the progress of simulations on a terminal until end is called. The returned function reports the progress.
func showAdvance(out io.Writer, variants []*rehearsal.Variant) (show func(i int, part float64), end func()) {
	line := newStatusLine(out)
	var lock sync.Mutex
	texts := make([]string, len(variants))
	for i, v := range variants {
		texts[i] = v.Name + " 0 %"
	}
	return func(i int, part float64) {
		lock.Lock()
		defer lock.Unlock()
		texts[i] = fmt.Sprintf("%s %d %%", variants[i].Name, int(100*part))
		line.show("%s", strings.Join(texts, ", "))
	}, line.end
}

// showWaiting shows the elapsed time on a terminal, after a short delay, until end is called.
func showWaiting(out io.Writer, what string) (end func()) {
	const moment = 300 * time.Millisecond
	line, began := newStatusLine(out), time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(moment)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				line.show("%s: %.1f s", what, time.Since(began).Seconds())
			case <-done:
				line.end()
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
