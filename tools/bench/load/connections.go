package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// open begins an HTTP/2 connection and reads what the server sends until it ends. closed is closed then.
func open(ctx context.Context, server string, host int) (net.Conn, *http2.Framer, <-chan struct{}, error) {
	return openWith(ctx, server, host)
}

// openWith is open with settings of the client.
func openWith(ctx context.Context, server string, host int, settings ...http2.Setting) (net.Conn, *http2.Framer, <-chan struct{}, error) {
	conn, err := connect(ctx, server, host)
	if err != nil {
		return nil, nil, nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	framer := http2.NewFramer(conn, conn)
	if _, err = io.WriteString(conn, http2.ClientPreface); err == nil {
		err = framer.WriteSettings(settings...)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, conn)
	}()
	return conn, framer, closed, nil
}

// resets begins 200,000 calls and resets each at once, on eight connections at a time from one address each. A connection that the server
// closes is opened anew.
func resets(ctx context.Context, server string, scale float64) (string, error) {
	const at = 8
	const patience = time.Minute
	tried := scaled(200_000, scale)
	var sent, connections, ended atomic.Int64
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range at {
		all.Go(func() {
			for sent.Load() < int64(tried) && ctx.Err() == nil {
				conn, framer, closed, err := open(ctx, server, 1+i)
				if err != nil {
					continue
				}
				connections.Add(1)
				resetCalls(framer, func() bool { return sent.Add(1) <= int64(tried) })
				select {
				case <-closed:
					ended.Add(1)
				case <-time.After(10 * time.Second):
				}
				_ = conn.Close()
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d resets, %d of %d connections closed", min(sent.Load(), int64(tried)), ended.Load(), connections.Load()), nil
}

// resetCalls begins calls and resets each, until the connection ends or more returns false.
func resetCalls(framer *http2.Framer, more func() bool) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for id := uint32(1); more(); id += 2 {
		block.Reset()
		if writeHeaders(encoder, apportionv1.DecisionService_Simulate_FullMethodName) != nil ||
			framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}) != nil ||
			framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			return
		}
	}
}

// writeHeaders writes the headers of a call.
func writeHeaders(encoder *hpack.Encoder, method string) error {
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method},
		{Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		if err := encoder.WriteField(f); err != nil {
			return err
		}
	}
	return nil
}

// idleConnections opens 10,000 connections from 20 addresses and asks nothing on them. It counts those that are open at the end.
func idleConnections(ctx context.Context, server string, scale float64) (string, error) {
	const addresses, at = 20, 16
	tried := scaled(10_000, scale)
	var next, failed, ended atomic.Int64
	var all sync.WaitGroup
	for range at {
		all.Go(func() {
			for n := next.Add(1); n <= int64(tried) && ctx.Err() == nil; n = next.Add(1) {
				_, _, closed, err := open(ctx, server, 1+int(n)%addresses)
				if err != nil {
					failed.Add(1)
					continue
				}
				go func() {
					<-closed
					if ctx.Err() == nil {
						ended.Add(1)
					}
				}()
			}
		})
	}
	all.Wait()
	time.Sleep(time.Second)
	return fmt.Sprintf("%d connections: %d not let in, %d closed", tried, failed.Load(), ended.Load()), nil
}
