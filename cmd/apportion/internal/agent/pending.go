package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answering is a transport whose input ends when what was asked is answered. The library stops its handlers at the end of the input, so
// that `apportion mcp < questions` would print nothing.
type answering struct{ mcp.Transport }

// Connect returns a connection that reports the end of its input late.
func (t answering) Connect(ctx context.Context) (mcp.Connection, error) {
	connection, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &pending{Connection: connection, calls: map[jsonrpc.ID]bool{}, changed: make(chan struct{}, 1)}, nil
}

// pending is a connection with the calls that are not answered yet.
type pending struct {
	mcp.Connection

	mutex sync.Mutex
	calls map[jsonrpc.ID]bool
	// closed is set when no answer can be written any more; changed has an element after each change of either.
	closed  bool
	changed chan struct{}
}

// Read returns the next message, and the end of the input after the last answer.
func (p *pending) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := p.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		p.wait(ctx)
	}
	if request, ok := message.(*jsonrpc.Request); ok {
		p.note(request)
	}
	return message, err
}

// Write writes a message.
func (p *pending) Write(ctx context.Context, message jsonrpc.Message) error {
	err := p.Connection.Write(ctx, message)
	if response, ok := message.(*jsonrpc.Response); ok {
		p.done(response.ID)
	}
	return err
}

// Close closes the connection, and ends the wait for answers.
func (p *pending) Close() error {
	p.change(func() { p.closed = true })
	return p.Connection.Close()
}

// note counts a call, and no longer waits for one that is cancelled: the library does not answer it.
func (p *pending) note(request *jsonrpc.Request) {
	if request.IsCall() {
		p.change(func() { p.calls[request.ID] = true })
		return
	}
	var cancelled struct {
		RequestID any `json:"requestId"`
	}
	if request.Method != "notifications/cancelled" || json.Unmarshal(request.Params, &cancelled) != nil {
		return
	}
	if id, err := jsonrpc.MakeID(cancelled.RequestID); err == nil {
		p.done(id)
	}
}

func (p *pending) done(id jsonrpc.ID) { p.change(func() { delete(p.calls, id) }) }

func (p *pending) change(what func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	what()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// wait returns when all calls are answered, or can no longer be.
func (p *pending) wait(ctx context.Context) {
	for {
		p.mutex.Lock()
		over := p.closed || len(p.calls) == 0
		p.mutex.Unlock()
		if over {
			return
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return
		}
	}
}
