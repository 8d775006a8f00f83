// Command apportion answers questions about the fair sharing of a cluster's resources: on the manifests that kubectl prints, in its own
// process or against a server, and it is that server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/command/compare"
	"github.com/apportion/apportion/cmd/apportion/internal/command/convert"
	"github.com/apportion/apportion/cmd/apportion/internal/command/play"
	"github.com/apportion/apportion/cmd/apportion/internal/command/rehearse"
	"github.com/apportion/apportion/cmd/apportion/internal/command/review"
	"github.com/apportion/apportion/cmd/apportion/internal/command/serve"
	"github.com/apportion/apportion/cmd/apportion/internal/command/usage"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// version is set by the linker.
var version = "development"

// exitInterrupted is the shell's code for a process that an interrupt ended.
const exitInterrupted = 130

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	answer := &cli.Output{To: out}
	root := newRootFor(cli.Streams{In: in, Out: answer, Err: errOut}, args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if failed := answer.Failed(); failed != nil && (err == nil || errors.Is(err, cli.ErrDecidedNo)) {
		err = failed
	}
	switch {
	case err == nil, errors.Is(err, cli.ErrDecidedNo):
		return cli.ExitCode(err)
	case ctx.Err() != nil:
		fmt.Fprintln(errOut, "apportion: interrupted")
		return exitInterrupted
	}
	text := cli.Describe(err)
	if n := faultsOf(err); n > 1 {
		text = fmt.Sprintf("the input has %d faults\n%s", n, text)
	}
	// The commands that an unknown one resembles come after tabs.
	text = strings.TrimRight(strings.ReplaceAll(text, "\n\t", "\n  "), "\n")
	fmt.Fprintln(errOut, "apportion: "+visible.Lines(text))
	return cli.ExitCode(err)
}

// faultsOf counts the faults of the input that an error lists.
func faultsOf(err error) int {
	if faults, ok := errors.AsType[*objects.Error](err); ok {
		return faults.Total
	}
	_, total := client.Violations(err)
	return total
}

const exitCodes = `
Every command has -o: table is for people, json and yaml are for programs.

Exit codes: 0 the answer is yes, or there was nothing to decide; 1 wrong usage or input; 2 the answer
is no (the job must wait or may not enter, the task may not be allocated, no task may be evicted,
something differs, was found or failed); 3 the server could not be reached, or failed;
130 interrupted.`

// groups returns the commands by group, in the order of the help.
func groups() []group {
	return []group{
		{"why", "Why:", []row{
			{"pending", newPending},
			{"queue", newQueue},
			{"explain", newExplain},
			{"shares", newShares},
			{"history", newHistory},
			{"get", newGet},
			{"usage", usage.New},
			{"audit", review.NewAudit},
		}},
		{"what-if", "What if:", []row{
			{"whatif", compare.NewWhatIf},
			{"diff", compare.NewDiff},
			{"simulate", play.NewSimulate},
			{"rehearse", rehearse.New},
			{"forecast", newForecast},
		}},
		{"decide", "Decide:", []row{{"decide", newDecide}, {"plan", newPlan}}},
		{"files", "Files:", []row{
			{"convert", convert.New},
			{"generate", convert.NewGenerate},
			{"test", play.NewTest},
			{"replay", play.NewReplay},
			{"verify", review.NewVerify},
			{"man", newMan},
		}},
		{"serve", "Serve:", []row{
			{"serve", serve.NewServe},
			{"ui", serve.NewUI},
			{"mcp", func(s cli.Streams) *cobra.Command { return serve.NewMCP(s, newRoot) }},
			{"config", serve.NewConfig},
			{"health", serve.NewHealth},
			{"version", newVersion},
		}},
	}
}

// group is a group of commands.
type group struct {
	id, title string
	commands  []row
}

// row is a command: its name, and what builds it.
type row struct {
	name  string
	build func(cli.Streams) *cobra.Command
}

// newRoot returns the command line with all commands.
func newRoot(s cli.Streams) *cobra.Command { return newRootOf(s, "") }

// newRootFor returns the command line for some arguments: with the command that the first one names, or with all, as help needs them.
func newRootFor(s cli.Streams, args []string) *cobra.Command {
	for _, group := range groups() {
		for _, command := range group.commands {
			if len(args) > 0 && args[0] == command.name {
				return newRootOf(s, command.name)
			}
		}
	}
	return newRoot(s)
}

// newRootOf returns the command line with the named command alone; "" is all.
func newRootOf(s cli.Streams, name string) *cobra.Command {
	s.Version = version
	root := &cobra.Command{
		Use:   "apportion",
		Short: "Decide fair shares of a cluster for queues and jobs, and explain the decisions",
		Long: `Apportion decides about fair shares of a cluster's resources exactly as the Volcano scheduler does:
what each queue deserves, which jobs may enter, which tasks may be evicted. Its input is the output
of kubectl:

  kubectl get ` + objects.Listing(volcano.Kinds()) + ` -A -o yaml > cluster.yaml
  apportion shares -f cluster.yaml
  apportion explain my-namespace/my-job -f cluster.yaml
` + exitCodes,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(cli.MeantFlag)
	for _, group := range groups() {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, row := range group.commands {
			if name != "" && name != row.name {
				continue
			}
			command := row.build(s)
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
	root.SetCompletionCommandGroupID("files")
	root.SetHelpCommandGroupID("files")
	if isPlugin(os.Args[0]) {
		becomePlugin(root)
	}
	return root
}

// pluginName is the file name under which kubectl finds the program as `kubectl apportion`.
const pluginName = "kubectl-apportion"

// isPlugin reports whether the program was started under the name of kubectl's plugin.
func isPlugin(path string) bool {
	return strings.TrimSuffix(filepath.Base(path), ".exe") == pluginName
}

// becomePlugin changes the command line to the form of a kubectl plugin: commands read the live cluster unless files are named.
func becomePlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl apportion"}
	askLive(root)
}

// askLive lets a command and its subcommands read the live cluster by default.
func askLive(parent *cobra.Command) {
	for _, command := range parent.Commands() {
		askLive(command)
		if flag := command.Flags().Lookup("cluster"); flag != nil {
			flag.DefValue = "true"
			cli.Must(command, flag.Value.Set("true"))
		}
	}
}

// newMan is `apportion man`.
func newMan(s cli.Streams) *cobra.Command {
	a := &cli.Answering{Streams: s}
	command := &cobra.Command{
		Use:    "man DIRECTORY",
		Hidden: true, // The first help lists what people ask about a cluster.
		Short:  "Write the manual pages of all commands",
		Long: `Write the manual pages of all commands, apportion.1 and one for each command, to a directory, which is
created if it does not exist. SOURCE_DATE_EPOCH sets their date.`,
		Example: `  apportion man ~/.local/share/man/man1
  man apportion-explain`,
		Args: cli.Arguments(1, 1, "a directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // Manual pages are for everyone.
				return err
			}
			root := newRoot(s)
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "APPORTION", Section: "1", Source: "Apportion " + version, Manual: "Apportion"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			pages, err := filepath.Glob(filepath.Join(args[0], "apportion*.1"))
			if err != nil {
				return err
			}
			return a.Write(pages, func(p *render.Printer) { p.Line("%s in %s", text.Count(len(pages), "manual page"), args[0]) })
		},
	}
	a.Register(command)
	return command
}
