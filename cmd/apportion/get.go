package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/text"
)

// listFlags select and sort the listed jobs.
type listFlags struct {
	namespace string
	all       bool
	sort      []string
	// keys are the sort keys, the default first.
	keys []string
}

func (f *listFlags) register(command *cobra.Command, keys ...string) {
	flags := command.Flags()
	flags.StringVarP(&f.namespace, "namespace", "n", "", "only jobs of this `NAMESPACE`")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "jobs of all namespaces, which is the default")
	flags.StringSliceVar(&f.sort, "sort", keys[:1], "sort by these `KEYS`, most significant first: "+strings.Join(keys, ", "))
	command.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	cli.MustComplete(command, "sort", keys...)
	f.keys = keys
}

// checkNamespace returns an error for a namespace without objects in the snapshot.
func (f *listFlags) checkNamespace(snapshot *lookup.Snapshot) error {
	known := question.NamespaceNames(snapshot)
	if f.namespace == "" || slices.Contains(known, f.namespace) {
		return nil
	}
	if like := spelling.Similar(f.namespace, slices.Values(known)); like != "" {
		return fmt.Errorf("--namespace: no job is in namespace %q; did you mean %q?", f.namespace, like)
	}
	return fmt.Errorf("--namespace: no job is in namespace %q; there are %s", f.namespace, lookup.Some(known))
}

// order returns the comparison by all requested keys.
func order[T any](f *listFlags, compare map[string]func(l, r T) int) (func(l, r T) int, error) {
	if err := cli.CheckAll("sort", "key", f.sort, f.keys); err != nil {
		return nil, err
	}
	return func(l, r T) int {
		for _, key := range f.sort {
			if one := compare[key]; one != nil && one(l, r) != 0 {
				return one(l, r)
			}
		}
		return 0
	}, nil
}

// byQueue sorts by the names of queues.
const byQueue = "queue"

// wants reports whether a job is listed.
func (f *listFlags) wants(job *apportionv1.Job) bool {
	return f.namespace == "" || job.GetNamespace() == f.namespace
}

// newGet is `apportion get`.
func newGet(s cli.Streams) *cobra.Command {
	command := &cobra.Command{
		Use:   "get KIND",
		Short: "List queues, jobs or nodes, with their states and counts",
		Long:  `List the queues, the jobs or the nodes of the cluster, with their states and counts.`,
		Example: `  apportion get queues -f cluster.yaml
  apportion get jobs -n ml --sort queue,waiting -o wide -f cluster.yaml`,
	}
	return cli.WithKinds(command, newGetQueues(s), newGetJobs(s), newGetNodes(s))
}

func newGetJobs(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	var list listFlags
	command := a.Command(&cobra.Command{
		Use:   "jobs",
		Short: "List jobs with their queues, phases and numbers of tasks",
		Long: `List jobs with their queues and phases, and the numbers of their waiting and running tasks. -o wide adds
the number of all tasks, the priority and the minimum resources. priority, waiting and running sort in
descending order.`,
		Example: `  apportion get jobs -n ml --sort queue,waiting -f cluster.yaml`,
		Args:    cli.NoArgs,
	}, func(_ context.Context, q *question.Question, _ []string) error { return listJobs(q, &list) }, cli.FormatWide, cli.FormatName)
	list.register(command, "name", byQueue, "priority", "waiting", "running")
	a.Complete(command, "namespace", question.NamespaceNames)
	return command
}

func newGetQueues(s cli.Streams) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
	return a.Command(&cobra.Command{
		Use:   "queues",
		Short: "List queues with their states and numbers of jobs",
		Long: `List queues with their states and weights, and count their jobs by phase. -o wide adds the priority and
the parent.`,
		Example: `  apportion get queues -f cluster.yaml -o wide`,
		Args:    cli.NoArgs,
	}, func(_ context.Context, q *question.Question, _ []string) error { return listQueues(q) }, cli.FormatWide, cli.FormatName)
}

// column is a column of a list. The table of -o wide has them all.
type column[R any] struct {
	heading string
	wide    bool
	cell    func(*R) any
}

// writeList writes rows as a table, by the first column, or as JSON or YAML.
func writeList[R any](q *question.Question, rows []R, columns []column[R], none string) error {
	q.Warn(nil)
	switch {
	case q.Format == cli.FormatName:
		names := make([]string, len(rows))
		for i := range rows {
			names[i] = fmt.Sprint(columns[0].cell(&rows[i]))
		}
		return q.List(names)
	case q.Format != cli.FormatWide:
		columns = slices.DeleteFunc(columns, func(c column[R]) bool { return c.wide })
	}
	if len(rows) == 0 && (q.Format == cli.FormatTable || q.Format == cli.FormatWide) {
		return errors.New(none + " in the input")
	}
	return q.Write(rows, func(p *render.Printer) {
		headings := make([]string, len(columns))
		for i, c := range columns {
			headings[i] = c.heading
		}
		table := p.NewTable(headings...)
		for i := range rows {
			cells := make([]string, len(columns))
			for k, c := range columns {
				switch cell := c.cell(&rows[i]).(type) {
				case *apportionv1.Resource:
					if cell != nil {
						cells[k] = table.Amounts(snapshotNames(q.Lookup), cell)
					}
				default:
					cells[k] = fmt.Sprint(cell)
				}
			}
			table.Row(cells...)
		}
		table.Write(p.Out)
	})
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
	// minResources are the same as amounts.
	minResources *apportionv1.Resource
}

var jobColumns = []column[jobRow]{
	{"JOB", false, func(r *jobRow) any { return r.Name }},
	{"QUEUE", false, func(r *jobRow) any { return r.Queue }},
	{"PHASE", false, func(r *jobRow) any { return r.Phase }},
	{">WAITING", false, func(r *jobRow) any { return r.Waiting }},
	{">RUNNING", false, func(r *jobRow) any { return r.Running }},
	{">MINIMUM", false, func(r *jobRow) any { return r.MinAvailable }},
	{">TASKS", true, func(r *jobRow) any { return r.Tasks }},
	{">PRIORITY", true, func(r *jobRow) any { return r.Priority }},
	{"MINIMUM RESOURCES", true, func(r *jobRow) any { return r.minResources }},
}

func jobRowOf(q *question.Question, job *apportionv1.Job) jobRow {
	row := jobRow{
		Name: lookup.JobName(job), Queue: job.GetQueue(), Phase: text.Enum(job.GetPhase(), "JOB_PHASE_"), Priority: job.GetPriority(),
		MinAvailable: job.GetMinAvailable(),
	}
	if job.GetMinResources() != nil {
		row.MinResources, row.minResources = text.Amounts(snapshotNames(q.Lookup), job.GetMinResources()), job.GetMinResources()
	}
	for _, group := range job.GetGroups() {
		for _, task := range group.GetTasks() {
			row.add(task.GetStatus(), 1)
		}
		for _, count := range group.GetCounts() {
			row.add(count.GetStatus(), int(count.GetCount()))
		}
	}
	return row
}

func (r *jobRow) add(status apportionv1.TaskStatus, n int) {
	r.Tasks += n
	switch {
	case status == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED, status == apportionv1.TaskStatus_TASK_STATUS_PENDING:
		r.Waiting += n
	case lookup.Holds(status):
		r.Running += n
	}
}

// listJobs lists the jobs of the input.
func listJobs(q *question.Question, list *listFlags) error {
	if err := q.Unknown(question.NodeKind); err != nil {
		return err
	}
	compare, err := order(list, map[string]func(l, r jobRow) int{
		"name":     func(l, r jobRow) int { return cmp.Compare(l.Name, r.Name) },
		byQueue:    func(l, r jobRow) int { return cmp.Compare(l.Queue, r.Queue) },
		"priority": func(l, r jobRow) int { return cmp.Compare(r.Priority, l.Priority) },
		"waiting":  func(l, r jobRow) int { return cmp.Compare(r.Waiting, l.Waiting) },
		"running":  func(l, r jobRow) int { return cmp.Compare(r.Running, l.Running) },
	})
	if err := cmp.Or(list.checkNamespace(q.Lookup), err); err != nil {
		return err
	}
	var rows []jobRow
	for _, job := range q.Lookup.GetJobs() {
		if list.wants(job) {
			rows = append(rows, jobRowOf(q, job))
		}
	}
	slices.SortStableFunc(rows, func(l, r jobRow) int { return cmp.Or(compare(l, r), cmp.Compare(l.Name, r.Name)) })
	return writeList(q, rows, slices.Clone(jobColumns), "no job")
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

var queueColumns = []column[queueRow]{
	{"QUEUE", false, func(r *queueRow) any { return r.Name }},
	{"STATE", false, func(r *queueRow) any { return r.State }},
	{">WEIGHT", false, func(r *queueRow) any { return r.Weight }},
	{">JOBS", false, func(r *queueRow) any { return r.Jobs }},
	{">PENDING", false, func(r *queueRow) any { return r.Pending }},
	{">INQUEUE", false, func(r *queueRow) any { return r.Inqueue }},
	{">RUNNING", false, func(r *queueRow) any { return r.Running }},
	{">PRIORITY", true, func(r *queueRow) any { return r.Priority }},
	{"PARENT", true, func(r *queueRow) any { return r.Parent }},
}

// listQueues lists the queues of the input.
func listQueues(q *question.Question) error {
	if err := q.Unknown(question.NodeKind, question.PodKind, question.ClassKind); err != nil {
		return err
	}
	rows := make(map[string]*queueRow)
	for _, queue := range q.Lookup.GetQueues() {
		row := &queueRow{Name: queue.GetName(), Parent: queue.GetParent(), State: "open", Weight: 1, Priority: queue.GetPriority()}
		if queue.Weight != nil {
			row.Weight = queue.GetWeight()
		}
		if state := queue.GetState(); state != apportionv1.QueueState_QUEUE_STATE_UNSPECIFIED {
			row.State = text.Enum(state, "QUEUE_STATE_")
		}
		rows[row.Name] = row
	}
	for _, job := range q.Lookup.GetJobs() {
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
	return writeList(q, list, slices.Clone(queueColumns), "no queue")
}
