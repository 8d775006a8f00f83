package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/ledger"
)

// answer is the answer of Prometheus' HTTP API to a range query.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		ResultType string   `json:"resultType"`
		Result     []series `json:"result"`
	} `json:"data"`
}

type series struct {
	Metric map[string]string `json:"metric"`
	Values [][2]any          `json:"values"`
}

// prometheus reads the JSON of query_range. Each series is a use of one queue (and owner); series of one queue that differ in other labels
// are uses of it that add up. Each sample counts for one step, which is the distance of all samples unless it is stated, but at most until
// the next sample. In a gap nothing is counted.
func (r *reading) prometheus(from io.Reader) error {
	const largest = 1 << 30
	return r.answered(io.LimitReader(from, largest), r.Step)
}

// answered reads an answer whose samples have a distance, which is found if it is 0.
func (r *reading) answered(from io.Reader, step int64) error {
	var a answer
	if err := json.NewDecoder(from).Decode(&a); err != nil {
		return fmt.Errorf("the answer of query_range is no JSON: %w", err)
	}
	if a.Status != "success" || a.Data.ResultType != "matrix" {
		return fmt.Errorf("the answer is not that of a range query: status %q, %q %s", a.Status, a.Data.ResultType, a.Error)
	}
	if step == 0 {
		var err error
		if step, err = stepOf(a.Data.Result); err != nil {
			return err
		}
		r.Found = step
	}
	for n, s := range a.Data.Result {
		queue := s.Metric[r.QueueLabel]
		if queue == "" {
			r.Rows++
			r.bad(n+1, fmt.Sprint(s.Metric), "the series has no label "+r.QueueLabel)
			continue
		}
		use := r.use(n, &s, queue)
		for i := range s.Values {
			r.Rows++
			r.sample(n, i, &s, use, step)
		}
	}
	return nil
}

// sampled begins the names of tasks that are series of samples.
const sampled = "prometheus/"

// use returns the evidence of a series without its samples. It reports one of several series of a queue and owner.
func (r *reading) use(n int, s *series, queue string) ledger.Evidence {
	owner := s.Metric[r.OwnerLabel]
	name := sampled + r.Metric + "/" + queue + "/" + owner
	var others []string
	for _, label := range slices.Sorted(maps.Keys(s.Metric)) {
		if label != "__name__" && label != r.QueueLabel && label != r.OwnerLabel {
			others = append(others, label+"="+s.Metric[label])
		}
	}
	rest := strings.Join(others, ",")
	if first, known := r.series[name]; known && first != rest {
		r.note(n+1, fmt.Sprint(s.Metric),
			"the series differs from another one of its queue and owner in other labels: their values are added")
	} else {
		r.series[name] = rest
	}
	if rest != "" {
		name += "/" + rest
	}
	return ledger.Evidence{Task: name, Path: r.path(queue), Owner: owner, Ended: true}
}

// stepOf returns the distance of the samples of all series. Two distances are a fault: they are gaps, in which nothing counts, or steps of
// their own, and the samples do not say which. 0: there is no sample.
func stepOf(all []series) (int64, error) {
	some, shortest, longest := false, int64(0), int64(0)
	for _, s := range all {
		var times []float64
		for _, sample := range s.Values {
			if at, is := sample[0].(float64); is {
				times = append(times, at)
			}
		}
		slices.Sort(times)
		some = some || len(s.Values) > 0
		for i := 1; i < len(times); i++ {
			apart := int64(math.Round(times[i] - times[i-1]))
			if apart > 0 && (shortest == 0 || apart < shortest) {
				shortest = apart
			}
			longest = max(longest, apart)
		}
	}
	said := func(seconds int64) string { return duration.Format(time.Duration(seconds) * time.Second) }
	switch {
	case some && shortest == 0:
		return 0, errors.New("no series has two samples, so that it is not known for how long one counts: state the step")
	case shortest < longest:
		return 0, fmt.Errorf("samples are %s apart and %s, so that it is not known for how long each counts: state the step, or import "+
			"the parts that have steps of their own from files of their own", said(shortest), said(longest))
	}
	return shortest, nil
}

func (r *reading) sample(n, i int, s *series, use ledger.Evidence, step int64) {
	row := fmt.Sprint(s.Metric, s.Values[i])
	at, is := s.Values[i][0].(float64)
	text, ok := s.Values[i][1].(string)
	value, err := strconv.ParseFloat(text, 64)
	// The contract counts thousandths of everything but memory and pods.
	scale := 1000.0
	if r.Metric == "memory" || r.Metric == "pods" {
		scale = 1
	}
	switch {
	case !is || math.Abs(at) > 1<<40:
		r.bad(n+1, row, "the time of a sample is no number")
		return
	case !ok || err != nil || math.IsNaN(value) || value < 0 || value*scale >= math.MaxInt64:
		r.bad(n+1, row, "a sample is no number of 0 or more")
		return
	case value == 0:
		r.Skipped++
		return
	}
	use.Start = int64(at)
	use.Seen, use.End = use.Start+step, use.Start+step
	use.Amounts = map[string]int64{r.Metric: int64(value * scale)}
	r.take(n+1, row, &use)
}
