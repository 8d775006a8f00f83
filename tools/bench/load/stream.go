package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
)

// idleStreams begins 2,000 sessions and as many uploads from 20 addresses. Every other session is opened on a small snapshot. The others
// say nothing, nor do the uploads.
func idleStreams(ctx context.Context, server string, scale float64) (string, error) {
	const addresses, perConnection = 20, 100
	open, err := opening(generate.Snapshot(fixture.Small()))
	if err != nil {
		return "", err
	}
	tried, of := scaled(2000, scale), map[string]int{}
	var conn *grpc.ClientConn
	for i := range tried {
		if i%perConnection == 0 {
			if conn, err = dial(server, 1+i/perConnection%addresses); err != nil {
				return "", err
			}
			closing := conn
			context.AfterFunc(ctx, func() { _ = closing.Close() })
		}
		service := apportionv1.NewDecisionServiceClient(conn)
		session, err := service.RunSession(ctx)
		if err == nil && i%2 == 0 {
			if err = session.Send(open); err == nil || errors.Is(err, io.EOF) {
				_, err = session.Recv()
			}
			of[status.Code(err).String()]++
		}
		if err == nil {
			_, err = apportionv1.NewSnapshotServiceClient(conn).UploadSnapshot(ctx)
		}
		if err != nil && status.Code(err) != codes.ResourceExhausted {
			return "", err
		}
	}
	return fmt.Sprintf("%d sessions and uploads; of those that were opened %s", tried, counts(of)), nil
}

// opening is the first message of a session on a snapshot.
func opening(s *apportionv1.Snapshot) (*apportionv1.RunSessionRequest, error) {
	in, err := fixture.Input(s, "proportion")
	if err != nil {
		return nil, err
	}
	return &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{Input: in}}}, nil
}

// drips asks in 200 sessions, each on a connection of its own from one of 20 addresses, for answers of several hundred kilobytes, batch
// after batch, and reads a kilobyte of them each second.
func drips(ctx context.Context, server string, scale float64) (string, error) {
	const addresses, batches, seconds, kilobyte = 20, 40, 20, 1 << 10
	open, err := opening(generate.Snapshot(generate.Shape{Queues: 10, Jobs: 500, Tasks: 10_000, Nodes: 10, Seed: 1}))
	if err != nil {
		return "", err
	}
	ask := &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &apportionv1.StepBatch{
		Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Tasks: true}}}},
	}}}
	tried := scaled(200, scale)
	var begun, ended atomic.Int64
	var all sync.WaitGroup
	for i := range tried {
		all.Go(func() {
			_, framer, closed, err := openWith(ctx, server, 1+i%addresses, http2.Setting{ID: http2.SettingInitialWindowSize})
			if err != nil || beginStream(framer, apportionv1.DecisionService_RunSession_FullMethodName) != nil {
				return
			}
			begun.Add(1)
			_ = sendMessage(framer, 1, open)
			for range batches {
				_ = sendMessage(framer, 1, ask)
			}
			for range seconds {
				select {
				case <-closed:
					ended.Add(1)
					return
				case <-time.After(time.Second):
				}
				_ = framer.WriteWindowUpdate(1, kilobyte)
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d sessions with %d questions each, %d connections closed", begun.Load(), batches, ended.Load()), nil
}

// beginStream writes the headers of a connection's first call.
func beginStream(framer *http2.Framer, method string) error {
	var block bytes.Buffer
	if err := writeHeaders(hpack.NewEncoder(&block), method); err != nil {
		return err
	}
	return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
}

// sendMessage writes a message in frames of 16 KiB, which must fit into the windows of the server.
func sendMessage(framer *http2.Framer, id uint32, m proto.Message) error {
	const frame = 16 << 10
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	data = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(data))), data...)
	for len(data) > 0 && err == nil {
		n := min(len(data), frame)
		err = framer.WriteData(id, false, data[:n])
		data = data[n:]
	}
	return err
}

// cancellations begins 20,000 questions that take some milliseconds, eight at a time from one address each, and cancels each after at most
// five.
func cancellations(ctx context.Context, server string, scale float64) (string, error) {
	const at, patience = 8, 2 * time.Minute
	in, err := fixture.Input(generate.Snapshot(generate.Shape{Queues: 100, Jobs: 1000, Tasks: 5000, Nodes: 100, Seed: 1}), "proportion")
	if err != nil {
		return "", err
	}
	request := &apportionv1.ExplainRequest{Input: in}
	tried, of := scaled(20_000, scale), map[string]int{}
	var next atomic.Int64
	var all sync.WaitGroup
	var mutex sync.Mutex
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range at {
		conn, err := dial(server, 1+i)
		if err != nil {
			return "", err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		all.Go(func() {
			for n := next.Add(1); n <= int64(tried) && ctx.Err() == nil; n = next.Add(1) {
				short, end := context.WithTimeout(ctx, time.Duration(1+n%5)*time.Millisecond)
				_, err := apportionv1.NewDecisionServiceClient(conn).Explain(short, request)
				end()
				mutex.Lock()
				of[status.Code(err).String()]++
				mutex.Unlock()
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d questions: %s", min(next.Load(), int64(tried)), counts(of)), nil
}
