package extender_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/extender"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/difference"
	"github.com/apportion/apportion/internal/wire"
)

// again decides everything once more, from what observers receive alone: a snapshot made of the model, and steps. Every session that a
// test's bridge is asked about is held to it.
type again struct {
	t        testing.TB
	session  *wire.Session
	asked    []*extender.Question
	opened   *extender.Opening
	closings int
}

// observing remembers the sessions that were opened.
type observing struct {
	t        testing.TB
	mu       sync.Mutex
	sessions []*again
}

func (o *observing) Opened(_ context.Context, opening *extender.Opening) extender.SessionObserver {
	snapshot := decode.SnapshotOf(opening.Model)
	m, err := decode.Compile(snapshot)
	if err != nil {
		o.t.Error(err)
		return nil
	}
	assert.True(o.t, proto.Equal(snapshot, decode.SnapshotOf(m)), "a snapshot of a model has the model that it is made of")
	session, err := wire.Open(m, opening.Policy, wire.Options{})
	if err != nil {
		o.t.Error(err)
		return nil
	}
	assert.True(o.t, proto.Equal(session.Basis(), opening.Basis))
	a := &again{t: o.t, session: session, opened: opening}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sessions = append(o.sessions, a)
	return a
}

func (a *again) Asked(_ context.Context, q *extender.Question) {
	answers, err := a.session.DoAll(q.Steps)
	if err != nil {
		a.t.Error(err)
	}
	found := difference.Between(&apportionv1.AnswerBatch{Answers: q.Answers}, &apportionv1.AnswerBatch{Answers: answers}, 5)
	assert.Empty(a.t, found, "%s: %v", q.Verb, q.Steps)
	assert.NotEmpty(a.t, q.Sent)
	a.asked = append(a.asked, q)
}

func (a *again) Closed(context.Context) { a.closings++ }

func TestAnObserverIsToldOfASessionInStepsAndAnswers(t *testing.T) {
	told := &observing{t: t}
	b := newBridge(t, proportionConf, func(o *extender.Options) {
		o.Observer = told
	})
	b.asked("onSessionOpen", cluster(1))
	require.False(t, b.overused())
	b.asked("allocate", []byte(`{"task":`+taskOf(1, 4, "n")+`}`))
	b.asked("allocate", []byte(`{"task":{"UID":"stranger","Status":2}}`))
	require.True(t, b.overused())
	b.asked("jobEnqueueable", []byte(`{"job":{"UID":"ns/j","Tasks":{"t1":`+taskOf(1, 1, "")+`,"t2":`+taskOf(2, 128, "n")+`}}}`))
	b.asked("deallocate", []byte(`{"task":`+taskOf(0, 64, "n")+`}`))
	b.asked("onSessionOpen", cluster(2))
	require.True(t, b.overused())
	b.asked("onSessionClose", []byte("{}"))
	require.False(t, b.overused(), "what is abstained from is no decision")

	require.Len(t, told.sessions, 2)
	first := told.sessions[0]
	require.Equal(t, 1, first.closings)
	require.Equal(t, 1, told.sessions[1].closings)
	require.Equal(t, volcanoPath, first.opened.Path)
	require.Equal(t, "native", first.opened.PolicyName)
	require.Equal(t, asOf.UnixNano(), first.opened.Model.AsOf)
	sent := make([]string, len(first.asked))
	for i, q := range first.asked {
		sent[i] = q.Verb + string(q.Sent)
	}
	require.Equal(t, []string{
		`queueOverused{"overused":false}`, `allocate{"errorMessage":""}`, `queueOverused{"overused":true}`, `jobEnqueueable{"status":-1}`,
		`deallocate{"errorMessage":""}`,
	}, sent)
	require.True(t, first.asked[2].Answers[0].GetShares().GetStandings()[0].GetOverused())
	require.Equal(t, "q", first.asked[2].Answers[0].GetShares().GetStandings()[0].GetName())
}
