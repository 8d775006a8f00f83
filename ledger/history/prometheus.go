package history

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

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

// prometheus reads the JSON of query_range. Each series is the use of one queue (and owner); each sample counts for one step, which is the
// shortest distance of two samples. In a gap nothing is counted.
func (r *reading) prometheus(from io.Reader) error {
	const largest = 1 << 30
	return r.answered(io.LimitReader(from, largest), 0)
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
		step = stepOf(a.Data.Result)
	}
	for n, s := range a.Data.Result {
		queue := s.Metric[r.QueueLabel]
		if queue == "" {
			r.Rows++
			r.bad(n+1, fmt.Sprint(s.Metric), "the series has no label "+r.QueueLabel)
			continue
		}
		for i := range s.Values {
			r.Rows++
			r.sample(n, i, &s, queue, step)
		}
	}
	return nil
}

// stepOf returns the shortest distance of two samples, a minute if there are no two.
func stepOf(all []series) int64 {
	step := int64(math.MaxInt64)
	for _, s := range all {
		for i := 1; i < len(s.Values); i++ {
			before, ok := s.Values[i-1][0].(float64)
			at, is := s.Values[i][0].(float64)
			if ok && is && at > before {
				step = min(step, int64(at-before))
			}
		}
	}
	if step == math.MaxInt64 || step == 0 {
		return 60
	}
	return step
}

func (r *reading) sample(n, i int, s *series, queue string, step int64) {
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
	start := int64(at)
	owner := s.Metric[r.OwnerLabel]
	r.take(n+1, row, &ledger.Evidence{
		Task: "prometheus/" + r.Metric + "/" + queue + "/" + owner, Start: start, Path: r.path(queue), Owner: owner,
		Amounts: map[string]int64{r.Metric: int64(value * scale)}, Seen: start + step, End: start + step, Ended: true,
	})
}
