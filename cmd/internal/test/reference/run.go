// Package reference holds our answers against recorded answers of Volcano: it reads case files of the form that
// testdata/reference/README.md describes, asks the questions of each case in the recorded order, brings the answers into the recorded form,
// and compares the two leaf by leaf.
//
// One answer is one leaf of a case's `expect`: a number, a truth value, a name (of a queue in an order, of a task among the victims), a
// null, or one dimension of a resource. A leaf that only we have is one more answer, and a different one. Numbers agree within a relative
// 1e-9, or an absolute 1e-9 where one of them is 0; everything else, the presence of a dimension included, agrees exactly. Every answer is
// computed along several ways (in the process, and through the service); it is counted once, and as equal only if it is equal in all of
// these ways.
//
// Four things are equal though they are not written alike:
//   - No victims are null in the recording and an empty list here: Volcano's code does not tell a nil slice from an empty one, and neither
//     do its callers.
//   - The number of a comparison is compared by its sign, as all its callers use it.
//   - Why a job is not valid and why a node does not fit are compared by kind; Volcano's English words are not.
//   - A task on a node that no manifest declares keeps the name in Volcano and has no node here, where nodes are referred to by position.
//
// Rules that look at the case alone say which answers are not compared; see Rule.
package reference

import (
	"context"
	"runtime"
	"strings"
	"sync"

	"github.com/apportion/apportion/internal/test/recording"
)

// Run selects the cases to check, and the ways of asking.
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
		for line, err := range recording.Lines(path) {
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
func (r *Run) check(ctx context.Context, line recording.Line) (*Result, error) {
	if c, ok := readLedger(line); ok {
		return r.asked(ledgerGroup, c.ID, func() *Result { return c.check(r.Ways, r.Only) }), nil
	}
	if c, ok := recording.ReadFair(line); ok {
		return r.asked(c.Group(), c.ID, func() *Result { return fairCase{c}.check(ctx, r.Ways, r.Only) }), nil
	}
	if c, ok := readKueue(line); ok {
		return r.asked(c.group(), c.label(), func() *Result { return c.check(r.Only) }), nil
	}
	c, err := ReadCase(line)
	if err != nil {
		return nil, err
	}
	return r.asked(c.Group(), c.Label(), func() *Result { return c.Check(ctx, r.Ways, r.Only) }), nil
}

// asked returns the result of a check, or nil if the case is not in the group or has not the label that are asked for.
func (r *Run) asked(group, label string, check func() *Result) *Result {
	if r.Group != "" && !strings.EqualFold(r.Group, group) || r.Label != "" && r.Label != label {
		return nil
	}
	return check()
}
