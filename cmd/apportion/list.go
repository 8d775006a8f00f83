package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/contract/lookup"
	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// listFlags say which jobs are listed, and how.
type listFlags struct {
	namespace string
	all       bool
	sort      []string
	// keys are what can be sorted by, the default first.
	keys []string
}

func (f *listFlags) register(command *cobra.Command, keys ...string) {
	flags := command.Flags()
	flags.StringVarP(&f.namespace, "namespace", "n", "", "only jobs of this `NAMESPACE`")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "jobs of all namespaces, which is the default")
	flags.StringSliceVar(&f.sort, "sort", keys[:1], "sort by these `KEYS`, most significant first: "+strings.Join(keys, ", "))
	command.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	mustComplete(command, "sort", keys...)
	f.keys = keys
}

// checkNamespace refuses a namespace that nothing in the snapshot is in.
func (f *listFlags) checkNamespace(snapshot *lookup.Snapshot) error {
	known := namespaceNames(snapshot)
	if f.namespace == "" || slices.Contains(known, f.namespace) {
		return nil
	}
	if like := lookup.Similar(f.namespace, slices.Values(known)); like != "" {
		return fmt.Errorf("--namespace: no job is in namespace %q; did you mean %q?", f.namespace, like)
	}
	return fmt.Errorf("--namespace: no job is in namespace %q; there are %s", f.namespace, strings.Join(known, ", "))
}

// order returns the comparison by all keys asked for, each of which compare must know.
func order[T any](f *listFlags, compare map[string]func(l, r T) int) (func(l, r T) int, error) {
	var by []func(l, r T) int
	for _, key := range f.sort {
		if !slices.Contains(f.keys, key) {
			return nil, fmt.Errorf("--sort: no key %q; there are %s", key, strings.Join(f.keys, ", "))
		}
		if known := compare[key]; known != nil {
			by = append(by, known)
		}
	}
	return func(l, r T) int {
		for _, one := range by {
			if c := one(l, r); c != 0 {
				return c
			}
		}
		return 0
	}, nil
}

// wants reports whether a job is listed.
func (f *listFlags) wants(job *apportionv1.Job) bool {
	return f.namespace == "" || job.GetNamespace() == f.namespace
}

// newPending is `apportion pending`.
func newPending(s streams) *cobra.Command {
	a := &asking{streams: s}
	var list listFlags
	command := &cobra.Command{
		Use:   "pending",
		Short: "Explain why jobs wait, grouped by cause",
		Long: `Explain why each waiting job waits, grouped by cause, largest group first. Jobs and pods that the
scheduler does not consider are listed at the end. The exit code is 0 even if jobs wait.

--sort accepts keys: cause (the default) forms the groups, and further keys sort the jobs in each; if
the first key is not cause, the output is one table. priority and tasks sort in descending order.`,
		Example: `  apportion pending -f cluster.yaml
  apportion pending --sort queue,priority -f cluster.yaml
  apportion pending -n ml -f cluster.yaml -o name`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.list(command.Context(), func(ctx context.Context, q *question) error { return pending(ctx, q, &list) })
		},
	}
	a.register(command, false)
	a.watch.register(command.Flags())
	list.register(command, "cause", "name", "queue", "priority", "tasks")
	a.complete(command, "namespace", namespaceNames)
	command.Flags().Lookup("output").Usage = "table, wide, json, yaml or name"
	return command
}

// list is ask for a command that also writes wide tables and names.
func (a *asking) list(ctx context.Context, do func(context.Context, *question) error) error {
	switch a.output.format {
	case formatName, formatWide:
		return a.repeat(ctx, func(ctx context.Context) error { return a.once(ctx, do) })
	}
	return a.ask(ctx, do)
}

// The formats of lists beside those of answers.
const (
	formatName = "name"
	formatWide = "wide"
)

// pending explains every job that waits.
func pending(ctx context.Context, q *question, list *listFlags) error {
	explanations, err := q.decider.Explain(ctx, q.Input, client.ExplainQuestion{})
	if err != nil {
		return err
	}
	answer := explanations.Answer
	if err := list.checkNamespace(q.snapshot); err != nil {
		return err
	}
	if err := sortPending(q, answer, list); err != nil {
		return err
	}
	wanted := func(e *apportionv1.Explanation) bool {
		jobs := q.snapshot.GetJobs()
		return int(e.GetJob()) < len(jobs) && list.wants(jobs[e.GetJob()])
	}
	if q.output.format == formatName {
		for _, e := range answer.GetJobs() {
			if wanted(e) {
				fmt.Fprintln(q.out, e.GetName())
			}
		}
		return nil
	}
	if q.output.format == formatWide {
		q.output.format = formatTable
	}
	response := &apportionv1.ExplainResponse{Basis: explanations.Basis, Explain: answer}
	return q.write(explanations.Basis, response, func(p *render.Printer) {
		p.Pending(answer, len(list.sort) == 0 || list.sort[0] == "cause", list.namespace, wanted)
	})
}

// sortPending sorts the jobs of an answer, and those of each group, as the flags say.
func sortPending(q *question, answer *apportionv1.ExplainAnswer, list *listFlags) error {
	priority := func(e *apportionv1.Explanation) int32 {
		if jobs := q.snapshot.GetJobs(); int(e.GetJob()) < len(jobs) {
			return jobs[e.GetJob()].GetPriority()
		}
		return 0
	}
	compare, err := order(list, map[string]func(l, r *apportionv1.Explanation) int{
		"name": func(l, r *apportionv1.Explanation) int { return cmp.Compare(l.GetName(), r.GetName()) },
		"queue": func(l, r *apportionv1.Explanation) int {
			return cmp.Compare(q.snapshot.GetQueues()[l.GetQueue()].GetName(), q.snapshot.GetQueues()[r.GetQueue()].GetName())
		},
		"priority": func(l, r *apportionv1.Explanation) int { return cmp.Compare(priority(r), priority(l)) },
		"tasks":    func(l, r *apportionv1.Explanation) int { return cmp.Compare(r.GetWaitingTasks(), l.GetWaitingTasks()) },
	})
	if err != nil || len(list.sort) == 0 || slices.Equal(list.sort, []string{"cause"}) {
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

// newJobs is `apportion jobs`.
func newJobs(s streams) *cobra.Command {
	a := &asking{streams: s}
	var list listFlags
	command := &cobra.Command{
		Use:   "jobs",
		Short: "List jobs with their queues, phases and numbers of tasks",
		Long: `List jobs with their queues and phases, and the numbers of their waiting and running tasks. -o wide adds
the number of all tasks, the priority and the minimum resources. priority, waiting and running sort in
descending order.`,
		Example: `  apportion jobs -n ml --sort queue,waiting -f cluster.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.list(command.Context(), func(_ context.Context, q *question) error { return q.jobs(&list) })
		},
	}
	a.register(command, false)
	a.watch.register(command.Flags())
	list.register(command, "name", "queue", "priority", "waiting", "running")
	a.complete(command, "namespace", namespaceNames)
	command.Flags().Lookup("output").Usage = "table, wide, json, yaml or name"
	return command
}

// jobRow is one job in a list.
type jobRow struct {
	Name         string `json:"name"`
	Queue        string `json:"queue"`
	Phase        string `json:"phase"`
	Priority     int32  `json:"priority"`
	MinAvailable uint32 `json:"minAvailable"`
	Waiting      int    `json:"waiting"`
	Running      int    `json:"running"`
	Tasks        int    `json:"tasks"`
	MinResources string `json:"minResources,omitempty"`
}

func (q *question) jobRows(list *listFlags) []jobRow {
	var rows []jobRow
	names := snapshotNames(q.snapshot)
	for _, job := range q.snapshot.GetJobs() {
		if !list.wants(job) {
			continue
		}
		row := jobRow{
			Name: lookup.JobName(job), Queue: job.GetQueue(), Phase: text.Enum(job.GetPhase(), "JOB_PHASE_"), Priority: job.GetPriority(),
			MinAvailable: job.GetMinAvailable(),
		}
		if job.GetMinResources() != nil {
			row.MinResources = text.Amounts(names, job.GetMinResources())
		}
		for _, group := range job.GetGroups() {
			for _, task := range group.GetTasks() {
				row.add(task.GetStatus(), 1)
			}
			for _, count := range group.GetCounts() {
				row.add(count.GetStatus(), int(count.GetCount()))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (r *jobRow) add(status apportionv1.TaskStatus, n int) {
	r.Tasks += n
	switch status {
	case apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED, apportionv1.TaskStatus_TASK_STATUS_PENDING:
		r.Waiting += n
	case apportionv1.TaskStatus_TASK_STATUS_ALLOCATED, apportionv1.TaskStatus_TASK_STATUS_BINDING,
		apportionv1.TaskStatus_TASK_STATUS_BOUND, apportionv1.TaskStatus_TASK_STATUS_RUNNING:
		r.Running += n
	default:
	}
}

// jobs lists the jobs of the input.
func (q *question) jobs(list *listFlags) error {
	if err := list.checkNamespace(q.snapshot); err != nil {
		return err
	}
	rows := q.jobRows(list)
	compare, err := order(list, map[string]func(l, r jobRow) int{
		"name":     func(l, r jobRow) int { return cmp.Compare(l.Name, r.Name) },
		"queue":    func(l, r jobRow) int { return cmp.Compare(l.Queue, r.Queue) },
		"priority": func(l, r jobRow) int { return cmp.Compare(r.Priority, l.Priority) },
		"waiting":  func(l, r jobRow) int { return cmp.Compare(r.Waiting, l.Waiting) },
		"running":  func(l, r jobRow) int { return cmp.Compare(r.Running, l.Running) },
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(l, r jobRow) int { return cmp.Or(compare(l, r), cmp.Compare(l.Name, r.Name)) })
	headings := []string{"JOB", "QUEUE", "PHASE", ">WAITING", ">RUNNING", ">MINIMUM"}
	if q.output.format == formatWide {
		headings = append(headings, ">TASKS", ">PRIORITY", "MINIMUM RESOURCES")
	}
	return writeList(q, rows, headings, func(r jobRow) []string {
		cells := []string{r.Name, r.Queue, r.Phase, strconv.Itoa(r.Waiting), strconv.Itoa(r.Running), strconv.Itoa(int(r.MinAvailable))}
		return append(cells, strconv.Itoa(r.Tasks), strconv.Itoa(int(r.Priority)), r.MinResources)
	}, "no job")
}

// newQueues is `apportion queues`.
func newQueues(s streams) *cobra.Command {
	a := &asking{streams: s}
	command := &cobra.Command{
		Use:   "queues",
		Short: "List queues with their states and numbers of jobs",
		Long: `List queues with their states and weights, and count their jobs by phase. -o wide adds the priority and
the parent.`,
		Example: `  apportion queues -f cluster.yaml -o wide`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.list(command.Context(), func(_ context.Context, q *question) error { return q.queues() })
		},
	}
	a.register(command, false)
	a.watch.register(command.Flags())
	command.Flags().Lookup("output").Usage = "table, wide, json, yaml or name"
	return command
}

// queueRow is one queue in a list.
type queueRow struct {
	Name     string `json:"name"`
	Parent   string `json:"parent,omitempty"`
	State    string `json:"state"`
	Weight   uint32 `json:"weight"`
	Priority int32  `json:"priority"`
	Jobs     int    `json:"jobs"`
	Pending  int    `json:"pending"`
	Inqueue  int    `json:"inqueue"`
	Running  int    `json:"running"`
}

// queues lists the queues of the input.
func (q *question) queues() error {
	rows := make(map[string]*queueRow)
	for _, queue := range q.snapshot.GetQueues() {
		row := &queueRow{Name: queue.GetName(), Parent: queue.GetParent(), State: "open", Weight: 1, Priority: queue.GetPriority()}
		if queue.Weight != nil {
			row.Weight = queue.GetWeight()
		}
		if state := queue.GetState(); state != apportionv1.QueueState_QUEUE_STATE_UNSPECIFIED {
			row.State = text.Enum(state, "QUEUE_STATE_")
		}
		rows[row.Name] = row
	}
	for _, job := range q.snapshot.GetJobs() {
		row := rows[job.GetQueue()]
		if row == nil {
			continue
		}
		row.Jobs++
		switch job.GetPhase() {
		case apportionv1.JobPhase_JOB_PHASE_UNSPECIFIED, apportionv1.JobPhase_JOB_PHASE_PENDING:
			row.Pending++
		case apportionv1.JobPhase_JOB_PHASE_INQUEUE:
			row.Inqueue++
		case apportionv1.JobPhase_JOB_PHASE_RUNNING:
			row.Running++
		default:
		}
	}
	var list []queueRow
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		list = append(list, *rows[name])
	}
	headings := []string{"QUEUE", "STATE", ">WEIGHT", ">JOBS", ">PENDING", ">INQUEUE", ">RUNNING"}
	if q.output.format == formatWide {
		headings = append(headings, ">PRIORITY", "PARENT")
	}
	return writeList(q, list, headings, func(r queueRow) []string {
		cells := []string{r.Name, r.State, strconv.Itoa(int(r.Weight))}
		for _, n := range []int{r.Jobs, r.Pending, r.Inqueue, r.Running, int(r.Priority)} {
			cells = append(cells, strconv.Itoa(n))
		}
		return append(cells, r.Parent)
	}, "no queue")
}

// writeList writes rows as a table, by name, or as JSON or YAML.
func writeList[R any](q *question, rows []R, headings []string, cells func(R) []string, none string) error {
	q.warn(nil)
	switch q.output.format {
	case formatName:
		for _, row := range rows {
			fmt.Fprintln(q.out, cells(row)[0])
		}
		return nil
	case formatJSON, formatYAML:
		return q.writeAny(nil, rows, nil)
	}
	if len(rows) == 0 {
		return errors.New(none + " is in the input")
	}
	p := q.printer(nil)
	table := p.NewTable(headings...)
	for _, row := range rows {
		table.Row(cells(row)[:len(headings)]...)
	}
	table.Write(q.out)
	return nil
}
