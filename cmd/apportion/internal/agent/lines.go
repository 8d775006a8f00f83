package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// longestLine bounds the bytes of one line of input.
const longestLine = 16 << 20

// Lines returns a transport of one message a line. The library ends a session at a line that is no message; this transport answers it with
// an error, as JSON-RPC asks, and goes on. At the end of the input it answers what was asked before.
func Lines(in io.Reader, out io.Writer) mcp.Transport {
	shared := &writer{out: out}
	return answering{&mcp.IOTransport{
		Reader:        io.NopCloser(&messages{in: bufio.NewReaderSize(in, 64<<10), out: shared, longest: longestLine}),
		Writer:        shared,
		MaxLineLength: -1, // messages bounds it
	}}
}

// writer writes one line at a time, and stays open.
type writer struct {
	lock sync.Mutex
	out  io.Writer
}

func (w *writer) Write(line []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.out.Write(line)
}

// Close does nothing.
func (*writer) Close() error { return nil }

// messages reads the lines of in that are messages, and answers the others.
type messages struct {
	in      *bufio.Reader
	out     io.Writer
	longest int
	ready   []byte
}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.ready) == 0 {
		line, long, err := m.line()
		line = bytes.TrimSpace(line)
		switch {
		case long:
			err = m.refuse(jsonrpc.CodeInvalidRequest, "the line has more than %d bytes", m.longest)
		case len(line) > 0:
			err = m.take(line)
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// line returns the next line, and an error only if there is none. A long line is passed over.
func (m *messages) line() (line []byte, long bool, err error) {
	for {
		part, err := m.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > m.longest; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && len(line) == 0 && !long:
			return nil, false, err
		default:
			return line, long, nil
		}
	}
}

// take makes a line ready if it is a message, and the messages of a batch one by one.
func (m *messages) take(line []byte) error {
	if !json.Valid(line) {
		return m.refuse(jsonrpc.CodeParseError, "the line is not JSON")
	}
	parts := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &parts); err != nil || len(parts) == 0 {
			return m.refuse(jsonrpc.CodeInvalidRequest, "the batch is empty")
		}
	}
	for _, part := range parts {
		if _, err := jsonrpc.DecodeMessage(part); err != nil {
			if err := m.refuse(jsonrpc.CodeInvalidRequest, "not a message of JSON-RPC 2.0"); err != nil {
				return err
			}
			continue
		}
		m.ready = append(append(m.ready, part...), '\n')
	}
	return nil
}

// refuse answers what is no message.
func (m *messages) refuse(code int, format string, args ...any) error {
	answer, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": fmt.Sprintf(format, args...)},
	})
	if err == nil {
		_, err = m.out.Write(append(answer, '\n'))
	}
	return err
}
