// Package usage has the command of that name: tables of what queues used, from a ledger, and how a ledger is filled.
package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/budget"
	"github.com/apportion/apportion/ledger/file"
	"github.com/apportion/apportion/ledger/report"
)

// usage is `apportion usage` with its flags.
type usage struct {
	cli.Answering
	kept            question.KeptLedger
	server          question.ServerFlags
	name, budgets   string
	by, from, until string
	queues          []string
	owners          bool
}

// byBudget is the value of --by that asks for budgets.
const byBudget = "budget"

// New is `apportion usage`.
func New(s cli.Streams) *cobra.Command {
	u := &usage{Answering: cli.Answering{Streams: s}, by: "week"}
	command := &cobra.Command{
		Use:   "usage {--ledger FILE|--server ADDRESS}",
		Short: "Show who used what, from a ledger",
		Long: `Show what queues used of each resource, by day, week or month: from the ledger that a server keeps of the
cluster that it follows, or from a file that import makes of the history of another system. A server has its
file for itself: ask the server, or a copy of the file. The usage of a queue contains that of the queues
below it. It is not decayed. -o csv is for chargeback.

--by budget shows what each period of a budget granted, and who spent it: the queues below and, with
--owners, the owners of jobs. A server has its budgets; those of a file are in --budgets.`,
		Example: `  apportion usage --server apportion:7171 --by week
  apportion usage --ledger usage.ledger --by month --owners -o csv
  apportion usage --ledger usage.ledger --budgets budgets.yaml --by budget --owners
  TZ=UTC sacct -X -a -P -D -S 2026-01-01 -o JobID,Cluster,Account,User,Start,End,AllocTRES,Suspended |
    apportion usage import --ledger usage.ledger --from sacct -`,
		Args: cli.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return u.run(command.Context()) },
	}
	u.Register(command, cli.FormatCSV)
	u.kept.Flags(command)
	cli.Choose(command, &u.by, "by", "",
		"length of a period, which begins at midnight UTC, a week on Monday; budget: the periods of budgets",
		"week", "day", "month", "total", byBudget)
	flags := command.Flags()
	u.server.Register(flags)
	flags.Lookup("server").Usage = "ask the server at this `ADDRESS`, which follows the cluster with a ledger"
	flags.StringVar(&u.name, "snapshot-name", "cluster", "the cluster that the server follows under this `NAME`")
	flags.StringVar(&u.budgets, "budgets", "", "budgets `FILE`, as a server reads it, with --ledger and --by budget")
	flags.StringVar(&u.from, "from", "", "first day, such as 2026-10-01; default: where the ledger begins")
	flags.StringVar(&u.until, "until", "", "day before which to end; default: the last epoch with use")
	flags.StringSliceVar(&u.queues, "queue", nil, "show these queues only")
	flags.BoolVar(&u.owners, "owners", false, "show the owners of jobs in each queue as well")
	flags.StringSliceVar(&u.Resources, "resource", nil, "show these resources only, such as gpu")
	cli.Must(command, command.MarkFlagFilename("budgets"))
	command.MarkFlagsOneRequired("ledger", "server")
	command.MarkFlagsMutuallyExclusive("ledger", "server")
	command.AddCommand(newUsageImport(s), newUsageMerge(s), newUsageCopy(s), newUsageAdopt(s))
	return command
}

// asked is the question of the flags.
func (u *usage) asked() (*apportionv1alpha1.GetUsageRequest, error) {
	r := &apportionv1alpha1.GetUsageRequest{
		Name: u.name, Queues: u.queues, Owners: u.owners, Dimensions: u.Resources, Budgets: u.by == byBudget,
		Period: map[string]apportionv1alpha1.UsagePeriod{
			"day": apportionv1alpha1.UsagePeriod_USAGE_PERIOD_DAY, "week": apportionv1alpha1.UsagePeriod_USAGE_PERIOD_WEEK,
			"month": apportionv1alpha1.UsagePeriod_USAGE_PERIOD_MONTH, "total": apportionv1alpha1.UsagePeriod_USAGE_PERIOD_TOTAL,
		}[u.by],
	}
	for text, at := range map[*string]**int64{&u.from: &r.StartTime, &u.until: &r.EndTime} {
		if *text == "" {
			continue
		}
		day, err := time.Parse(time.DateOnly, *text)
		if err != nil {
			return nil, fmt.Errorf("a day such as 2026-10-01 is expected, not %q", *text)
		}
		*at = new(day.UnixNano())
	}
	return r, nil
}

func (u *usage) run(ctx context.Context) error {
	r, err := u.asked()
	if err != nil {
		return err
	}
	answer, err := u.answer(ctx, r)
	if err != nil {
		return err
	}
	if r.GetBudgets() {
		return u.writeBudgets(answer)
	}
	rows := usesOf(answer)
	if u.Format == cli.FormatCSV {
		return writeUsage(u.Out, rows)
	}
	return u.Write(rows, func(p *render.Printer) { printUsage(p, rows) })
}

// answer asks the server or the file.
func (u *usage) answer(ctx context.Context, r *apportionv1alpha1.GetUsageRequest) (*apportionv1alpha1.GetUsageResponse, error) {
	if u.server.Address == "" {
		return u.ofFile(r)
	}
	if u.budgets != "" || u.kept.Epoch != 0 || u.kept.HalfLife != 0 {
		return nil, errors.New("--budgets, --epoch and --half-life are about a file: a server has its own")
	}
	decider, ctx, done, err := u.server.Decider(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	answer, err := decider.Usage(ctx, r)
	if err == nil && answer.Begins == nil {
		return nil, fmt.Errorf("the server keeps no ledger of snapshot %q, or nothing was used yet", u.name)
	}
	return answer, err
}

func (u *usage) ofFile(r *apportionv1alpha1.GetUsageRequest) (*apportionv1alpha1.GetUsageResponse, error) {
	if r.GetBudgets() && u.budgets == "" {
		return nil, errors.New("--by budget: name the file of the budgets with --budgets")
	}
	o, err := u.kept.Options()
	if err != nil {
		return nil, err
	}
	asked := &report.Asked{GetUsageRequest: r}
	if asked.Budgets, err = budget.ReadFile(u.budgets, o); err != nil {
		return nil, err
	}
	f, err := file.Read(u.kept.Name, o)
	if err != nil {
		return nil, err
	}
	var answer *apportionv1alpha1.GetUsageResponse
	f.View(func(l *ledger.Ledger) { answer, err = report.Make(l, asked) })
	return answer, errors.Join(err, f.Close())
}

// newUsageAdopt is `apportion usage adopt`.
func newUsageAdopt(s cli.Streams) *cobra.Command {
	var kept question.KeptLedger
	var cluster string
	a := &cli.Answering{Streams: s}
	command := &cobra.Command{
		Use:   "adopt --ledger FILE --cluster NAME",
		Short: "Say which cluster a ledger is about",
		Long: `Say which cluster a ledger is about, whatever it was about before. A server refuses the ledger of another
cluster, and so does merge. The name is that of the server's setting ledger.cluster, or else the uid of the
cluster's namespace kube-system.`,
		Example: `  apportion usage adopt --ledger usage.ledger --cluster 0d4f3c1e-6a57-4f0b-9c59-5f4f5d1c7e21`,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if cluster == "" {
				return errors.New("--cluster: name the cluster")
			}
			f, err := kept.Open()
			if err != nil {
				return err
			}
			before := ""
			err = f.Update(func(l *ledger.Ledger) error {
				before = l.Cluster()
				l.Adopt(cluster)
				return nil
			})
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
			answer := struct {
				Ledger  string `json:"ledger"`
				Cluster string `json:"cluster"`
				Before  string `json:"before,omitempty"`
			}{kept.Name, cluster, before}
			return a.Write(answer, func(p *render.Printer) { p.Line("%s is about cluster %s", kept.Name, cluster) })
		},
	}
	a.Register(command)
	kept.Register(command)
	command.Flags().StringVar(&cluster, "cluster", "", "`NAME` of the cluster")
	cli.Must(command, command.MarkFlagRequired("cluster"))
	return command
}
