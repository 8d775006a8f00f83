package main

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// streams are what a command reads from and writes to.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

const exitCodes = `
Exit codes: 0 the answer is yes, or there was nothing to decide; 1 wrong usage or input; 2 the answer
is no (the job may not enter, the task may not be allocated, no task may be evicted, the job must
wait); 3 the server could not be reached, or failed.`

// newRoot is the command line.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "apportion",
		Short: "Decide fair shares of a cluster for queues and jobs, and explain the decisions",
		Long: `Apportion decides about fair shares of a cluster's resources exactly as the Volcano scheduler does:
what each queue deserves, which jobs may enter, which tasks may be evicted. Its input is the output
of kubectl:

  kubectl get queues.scheduling.volcano.sh,podgroups.scheduling.volcano.sh,pods,nodes,priorityclasses -A -o yaml > cluster.yaml
  apportion shares -f cluster.yaml
  apportion explain my-namespace/my-job -f cluster.yaml
` + exitCodes,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddGroup(
		&cobra.Group{ID: "ask", Title: "Ask about a cluster:"},
		&cobra.Group{ID: "files", Title: "Work on files:"},
		&cobra.Group{ID: "service", Title: "Serve:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add("ask", newShares(s), newTree(s), newExplain(s), newPlan(s), newRemedies(s), newPending(s), newQueues(s), newJobs(s), newEnqueue(s),
		newAllocatable(s), newReclaim(s), newPreempt(s), newNodes(s),
		newWhatIf(s), newCompare(s), newDiff(s), newRehearse(s), newAudit(s), newUI(s), newSimulate(s), newSession(s))
	add("files", newTest(s), newValidate(s), newConvert(s), newGenerate(s), newReplay(s), newVerify(s))
	add("service", newServe(s), newConfig(s), newHealth(s), newPolicies(s), newVersion(s))
	root.AddCommand(newMan(root))
	return root
}

// asking are the flags of the commands that ask.
type asking struct {
	streams
	watch  watchFlags
	input  inputFlags
	output outputFlags
	server serverFlags
}

// inputFlags say what is asked about, and by which rules.
type inputFlags struct {
	files      []string
	snapshot   string
	config     string
	policy     string
	policyName string
	asOf       string
	schedulers []string
	live       cluster.Flags
	// unread tells what of the live cluster could not be read.
	unread []*apportionv1.Warning
	// snapshotName is a snapshot that the server keeps.
	snapshotName string
	server       *serverFlags
}

func (f *inputFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.files, "file", "f", nil,
		"`FILE` or directory of manifests as printed by kubectl, YAML or JSON; - is standard input (repeatable)")
	flags.StringVar(&f.snapshot, "snapshot", "", "snapshot `FILE` written by convert, instead of manifests")
	flags.StringVar(&f.config, "config", "", "decide by this volcano-scheduler.conf `FILE`")
	flags.StringVar(&f.policy, "policy", "", "decide by a preset ("+strings.Join(client.Presets(), ", ")+
		") or a policy file written by convert; default: Volcano's default configuration")
	flags.StringVar(&f.policyName, "policy-name", "", "decide by the policy with this `NAME` on the server")
	flags.StringVar(&f.asOf, "as-of", "",
		"`TIME` of the decisions, as 2006-01-02T15:04:05Z or now; default: now if the policy uses it, else none")
	flags.StringSliceVar(&f.schedulers, "scheduler", nil,
		"consider the waiting pods of the scheduler with this `NAME` (repeatable); default: volcano")
	f.live.Register(flags)
}

// outputFlags say how answers are written.
type outputFlags struct {
	format    string
	ascii     bool
	resources []string
}

func (f *outputFlags) register(command *cobra.Command, resources bool) {
	flags := command.Flags()
	flags.StringVarP(&f.format, "output", "o", formatTable, "table, json or yaml")
	flags.BoolVar(&f.ascii, "ascii", false, "use only ASCII characters in tables, which is the default if the locale is not UTF-8")
	if resources {
		flags.StringSliceVar(&f.resources, "resource", nil,
			"show only this `RESOURCE`, such as cpu or gpu (repeatable); all shows every resource")
	}
	mustComplete(command, "output", formatTable, formatJSON, formatYAML)
}

// style is how tables are drawn.
func (f *outputFlags) style(out io.Writer) render.Style {
	terminal := terminalOf(out)
	return render.Style{
		ASCII: f.ascii || !speaksUTF8(), Color: terminal != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Width: widthOf(terminal),
	}
}

// terminalOf returns the terminal that is written to, nil if it is none.
func terminalOf(out io.Writer) *os.File {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// widthOf returns how many columns a terminal has, 0 if that is not known.
func widthOf(terminal *os.File) int {
	if terminal == nil {
		return 0
	}
	width, _, err := term.GetSize(int(terminal.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// speaksUTF8 looks at the locale as the C library does: the first of three variables that is set decides.
func speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := os.Getenv(name); locale != "" {
			upper := strings.ToUpper(locale)
			return strings.Contains(upper, "UTF-8") || strings.Contains(upper, "UTF8")
		}
	}
	return false
}

// serverFlags say who decides.
type serverFlags struct {
	address          string
	tls              bool
	authority        string
	certificate, key string
	token            string
	timeout          time.Duration
}

func (f *serverFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "server", "", "use the server at this `ADDRESS`, such as localhost:7171; default: decide in this process")
	flags.BoolVar(&f.tls, "tls", false, "use TLS")
	flags.StringVar(&f.authority, "tls-ca", "",
		"`FILE` of the CA certificates for the server's certificate; default: the system's (implies --tls)")
	flags.StringVar(&f.certificate, "tls-certificate", "", "`FILE` of the client certificate (implies --tls)")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` of the private key of the client certificate")
	flags.StringVar(&f.token, "token-file", "", "`FILE` of the bearer token")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "timeout of the command")
}

// register adds the flags of a command that asks.
func (a *asking) register(command *cobra.Command, resources bool) {
	a.input.register(command.Flags())
	a.output.register(command, resources)
	a.server.register(command.Flags())
	command.Flags().StringVar(&a.input.snapshotName, "snapshot-name", "",
		"ask about the cluster that the server follows under this `NAME`, in place of manifests (needs --server)")
	a.input.server = &a.server
	mustComplete(command, "policy", client.Presets()...)
	if resources {
		a.complete(command, "resource", resourceNames)
	}
	for name, extensions := range map[string][]string{"file": {formatYAML, "yml", formatJSON}, "config": {"conf", formatYAML, "yml"}} {
		if err := command.MarkFlagFilename(name, extensions...); err != nil {
			command.PrintErrln(err)
		}
	}
}

// mustComplete offers fixed values of a flag to the shell.
func mustComplete(command *cobra.Command, flag string, values ...string) {
	if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault)); err != nil {
		command.PrintErrln(err)
	}
}
