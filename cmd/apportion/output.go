package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
)

// streams are the input and outputs of a command, and the version of the program.
type streams struct {
	in       io.Reader
	out, err io.Writer
	version  string
	// answered, if set, gets each answer before it is written.
	answered func(answer any) error
}

// stdin is the file name of standard input.
const stdin = "-"

// The formats of answers. Every command writes the first three; lists, reports and files have further ones.
const (
	formatTable    = "table"
	formatJSON     = "json"
	formatYAML     = "yaml"
	formatWide     = "wide"
	formatName     = "name"
	formatMarkdown = "markdown"
	formatSARIF    = "sarif"
	formatBinary   = "binary"
	formatJUnit    = "junit"
	formatTAP      = "tap"
	formatCSV      = "csv"
)

// answering is a command that writes an answer.
type answering struct {
	streams
	format    string
	ascii     bool
	resources []string
	// record, if it is not nil, receives what a table shows, and fixed is the style of tables while their output is held back.
	record *render.Record
	fixed  *render.Style
}

// register adds the flags of the output format, with additional formats of this command. The default is the current format, or table.
func (a *answering) register(command *cobra.Command, formats ...string) {
	if a.format == "" {
		a.format = formatTable
	}
	choose(command, &a.format, "output", "o", "format of the answer", append([]string{formatTable, formatJSON, formatYAML}, formats...)...)
	command.Flags().BoolVar(&a.ascii, "ascii", false,
		"use only ASCII characters in tables, which is the default if the locale is not UTF-8")
}

// write writes an answer in the requested format: a message of the contract or another value, or the table that print writes.
func (a *answering) write(answer any, table func(*render.Printer)) error {
	if a.answered != nil {
		if err := a.answered(answer); err != nil {
			return err
		}
	}
	if a.format == formatTable || a.format == formatWide {
		style := a.style()
		style.Record = a.record
		table(&render.Printer{Style: style, Out: a.out, Resources: a.resources})
		return nil
	}
	raw, err := marshal(answer)
	if err == nil && a.format == formatYAML {
		raw, err = document.YAML(raw)
	}
	if err != nil {
		return err
	}
	_, err = a.out.Write(raw)
	return err
}

// marshal writes a message as the contract's JSON, and any other value as indented JSON.
func marshal(answer any) ([]byte, error) {
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

// message is a message within a larger JSON value.
type message struct{ proto.Message }

// MarshalJSON writes the message as the contract's JSON.
func (m message) MarshalJSON() ([]byte, error) { return document.JSON(m.Message) }

// verdict is the command's error after an answer: nil for yes.
func verdict(yes bool) error {
	if yes {
		return nil
	}
	return errDecidedNo
}

// style returns the style of tables.
func (a *answering) style() render.Style {
	if a.fixed != nil {
		return *a.fixed
	}
	terminal := terminalOf(a.out)
	return render.Style{
		ASCII: a.ascii || !speaksUTF8(), Color: terminal != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Width: widthOf(terminal),
	}
}

// output keeps the first error of writing to a stream, because a part of an answer must not pass for the whole.
type output struct {
	to    io.Writer
	mu    sync.Mutex
	first error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.mu.Lock()
		o.first = cmp.Or(o.first, err)
		o.mu.Unlock()
	}
	return n, err
}

// failed returns the first error.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first
}

// terminalOf returns the terminal behind a writer, nil if there is none.
func terminalOf(out io.Writer) *os.File {
	if kept, ok := out.(*output); ok {
		out = kept.to
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
