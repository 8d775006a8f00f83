package reference

import (
	"context"
	"runtime"
	"strings"
	"sync"
)

// Run says which cases to check, and how.
type Run struct {
	// Paths are files or folders of cases.
	Paths []string
	Ways  []Way
	// Group, if not empty, is the only profile to check (`probes` for the hand-made cases), Label the only seed or name.
	Group, Label string
	// Only, if not empty, is a part of the pointers of the answers to compare, such as `/reclaims/`.
	Only string
}

// Do checks the cases, several at a time, and returns the results in the order of the cases. A file that cannot be read is an error.
func (r *Run) Do(ctx context.Context) ([]*Result, error) {
	type outcome struct {
		result *Result
		err    error
	}
	var outcomes []*outcome
	var failure error
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, path := range r.Paths {
		for line, err := range Lines(path) {
			if err != nil {
				failure = err
				break
			}
			o := &outcome{}
			outcomes = append(outcomes, o)
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				o.result, o.err = r.check(ctx, line)
			})
		}
	}
	group.Wait()
	results := make([]*Result, 0, len(outcomes))
	for _, o := range outcomes {
		if o.err != nil && failure == nil {
			failure = o.err
		}
		if o.result != nil {
			results = append(results, o.result)
		}
	}
	return results, failure
}

// check checks one case; the result is nil if the case is not asked for.
func (r *Run) check(ctx context.Context, line Line) (*Result, error) {
	if c, ok := readFair(line); ok {
		if r.Group != "" && !strings.EqualFold(r.Group, fairGroup) || r.Label != "" && r.Label != c.ID {
			return nil, nil //nolint:nilnil // no result and no error: the case is not asked for
		}
		return c.check(ctx, r.Ways, r.Only), nil
	}
	c, err := ReadCase(line)
	if err != nil {
		return nil, err
	}
	if r.Group != "" && !strings.EqualFold(r.Group, c.Group()) || r.Label != "" && r.Label != c.Label() {
		return nil, nil //nolint:nilnil // no result and no error: the case is not asked for
	}
	return c.Check(ctx, r.Ways, r.Only), nil
}
