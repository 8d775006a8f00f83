package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire/method"
)

// TestTheTableOfNamesHasEveryCallStepCommandAndMethod compares the table of docs/contract.md with the service, the steps, the command line
// and the client.
func TestTheTableOfNamesHasEveryCallStepCommandAndMethod(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "contract.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(document), "\n| RPC | step of a session | command | method of `client.Client` | where a word differs |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	names := regexp.MustCompile("`([^`]+)`")
	var columns [4][]string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		require.Len(t, cells, 7, line)
		for i := range columns {
			for _, name := range names.FindAllStringSubmatch(cells[i+1], -1) {
				columns[i] = append(columns[i], name[1])
			}
		}
	}

	var calls, steps, commands, methods []string
	for _, call := range method.Calls() {
		calls = append(calls, string(call.Name()))
	}
	fields := (&apportionv1.Step{}).ProtoReflect().Descriptor().Oneofs().ByName("step").Fields()
	for i := range fields.Len() {
		steps = append(steps, string(fields.Get(i).Name()))
	}
	root := newRoot(cli.Streams{})
	root.InitDefaultCompletionCmd()
	for name, command := range everyCommand(root) {
		if command.Parent().Name() != "completion" {
			commands = append(commands, name)
		}
	}
	for method := range reflect.TypeFor[*client.Client]().Methods() {
		methods = append(methods, method.Name)
	}
	slices.Sort(commands)

	require.ElementsMatch(t, calls, columns[0], "calls")
	require.ElementsMatch(t, steps, columns[1], "kinds of steps")
	require.ElementsMatch(t, methods, columns[3], "methods of the client")
	// A command may be written with the flag or the argument that makes it ask another question.
	var plain []string
	for _, written := range columns[2] {
		command, rest, err := root.Find(strings.Fields(written))
		require.NoError(t, err, written)
		if len(rest) == 0 {
			plain = append(plain, written)
		} else if name, isFlag := strings.CutPrefix(rest[0], "--"); isFlag {
			require.NotNil(t, command.Flags().Lookup(name), written)
		}
	}
	slices.Sort(plain)
	require.Equal(t, commands, plain, "commands")
}

// TestTheNamesOfJSONAnswersAreInCamelCase reads the tags of every type that a command may write. Messages of the contract have such names.
func TestTheNamesOfJSONAnswersAreInCamelCase(t *testing.T) {
	tag := regexp.MustCompile(`json:"([^",]+)`)
	camel := regexp.MustCompile(`^(-|[a-z][a-zA-Z0-9]*)$`)
	read := 0
	for _, directory := range []string{".", filepath.Join("..", "..", "client", "audit"), filepath.Join("..", "..", "internal", "difference")} {
		require.NoError(t, filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(file, func(node ast.Node) bool {
				field, is := node.(*ast.Field)
				if !is || field.Tag == nil {
					return true
				}
				for _, name := range tag.FindAllStringSubmatch(field.Tag.Value, -1) {
					require.Regexp(t, camel, name[1], path)
					read++
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, read, 100)
}
