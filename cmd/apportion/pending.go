package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// pendingFlags select the waiting jobs that are shown, and how many.
type pendingFlags struct {
	listFlags

	whole          bool
	top            int
	queues, causes []string
	since          time.Duration
}

// newPending is `apportion pending`.
func newPending(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	var flags pendingFlags
	command := a.Command(&cobra.Command{
		Use:   "pending",
		Short: "Show what waits and why: the kinds of causes and the queues, the worst first",
		Long: `Show why jobs wait. If at most --top jobs wait (10), or with --all, each of them is listed under its
cause. Otherwise the answer is one screen: the kinds of causes across queues and the queues in which most
jobs are blocked, each with its first --top rows. Kinds that block come first, then what is not known,
then the jobs that only wait for their turn; of these the largest first.

-n, --queue, --cause and --resource select jobs: those of a namespace, of a queue or below it, those that
a check blocks, and those for which a resource is short. Jobs and pods that the scheduler does not consider
are listed at the end. --sort accepts keys: cause (the default) forms the groups, and further keys sort
the jobs in each; if the first key is not cause, the jobs are one table. priority and tasks sort in
descending order.

About a cluster that a server follows (--snapshot-name), SINCE says when the present cause of each job was seen
first, and --since selects the jobs whose cause is no older than that, as --since of kubectl logs does.

The exit code is 0 even if jobs wait, and 2 if none waits that is considered, but the input holds others.`,
		Example: `  apportion pending -f cluster.yaml
  apportion pending --queue research --cause share,nodes -f cluster.yaml
  apportion pending --all -n ml --sort queue,priority -f cluster.yaml
  apportion pending --since 1h --server apportion:7171 --snapshot-name cluster`,
		Args: cli.NoArgs,
	}, func(ctx context.Context, q *question.Question, _ []string) error { return pending(ctx, q, &flags) }, cli.FormatWide, cli.FormatName)
	flags.register(command, a)
	flags.registerFilter(command, a)
	cli.DurationVar(command.Flags(), &flags.since, "since", 0,
		"only jobs whose present cause was seen first within this `TIME`, such as 1h (needs --snapshot-name)")
	command.Flags().StringSliceVar(&a.Resources, "resource", nil,
		"only jobs for which this `RESOURCE` is short, such as cpu or gpu (repeatable)")
	a.Complete(command, "resource", question.ResourceNames)
	return command
}

// register adds the flags that list jobs to a command that asks.
func (f *pendingFlags) register(command *cobra.Command, a *question.Asking) {
	f.listFlags.register(command, "cause", "name", byQueue, "priority", "tasks")
	f.top = mostListed
	command.Flags().BoolVar(&f.whole, "all", false, "list every waiting job")
	a.Complete(command, "namespace", question.NamespaceNames)
}

// mostListed is the number of jobs, causes and queues that are listed unless a flag says otherwise.
const mostListed = 10

// registerFilter adds the flags that select jobs, and how many are listed.
func (f *pendingFlags) registerFilter(command *cobra.Command, a *question.Asking) {
	flags := command.Flags()
	flags.IntVar(&f.top, "top", f.top, "list at most `N` jobs, causes and queues")
	flags.StringSliceVar(&f.queues, "queue", nil, "only jobs of this `QUEUE` or of one below it (repeatable)")
	flags.StringSliceVar(&f.causes, "cause", nil, "only jobs that this `CHECK` blocks (repeatable): "+cli.OrList(checkNames()))
	a.Complete(command, "queue", question.QueueNames)
	cli.MustComplete(command, "cause", checkNames()...)
	command.MarkFlagsMutuallyExclusive("top", "all")
}

// noCheck is the cause of a job that no check blocks.
const noCheck = "none"

// checkNames are the checks that may block a job, and none, in their order.
func checkNames() []string {
	var names []string
	for check := apportionv1.CheckKind_CHECK_KIND_ADMISSION; check <= apportionv1.CheckKind_CHECK_KIND_ORDER; check++ {
		names = append(names, text.Enum(check, "CHECK_KIND_"))
	}
	return append(names, text.Enum(apportionv1.CheckKind_CHECK_KIND_FEASIBILITY, "CHECK_KIND_"), noCheck)
}

// filter returns what the flags select; nil: every job.
func (f *pendingFlags) filter(snapshot *lookup.Snapshot, resources []string) (*apportionv1.PendingFilter, error) {
	filter := &apportionv1.PendingFilter{}
	if err := cmp.Or(f.checkNamespace(snapshot), cli.CheckAll("cause", "check", f.causes, checkNames())); err != nil {
		return nil, err
	}
	if f.namespace != "" {
		filter.Namespaces = []string{f.namespace}
	}
	for _, name := range f.queues {
		if _, err := snapshot.Queue(name); err != nil {
			return nil, fmt.Errorf("--queue: %w", err)
		}
		filter.Queues = &apportionv1.Selector{Names: f.queues}
	}
	for _, cause := range f.causes {
		filter.Checks = append(filter.Checks, apportionv1.CheckKind(apportionv1.CheckKind_value["CHECK_KIND_"+strings.ToUpper(cause)]))
	}
	for _, name := range resources {
		for i, dimension := range snapshot.GetDimensions() {
			if render.Matches(dimension, name) {
				filter.Dimensions = append(filter.Dimensions, uint32(i))
			}
		}
	}
	if filter.Queues == nil && len(filter.GetNamespaces())+len(filter.GetChecks())+len(filter.GetDimensions()) == 0 {
		return nil, nil //nolint:nilnil // No filter is a filter that selects all.
	}
	return filter, nil
}

// pending explains the jobs that wait.
func pending(ctx context.Context, q *question.Question, f *pendingFlags) error {
	if f.top < 1 {
		return errors.New("--top must be at least 1")
	}
	filter, err := f.filter(q.Lookup, q.Resources)
	if err != nil {
		return err
	}
	filter, past, err := recentOnly(ctx, q, filter, f.since)
	if err != nil {
		return err
	}
	explanations, err := q.Decider.Explain(ctx, q.Input, client.ExplainQuestion{Filter: filter})
	if err != nil {
		return err
	}
	answer, clock := explanations.Answer, render.Clock(time.Now())
	if err := f.sortPending(q, answer); err != nil {
		return err
	}
	if q.Format == cli.FormatName {
		return q.List(question.NamesOf(answer.GetJobs(), (*apportionv1.Explanation).GetName))
	}
	listed := f.whole || len(answer.GetJobs()) <= f.top || q.Format != cli.FormatTable
	if past == nil && listed && len(answer.GetJobs()) > 0 {
		if past, err = pastOf(ctx, q, &apportionv1alpha1.GetHistoryRequest{Waiting: true}); err != nil {
			return err
		}
	}
	response := pastAnswer{Basis: cli.Within(explanations.Basis), Explain: cli.Within(answer), History: cli.Within(past)}
	unread := ""
	if answer.GetWaitingCount() == 0 {
		unread = q.Unread()
	}
	err = q.Answer(explanations.Basis, response, func(p *render.Printer) {
		p.Since = sincePending(q, past, clock)
		p.Pending(answer, f.listing(answer))
		if f.since > 0 {
			p.Text("", text.Reaches(past, clock))
		}
		if unread != "" {
			p.Text(render.Bad, unread)
		}
	})
	// If no considered job waits, jobs that are not considered may.
	nothing := answer.GetWaitingCount() == 0 && (len(answer.GetLeftOuts()) > 0 || unread != "")
	return cmp.Or(err, cli.Verdict(!nothing))
}

// listing says how the waiting jobs are listed.
func (f *pendingFlags) listing(answer *apportionv1.ExplainAnswer) render.Listing {
	show := render.Listing{Most: f.top, Grouped: len(f.sort) == 0 || f.sort[0] == "cause"}
	if f.whole {
		show.Most = max(len(answer.GetJobs()), 1)
	}
	return show
}

// sortPending sorts the jobs of an answer, and those of each group, as the flags say.
func (f *pendingFlags) sortPending(q *question.Question, answer *apportionv1.ExplainAnswer) error {
	priority := func(e *apportionv1.Explanation) int32 {
		if jobs := q.Lookup.GetJobs(); int(e.GetJob()) < len(jobs) {
			return jobs[e.GetJob()].GetPriority()
		}
		return 0
	}
	compare, err := order(&f.listFlags, map[string]func(l, r *apportionv1.Explanation) int{
		"name": func(l, r *apportionv1.Explanation) int { return cmp.Compare(l.GetName(), r.GetName()) },
		byQueue: func(l, r *apportionv1.Explanation) int {
			return cmp.Compare(q.Lookup.GetQueues()[l.GetQueue()].GetName(), q.Lookup.GetQueues()[r.GetQueue()].GetName())
		},
		"priority": func(l, r *apportionv1.Explanation) int { return cmp.Compare(priority(r), priority(l)) },
		"tasks":    func(l, r *apportionv1.Explanation) int { return cmp.Compare(r.GetWaitingTasks(), l.GetWaitingTasks()) },
	})
	if err != nil || slices.Equal(f.sort, []string{"cause"}) {
		return err
	}
	slices.SortStableFunc(answer.GetJobs(), compare)
	rank := make(map[uint32]int, len(answer.GetJobs()))
	for i, e := range answer.GetJobs() {
		rank[e.GetJob()] = i
	}
	for _, group := range answer.GetGroups() {
		slices.SortFunc(group.GetJobs(), func(l, r uint32) int { return cmp.Compare(rank[l], rank[r]) })
	}
	return nil
}
