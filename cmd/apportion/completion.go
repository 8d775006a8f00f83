package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// The names in a snapshot that the shell completes.
func queueNames(s *lookup.Snapshot) []string {
	return namesOf(s.GetQueues(), (*apportionv1.Queue).GetName)
}
func jobNames(s *lookup.Snapshot) []string { return namesOf(s.GetJobs(), lookup.JobName) }
func nodeNames(s *lookup.Snapshot) []string {
	return namesOf(s.GetNodes(), (*apportionv1.Node).GetName)
}

// waitingTaskNames are the names of tasks that wait, waitingJobNames those of their jobs, placedTaskNames of tasks on a node.
func waitingTaskNames(s *lookup.Snapshot) []string {
	return namesOf(s.Tasks, func(t lookup.Task) string { return nameIf(t.Pending(), t.Name()) })
}

func waitingJobNames(s *lookup.Snapshot) []string {
	return slices.Compact(namesOf(s.Tasks, func(t lookup.Task) string { return nameIf(t.Pending(), lookup.JobName(t.Job)) }))
}

func placedTaskNames(s *lookup.Snapshot) []string {
	return namesOf(s.Tasks, func(t lookup.Task) string { return nameIf(t.Node != nil, t.Name()) })
}

// namesOf returns the names of a list that are not empty.
func namesOf[T any](list []T, name func(T) string) []string {
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

func namespaceNames(s *lookup.Snapshot) (names []string) {
	names = append(namesOf(s.GetJobs(), (*apportionv1.Job).GetNamespace), namesOf(s.GetLeftOut(), (*apportionv1.LeftOut).GetNamespace)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// resourceNames returns the names of dimensions, in full and without their prefix before the slash, and "all".
func resourceNames(s *lookup.Snapshot) []string {
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

// names returns the names in the input that begin with the typed text. It returns none if the input cannot be read, or is standard input.
func (a *asking) names(of func(*lookup.Snapshot) []string, typed string) []string {
	flags := a.input
	flags.files = nil
	if flags.snapshot == stdin {
		return nil
	}
	// Cobra parses the flags twice before it asks for completions, so that each file is there twice.
	for _, file := range a.input.files {
		if file == stdin {
			return nil
		}
		if !slices.Contains(flags.files, file) {
			flags.files = append(flags.files, file)
		}
	}
	quiet := a.streams
	quiet.err = io.Discard
	loaded, err := flags.load(context.Background(), quiet)
	if err != nil {
		return nil
	}
	var offered []string
	for _, name := range of(loaded.snapshot) {
		if strings.HasPrefix(name, typed) && len(offered) < mostCompletions {
			offered = append(offered, name)
		}
	}
	return offered
}

// complete offers names of the input as values of a flag.
func (a *asking) complete(command *cobra.Command, flag string, of func(*lookup.Snapshot) []string) {
	offer := func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.names(of, typed), cobra.ShellCompDirectiveNoFileComp
	}
	must(command, command.RegisterFlagCompletionFunc(flag, offer))
}

// completeArgs offers names of the input as arguments, at most so many; 0: any number.
func (a *asking) completeArgs(command *cobra.Command, most int, of func(*lookup.Snapshot) []string) {
	command.ValidArgsFunction = func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.names(of, typed), cobra.ShellCompDirectiveNoFileComp
	}
}
