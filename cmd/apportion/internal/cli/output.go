package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/internal/visible"
)

// Streams are the input and outputs of a command, and the version of the program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Version  string
	// Answered, if set, gets each answer before it is written.
	Answered func(answer any) error
}

// Stdin is the file name of standard input.
const Stdin = "-"

// Open opens a file, or standard input by its name.
func (s *Streams) Open(name string) (io.ReadCloser, error) {
	if name == Stdin {
		return io.NopCloser(s.In), nil
	}
	return os.Open(name)
}

// The formats of answers. Every command writes the first three; lists, reports and files have further ones.
const (
	FormatTable    = "table"
	FormatJSON     = "json"
	FormatYAML     = "yaml"
	FormatWide     = "wide"
	FormatName     = "name"
	FormatMarkdown = "markdown"
	FormatSARIF    = "sarif"
	FormatBinary   = "binary"
	FormatJUnit    = "junit"
	FormatTAP      = "tap"
	FormatCSV      = "csv"
)

// Answering is a command that writes an answer.
type Answering struct {
	Streams
	Format    string
	ascii     bool
	Resources []string
	// Record, if it is not nil, receives what a table shows, and fixed is the style of tables while their output is held back.
	Record *render.Record
	Fixed  *render.Style
}

// Register adds the flags of the output format, with additional formats of this command. The default is the current format, or table.
func (a *Answering) Register(command *cobra.Command, formats ...string) {
	if a.Format == "" {
		a.Format = FormatTable
	}
	Choose(command, &a.Format, "output", "o", "format of the answer", append([]string{FormatTable, FormatJSON, FormatYAML}, formats...)...)
	command.Flags().BoolVar(&a.ascii, "ascii", false,
		"use only ASCII characters in tables, which is the default if the locale is not UTF-8")
}

// Write writes an answer in the requested format: a message of the contract or another value, or the table that print writes.
func (a *Answering) Write(answer any, table func(*render.Printer)) error {
	if a.Answered != nil {
		if err := a.Answered(answer); err != nil {
			return err
		}
	}
	if a.Format == FormatTable || a.Format == FormatWide {
		style := a.Style()
		style.Record = a.Record
		table(&render.Printer{Style: style, Out: a.Out, Resources: a.Resources})
		return nil
	}
	raw, err := Marshal(answer)
	if err == nil && a.Format == FormatYAML {
		raw, err = document.YAML(raw)
	}
	if err != nil {
		return err
	}
	_, err = a.Out.Write(raw)
	return err
}

// Marshal writes a message as the contract's JSON, and any other value as indented JSON.
func Marshal(answer any) ([]byte, error) {
	if m, ok := answer.(proto.Message); ok {
		return document.JSON(m)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(answer)
	return out.Bytes(), err
}

// Message is a message of the contract within a larger JSON value.
type Message struct{ proto.Message }

// Within returns a message as a part of a larger JSON value. A nil message is a part that `omitzero` leaves out.
func Within(message proto.Message) Message { return Message{message} }

// IsZero reports whether there is no message.
func (m Message) IsZero() bool { return m.Message == nil || !m.ProtoReflect().IsValid() }

// MarshalJSON writes the message as the contract's JSON.
func (m Message) MarshalJSON() ([]byte, error) { return document.JSON(m.Message) }

// Verdict is the command's error after an answer: nil for yes.
func Verdict(yes bool) error {
	if yes {
		return nil
	}
	return ErrDecidedNo
}

// Style returns the style of tables.
func (a *Answering) Style() render.Style {
	if a.Fixed != nil {
		return *a.Fixed
	}
	terminal := TerminalOf(a.Out)
	return render.Style{
		ASCII: a.ascii || !speaksUTF8(), Color: terminal != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Width: widthOf(terminal),
	}
}

// Output keeps the first error of writing to a stream, because a part of an answer must not pass for the whole.
type Output struct {
	To    io.Writer
	mu    sync.Mutex
	first error
}

func (o *Output) Write(p []byte) (int, error) {
	n, err := o.To.Write(p)
	if err != nil {
		o.mu.Lock()
		o.first = cmp.Or(o.first, err)
		o.mu.Unlock()
	}
	return n, err
}

// Failed returns the first error.
func (o *Output) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first
}

// TerminalOf returns the terminal behind a writer, nil if there is none.
func TerminalOf(out io.Writer) *os.File {
	if kept, ok := out.(*Output); ok {
		out = kept.To
	}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// widthOf returns the number of columns to write: those of the variable COLUMNS, as in other programs, or of a terminal; 0 if it is
// unknown.
func widthOf(terminal *os.File) int {
	const least = 20
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns >= least {
		return columns
	}
	if terminal == nil {
		return 0
	}
	return render.Columns(terminal)
}

// speaksUTF8 reports whether the locale uses UTF-8. As in the C library, the first of three variables that is set decides.
func speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := os.Getenv(name); locale != "" {
			upper := strings.ToUpper(locale)
			return strings.Contains(upper, "UTF-8") || strings.Contains(upper, "UTF8")
		}
	}
	return false
}

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
