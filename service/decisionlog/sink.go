package decisionlog

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/apportion/apportion/internal/setting"
)

// Sink takes entries, for one goroutine at a time. Written data may be held back until Flush.
type Sink interface {
	// Write takes an entry, and the same as one line of JSON without its end.
	Write(e *Entry, line []byte) error
	Flush() error
	Close() error
}

// streamSink writes lines to a stream, which it does not close.
type streamSink struct{ *bufio.Writer }

// NewStreamSink returns a sink that writes lines of JSON to a stream, such as standard output.
func NewStreamSink(to io.Writer) Sink { return streamSink{bufio.NewWriterSize(to, 1<<16)} }

// Write writes a line.
func (s streamSink) Write(_ *Entry, line []byte) error {
	if _, err := s.Writer.Write(line); err != nil {
		return err
	}
	return s.WriteByte('\n')
}

// Close writes the buffer.
func (s streamSink) Close() error { return s.Flush() }

// fileSink writes lines to a file, and rotates it when it is full. If something else has moved or removed the file, it begins a new one.
type fileSink struct {
	settings setting.DecisionLog
	file     *os.File
	out      *bufio.Writer
	bytes    int64
}

// NewFileSink returns a sink that appends lines of JSON to a file, by the settings File, FileBytes and Keep.
func NewFileSink(settings setting.DecisionLog) (Sink, error) {
	setting.Complete(&settings)
	s := &fileSink{settings: settings}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *fileSink) open() error {
	const private = 0o640
	file, err := os.OpenFile(s.settings.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, private)
	if err != nil {
		return err
	}
	about, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.file, s.bytes = file, about.Size()
	s.out = bufio.NewWriterSize(file, 1<<16)
	if about.Mode().IsRegular() && about.Size() > 0 {
		return s.endLine()
	}
	return nil
}

// endLine ends an incomplete line, such as after a full disk or a killed process, so that the next entry begins on a new line.
func (s *fileSink) endLine() error {
	file, err := os.Open(s.settings.File)
	if err != nil {
		return nil //nolint:nilerr // Who may not read it need not end lines in it.
	}
	last := make([]byte, 1)
	if _, err = file.ReadAt(last, s.bytes-1); err == nil && last[0] != '\n' {
		s.bytes++
		err = s.out.WriteByte('\n')
	}
	return errors.Join(err, file.Close())
}

// Write writes a line, and begins a new file before it if the line does not fit into the old one.
func (s *fileSink) Write(_ *Entry, line []byte) error {
	// The name is looked up only while the buffer is empty, so that all buffered lines go to one file.
	if s.file != nil && s.out.Buffered() == 0 && s.isMoved() {
		if err := s.Close(); err != nil {
			return err
		}
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	if s.bytes > 0 && s.bytes+int64(len(line))+1 > int64(s.settings.FileBytes) {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	n, err := s.out.Write(append(line, '\n'))
	s.bytes += int64(n)
	if err != nil {
		// A bufio.Writer that has failed always fails again, so the next entry opens the file again.
		err = errors.Join(err, s.file.Close())
		s.file = nil
	}
	return err
}

// isMoved reports whether another file, or none, has the name of the open one, as after logrotate has moved it.
func (s *fileSink) isMoved() bool {
	named, err := os.Stat(s.settings.File)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	open, err := s.file.Stat()
	return err == nil && !os.SameFile(named, open)
}

func (s *fileSink) rotate() error {
	if err := s.Close(); err != nil {
		return err
	}
	for n := s.settings.Keep; n > 0; n-- {
		from := s.settings.File
		if n > 1 {
			from += "." + strconv.Itoa(n-1)
		}
		if err := os.Rename(from, s.settings.File+"."+strconv.Itoa(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.open()
}

// Flush writes the buffer.
func (s *fileSink) Flush() error {
	if s.file == nil {
		return nil
	}
	err := s.out.Flush()
	if err != nil {
		err = errors.Join(err, s.file.Close())
		s.file = nil
	}
	return err
}

// Close ends the file.
func (s *fileSink) Close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.out.Flush(), s.file.Close())
	s.file = nil
	return err
}
