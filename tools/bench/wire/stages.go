package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/floor"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// stage is a part of the work, and wholeCall all of it over gRPC.
type stage int

const (
	compile stage = iota
	open
	ask
	encode
	wholeCall
	stages
)

// names of the stages, as the plot shows them.
var names = [stages]string{
	"decode and compile", "open: sums and division", "ask: shares of all queues", "encode the answer", "call over gRPC",
}

// point is the cost of one size.
type point struct {
	tasks, bytes int
	// ms are medians in milliseconds.
	ms   [stages]float64
	peak int64
}

func (s *scale) measure(ctx context.Context, tasks int) (point, error) {
	snapshot := generate.Snapshot(fixture.Shape(tasks, s.depth))
	in, err := fixture.Input(snapshot, s.policy)
	if err != nil {
		return point{}, err
	}
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return point{}, err
	}
	request, err := proto.Marshal(&apportionv1.EvaluateSharesRequest{Input: in})
	if err != nil {
		return point{}, err
	}
	policy := in.GetPolicy()
	// The messages of a million tasks would be work for the garbage collector all the time.
	in.Source = nil
	p := point{tasks: tasks, bytes: len(request)}
	times := make([]sample.Durations, stages)
	if err := s.inProcess(data, policy, times); err != nil {
		return point{}, err
	}
	if p.peak, err = s.remote(ctx, request, times); err != nil {
		return point{}, err
	}
	for i := range times {
		p.ms[i] = sample.Milliseconds(times[i].Quantile(0.5))
	}
	return p, nil
}

// inProcess measures the stages by themselves, after a round that makes the memory that later ones use again.
func (s *scale) inProcess(data []byte, policy *apportionv1.Policy, times []sample.Durations) error {
	var decoder decode.Decoder
	for round := range s.rounds + 1 {
		runtime.GC()
		at := time.Now()
		lap := func(of stage) {
			if round > 0 {
				times[of] = append(times[of], time.Since(at))
			}
			at = time.Now()
		}
		m, err := decoder.Compile(data)
		if err != nil {
			return err
		}
		lap(compile)
		session, err := wire.Open(m, policy, wire.Options{})
		if err != nil {
			return err
		}
		lap(open)
		answer, err := session.Ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
		if err != nil {
			return err
		}
		lap(ask)
		if _, err := proto.Marshal(answer); err != nil {
			return err
		}
		lap(encode)
	}
	return nil
}

// remote measures the call, with a request encoded beforehand, and returns the most memory that the service took.
func (s *scale) remote(ctx context.Context, request floor.Bytes, times []sample.Durations) (peak int64, err error) {
	server, err := peer.Start(ctx, peer.Service)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	conn, err := server.Dial()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for round := range s.rounds + 2 {
		runtime.GC()
		var answer floor.Bytes
		at := time.Now()
		err := conn.Invoke(ctx, evaluateShares, &request, &answer, grpc.ForceCodecV2(floor.Codec{}))
		if err != nil {
			return 0, err
		}
		if round > 1 {
			times[wholeCall] = append(times[wholeCall], time.Since(at))
		}
	}
	usage, err := server.Usage()
	return usage.Peak, err
}
