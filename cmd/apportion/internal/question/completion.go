package question

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// QueueNames returns the queues of a snapshot, which the shell completes.
func QueueNames(s *lookup.Snapshot) []string {
	return NamesOf(s.GetQueues(), (*apportionv1.Queue).GetName)
}

// JobNames returns the names of its jobs.
func JobNames(s *lookup.Snapshot) []string { return NamesOf(s.GetJobs(), lookup.JobName) }

// NodeNames returns the names of its nodes.
func NodeNames(s *lookup.Snapshot) []string {
	return NamesOf(s.GetNodes(), (*apportionv1.Node).GetName)
}

// WaitingTaskNames returns the names of tasks that wait.
func WaitingTaskNames(s *lookup.Snapshot) []string {
	return NamesOf(s.Tasks, func(t lookup.Task) string { return nameIf(t.Pending(), t.Name()) })
}

// WaitingJobNames returns the names of jobs with tasks that wait.
func WaitingJobNames(s *lookup.Snapshot) []string {
	return slices.Compact(NamesOf(s.Tasks, func(t lookup.Task) string { return nameIf(t.Pending(), lookup.JobName(t.Job)) }))
}

// PlacedTaskNames returns the names of tasks on a node.
func PlacedTaskNames(s *lookup.Snapshot) []string {
	return NamesOf(s.Tasks, func(t lookup.Task) string { return nameIf(t.Node != nil, t.Name()) })
}

// NamesOf returns the names of a list that are not empty.
func NamesOf[T any](list []T, name func(T) string) []string {
	var names []string
	for _, one := range list {
		if text := name(one); text != "" {
			names = append(names, text)
		}
	}
	return names
}

func nameIf(listed bool, name string) string {
	if listed {
		return name
	}
	return ""
}

// NamespaceNames returns the namespaces of jobs, and of what was left out.
func NamespaceNames(s *lookup.Snapshot) (names []string) {
	names = append(NamesOf(s.GetJobs(), (*apportionv1.Job).GetNamespace), NamesOf(s.GetLeftOuts(), (*apportionv1.LeftOut).GetNamespace)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// ResourceNames returns the names of dimensions, in full and without their prefix before the slash, and "all".
func ResourceNames(s *lookup.Snapshot) []string {
	names := []string{"all"}
	for _, name := range s.GetDimensions() {
		names = append(names, name)
		if _, short, ok := strings.Cut(name, "/"); ok {
			names = append(names, short)
		}
	}
	return names
}

// mostCompletions is the maximum number of completions.
const mostCompletions = 500

// Names returns the names in the input that begin with the typed text. It returns none if the input cannot be read, or is standard input.
func (a *Asking) Names(of func(*lookup.Snapshot) []string, typed string) []string {
	flags := a.From
	flags.Files = nil
	if flags.Snapshot == cli.Stdin {
		return nil
	}
	// Cobra parses the flags twice before it asks for completions, so that each file is there twice.
	for _, file := range a.From.Files {
		if file == cli.Stdin {
			return nil
		}
		if !slices.Contains(flags.Files, file) {
			flags.Files = append(flags.Files, file)
		}
	}
	quiet := a.Streams
	quiet.Err = io.Discard
	loaded, err := flags.Load(context.Background(), quiet)
	if err != nil {
		return nil
	}
	var offered []string
	for _, name := range of(loaded.Lookup) {
		if strings.HasPrefix(name, typed) && len(offered) < mostCompletions {
			offered = append(offered, name)
		}
	}
	return offered
}

// Complete offers names of the input as values of a flag.
func (a *Asking) Complete(command *cobra.Command, flag string, of func(*lookup.Snapshot) []string) {
	offer := func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.Names(of, typed), cobra.ShellCompDirectiveNoFileComp
	}
	cli.Must(command, command.RegisterFlagCompletionFunc(flag, offer))
}

// CompleteArgs offers names of the input as arguments, at most so many; 0: any number.
func (a *Asking) CompleteArgs(command *cobra.Command, most int, of func(*lookup.Snapshot) []string) {
	command.ValidArgsFunction = func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.Names(of, typed), cobra.ShellCompDirectiveNoFileComp
	}
}
