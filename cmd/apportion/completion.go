package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/contract/lookup"
)

// The names of a snapshot that the shell completes.
func queueNames(s *lookup.Snapshot) (names []string) {
	for _, queue := range s.GetQueues() {
		names = append(names, queue.GetName())
	}
	return names
}

func jobNames(s *lookup.Snapshot) (names []string) {
	for _, job := range s.GetJobs() {
		names = append(names, lookup.JobName(job))
	}
	return names
}

func waitingJobNames(s *lookup.Snapshot) (names []string) {
	last := ""
	for _, task := range s.Tasks {
		if name := lookup.JobName(task.Job); task.Pending() && name != last {
			names, last = append(names, name), name
		}
	}
	return names
}

func waitingTaskNames(s *lookup.Snapshot) (names []string) {
	for _, task := range s.Tasks {
		if task.Pending() {
			names = append(names, task.Name())
		}
	}
	return names
}

func placedTaskNames(s *lookup.Snapshot) (names []string) {
	for _, task := range s.Tasks {
		if task.Node != nil {
			names = append(names, task.Name())
		}
	}
	return names
}

func nodeNames(s *lookup.Snapshot) (names []string) {
	for _, node := range s.GetNodes() {
		names = append(names, node.GetName())
	}
	return names
}

func namespaceNames(s *lookup.Snapshot) (names []string) {
	for _, job := range s.GetJobs() {
		names = append(names, job.GetNamespace())
	}
	for _, left := range s.GetLeftOut() {
		names = append(names, left.GetNamespace())
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// resourceNames are those of dimensions, in full and without what stands before the slash, and all.
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

// mostCompletions bounds what is offered to the shell.
const mostCompletions = 500

// names returns the names of the input that begin with what is typed. Nothing is offered where the input cannot be read, or is standard
// input.
func (a *asking) names(of func(*lookup.Snapshot) []string, typed string) []string {
	flags := a.input
	flags.files = nil
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
