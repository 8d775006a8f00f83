package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/apportion/apportion/internal/test/recording"
)

// fairCase is one recorded case of `fair`.
type fairCase struct{ *recording.Fair }

// check asks the case's questions along all ways and compares the answers, exactly.
func (c fairCase) check(ctx context.Context, ways []Way, only string) *Result {
	result := &Result{Case: &Case{Profile: c.Group(), Name: c.ID}}
	want, err := c.expected()
	got := make([]any, len(ways))
	for i, way := range ways {
		var failure error
		if got[i], failure = c.ask(ctx, way, err); failure != nil {
			result.Failures = append(result.Failures, way.Name+": "+failure.Error())
			got[i] = absent{}
		}
	}
	compared := comparison{only: only, unheld: map[Rule]int{}}
	compared.tree("", nil, want, got)
	result.Answers, result.Equal, result.Unheld, result.Differences = compared.answers, compared.equal, compared.unheld, compared.differ
	return result
}

// ask asks along one way, unless the case could not be read.
func (c fairCase) ask(ctx context.Context, way Way, unreadable error) (any, error) {
	if unreadable != nil {
		return nil, unreadable
	}
	snapshot, policy, err := c.Input()
	if err != nil {
		return nil, err
	}
	if len(c.Questions) == 1 && c.Questions[0].Kind == checkKey {
		return c.invalid(ctx, way, snapshot, policy)
	}
	session, err := way.Open(ctx, snapshot, policy)
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close() }()
	asked := newFairAsked(snapshot, policy, session)
	asked.memory = c.Group() == recording.MemoryGroup
	return asked.answers(ctx, c.Questions)
}

// expected is the recorded answers by position and kind, in the form in which ours are put: numbers as text, so that nothing is tolerated,
// what has no order by its name, and refusals without their texts, which are free.
func (c fairCase) expected() (object, error) {
	out := object{}
	for i, q := range c.Questions {
		decoder := json.NewDecoder(bytes.NewReader(c.Answers[i]))
		decoder.UseNumber()
		var answer any
		if err := decoder.Decode(&answer); err != nil {
			return nil, fmt.Errorf("answers[%d]: %w", i, err)
		}
		out[fairKey(i, q)] = fairForm(q.Kind, exactly(answer))
	}
	return out, nil
}

func fairKey(i int, q recording.FairQuestion) string { return fmt.Sprintf("%d %s", i, q.Kind) }

// exactly turns numbers into text.
func exactly(v any) any {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case object:
		for key := range v {
			v[key] = exactly(v[key])
		}
	case []any:
		for i := range v {
			v[i] = exactly(v[i])
		}
	}
	return v
}

// Keys of answers that several kinds of cases have. An inner queue is a node, too.
const (
	nodeKey, usageKey = "node", "usage"
	clusterQueueKey   = "clusterQueue"
	modeKey           = "mode"
)

// refusedText is the key of a refusal, and stands for its text.
const refusedText = "refused"

// fairForm brings a recorded answer into the form in which it is compared.
func fairForm(kind string, answer any) any {
	o, ok := answer.(object)
	if !ok {
		return answer
	}
	if _, refused := o[refusedText]; refused {
		o[refusedText] = refusedText
	}
	if kind == checkKey {
		o["warnings"] = sortedTexts(o["warnings"])
	}
	if kind != "shares" && kind != weightsKey {
		return o
	}
	for part, key := range map[string]string{queuesKey: "queue", "nodes": nodeKey} {
		named := object{}
		list, _ := o[part].([]any)
		for _, each := range list {
			entry, _ := each.(object)
			named[fmt.Sprint(entry[key], " ", entry["dimension"])] = entry
		}
		o[part] = named
	}
	for _, part := range []string{"refusedQueues", "refusedJobs"} {
		texts, _ := o[part].(object)
		for name := range texts {
			texts[name] = refusedText
		}
	}
	return o
}
