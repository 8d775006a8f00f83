package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/ledger"
)

// Range is a range query of Prometheus, or of a database with its HTTP API.
type Range struct {
	// URL of the server, Query in its language, and Token for it; empty: none.
	URL, Query, Token string
	// Begin and End of the range. Both become multiples of Step, the distance of two samples, so that a query that is asked again has the
	// same samples. Range is cut into questions of as many samples as Prometheus answers at most.
	Begin, End time.Time
	Step       time.Duration
	// Timeout of each question, and the most bytes of an answer.
	Timeout time.Duration
	Bytes   int64
}

// The most samples of a series in one answer, of 11,000 that Prometheus allows, and the most questions.
const (
	mostSamples   = 10_000
	mostQuestions = 1_000
)

func (q *Range) check() error {
	var faults []error
	at, err := url.Parse(q.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		faults = append(faults, fmt.Errorf("%q is no URL of a server, such as http://prometheus:9090", q.URL))
	}
	if q.Query == "" {
		faults = append(faults, errors.New("there is no query"))
	}
	if q.Step < time.Second || q.Step%time.Second != 0 {
		faults = append(faults, fmt.Errorf("a step of %s is not whole seconds", duration.Format(q.Step)))
	} else if n := q.End.Sub(q.Begin) / q.Step; n < 1 || n > mostSamples*mostQuestions {
		faults = append(faults, fmt.Errorf("from %s to %s there are %d steps of %s, not 1 to %d", q.Begin.Format(time.RFC3339),
			q.End.Format(time.RFC3339), n, duration.Format(q.Step), mostSamples*mostQuestions))
	}
	return errors.Join(faults...)
}

// ReadRange asks a range query and reads its answers into a ledger, as Read does with one in a file.
func ReadRange(ctx context.Context, q *Range, o Options, to *ledger.Ledger) (*Report, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	r := newReading(o, to)
	step := int64(q.Step / time.Second)
	end := q.End.Unix() / step * step
	for begin := q.Begin.Unix() / step * step; begin < end; begin += mostSamples * step {
		// Both ends of a question are samples of it.
		last := min(begin+(mostSamples-1)*step, end-step)
		if err := q.ask(ctx, begin, last, func(from io.Reader) error { return r.answered(from, step) }); err != nil {
			return &r.Report, fmt.Errorf("from %s on: %w", time.Unix(begin, 0).UTC().Format(time.RFC3339), err)
		}
	}
	return &r.Report, nil
}

// ask asks for the samples of a part of the range, and calls read with the answer.
func (q *Range) ask(ctx context.Context, begin, end int64, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	form := url.Values{
		"query": {q.Query}, "start": {strconv.FormatInt(begin, 10)}, "end": {strconv.FormatInt(end, 10)},
		"step": {strconv.FormatInt(int64(q.Step/time.Second), 10)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(q.URL, "/")+"/api/v1/query_range",
		strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if q.Token != "" {
		request.Header.Set("Authorization", "Bearer "+q.Token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body := &limited{from: response.Body, left: q.Bytes, most: q.Bytes}
	if response.StatusCode != http.StatusOK {
		var a answer
		const longest = 64 << 10
		_ = json.NewDecoder(io.LimitReader(body, longest)).Decode(&a)
		const shown = 500
		return fmt.Errorf("the server answers %s %.*s", response.Status, shown, a.Error)
	}
	return read(body)
}

// limited is a reader that fails beyond some bytes, so that a cut answer is no answer.
type limited struct {
	from       io.Reader
	left, most int64
}

func (l *limited) Read(to []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes: ask for less at a time, by a longer step or fewer series", l.most)
	}
	n, err := l.from.Read(to[:min(int64(len(to)), l.left)])
	l.left -= int64(n)
	return n, err
}
