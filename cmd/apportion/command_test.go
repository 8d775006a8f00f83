package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

// everyCommand returns the commands that a user can run or that group others, by their paths without the program's name.
func everyCommand(root *cobra.Command) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	for _, command := range root.Commands() {
		if strings.HasPrefix(command.Name(), "_") {
			continue // It is cobra's, for shells.
		}
		all[strings.TrimPrefix(command.CommandPath(), "apportion ")] = command
		for name, below := range everyCommand(command) {
			all[strings.TrimPrefix(name, "apportion ")] = below
		}
	}
	return all
}

func TestEveryCommandIsGroupedDocumentedAndHasTheSameFormats(t *testing.T) {
	root := newRoot(cli.Streams{})
	root.InitDefaultCompletionCmd()
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	// What these write has a form of its own: a log, a protocol, and a script for the shell.
	withoutFormats := regexp.MustCompile(`^(serve|mcp|completion.*)$`)
	var groups []string
	for _, group := range root.Groups() {
		groups = append(groups, group.ID)
	}
	require.Equal(t, []string{"why", "what-if", "decide", "files", "serve"}, groups)
	top := 0
	for name, command := range everyCommand(root) {
		require.NotEmpty(t, command.Short, name)
		if strings.HasPrefix(name, "completion ") {
			continue
		}
		require.Regexp(t, "`(apportion )?"+regexp.QuoteMeta(name)+"\\b", string(document), "docs/cli.md explains %s", name)
		if !strings.HasPrefix(name, "completion") {
			require.NotEmpty(t, command.Long, name)
			require.NotEmpty(t, command.Example, name)
			require.Contains(t, command.Example, "apportion "+name, "an example of %s", name)
		}
		if command.Parent() == root {
			top++
			require.Contains(t, groups, command.GroupID, name)
		}
		if command.HasSubCommands() || withoutFormats.MatchString(name) {
			continue
		}
		flag := command.Flags().Lookup("output")
		require.NotNil(t, flag, "%s has -o", name)
		require.Equal(t, "o", flag.Shorthand)
		require.Regexp(t, "^format of the answer: table, json(,| or) yaml", flag.Usage, name)
		require.NotNil(t, command.Flags().Lookup("ascii"), name)
	}
	require.LessOrEqual(t, top, 28, "commands are few")
}

func TestExamplesOfTheHelpNameCommandsAndFlagsThatExist(t *testing.T) {
	for name, command := range everyCommand(newRoot(cli.Streams{})) {
		for line := range strings.SplitSeq(command.Example, "\n") {
			_, line, found := strings.Cut(line, "apportion ")
			if !found {
				continue
			}
			line, _, _ = strings.Cut(line, " > ")
			words := split(line)
			root := newRoot(cli.Streams{})
			target, rest, err := root.Find(words)
			require.NoError(t, err, "%s: %s", name, line)
			require.NotSame(t, root, target, "%s: %s", name, line)
			if !slices.Contains(words, "SCENARIO") {
				require.NoError(t, target.ParseFlags(rest), "%s: %s", name, line)
			}
		}
	}
}

// TestTheCommandsBelowRemediesRunAsPrinted runs each command that `apportion explain --remedies` prints, word by word.
func TestTheCommandsBelowRemediesRunAsPrinted(t *testing.T) {
	cluster := filepath.Join("..", "..", "examples", "clusters", "research")
	for _, job := range []string{"language/pretrain-7b", "robotics/grasp-train"} {
		answer := outputOf(t, cli.ExitYes, "explain", job, "--remedies", "-f", cluster, "--policy", "capacity", "--as-of", "2026-03-02T12:00:00Z")
		commands := 0
		for line := range strings.Lines(answer) {
			command, found := strings.CutPrefix(strings.TrimSpace(line), "apportion ")
			if !found {
				continue
			}
			commands++
			require.Contains(t, command, "--as-of 2026-03-02T12:00:00Z -f "+cluster+" --policy capacity")
			require.NotEmpty(t, outputOf(t, cli.ExitYes, split(command)...), command)
		}
		require.Positive(t, commands, answer)
	}
}

func TestACommandLineBuildsTheCommandThatItNamesAlone(t *testing.T) {
	for _, group := range groups() {
		for _, row := range group.commands {
			built := newRootFor(cli.Streams{}, []string{row.name, "--help"}).Commands()
			require.Len(t, built, 1)
			require.Equal(t, row.name, built[0].Name())
		}
	}
	for _, args := range [][]string{nil, {"help", "explain"}, {"--help"}, {"explian"}} {
		require.Greater(t, len(newRootFor(cli.Streams{}, args).Commands()), 20, "%v", args)
	}
}
