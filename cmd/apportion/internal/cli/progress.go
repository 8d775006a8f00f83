package cli

import (
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/apportion/apportion/internal/visible"
)

// StatusLine is a line on a terminal that is updated until it is removed. If out is not a terminal, it shows nothing.
type StatusLine struct {
	out  io.Writer
	lock sync.Mutex
	text string
}

// NewStatusLine returns a line that shows nothing yet.
func NewStatusLine(out io.Writer) *StatusLine {
	if TerminalOf(out) == nil {
		out = nil
	}
	return &StatusLine{out: out}
}

// Show writes the line if its text has changed.
func (l *StatusLine) Show(format string, args ...any) {
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

// End removes the line.
func (l *StatusLine) End() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.text != "" {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}

// ShowWaiting shows the elapsed time on a terminal, after a short delay, until end is called.
func ShowWaiting(out io.Writer, what string) (end func()) {
	const moment = 300 * time.Millisecond
	line, began := NewStatusLine(out), time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(moment)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				line.Show("%s: %.1f s", what, time.Since(began).Seconds())
			case <-done:
				line.End()
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

const (
	// memoryOfTask and memoryOfCommand are, with room to spare, what a command keeps for each task of a cluster and besides.
	memoryOfTask    = 5 << 9
	memoryOfCommand = 48 << 20
)

// Frugal has garbage collected once memory exceeds what a command about so many tasks needs, in place of once it has doubled. The result
// ends this. GOMEMLIMIT, if it is set, stays in force.
func Frugal(tasks int) (end func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	debug.SetMemoryLimit(int64(tasks)*memoryOfTask + memoryOfCommand)
	return func() { debug.SetMemoryLimit(math.MaxInt64) }
}
