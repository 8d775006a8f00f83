package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// alone are the interfaces that one package implements, and why each is one.
var alone = map[string]string{
	"Absentee":           "the engine imports no policy: what plugins vote on that are not modelled is asked for here",
	"FitClasser":         "of the policies that keep tasks off nodes, fair alone tells jobs apart whose tasks are alike",
	"JobSharer":          "drf and hdrf have that of package dominant",
	"Keeper":             "the engine imports no policy: what backfill keeps is asked for here",
	"Line":               "no policy imports the engine: what backfill asks of a session is asked here",
	"NodeBounder":        "the engine imports no policy: the limits of nodegroup are asked for here",
	"NodeBook":           "a cycle of the caller has one too",
	"NodeFilter":         "the engine imports no policy: whether predicates is there is asked for here",
	"Planner":            "the engine imports no policy: the plans of fair are asked for here",
	"QueueReserver":      "a share takes longer with it, so that it is asked for by itself",
	"Readier":            "a switch of Volcano's configuration, by which gang is left out of it",
	"Rememberer":         "the engine imports no policy: the memory of fair is asked for here",
	"TreeSharer":         "the engine imports no policy: the tree of hdrf is asked for here",
	"Validator":          "a switch of the policy, by which gang is left out of it",
	"VictimQueueOrderer": "a switch of the policy, by which capacity is left out of it",
}

// Interfaces that policies of one package implement are written down with the reason. The names of methods tell who implements what.
func TestInterfacesHaveASecondImplementationOrAReason(t *testing.T) {
	asked, methods := map[string][]string{}, map[string]map[string]bool{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		in := path.Dir(name)
		if methods[in] == nil {
			methods[in] = map[string]bool{}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.FuncDecl:
				methods[in][d.Name.Name] = methods[in][d.Name.Name] || d.Recv != nil
			case *ast.TypeSpec:
				if i, ok := d.Type.(*ast.InterfaceType); ok && in == "." {
					asked[d.Name.Name] = []string{}
					for _, m := range i.Methods.List {
						for _, name := range m.Names {
							asked[d.Name.Name] = append(asked[d.Name.Name], name.Name)
						}
					}
				}
			}
			return true
		})
		return err
	})
	require.NoError(t, err)
	for name, want := range asked {
		by := 0
		for in, has := range methods {
			if in != "." && !slices.ContainsFunc(want, func(m string) bool { return !has[m] }) {
				by++
			}
		}
		if _, known := alone[name]; known {
			require.LessOrEqual(t, by, 1, "%s has a second implementation: it needs no reason", name)
			continue
		}
		require.True(t, by > 1 || len(want) == 0, "%s has %d implementations", name, by)
	}
	for name := range alone {
		require.Contains(t, asked, name)
	}
}
