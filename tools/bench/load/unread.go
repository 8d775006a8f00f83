package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/peer"
)

// scaled returns a part of n, and at least 1.
func scaled(n int, scale float64) int { return max(1, int(math.Round(float64(n)*scale))) }

// unreadAnswers asks small questions with answers of 27 MB about a snapshot that is held, and reads none of them: 114 calls on one
// connection, whose streams have windows of 64 KiB.
func unreadAnswers(ctx context.Context, server string, scale float64) (string, error) {
	const window, connection = 64 << 10, 16 << 20
	conn, err := dial(server, 1, grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(connection))
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	snapshot := generate.Snapshot(generate.Shape{Queues: 10, Jobs: 20_000, Tasks: 560_000, Nodes: 10, Seed: 1})
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return "", err
	}
	digest, err := peer.Upload(ctx, conn, data)
	if err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	policy, err := fixture.Policy("proportion")
	if err != nil {
		return "", err
	}
	request := &apportionv1.SimulateRequest{
		Input: &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_Policy{Policy: policy},
		},
		Steps: []*apportionv1.Step{{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Tasks: true}}}},
	}
	answer, err := apportionv1.NewDecisionServiceClient(conn).Simulate(ctx, request)
	if err != nil {
		return "", fmt.Errorf("an answer that is read: %w", err)
	}
	tried, codes := scaled(114, scale), map[string]int{}
	for range tried {
		codes[status.Code(askUnread(ctx, conn, request)).String()]++
	}
	return fmt.Sprintf("%d questions of %d bytes with answers of %d MiB: %s",
		tried, proto.Size(request), proto.Size(answer)>>20, counts(codes)), nil
}

// askUnread makes a call and reads only the headers of its answer. It returns the error of a refused call.
func askUnread(ctx context.Context, conn *grpc.ClientConn, request proto.Message) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, apportionv1.DecisionService_Simulate_FullMethodName)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	header, err := stream.Header()
	if err != nil {
		return err
	}
	if header == nil {
		// The call ended with trailers alone.
		return stream.RecvMsg(&apportionv1.SimulateResponse{})
	}
	return nil
}

// watches opens 40,000 watches of the health, which needs no identity, on 40 connections from 20 addresses.
func watches(ctx context.Context, server string, scale float64) (string, error) {
	const addresses, perConnection = 20, 1000
	tried, codes := scaled(40_000, scale), map[string]int{}
	var conn *grpc.ClientConn
	for i := range tried {
		if i%perConnection == 0 {
			var err error
			if conn, err = dial(server, 1+i/perConnection%addresses); err != nil {
				return "", err
			}
			closing := conn
			context.AfterFunc(ctx, func() { _ = closing.Close() })
		}
		stream, err := healthv1.NewHealthClient(conn).Watch(ctx, &healthv1.HealthCheckRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		codes[status.Code(err).String()]++
	}
	return fmt.Sprintf("%d watches: %s", tried, counts(codes)), nil
}

// counts returns the number of calls by code, as text.
func counts(of map[string]int) string {
	var texts []string
	for _, code := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, fmt.Sprintf("%d %s", of[code], code))
	}
	return strings.Join(texts, ", ")
}
