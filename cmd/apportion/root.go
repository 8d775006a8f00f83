package main

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// streams are the input and outputs of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
	// answered, if set, gets each answer before it is written.
	answered func(answer any) error
}

const exitCodes = `
Every command has -o: table is for people, json and yaml are for programs.

Exit codes: 0 the answer is yes, or there was nothing to decide; 1 wrong usage or input; 2 the answer
is no (the job must wait or may not enter, the task may not be allocated, no task may be evicted,
something differs, was found or failed); 3 the server could not be reached, or failed;
130 interrupted.`

// newRoot returns the command line.
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
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(meantFlag)
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"why", "Why:", []*cobra.Command{
			newPending(s), newQueue(s), newExplain(s), newShares(s), newHistory(s), newGet(s), newUsage(s), newAudit(s),
		}},
		{"what-if", "What if:", []*cobra.Command{newWhatIf(s), newDiff(s), newSimulate(s), newRehearse(s), newForecast(s)}},
		{"decide", "Decide:", []*cobra.Command{newDecide(s), newPlan(s)}},
		{"files", "Files:", []*cobra.Command{newConvert(s), newGenerate(s), newTest(s), newReplay(s), newVerify(s), newMan(s)}},
		{"serve", "Serve:", []*cobra.Command{newServe(s), newUI(s), newMCP(s), newConfig(s), newHealth(s), newVersion(s)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
	root.SetCompletionCommandGroupID("files")
	root.SetHelpCommandGroupID("files")
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
			must(command, flag.Value.Set("true"))
		}
	}
}
