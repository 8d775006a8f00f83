package main

import "slices"

// Figures summarize one queue, or all of them, under one policy.
type Figures struct {
	// GPUHours that were used, and that were missing from the queue's entitlement while it wanted more than it had.
	GPUHours, ShortHours float64
	// Waits of the jobs until their minimum ran, in seconds, shortest first.
	Waits []int64
	// Evictions suffered, and the work that they cost.
	Reclaimed, Preempted int
	LostHours            float64
}

// figures of each queue, in the cluster's order.
func (r *Result) figures(c *Cluster) []Figures {
	all := make([]Figures, len(c.Queues))
	for i := range r.Samples {
		sample := &r.Samples[i]
		hours := float64(r.until(i)-sample.At) / float64(hour)
		for q := range sample.Queues {
			holding := &sample.Queues[q]
			all[q].GPUHours += float64(float64(holding.Used) * hours)
			all[q].ShortHours += float64(max(0, holding.Entitled-float64(holding.Used)) * hours)
		}
	}
	for _, job := range r.Jobs {
		q := &all[c.queue(job.Queue)]
		q.Waits = append(q.Waits, job.Began-job.Arrival)
	}
	for i := range all {
		slices.Sort(all[i].Waits)
	}
	for _, e := range r.Evictions {
		q := &all[c.queue(e.Queue)]
		if e.Within {
			q.Preempted++
		} else {
			q.Reclaimed++
		}
		q.LostHours += float64(e.LostSeconds*e.GPUs) / float64(hour)
	}
	return all
}

// wasted returns the GPU hours that were idle while a waiting job would have fit.
func (r *Result) wasted() float64 {
	hours := 0.0
	for i := range r.Samples {
		hours += float64(r.Samples[i].Wasted) * float64(r.until(i)-r.Samples[i].At) / float64(hour)
	}
	return hours
}

// until returns the end of the sample at a position.
func (r *Result) until(i int) int64 {
	if i+1 < len(r.Samples) {
		return r.Samples[i+1].At
	}
	return r.Samples[i].At
}

// end returns the time when the last job was done.
func (r *Result) end() int64 { return r.Samples[len(r.Samples)-1].At }

// utilisation is the part of the cluster's GPUs that were in use between two moments.
func (r *Result) utilisation(c *Cluster, from, to int64) float64 {
	used := int64(0)
	for i := range r.Samples {
		span := min(r.until(i), to) - max(r.Samples[i].At, from)
		if span <= 0 {
			continue
		}
		for q := range r.Samples[i].Queues {
			used += r.Samples[i].Queues[q].Used * span
		}
	}
	return float64(used) / float64(c.gpus()*(to-from))
}

// at is the sample that is valid at a time; nil before the first.
func (r *Result) at(moment int64) *Sample {
	i, found := slices.BinarySearchFunc(r.Samples, moment, func(s Sample, moment int64) int { return int(s.At - moment) })
	if found {
		return &r.Samples[i]
	}
	if i == 0 {
		return nil
	}
	return &r.Samples[i-1]
}

// mean is the average, in seconds.
func mean(values []int64) int64 {
	if len(values) == 0 {
		return 0
	}
	sum := int64(0)
	for _, v := range values {
		sum += v
	}
	return sum / int64(len(values))
}

// quantile is the smallest of sorted values such that the given percentage of values does not exceed it.
func quantile(sorted []int64, percent int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
