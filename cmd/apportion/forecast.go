package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
	"github.com/apportion/apportion/internal/wire"
)

// oddsFlags say what is asked about the time at which a job starts.
type oddsFlags struct {
	past     question.HistoryFlags
	arrivals string
	ask      client.ForecastQuestion
	// left is how many lines and jobs of the history were left out.
	left int
}

// serverHistory begins a history that is the name of a snapshot of which the server keeps a ledger.
const serverHistory = "server:"

// The values of --arrivals.
const (
	arrivalsRecent = "recent"
	arrivalsNone   = "none"
)

// registerHistory adds the flags of the history alone; the others have their defaults.
func (f *oddsFlags) registerHistory(command *cobra.Command) {
	f.past.Strictness = trace.Tolerant
	f.past.Register(command, "history")
	f.arrivals, f.ask = arrivalsRecent, client.ForecastQuestion{Runs: 100, Seed: 1, Horizon: 30 * 24 * time.Hour}
}

func (f *oddsFlags) register(command *cobra.Command) {
	f.registerHistory(command)
	cli.Choose(command, &f.arrivals, "arrivals", "", "whether jobs arrive as they did in the history, or none does",
		arrivalsRecent, arrivalsNone)
	flags := command.Flags()
	flags.Uint32Var(&f.ask.Runs, "runs", f.ask.Runs,
		fmt.Sprintf("`NUMBER` of times to run the cluster forward, from 1 to %d", wire.MaxForecastRuns))
	flags.Uint64Var(&f.ask.Seed, "seed", f.ask.Seed, "`NUMBER` that determines what is drawn: equal seeds have equal answers")
	cli.DurationVar(flags, &f.ask.Horizon, "horizon", f.ask.Horizon,
		"`TIME` that runs look ahead, at most "+duration.Seconds(wire.MaxForecastHorizon))
}

// forecasting are the flags of `apportion forecast`.
type forecasting struct {
	question.Asking
	ends question.EndFlags
	odds oddsFlags
}

// newForecast is `apportion forecast`.
func newForecast(s cli.Streams) *cobra.Command {
	f := &forecasting{Asking: question.Asking{Answering: cli.Answering{Streams: s}}}
	command := f.Command(&cobra.Command{
		Use:   "forecast JOB",
		Short: "Say when a waiting job starts, by chance",
		Long: `Run the cluster forward many times, with runtimes drawn from a history of jobs, until the job starts, and
say how early and how late that is: 10, 50 and 90 of 100 runs start by the times shown. Jobs that run
already run longer than they have; a deadline is a bound, and an end that is stated is taken as it is.

A history is a trace as ` + "`apportion rehearse`" + ` reads it: a CSV, a file in Standard Workload Format, a decision log,
or a ledger, which keeps the last 10,000 jobs that ended. server:NAME is the ledger that a server keeps
of the cluster that it follows as NAME (--server). Faulty lines are left out
and counted. Without a history the answer has bounds and no odds. Jobs arrive
as they did on days of the history, or with --arrivals none not at all.

The model is plain: no task is evicted, queues are served by what they use of their parts, and the first node
with room is taken. docs/forecast.md describes it.

JOB is NAMESPACE/NAME, or NAME alone, of a job or of one of its pods. The exit code is 2 if the job does not start
in half of the runs.`,
		Example: `  apportion forecast vision/segment-x -f cluster.yaml --history jobs.csv
  apportion forecast vision/segment-x -f cluster.yaml --history jobs.swf --arrivals none --runs 1000 -o json`,
		Args: cli.Arguments(1, 1, "one job"),
	}, f.answer)
	f.ends.Register(command.Flags())
	f.odds.register(command)
	f.CompleteArgs(command, 1, question.WaitingJobNames)
	return command
}

func (f *forecasting) answer(ctx context.Context, q *question.Question, names []string) error {
	if err := f.ends.Set(q.Loaded, f.From.Live.On); err != nil {
		return err
	}
	name, err := question.WorkloadOf(q.Lookup, "", names[0])
	if err != nil {
		return err
	}
	_, job, _, err := q.JobNamed(name)
	if err != nil {
		return err
	}
	found, err := f.odds.forecast(ctx, q, job)
	if err != nil {
		return err
	}
	response := &apportionv1.ForecastResponse{Basis: found.Basis, Forecast: found.Answer}
	err = q.Answer(found.Basis, response, func(p *render.Printer) {
		p.Forecast(found.Answer)
		if f.odds.left > 0 {
			p.Wrapped("Of the history, %s left out; the warnings say why.", text.Are(f.odds.left, "job"))
		}
	})
	return cmp.Or(err, cli.Verdict(found.Answer.P50 != nil || found.Answer.Latest != nil))
}

// later reports whether the odds of a start are later than the earliest time at which it could be, on which they do not agree then.
func later(a *apportionv1.ForecastAnswer, f *apportionv1.Forecast, asOf int64) bool {
	switch f.GetOutcome() {
	case apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOW, apportionv1.ForecastOutcome_FORECAST_OUTCOME_AT:
	default:
		return false
	}
	at := max(f.GetTime(), asOf)
	return a.GetKind() == apportionv1.ForecastKind_FORECAST_KIND_ODDS && (a.P50 == nil || asOf+a.GetP50()*int64(time.Second) > at)
}

// remembered returns the name of the cluster whose past the server knows, if the history is that.
func (f *oddsFlags) remembered() (name string, ok bool) {
	if len(f.past.Files) != 1 {
		return "", false
	}
	return strings.CutPrefix(f.past.Files[0], serverHistory)
}

// check returns an error that names the flag whose value no forecast can have.
func (f *oddsFlags) check(server *question.ServerFlags) error {
	most := wire.MaxForecastHorizon * time.Second
	if f.ask.Horizon < time.Second || f.ask.Horizon%time.Second != 0 || f.ask.Horizon > most {
		return fmt.Errorf("--horizon: %s is not a whole number of seconds from 1s to %s",
			duration.Format(f.ask.Horizon), duration.Format(most))
	}
	if f.ask.Runs == 0 {
		return errors.New("--runs must be at least 1")
	}
	if f.ask.Runs > wire.MaxForecastRuns {
		return fmt.Errorf("--runs: %d is more than %d", f.ask.Runs, wire.MaxForecastRuns)
	}
	name, ok := f.remembered()
	switch {
	case ok && name == "":
		return fmt.Errorf("--history: %s names no cluster; write %sNAME", serverHistory, serverHistory)
	case ok && server.Address == "":
		return fmt.Errorf("--history: %s%s is the ledger of a server; name it with --server ADDRESS", serverHistory, name)
	}
	return nil
}

// forecast asks when a job starts.
func (f *oddsFlags) forecast(ctx context.Context, q *question.Question, job *apportionv1.Job) (*client.Odds, error) {
	if q.Snapshot.GetAsOf() == 0 {
		q.Snapshot.AsOf = time.Now().UnixNano()
	}
	if err := f.check(&q.Server); err != nil {
		return nil, err
	}
	ask := f.ask
	ask.Job, ask.Arrivals = question.JobID(job), f.arrivals == arrivalsRecent
	if name, ok := f.remembered(); ok {
		ask.Remembered = name
	} else if len(f.past.Files) > 0 {
		if err := f.past.Check(); err != nil {
			return nil, err
		}
		read, err := f.past.Read(q.In)
		if err != nil {
			return nil, err
		}
		past, left := read.Past(q.Lookup, time.Unix(0, q.Snapshot.GetAsOf()))
		for _, list := range [][]string{read.Faulty.Summary(), read.Notes, left} {
			for _, note := range list {
				render.Warn(q.Err, "--history: "+note)
			}
		}
		if len(past.GetKindIndices()) == 0 {
			render.Warn(q.Err, fmt.Sprintf("--history: %s has no job that can be used", visible.Text(f.past.Files[0])))
		}
		ask.Past, f.left = past, len(read.Jobs)-len(past.GetKindIndices())
		if read.Faulty != nil {
			f.left += read.Faulty.Total
		}
	}
	ask.Started = map[uint32]int64{}
	for i, job := range q.Lookup.GetJobs() {
		if at := q.Started(i, job); at != 0 {
			ask.Started[uint32(i)] = at
		}
	}
	end := cli.ShowWaiting(q.Err, "running the cluster forward")
	defer end()
	return q.Decider.Forecast(ctx, q.Input, ask)
}
