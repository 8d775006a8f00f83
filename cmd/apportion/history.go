package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
)

// past is `apportion history` with its flags.
type past struct {
	cli.Answering
	server question.ServerFlags
	name   string
	top    int
	whole  bool
}

// newHistory is `apportion history`.
func newHistory(s cli.Streams) *cobra.Command {
	h := &past{Answering: cli.Answering{Streams: s}}
	command := &cobra.Command{
		Use:   "history job/NAME|queue/NAME...",
		Short: "Show what jobs waited for, and what queues deserved and held over time",
		Long: `Show since when jobs wait and for which causes in turn, and what queues deserved and held over time: as far as
the server saw it in the cluster that it follows. The last line says how far back that reaches. The server
finds the causes by the policy that its setting history.policy names, in at most one version in each
history.interval.

job/NAME is job/NAMESPACE/NAME or the uid of a job; a job that no longer waits is known for a while. Times
are those of this machine's time zone.`,
		Example: `  apportion history job/ml/train --server apportion:7171
  apportion history queue/research --server apportion:7171 --resource gpu`,
		Args: func(_ *cobra.Command, names []string) error {
			_, _, err := h.asked(names)
			return err
		},
		RunE: func(command *cobra.Command, names []string) error { return h.run(command.Context(), names) },
	}
	h.server.Register(command.Flags())
	h.Register(command)
	flags := command.Flags()
	flags.StringVar(&h.name, "snapshot-name", "cluster", "the cluster that the server follows under this `NAME`")
	flags.StringSliceVar(&h.Resources, "resource", nil,
		"show only this `RESOURCE`, such as cpu or gpu (repeatable); all shows every resource")
	flags.IntVar(&h.top, "top", mostListed, "list at most the `N` newest causes and samples")
	flags.BoolVar(&h.whole, "all", false, "list all causes and samples")
	command.MarkFlagsMutuallyExclusive("top", "all")
	cli.Must(command, command.MarkFlagRequired("server"))
	command.SetFlagErrorFunc(noFileOfHistory)
	return command
}

// noFileOfHistory says where a history comes from if a flag that names manifests, a snapshot or a ledger is given.
func noFileOfHistory(command *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || !slices.Contains([]string{"f", "file", "snapshot", "cluster", "ledger", "history"}, unknown.GetSpecifiedName()) {
		return cli.MeantFlag(command, err)
	}
	dashes := "--"
	if unknown.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	return fmt.Errorf("%s%s: a history comes from a server that follows the cluster, not from a file: ask it with --server ADDRESS, "+
		"and with --snapshot-name NAME if it follows the cluster under another name than cluster", dashes, unknown.GetSpecifiedName())
}

// asked reads the names of jobs and queues.
func (h *past) asked(names []string) (jobs, queues []string, err error) {
	for _, name := range names {
		if job, ok := strings.CutPrefix(name, "job/"); ok && job != "" {
			jobs = append(jobs, job)
		} else if queue, ok := strings.CutPrefix(name, "queue/"); ok && queue != "" {
			queues = append(queues, queue)
		} else {
			return nil, nil, fmt.Errorf("%q is not job/NAME or queue/NAME", name)
		}
	}
	if len(names) == 0 {
		return nil, nil, errors.New("name jobs or queues: job/NAME or queue/NAME")
	}
	return jobs, queues, nil
}

func (h *past) run(ctx context.Context, names []string) error {
	if h.top < 1 {
		return errors.New("--top must be at least 1")
	}
	jobs, queues, err := h.asked(names)
	if err != nil {
		return err
	}
	decider, ctx, done, err := h.server.Decider(ctx)
	if err != nil {
		return err
	}
	defer done()
	answer, err := decider.History(ctx, &apportionv1alpha1.GetHistoryRequest{Name: h.name, Jobs: jobs, Queues: queues})
	if err != nil {
		return err
	}
	if answer.GetBegins() == 0 {
		return fmt.Errorf("the server keeps no history of snapshot %q yet", h.name)
	}
	clock := render.Clock(time.Now())
	if missing := unknown(answer, jobs, queues); missing != "" {
		return fmt.Errorf("%s is not known to the history, which begins at %s", missing, clock(answer.GetBegins()))
	}
	return h.Write(answer, func(p *render.Printer) {
		most := h.top
		if h.whole {
			most = 0
		}
		p.History(answer, most, clock)
	})
}

// unknown returns the first name that an answer lacks, "" if there is none.
func unknown(answer *apportionv1alpha1.GetHistoryResponse, jobs, queues []string) string {
	known := map[string]bool{}
	for _, job := range answer.GetJobs() {
		known["job "+job.GetUid()], known["job "+job.GetName()] = true, true
	}
	for _, queue := range answer.GetQueues() {
		known["queue "+queue.GetQueue()] = true
	}
	for kind, names := range map[string][]string{"job ": jobs, "queue ": queues} {
		for _, name := range names {
			if !known[kind+name] {
				return kind + name
			}
		}
	}
	return ""
}

// pastAnswer is an explanation with what is known of the past, in its JSON form.
type pastAnswer struct {
	Basis   cli.Message `json:"basis"`
	Explain cli.Message `json:"explain"`
	History cli.Message `json:"history,omitzero"`
	// Odds is set if a history of jobs is given.
	Odds cli.Message `json:"odds,omitzero"`
}

// pastOf returns what the server that follows the cluster knows of the past; nil: it is about no such cluster, or the server keeps no
// history of it.
func pastOf(
	ctx context.Context, q *question.Question, asked *apportionv1alpha1.GetHistoryRequest,
) (*apportionv1alpha1.GetHistoryResponse, error) {
	if q.From.SnapshotName == "" {
		return nil, nil //nolint:nilnil // No history is an answer.
	}
	asked.Name = q.From.SnapshotName
	answer, err := q.Decider.History(ctx, asked)
	if status.Code(err) == codes.Unimplemented || err == nil && answer.GetBegins() == 0 {
		return nil, nil //nolint:nilnil // No history is an answer.
	}
	return answer, err
}

// sincePending returns since when jobs wait for their present cause, by their position.
func sincePending(q *question.Question, h *apportionv1alpha1.GetHistoryResponse, clock func(int64) string) map[uint32]string {
	if h == nil {
		return nil
	}
	since := map[uint32]string{}
	for _, job := range h.GetJobs() {
		if i, err := q.Lookup.Job(job.GetUid()); err == nil && len(job.GetIntervals()) > 0 {
			since[i] = clock(job.GetIntervals()[0].GetStartTime())
		}
	}
	return since
}

// recentOnly returns a filter that also requires that the present cause of a job began within a time, and the history that says so. A time
// of 0 selects all, without a history.
func recentOnly(ctx context.Context, q *question.Question, filter *apportionv1.PendingFilter, within time.Duration) (
	*apportionv1.PendingFilter, *apportionv1alpha1.GetHistoryResponse, error,
) {
	if within <= 0 {
		return filter, nil, nil
	}
	past, err := pastOf(ctx, q, &apportionv1alpha1.GetHistoryRequest{Waiting: true})
	if err != nil {
		return nil, nil, err
	}
	if past == nil {
		return nil, nil, errors.New("--since: only a server that follows the cluster and keeps its history knows this: " +
			"name both with --server and --snapshot-name")
	}
	if filter == nil {
		filter = &apportionv1.PendingFilter{}
	}
	filter.Jobs = recent(q, past, within)
	return filter, past, nil
}

// recent returns the jobs of the snapshot of which no cause is known that began longer ago than a time.
func recent(q *question.Question, h *apportionv1alpha1.GetHistoryResponse, within time.Duration) *apportionv1.Selector {
	old := map[string]bool{}
	for _, job := range h.GetJobs() {
		old[job.GetUid()] = h.GetLatest()-job.GetIntervals()[0].GetStartTime() > int64(within)
	}
	jobs := &apportionv1.Selector{}
	for i, job := range q.Lookup.GetJobs() {
		if !old[question.JobID(job)] {
			jobs.Indices = append(jobs.Indices, uint32(i))
		}
	}
	return jobs
}
