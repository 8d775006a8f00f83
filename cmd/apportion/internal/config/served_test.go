package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/test/raced"
)

const (
	configPath  = "github.com/apportion/apportion/cmd/apportion/internal/config"
	settingPath = "github.com/apportion/apportion/internal/setting"
)

// pack is a package as `go list -export` describes it.
type pack struct {
	ImportPath string   `json:"ImportPath"`
	Export     string   `json:"Export"`
	Dir        string   `json:"Dir"`
	GoFiles    []string `json:"GoFiles"`
	Imports    []string `json:"Imports"`
}

// listed returns all packages of `apportion serve`.
func listed(t *testing.T) map[string]*pack {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,Imports",
		"../daemon").Output()
	require.NoError(t, err)
	all := map[string]*pack{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pack{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[p.ImportPath] = p
	}
}

// fieldsRead returns the fields that a package selects, as Type.Field.
func fieldsRead(t *testing.T, all map[string]*pack, p *pack) map[string]bool {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	exported := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	checked := types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	_, err := (&types.Config{Importer: exported}).Check(p.ImportPath, files, parsed, &checked)
	require.NoError(t, err)
	read := map[string]bool{}
	for _, selection := range checked.Selections {
		if selection.Kind() != types.FieldVal {
			continue
		}
		in := selection.Recv()
		for _, i := range selection.Index() {
			if pointer, ok := in.Underlying().(*types.Pointer); ok {
				in = pointer.Elem()
			}
			section, ok := in.Underlying().(*types.Struct)
			require.True(t, ok)
			if named, ok := types.Unalias(in).(*types.Named); ok && named.Obj().Pkg() != nil {
				if path := named.Obj().Pkg().Path(); path == configPath || path == settingPath {
					read[named.Obj().Name()+"."+section.Field(i).Name()] = true
				}
			}
			in = section.Field(i).Type()
		}
	}
	return read
}

// TestEverySettingIsServed finds a setting that is declared, and that no code of the server reads.
func TestEverySettingIsServed(t *testing.T) {
	raced.Skip(t)
	all, read := listed(t), map[string]bool{}
	for path, p := range all {
		if path == configPath || path == settingPath || !slices.Contains(p.Imports, configPath) && !slices.Contains(p.Imports, settingPath) {
			continue
		}
		for field := range fieldsRead(t, all, p) {
			read[field] = true
		}
	}
	// Read by the check of the configuration alone, which refuses addresses without encryption.
	read["TLS.Plaintext"], read["Extender.Plaintext"] = true, true
	var check func(reflect.Type)
	check = func(section reflect.Type) {
		for f := range section.Fields() {
			assert.True(t, read[section.Name()+"."+f.Name], "nothing reads %s.%s", section.Name(), f.Name)
			element := f.Type
			if element.Kind() == reflect.Slice {
				element = element.Elem()
			}
			if element.Kind() == reflect.Struct {
				check(element)
			}
		}
	}
	check(reflect.TypeFor[config.Config]())
}

// TestDocumentsNameSettingsThatExist finds a setting, by name or variable, that is documented and not declared.
func TestDocumentsNameSettingsThatExist(t *testing.T) {
	sections, variables := map[string]bool{}, map[string]bool{config.FileVariable: true}
	// An argument of Volcano's plugin, and values of the chart.
	names := map[string]bool{"extender.ignorable": true, "http.enabled": true, "ledger.enabled": true, "ledger.copies": true}
	dotted := regexp.MustCompile(`^([a-z_]+)\.([a-z_]+)`)
	for _, s := range config.Settings() {
		names[s.Path], variables[s.Variable()] = true, true
		if section := dotted.FindStringSubmatch(s.Path); section != nil {
			sections[section[1]] = true
		}
	}
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*/*.md", "deploy/*/*.yaml", "deploy/*/*.json", "proto/*/*/*.proto"} {
		matched, err := filepath.Glob("../../../../" + pattern)
		require.NoError(t, err)
		files = append(files, matched...)
	}
	inText := regexp.MustCompile("(?:`|setting )([a-z_]+\\.[a-z_]+)\\b(?:`|:|=| )")
	inVariable := regexp.MustCompile(`\bAPPORTION_[A-Z][A-Z_]+[A-Z]\b`)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range inText.FindAllStringSubmatch(string(text), -1) {
			if section, _, _ := bytes.Cut([]byte(name[1]), []byte(".")); sections[string(section)] {
				found++
				assert.True(t, names[name[1]], "%s: no setting %s", file, name[1])
			}
		}
		for _, name := range inVariable.FindAllString(string(text), -1) {
			assert.True(t, variables[name], "%s: no setting has the variable %s", file, name)
		}
	}
	require.Greater(t, found, 100)
}

func TestASectionThatIsNotGivenIsCompletedByItsDefaults(t *testing.T) {
	log := setting.DecisionLog{Keep: 2, Mask: []string{"uid"}}
	setting.Complete(&log)
	want := setting.Default[setting.DecisionLog]()
	want.Keep, want.Mask = 2, []string{"uid"}
	require.Equal(t, want, log)
}
