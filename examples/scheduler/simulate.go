package main

import (
	"context"
	"errors"
	"slices"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Result is how a day went under one policy.
type Result struct {
	Policy string
	// Jobs in order of arrival.
	Jobs []*Job
	// Samples hold from their moment to the next one's.
	Samples   []Sample
	Evictions []Eviction
	// Cycles is how many moments had decisions to take, Repeats how often the cluster came back, within one of them, to a state before.
	Cycles, Repeats int
}

// Sample is what each queue has at a moment, in GPUs.
type Sample struct {
	At     int64
	Queues []Holding
	// Wasted GPUs are idle although a job waits that would fit.
	Wasted int64
}

// Holding is one queue's part of a sample.
type Holding struct {
	Used, Wanted int64
	// Entitled is what a division by weight would give the queue, of what it wants.
	Entitled float64
}

// Simulate lets a day pass under a policy. Equal cluster, trace and policy: equal result.
func Simulate(ctx context.Context, decider *client.Client, cluster *Cluster, trace []Submission, policy Policy) (*Result, error) {
	measure, err := yardstick()
	if err != nil {
		return nil, err
	}
	state, result := newState(cluster), &Result{Policy: policy.Name}
	for len(trace) > 0 || len(state.jobs) > 0 {
		next := state.nextEnd()
		if len(trace) > 0 && (next == never || trace[0].Arrival < next) {
			next = trace[0].Arrival
		}
		if next == never {
			return nil, errors.New("the rest of the jobs will never run")
		}
		state.pass(next)
		for len(trace) > 0 && trace[0].Arrival == next {
			job := newJob(&trace[0])
			state.jobs, result.Jobs, trace = append(state.jobs, job), append(result.Jobs, job), trace[1:]
		}
		evictions, repeats, err := decide(ctx, decider, policy, state)
		if err != nil {
			return nil, err
		}
		result.Cycles++
		result.Repeats += repeats
		result.Evictions = append(result.Evictions, evictions...)
		sample, err := state.sample(ctx, decider, measure)
		if err != nil {
			return nil, err
		}
		result.Samples = append(result.Samples, sample)
	}
	return result, nil
}

// nextEnd is when the next job will be done, never if none runs.
func (s *State) nextEnd() int64 {
	next := never
	for _, job := range s.jobs {
		if end := job.end(s.now); end != never && (next == never || end < next) {
			next = end
		}
	}
	return next
}

// pass lets time go on to a moment: work is done, and jobs without any left leave.
func (s *State) pass(to int64) {
	for _, job := range s.jobs {
		job.Remaining -= job.running() * (to - s.now)
	}
	s.now = to
	s.jobs = slices.DeleteFunc(slices.Clone(s.jobs), func(job *Job) bool {
		if job.Remaining > 0 {
			return false
		}
		job.Ended = to
		for task := range job.Tasks {
			if job.Tasks[task].Node != idle {
				s.remove(job, task)
			}
		}
		return true
	})
}

// sample measures the moment. What a queue is entitled to is Apportion's answer too.
func (s *State) sample(ctx context.Context, decider *client.Client, measure *apportionv1.Policy) (Sample, error) {
	sample := Sample{At: s.now, Queues: make([]Holding, len(s.cluster.Queues)), Wasted: s.wasted()}
	for _, job := range s.jobs {
		holding := &sample.Queues[s.cluster.queue(job.Queue)]
		holding.Used += job.running() * job.Each.GPU
		holding.Wanted += int64(len(job.Tasks)) * job.Each.GPU
	}
	snapshot, err := s.snapshot()
	if err != nil {
		return sample, err
	}
	shares, err := decider.Shares(ctx, client.Input{Snapshot: snapshot, Policy: measure}, client.SharesQuestion{
		Fields: []apportionv1.ShareField{apportionv1.ShareField_SHARE_FIELD_DESERVED},
	})
	if err != nil {
		return sample, err
	}
	dimension := slices.Index(shares.Basis.GetDimensions(), gpu)
	for _, share := range shares.Answer.GetPlugins()[0].GetQueues() {
		for i, index := range share.GetDeserved().GetDimension() {
			if int(index) == dimension {
				// Thousandths of a GPU.
				sample.Queues[share.GetQueue()].Entitled = share.GetDeserved().GetAmount()[i] / 1000
			}
		}
	}
	return sample, nil
}
