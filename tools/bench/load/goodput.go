package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// result contains the results of the calls at one rate, in one round.
type result struct {
	from, until time.Time
	// cpu is the processor time in seconds that the server took meanwhile, and seconds the time that its processor gave it or had left for
	// it, which is less than the time that passed if other programs run there.
	cpu, seconds float64

	mutex                  sync.Mutex
	took                   sample.Durations
	offered, refused, late int
}

// note counts a call by when it began and when it ended.
func (r *result) note(code codes.Code, began, ended time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.within(began) {
		r.offered++
	}
	if !r.within(ended) {
		return
	}
	switch code {
	case codes.OK:
		r.took = append(r.took, ended.Sub(began))
	case codes.ResourceExhausted:
		r.refused++
	default:
		r.late++
	}
}

func (r *result) within(t time.Time) bool { return !t.Before(r.from) && t.Before(r.until) }

// load contains the results of the calls at one rate in all rounds. A machine that is not idle slows down and speeds up from second to
// second; all rates take turns at it.
type load struct {
	factor                 float64
	seconds, cpu           float64
	offered, refused, late int
	took                   sample.Durations
	// rates are the good answers of each round in a second that the server's processor gave it or had left for it.
	rates []float64
}

// relative returns the median over the rounds of the good answers, relative to those of another rate in the same round.
func (l *load) relative(other *load) float64 {
	ratios := make([]float64, len(l.rates))
	for i := range ratios {
		ratios[i] = l.rates[i] / max(other.rates[i], 1e-9)
	}
	return sample.Median(ratios)
}

func (l *load) add(r *result) {
	l.seconds += r.until.Sub(r.from).Seconds()
	l.cpu += r.cpu
	l.offered, l.refused, l.late = l.offered+r.offered, l.refused+r.refused, l.late+r.late
	l.took = append(l.took, r.took...)
	l.rates = append(l.rates, float64(len(r.took))/max(r.seconds, 1e-9))
}

func (l *load) perSecond(calls int) float64 { return float64(calls) / l.seconds }

func (l *load) good() float64 { return l.perSecond(len(l.took)) }

// goodPerCPU is how many calls the server answers for each second of processor time that it takes.
func (l *load) goodPerCPU() float64 { return float64(len(l.took)) / max(l.cpu, 1e-9) }

var errShort = errors.New("goodput fell below 90 % of its peak, or memory rose above its bound")

// goodput prints the measurements, and returns an error if they are below the promised values. Rates are compared within a round, because a
// machine that is used by others is faster in one round than in another.
func goodput(loads []load, sustainable float64, peak int64) error {
	best, bestOfCPU := 0.0, 0.0
	for i := range loads {
		best, bestOfCPU = max(best, loads[i].good()), max(bestOfCPU, loads[i].goodPerCPU())
	}
	table := sample.NewTable("load", "offered/s", "good/s", "of peak", "refused/s", "late/s", "p50 ms", "p99 ms", "good per CPU s")
	for i := range loads {
		l := &loads[i]
		table.Add(fmt.Sprintf("%gx", l.factor), l.perSecond(l.offered), l.good(), fmt.Sprintf("%.0f %%", 100*l.good()/best),
			l.perSecond(l.refused), l.perSecond(l.late), sample.Milliseconds(l.took.Quantile(0.5)),
			sample.Milliseconds(l.took.Quantile(0.99)), l.goodPerCPU())
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	last := &loads[len(loads)-1]
	ofPeak := 1.0
	for i := range loads {
		ofPeak = min(ofPeak, last.relative(&loads[i]))
	}
	line := sample.NewLine("show-overload")
	line.Add("sustainable_per_s", sustainable)
	line.Add("peak_good_per_s", best)
	line.Add("good_at_10x_per_s", last.good())
	line.Add("good_at_10x_of_peak", ofPeak)
	line.Add("good_at_10x_of_peak_by_cpu", last.goodPerCPU()/bestOfCPU)
	line.Add("peak_memory_mib", float64(peak>>20))
	line.Add("memory_bound_mib", float64(bound>>20))
	fmt.Printf("\n%s\n", line)
	if ofPeak < enough || peak > int64(bound) {
		return errShort
	}
	return nil
}
