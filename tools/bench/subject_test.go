package bench_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
)

// policies are those that are measured.
var policies = []string{"proportion", "capacity", "capacity-hierarchical", "default", "fair", "fair-tree"}

// flat and deep are the snapshots that figures are quoted for: 1,000 queues, 10,000 jobs, 100,000 tasks, 5,000 nodes, without and with
// a tree of queues.
var (
	flat = sync.OnceValues(func() (*model.Model, error) { return compiled(generate.Standard()) })
	deep = sync.OnceValues(func() (*model.Model, error) {
		shape := generate.Standard()
		shape.Depth = 3
		return compiled(shape)
	})
)

func compiled(shape generate.Shape) (*model.Model, error) {
	return decode.Compile(generate.Snapshot(shape))
}

// rule returns a policy of the engine.
func rule(tb testing.TB, name string) engine.Policy {
	tb.Helper()
	message, err := fixture.Policy(name)
	require.NoError(tb, err)
	p, err := decode.Policy(message)
	require.NoError(tb, err)
	return p
}

// inTree reports whether a policy is measured on a tree of queues.
func inTree(policy string) bool { return policy == "capacity-hierarchical" || policy == "fair-tree" }

// modelFor returns the snapshot that a policy is measured on.
func modelFor(tb testing.TB, policy string) *model.Model {
	tb.Helper()
	of := flat
	if inTree(policy) {
		of = deep
	}
	m, err := of()
	require.NoError(tb, err)
	return m
}

// open opens a session by a policy and asks once what is only prepared when it is first asked.
func open(tb testing.TB, policy string) *subject {
	tb.Helper()
	m := modelFor(tb, policy)
	session, err := engine.Open(m, rule(tb, policy), nil)
	require.NoError(tb, err)
	s := &subject{Session: session, m: m}
	s.find()
	return s
}

// subject is a session with things to ask about.
type subject struct {
	*engine.Session

	m *model.Model
	// jobs lists a thousand jobs, and pending as many pending tasks, spread over the snapshot.
	jobs    []model.JobID
	pending []model.TaskID
	// claimant is a pending task; candidates are a hundred tasks that the reclaim action would consider for it.
	claimant   model.TaskID
	candidates []model.TaskID
	// leaving lists ten running tasks of one queue, which may be evicted.
	leaving []model.TaskID
}

func (s *subject) find() {
	for j := range s.m.Jobs.All() {
		if int(j)%(s.m.Jobs.Len()/1000) == 0 && len(s.jobs) < 1000 {
			s.jobs = append(s.jobs, j)
		}
	}
	var pending, running []model.TaskID
	for t, task := range s.m.Tasks.All() {
		switch task.Status {
		case model.Pending:
			pending = append(pending, t)
		case model.Running:
			running = append(running, t)
		default:
		}
	}
	for i := range 1000 {
		s.pending = append(s.pending, pending[i*len(pending)/1000])
	}
	s.claimant = s.pending[0]
	for i := range running {
		t := running[i*7919%len(running)]
		if _, ok := s.Reclaim().Eligible(s.claimant, t); ok && len(s.candidates) < 100 {
			s.candidates = append(s.candidates, t)
		}
	}
	for _, t := range running {
		if s.m.QueueOf(t) == s.m.QueueOf(running[0]) && len(s.leaving) < 10 {
			s.leaving = append(s.leaving, t)
		}
	}
}

// whatIf asks what a preempting scheduler asks: could the claimant run if these ten were gone? Everything is as before afterwards.
func (s *subject) whatIf(mark int) bool {
	for _, t := range s.leaving {
		if s.Deallocate(t, model.Releasing) != nil {
			return false
		}
	}
	s.Allocatable(s.list(s.claimant), 0, nil, nil)
	return s.Rollback(mark) == nil
}

// list returns a list of one task, in memory that the test keeps.
func (s *subject) list(t model.TaskID) []model.TaskID {
	single[0] = t
	return single[:]
}

var single [1]model.TaskID

// shares reads every queue's share from every plugin that divides, and returns how many there are.
func (s *subject) shares(dividers []engine.Divider) int {
	n := 0
	for i := range dividers {
		if dividers[i].Queues == nil {
			continue
		}
		for q := range s.m.Queues {
			if _, ok := dividers[i].Queues.Share(model.QueueID(q)); ok {
				n++
			}
		}
	}
	return n
}
