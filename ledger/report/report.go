// Package report answers who used what, from a ledger: periods of use, and what became of budgets.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/ledger"
)

// mostPeriods bounds the periods of an answer.
const mostPeriods = 4096

// ErrLarge says that an answer is larger than the caller may have.
var ErrLarge = errors.New("the answer is too large: ask about fewer queues, a shorter time or longer periods")

// Asked is a question about a ledger.
type Asked struct {
	*apportionv1alpha1.GetUsageRequest

	Budgets []ledger.Budget
	// Shows reports whether the caller may see a queue; nil: it may see all.
	Shows func(queue string) bool
	// Bytes bounds the answer; 0: nothing does.
	Bytes int
}

// report is an answer that is being made.
type report struct {
	*Asked

	ledger *ledger.Ledger
	out    *apportionv1alpha1.GetUsageResponse
	// index holds the positions in the answer of the dimensions that are wanted, by those of the ledger; -1: it is not wanted.
	index   []int
	bytes   int
	seconds int64
}

// Check returns an error for a request that no ledger can answer.
func Check(r *apportionv1alpha1.GetUsageRequest) error {
	if r.StartTime != nil && r.EndTime != nil && r.GetEndTime() < r.GetStartTime() {
		return errors.New("until is before from")
	}
	return nil
}

// Make answers a question. A ledger without use has an empty answer.
func Make(l *ledger.Ledger, a *Asked) (*apportionv1alpha1.GetUsageResponse, error) {
	if err := Check(a.GetUsageRequest); err != nil {
		return nil, err
	}
	first, last, some := l.Span()
	if !some {
		return &apportionv1alpha1.GetUsageResponse{}, nil
	}
	o := l.Options()
	r := &report{Asked: a, ledger: l, seconds: int64(o.Epoch / time.Second)}
	r.out = &apportionv1alpha1.GetUsageResponse{
		Begins: new(first * int64(o.Epoch)), Ends: (last + 1) * int64(o.Epoch), EpochSeconds: r.seconds, HalfLifeEpochs: uint32(o.HalfLife),
	}
	for _, name := range l.Dimensions() {
		r.index = append(r.index, r.dimension(name))
	}
	if a.GetBudgets() {
		return r.out, r.budgets()
	}
	return r.out, r.periods()
}

// dimension returns the position of a dimension in the answer, adding it; -1 if it is not wanted.
func (r *report) dimension(name string) int {
	if !wanted(r.GetDimensions(), name) {
		return -1
	}
	if i := slices.Index(r.out.GetDimensions(), name); i >= 0 {
		return i
	}
	o := r.ledger.Options()
	r.out.Dimensions, r.out.Quanta = append(r.out.GetDimensions(), name), append(r.out.GetQuanta(), o.Quantum(name))
	return len(r.out.GetDimensions()) - 1
}

// wanted reports whether a dimension is asked for, by its name or by what follows the last slash of it.
func wanted(names []string, name string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return n == name || strings.HasSuffix(name, "/"+n) })
}

func (r *report) shows(queue string) bool {
	return (len(r.GetQueues()) == 0 || slices.Contains(r.GetQueues(), queue)) && (r.Shows == nil || r.Shows(queue))
}

// periods lists what was used, period by period.
func (r *report) periods() error {
	begin, end := time.Unix(0, r.out.GetBegins()).UTC(), time.Unix(0, r.out.GetEnds()).UTC()
	if r.StartTime != nil {
		begin = time.Unix(0, r.GetStartTime()).UTC()
	}
	if r.EndTime != nil {
		end = time.Unix(0, r.GetEndTime()).UTC()
	}
	times := []time.Time{begin}
	for at := begin; at.Before(end); times = append(times, at) {
		if at = r.next(at); at.After(end) {
			at = end
		}
		if len(times) > mostPeriods {
			return fmt.Errorf("there are more than %d periods from %s to %s", mostPeriods, begin.Format(time.DateOnly),
				end.Format(time.DateOnly))
		}
	}
	bounds := make([]int64, len(times))
	for i, at := range times {
		// A period contains the epochs that begin in it.
		bounds[i] = r.ledger.EpochOf(at.Unix() + r.seconds - 1)
	}
	var err error
	r.ledger.Totals(bounds, r.shows, func(t *ledger.Totals) bool {
		err = r.interval(times[t.Period], times[t.Period+1], t)
		return err == nil
	})
	return err
}

// next returns where the period after the one that contains a time begins.
func (r *report) next(at time.Time) time.Time {
	day := at.Truncate(24 * time.Hour)
	switch r.GetPeriod() {
	case apportionv1alpha1.UsagePeriod_USAGE_PERIOD_DAY:
		return day.AddDate(0, 0, 1)
	case apportionv1alpha1.UsagePeriod_USAGE_PERIOD_MONTH:
		return time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	case apportionv1alpha1.UsagePeriod_USAGE_PERIOD_TOTAL:
		return day.AddDate(1<<16, 0, 0)
	default:
		return day.AddDate(0, 0, 7-(int(day.Weekday())+6)%7)
	}
}

func (r *report) interval(from, until time.Time, t *ledger.Totals) error {
	used := map[ledger.Line]*apportionv1alpha1.QueueUse{}
	for to, v := range t.Used {
		if !to.Owned || r.GetOwners() {
			used[to] = r.use(to, v)
		}
	}
	for queue, v := range t.Decayed {
		to := ledger.Line{Queue: queue}
		if used[to] == nil {
			used[to] = r.use(to, nil)
		}
		used[to].Decayed = r.amounts(v)
	}
	interval := &apportionv1alpha1.UsageInterval{StartTime: from.UnixNano(), EndTime: until.UnixNano()}
	for _, q := range used {
		if q.GetUsed() != nil || q.GetDecayed() != nil {
			interval.Queues = append(interval.Queues, q)
		}
	}
	slices.SortFunc(interval.GetQueues(), byName)
	r.out.Intervals = append(r.out.GetIntervals(), interval)
	return r.grow(interval.GetQueues())
}

// grow returns an error if the answer is too large with more uses.
func (r *report) grow(uses []*apportionv1alpha1.QueueUse) error {
	const each, amount = 32, 14
	r.bytes += each
	for _, q := range uses {
		amounts := len(q.GetUsed().GetDimensions()) + len(q.GetDecayed().GetDimensions())
		r.bytes += each + len(q.GetQueue()) + len(q.GetOwner()) + amount*amounts
	}
	if r.Bytes > 0 && r.bytes > r.Bytes {
		return ErrLarge
	}
	return nil
}

// byName sorts by queue, the owners of a queue after it.
func byName(a, b *apportionv1alpha1.QueueUse) int {
	owned := func(q *apportionv1alpha1.QueueUse) int {
		if q.Owner == nil {
			return 0
		}
		return 1
	}
	return cmp.Or(strings.Compare(a.GetQueue(), b.GetQueue()), owned(a)-owned(b), strings.Compare(a.GetOwner(), b.GetOwner()))
}

func (r *report) use(to ledger.Line, v []int64) *apportionv1alpha1.QueueUse {
	out := &apportionv1alpha1.QueueUse{Queue: to.Queue, Used: r.amounts(v)}
	if to.Owned {
		out.Owner = &to.Owner
	}
	return out
}

// amounts returns the wanted amounts of a vector that are not 0; nil if there are none.
func (r *report) amounts(v []int64) *apportionv1.Usage {
	var out *apportionv1.Usage
	for d, n := range v {
		if n == 0 || r.index[d] < 0 {
			continue
		}
		if out == nil {
			out = &apportionv1.Usage{}
		}
		out.Dimensions, out.QuantumSeconds = append(out.Dimensions, uint32(r.index[d])), append(out.QuantumSeconds, n)
	}
	return out
}
