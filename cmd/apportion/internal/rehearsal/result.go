package rehearsal

import (
	"fmt"
	"slices"
)

// Result is the outcome of a trace under a variant. Times are in seconds of the trace.
type Result struct {
	Name string `json:"name"`
	// Jobs is how many jobs the trace has; Finished how many are done, Unfinished how many never will be, since nothing more would
	// happen.
	Jobs       int `json:"jobs"`
	Finished   int `json:"finished"`
	Unfinished int `json:"unfinished"`
	// Memory is absent if queues state no usage.
	Memory *Remembered `json:"memory,omitempty"`
	// Rounds is the number of rounds of decisions.
	Rounds int `json:"rounds"`
	// End is the time when the last job was done.
	End   int64 `json:"end"`
	Waits Waits `json:"waits"`
	// Use has an entry for each resource that jobs use.
	Use       []Use     `json:"use"`
	Evictions Evictions `json:"evictions"`
	// Kept is the part of the time in which queues with demand had their entitlement, over all queues. Short is the amount that they
	// lacked, in hours of the measured resource.
	Kept  float64 `json:"entitlementKept"`
	Short float64 `json:"entitlementShortHours"`
	// Fairness is the mean of the fairness index over the time in which some queue wanted something.
	Fairness float64 `json:"fairness"`
	Queues   []Queue `json:"queues"`
	Classes  []Class `json:"classes"`
	Series   Series  `json:"series"`
	Shares   Shares  `json:"shares"`
}

// Remembered says how usage is remembered, in seconds.
type Remembered struct {
	Epoch    int64 `json:"epoch"`
	HalfLife int64 `json:"halfLife"`
}

// Waits summarize the time in which finished jobs did not work between their arrival and their end, in seconds.
type Waits struct {
	Mean    float64 `json:"mean"`
	Median  int64   `json:"median"`
	P95     int64   `json:"p95"`
	Longest int64   `json:"longest"`
}

// Use is the use of a resource.
type Use struct {
	Resource string `json:"resource"`
	// Arriving is the part of what the cluster offers that was used from the first arrival to the last, All until the last job was done.
	Arriving float64 `json:"arriving"`
	All      float64 `json:"all"`
	// Hours are those of whole units: GPU hours, core hours, GiB hours. Lost are those of work that evictions destroyed.
	Hours float64 `json:"hours"`
	Lost  float64 `json:"lostHours"`
}

// Evictions counts tasks that were evicted, by cause. WithGang counts the tasks that stopped because too few tasks of their job still ran.
type Evictions struct {
	Total     int `json:"total"`
	Reclaimed int `json:"reclaimed"`
	Preempted int `json:"preempted"`
	WithGang  int `json:"withGang"`
}

// Queue is one queue's part.
type Queue struct {
	Name       string    `json:"name"`
	Jobs       int       `json:"jobs"`
	Unfinished int       `json:"unfinished"`
	Waits      Waits     `json:"waits"`
	Evictions  Evictions `json:"evictions"`
	// Hours, Lost and Short are of the measured resource.
	Hours float64 `json:"hours"`
	Lost  float64 `json:"lostHours"`
	Kept  float64 `json:"entitlementKept"`
	Short float64 `json:"entitlementShortHours"`
	// ByWeight is the part by weight among the queues that have jobs, Share the part of what all used from the first arrival to the last.
	ByWeight float64 `json:"byWeight"`
	Share    float64 `json:"share"`
}

// Class counts the jobs whose total request for the measured resource is above From and at most To; To is 0 for the last class.
type Class struct {
	Name      string  `json:"name"`
	From      float64 `json:"above"`
	To        float64 `json:"upTo"`
	Jobs      int     `json:"jobs"`
	Waits     Waits   `json:"waits"`
	Evictions int     `json:"evictions"`
}

// Series is the course of things: means over steps of equal length.
type Series struct {
	// Start and Step are in seconds of the trace.
	Start int64 `json:"start"`
	Step  int64 `json:"step"`
	// Fairness is 1 where no queue wants anything.
	Fairness []float64     `json:"fairness"`
	Queues   []QueueSeries `json:"queues"`
}

// QueueSeries is the use and the entitlement of a queue over time, in whole units of the measured resource.
type QueueSeries struct {
	Name     string    `json:"name"`
	Used     []float64 `json:"used"`
	Entitled []float64 `json:"entitled"`
}

const hour = 3600.0

// result puts together what was measured.
func (r *run) result() *Result {
	m := r.meter
	result := &Result{
		Name: r.variant.Name, Jobs: len(r.jobs), Finished: int(m.finished), Unfinished: len(r.jobs) - int(m.finished), Rounds: r.rounds,
		End: m.ended, Waits: waitsOf(m.waits), Fairness: 1,
	}
	if m.wanting > 0 {
		result.Fairness = m.fair / float64(m.wanting)
	}
	wanting, kept := int64(0), int64(0)
	for _, q := range r.base.QueueOrder {
		meter := &m.queues[q]
		wanting, kept = wanting+meter.wanting, kept+meter.kept
		result.Short += meter.short / m.unit / hour
		if meter.jobs == 0 {
			continue
		}
		queue := r.queue(r.base.Queues[q].Name, meter)
		queue.ByWeight = r.byWeight(q)
		if m.arriving[m.measured] > 0 {
			queue.Share = meter.arriving / m.arriving[m.measured]
		}
		result.Queues = append(result.Queues, queue)
		result.Evictions.add(evictionsOf(meter))
	}
	result.Kept = part(kept, wanting)
	result.Use = m.uses()
	result.Classes = m.classList()
	result.Series, result.Shares = r.seriesOf(), r.sharesOf()
	if r.memory != nil {
		result.Memory = &Remembered{Epoch: r.meter.sharing.step, HalfLife: result.Shares.HalfLife}
	}
	return result
}

func (r *run) queue(name string, q *queueMeter) Queue {
	m := r.meter
	return Queue{
		Name: name, Jobs: q.jobs, Unfinished: q.jobs - q.ended, Waits: waitsOf(q.waits), Evictions: evictionsOf(q),
		Hours: q.spent[m.measured] / m.unit / hour, Lost: q.lost[m.measured] / m.unit / hour,
		Kept: part(q.kept, q.wanting), Short: q.short / m.unit / hour,
	}
}

func evictionsOf(q *queueMeter) Evictions {
	e := Evictions{Reclaimed: q.evicted[byReclaim], Preempted: q.evicted[byPreempt], WithGang: q.evicted[withGang]}
	e.Total = e.Reclaimed + e.Preempted + e.WithGang
	return e
}

func (e *Evictions) add(o Evictions) {
	e.Total += o.Total
	e.Reclaimed += o.Reclaimed
	e.Preempted += o.Preempted
	e.WithGang += o.WithGang
}

// part is a share of a time; 1 of none.
func part(of, all int64) float64 {
	if all == 0 {
		return 1
	}
	return float64(of) / float64(all)
}

// uses lists the measured resource and the others that jobs used.
func (m *meter) uses() []Use {
	var list []Use
	for _, d := range m.base.GivenDimensions() {
		name := m.base.Dims.Name(d)
		if m.all[d] == 0 && d != m.measured {
			continue
		}
		unit := unitOf(name)
		use := Use{Resource: name, Hours: m.all[d] / unit / hour}
		for q := range m.queues {
			use.Lost += m.queues[q].lost[d] / unit / hour
		}
		if m.offered[d] > 0 {
			use.Arriving = m.arriving[d] / m.offered[d] / float64(max(m.last-m.first, 1))
			use.All = m.all[d] / m.offered[d] / float64(max(m.at-m.first, 1))
		}
		if d == m.measured {
			list = slices.Insert(list, 0, use)
		} else {
			list = append(list, use)
		}
	}
	return list
}

// classList lists the classes that have jobs.
func (m *meter) classList() []Class {
	var list []Class
	for i := range m.classes {
		meter := &m.classes[i]
		if meter.jobs == 0 {
			continue
		}
		c := Class{Jobs: meter.jobs, Waits: waitsOf(meter.waits), Evictions: meter.evicted}
		switch {
		case i == 0:
			c.Name = "none"
		case i == len(classBounds):
			c.From = classBounds[i-1]
			c.Name = fmt.Sprintf("more than %g", c.From)
		default:
			c.From, c.To = classBounds[i-1], classBounds[i]
			if c.Name = fmt.Sprintf("up to %g", c.To); c.From > 0 {
				c.Name = fmt.Sprintf("%g to %g", c.From+1, c.To)
			}
		}
		list = append(list, c)
	}
	return list
}

func (r *run) seriesOf() Series {
	m := r.meter
	s := Series{Start: m.series.start, Step: m.series.step, Fairness: make([]float64, len(m.series.steps))}
	for i := range m.series.steps {
		step := &m.series.steps[i]
		if s.Fairness[i] = 1; step.wanting > 0 {
			s.Fairness[i] = step.fair / float64(step.wanting)
		}
	}
	for _, q := range r.base.QueueOrder {
		if m.queues[q].jobs == 0 {
			continue
		}
		line := QueueSeries{
			Name: r.base.Queues[q].Name, Used: make([]float64, len(m.series.steps)), Entitled: make([]float64, len(m.series.steps)),
		}
		for i := range m.series.steps {
			step := &m.series.steps[i]
			if step.seconds > 0 {
				line.Used[i] = step.used[q] / m.unit / float64(step.seconds)
				line.Entitled[i] = step.entitled[q] / m.unit / float64(step.seconds)
			}
		}
		s.Queues = append(s.Queues, line)
	}
	return s
}

// waitsOf sums up waits. A percentile is the smallest wait that so many hundredths of all do not exceed.
func waitsOf(waits []int64) Waits {
	if len(waits) == 0 {
		return Waits{}
	}
	sorted := slices.Sorted(slices.Values(waits))
	sum := 0.0
	for _, w := range sorted {
		sum += float64(w)
	}
	percentile := func(p int) int64 { return sorted[(len(sorted)*p+99)/100-1] }
	return Waits{sum / float64(len(sorted)), percentile(50), percentile(95), sorted[len(sorted)-1]}
}
