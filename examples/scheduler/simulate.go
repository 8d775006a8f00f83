package main

import (
	"context"
	"errors"
	"slices"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/timeline"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Result is the course of a day under one policy.
type Result struct {
	Policy string
	// Jobs in order of arrival.
	Jobs []*Job
	// Samples hold from their moment to the next one's.
	Samples   []Sample
	Evictions []Eviction
	// Cycles is the number of times with decisions, Repeats the number of times that the cluster returned to an earlier state within one of
	// them.
	Cycles, Repeats int
}

// Sample is the use of each queue at a moment, in GPUs.
type Sample struct {
	At     int64
	Queues []Holding
	// Wasted GPUs are idle although a job waits that would fit.
	Wasted int64
}

// Holding is one queue's part of a sample.
type Holding struct {
	Used, Wanted int64
	// Entitled is the queue's part in a division by weight, at most what it wants.
	Entitled float64
}

// simulation is a day under way.
type simulation struct {
	*State

	ctx     context.Context //nolint:containedctx // A simulation is one call.
	decider *client.Client
	policy  Policy
	measure *apportionv1.Policy
	result  *Result
}

// Simulate lets a day pass under a policy. Equal cluster, trace and policy: equal result.
func Simulate(ctx context.Context, decider *client.Client, cluster *Cluster, trace []Submission, policy Policy) (*Result, error) {
	measure, err := yardstick()
	if err != nil {
		return nil, err
	}
	s := &simulation{
		State: newState(cluster), ctx: ctx, decider: decider, policy: policy, measure: measure, result: &Result{Policy: policy.Name},
	}
	if err := timeline.Simulate(s, trace); err != nil {
		return nil, err
	}
	if len(s.jobs) > 0 {
		return nil, errors.New("the rest of the jobs will never run")
	}
	return s.result, nil
}

// Arrival returns when a job arrives.
func (*simulation) Arrival(submission Submission) int64 { return submission.Arrival }

// Next returns when the next job will be done.
func (s *simulation) Next() int64 {
	next := never
	for _, job := range s.jobs {
		next = min(next, job.end(s.now))
	}
	return next
}

// Arrive adds a job.
func (s *simulation) Arrive(submission Submission) {
	job := newJob(&submission)
	s.jobs, s.result.Jobs = append(s.jobs, job), append(s.result.Jobs, job)
}

// Decide runs a cycle and measures the moment.
func (s *simulation) Decide() error {
	evictions, repeats, err := decide(s.ctx, s.decider, s.policy, s.State)
	if err != nil {
		return err
	}
	s.result.Cycles++
	s.result.Repeats += repeats
	s.result.Evictions = append(s.result.Evictions, evictions...)
	sample, err := s.sample(s.ctx, s.decider, s.measure)
	s.result.Samples = append(s.result.Samples, sample)
	return err
}

// Pass lets time go on to a moment: work is done, and jobs without any left leave.
func (s *State) Pass(to int64) {
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
		for i, index := range share.GetDeserved().GetDimensions() {
			if int(index) == dimension {
				// Thousandths of a GPU.
				sample.Queues[share.GetQueue()].Entitled = share.GetDeserved().GetAmounts()[i] / 1000
			}
		}
	}
	return sample, nil
}
