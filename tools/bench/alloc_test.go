package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
)

// The main paths promise how much they allocate. Benchmarks report times; allocations are the same on every machine, and these tests fail
// if they grow. A bound above zero is the measured value and a little more.

// allocations counts objects of a function that has run before.
func allocations(f func()) float64 { return testing.AllocsPerRun(3, f) }

func TestAQuestionAllocatesNothingButItsAnswer(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			s := open(t, policy)
			require.Len(t, s.candidates, 100)
			require.Len(t, s.leaving, 10)
			mark := s.Mark()
			for name, question := range map[string]func(){
				"enqueue": func() {
					for _, j := range s.jobs {
						s.Job(j).Enqueueable(nil)
					}
					require.NoError(t, s.Rollback(mark))
				},
				"allocatable": func() {
					for _, p := range s.pending {
						s.Allocatable(s.list(p), 0, nil, nil)
						s.Preemptive(s.list(p), nil, nil)
					}
				},
				"overused": func() {
					for q := range s.m.Queues {
						s.IsOverused(model.QueueID(q), nil)
					}
				},
				"jobs": func() {
					for _, j := range s.jobs {
						s.Job(j).Valid(nil)
						s.Job(j).Ready(nil)
						s.Job(j).Pipelined(nil)
						s.Job(j).Starving(nil)
					}
				},
				"comparisons": func() {
					for i, j := range s.jobs {
						s.Order().CompareJobs(j, s.jobs[0])
						s.Order().CompareTasks(s.pending[i], s.pending[0])
						s.Order().CompareQueues(s.m.Jobs.At(j).Queue, s.m.Jobs.At(s.jobs[0]).Queue)
					}
				},
				"what if": func() { require.True(t, s.whatIf(mark)) },
			} {
				require.Zero(t, allocations(question), name)
			}
		})
	}
}

func TestAChoiceOfVictimsAllocatesItsListsAlone(t *testing.T) {
	for _, preset := range policies {
		s := open(t, preset)
		claim := &policy.Claim{Tasks: []model.TaskID{s.claimant}, Candidates: s.candidates}
		require.LessOrEqual(t, allocations(func() { s.Reclaim().Choose(claim, false) }), 20.0, preset)
	}
}

func TestOpeningAllocatesByPluginAndNotByQueue(t *testing.T) {
	for _, policy := range []string{"proportion", "capacity", "default", "fair"} {
		p := rule(t, policy)
		few, many := wide(t, 100), wide(t, 2000)
		of := func(m *model.Model) float64 {
			return allocations(func() {
				_, err := engine.Open(m, p, nil)
				require.NoError(t, err)
			})
		}
		require.LessOrEqual(t, of(many), of(few)+60, policy)
	}
}

func TestDecodingAllocatesNothingForATask(t *testing.T) {
	of := func(tasks int) float64 {
		shape := fixture.Shape(10_000, 0)
		shape.Tasks = tasks
		data := encoded(t, shape)
		var decoder decode.Decoder
		return allocations(func() {
			_, err := decoder.Compile(data)
			require.NoError(t, err)
		})
	}
	require.LessOrEqual(t, of(50_000), of(10_000)+100)
}

func TestAnAnswerAboutSharesIsMadeOfFewPieces(t *testing.T) {
	m := modelFor(t, "proportion")
	session, err := wire.Open(m, message(t, "proportion"), wire.Options{})
	require.NoError(t, err)
	ask := func() {
		_, err := session.Ask(everyShare)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, allocations(ask)/float64(len(m.Queues)), 0.2, "objects for a queue with its eight resources")
}
