package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// explaining are the flags of `apportion explain`.
type explaining struct {
	question.Asking
	list           pendingFlags
	ends           question.EndFlags
	odds           oddsFlags
	remedies, bare bool
}

// newExplain is `apportion explain`.
func newExplain(s cli.Streams) *cobra.Command {
	e := &explaining{Asking: question.Asking{Answering: cli.Answering{Streams: s}, Amounts: true}}
	command := e.Command(&cobra.Command{
		Use:   "explain JOB | --all",
		Short: "Explain why a job is pending, and find changes that would let it run",
		Long: `Check everything that can block a job: may it enter its queue, does its gang have enough tasks, is the
queue served, may the queue use that much more, is there room on the nodes, do the jobs that are served
before leave enough, and which evictions would make room. The last lines name the cause. The exit code
is 2 if something blocks the job, or if that is unknown. If the program itself decides, it then lists
changes that would let the job run, as --remedies does in full; with -o json or yaml, or
--no-remedies, it does not.

JOB is NAMESPACE/NAME, or NAME alone, of a job or of one of its pods. About a cluster with Kueue, workload/NAME is a
Workload, and job/NAME, jobset/NAME, rayjob/NAME or pytorchjob/NAME is that of such an object; so are workload/NAMESPACE/NAME and
the like.

With --all, explain every waiting job: explain --all is pending --all.

With --remedies, find the smallest change of each kind that would let the job run: a smaller minimum or
request, another queue, a higher capability, guarantee, weight or deserved amount of its queue or of one
above it, more nodes, nodes that are uncordoned, nodes that taints, selectors or affinities leave out,
running jobs that end, tasks that are evicted, or waiting for running jobs whose end is known. Each
change was tried on the cluster: with it the job runs, and with one step less of it the job does not. A
remedy says which queues would deserve less. The command below it shows the effect in full, and those of
kubectl make the change; -o wide also shows the parts of the objects that change. The end says what was
not tried. Jobs that come first are not looked at. The exit code is 2 if nothing that was tried lets the job
run, or if its placement also depends on constraints that are not judged.

About a cluster that a server follows (--snapshot-name), the end says since when the job waits, and for which
causes in turn.

If it is known when running jobs end, a forecast says when the job could start at the earliest if
nothing else changes, and which ends this depends on. Ends come from --ends, from the annotations
apportion.dev/expected-end (a time) and apportion.dev/expected-runtime (a duration) of a PodGroup,
from activeDeadlineSeconds of all pods of a job, and from --runtime of its queue.

With --history, the end says within which times the job starts with a chance of 50 and 90 %, as forecast does.`,
		Example: `  apportion explain ml/train -f cluster.yaml --policy volcano-scheduler.conf
  apportion explain ml/train --remedies -f cluster.yaml
  apportion explain ml/train -f cluster.yaml --history jobs.csv
  apportion explain --all -n ml --sort queue,priority -f cluster.yaml`,
		Args: func(_ *cobra.Command, names []string) error {
			if e.list.whole != (len(names) == 0) || len(names) > 1 {
				return errors.New("name one job, or give --all")
			}
			return nil
		},
	}, e.explain, cli.FormatWide, cli.FormatName)
	e.ends.Register(command.Flags())
	e.odds.registerHistory(command)
	e.list.register(command, &e.Asking)
	e.CompleteArgs(command, 1, question.WaitingJobNames)
	flags := command.Flags()
	flags.BoolVar(&e.remedies, "remedies", false, "find the smallest changes that would let the job run")
	flags.BoolVar(&e.bare, "no-remedies", false, "do not look for changes that would let the job run")
	command.MarkFlagsMutuallyExclusive("all", "remedies")
	command.MarkFlagsMutuallyExclusive("all", "history")
	command.MarkFlagsMutuallyExclusive("remedies", "no-remedies")
	return command
}

func (e *explaining) explain(ctx context.Context, q *question.Question, names []string) error {
	if err := e.ends.Set(q.Loaded, e.From.Live.On); err != nil {
		return err
	}
	if e.list.whole {
		return pending(ctx, q, &e.list)
	}
	q, name, err := q.AboutJob(e.list.namespace, names[0])
	if err != nil {
		return err
	}
	if e.list.namespace != "" && !strings.Contains(name, "/") {
		name = e.list.namespace + "/" + name
	}
	index, job, _, err := q.JobNamed(name)
	switch {
	case err != nil && q.Lookup.LeftOut(name):
		return explainLeftOut(ctx, q, name)
	case err != nil:
		return err
	case e.Format == cli.FormatName:
		return q.List([]string{lookup.JobName(job)})
	case e.remedies:
		found, err := remedies(ctx, q, job)
		if err != nil {
			return err
		}
		return cmp.Or(showRemedies(q, found, e.Format == cli.FormatWide), cli.Verdict(found.Found() && found.Judged()))
	}
	return e.explainJob(ctx, q, index, job)
}

// remedied is an answer about remedies, with the command that tries each and the changes of objects that make it, in their order.
type remedied struct {
	Basis    cli.Message `json:"basis"`
	Remedies cli.Message `json:"remedies"`
	Trials   []toTry     `json:"trials"`
}

type toTry struct {
	Command string          `json:"command"`
	Changes []objects.Patch `json:"changes"`
}

// showRemedies writes remedies, with the parts of objects that change if wide.
func showRemedies(q *question.Question, found *client.Remedies, wide bool) error {
	answer, names := found.Answer, q.Lookup.Names(found.Basis)
	p := &render.Printer{Snapshot: q.Lookup}
	p.Program, p.Input = q.Again()
	out := remedied{Basis: cli.Within(found.Basis), Remedies: cli.Within(answer), Trials: []toTry{}}
	var changes [][]objects.Patch
	for _, remedy := range answer.GetRemedies() {
		patches := q.Patches(names, answer.GetJob(), remedy)
		changes = append(changes, patches)
		out.Trials = append(out.Trials, toTry{p.Trial(answer.GetJob(), remedy), patches})
	}
	return q.Answer(found.Basis, out, func(p *render.Printer) { p.RemediesWith(answer, changes, wide) })
}

// explainLeftOut says why a job or a pod is not considered.
func explainLeftOut(ctx context.Context, q *question.Question, name string) error {
	explanations, err := q.Decider.Explain(ctx, q.Input, client.ExplainQuestion{Jobs: []string{name}})
	if err != nil {
		return err
	}
	response := &apportionv1.ExplainResponse{Basis: explanations.Basis, Explain: explanations.Answer}
	err = q.Answer(explanations.Basis, response, func(p *render.Printer) { p.Text(render.Bad, explanations.Answer.GetText()) })
	return cmp.Or(err, cli.ErrDecidedNo)
}

// explainJob says why one job waits, and shows the shares of its queue.
func (e *explaining) explainJob(ctx context.Context, q *question.Question, index uint32, job *apportionv1.Job) error {
	end := cli.ShowWaiting(q.Err, "explaining")
	step := question.ExplainStep(&apportionv1.Selector{Indices: []uint32{index}})
	simulation, err := q.Simulate(ctx, q.WithShares(step, job.GetQueue())...)
	end()
	if err != nil {
		return err
	}
	answer := simulation.Answers[0].GetExplain()
	explained := answer.GetJobs()[0]
	var found *client.Remedies
	shown := !e.bare && (e.Format == cli.FormatTable || e.Format == cli.FormatWide)
	if shown && e.Server.Address == "" && !question.GoesOn(explained) {
		if found, err = remedies(ctx, q, job); err != nil {
			return err
		}
	}
	past, err := pastOf(ctx, q, &apportionv1alpha1.GetHistoryRequest{Jobs: []string{question.JobID(job)}})
	if err != nil {
		return err
	}
	var odds *client.Odds
	if len(e.odds.past.Files) > 0 {
		if odds, err = e.odds.forecast(ctx, q, job); err != nil {
			return err
		}
	}
	response := pastAnswer{Basis: cli.Within(simulation.Basis), Explain: cli.Within(answer), History: cli.Within(past)}
	if odds != nil {
		response.Odds = cli.Within(odds.Answer)
	}
	err = q.Answer(simulation.Basis, response, func(p *render.Printer) {
		showJob(p, q, job, explained)
		if len(simulation.Answers) > 1 {
			p.Line("")
			p.QueueShares(simulation.Answers[1].GetShares())
		}
		p.Verdict(explained)
		if len(past.GetJobs()) > 0 {
			clock := render.Clock(time.Now())
			p.Text("", text.Waited(past.GetJobs()[0], past.GetBegins(), clock)+" "+text.Reaches(past, clock))
		}
		if odds != nil {
			showOdds(p, odds.Answer, explained.GetForecast(), q.Snapshot.GetAsOf())
		}
		if found != nil && len(found.Answer.GetRemedies()) > 0 {
			p.RemedyList(found.Answer)
		}
	})
	return cmp.Or(err, cli.Verdict(question.GoesOn(explained)))
}

// showOdds shows the sentence of a forecast, and on what it rests where the earliest start is earlier than most of its runs say.
func showOdds(p *render.Printer, odds *apportionv1.ForecastAnswer, earliest *apportionv1.Forecast, asOf int64) {
	p.Line("")
	p.Wrapped("%s", odds.GetText())
	if later(odds, earliest, asOf) {
		p.Wrapped("%s", "The earliest time above rests on ends as they are stated, and on no other job taking the room. In the runs of "+
			"the forecast ends are drawn from the history, and the jobs ahead and those that arrive may take the room first.")
	}
}

// showJob shows what a job is, and what holds it.
func showJob(p *render.Printer, q *question.Question, job *apportionv1.Job, explained *apportionv1.Explanation) {
	name := p.Paint(render.Strong, lookup.JobName(job))
	if explained.GetKueue() != nil {
		p.Wrapped("%s: job of queue %s, priority %d", name, job.GetQueue(), job.GetPriority())
		return
	}
	asks := "asks for no minimum"
	if minimum := job.GetMinResources(); minimum != nil {
		asks = "asks for at least " + text.Amounts(snapshotNames(q.Lookup), minimum)
	}
	p.Wrapped("%s: job of queue %s, priority %d, %s", name, job.GetQueue(), job.GetPriority(), asks)
	p.Line("")
	p.Findings(explained)
}

// remedies asks for the remedies of a job.
func remedies(ctx context.Context, q *question.Question, job *apportionv1.Job) (*client.Remedies, error) {
	end := cli.ShowWaiting(q.Err, "trying changes")
	defer end()
	return q.Decider.Remedies(ctx, q.Input, client.RemediesQuestion{Job: question.JobID(job)})
}

// snapshotNames names what resources of the snapshot itself refer to.
func snapshotNames(snapshot *lookup.Snapshot) text.Names {
	return text.Names{Dimensions: snapshot.GetDimensions()}
}
