package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const repository = "../.."

// apart are the modules that are not in go.work, with who builds and tests them.
var apart = map[string]string{
	"adapter/kubescheduler/cmd": "make schedulers", "tools/buf": "make tools", "tools/chart": "make chart", "tools/ghz": "make tools",
	"tools/golangci-lint": "make lint", "tools/govulncheck": "make vulnerabilities", "tools/protoc-gen": "make tools", "tools/release": "make test-release",
}

// coming is the version of the engine as a tag.
func coming(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(repository, "engine", "doc.go"))
	require.NoError(t, err)
	return "v" + string(engineVersion.FindSubmatch(source)[1])
}

// files are the files of the repository by the folder of their module, relative to that.
func files(t *testing.T) map[string][]string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "git", "-C", repository, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("the files of the repository cannot be listed:", err)
	}
	of := map[string][]string{}
	all := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	all = slices.DeleteFunc(all, func(file string) bool { _, err := os.Stat(filepath.Join(repository, file)); return err != nil })
	for _, file := range all {
		if path.Base(file) == "go.mod" {
			of[path.Dir(file)] = nil
		}
	}
	for _, file := range all {
		folder := path.Dir(file)
		for _, is := of[folder]; !is; _, is = of[folder] {
			folder = path.Dir(folder)
		}
		of[folder] = append(of[folder], strings.TrimPrefix(file, strings.TrimPrefix(folder+"/", "./")))
	}
	return of
}

func TestEveryModuleIsInTheWorkspaceOrBuiltApart(t *testing.T) {
	work, err := os.ReadFile(filepath.Join(repository, "go.work"))
	require.NoError(t, err)
	parsed, err := modfile.ParseWork("go.work", work, nil)
	require.NoError(t, err)
	known := map[string]bool{}
	for _, use := range parsed.Use {
		known[path.Clean(use.Path)] = true
	}
	for _, folder := range modules {
		require.True(t, known[folder] || apart[folder] != "", folder)
	}
	for folder := range apart {
		require.False(t, known[folder], folder)
		known[folder] = true
	}
	for folder := range files(t) {
		require.True(t, known[folder], "%s is in no workspace: go test work does not reach it", folder)
		delete(known, folder)
	}
	require.Empty(t, known, "these are no modules")
	for _, replace := range parsed.Replace {
		require.Equal(t, coming(t), replace.Old.Version, replace.Old.Path)
	}
}

func TestTheModulesOfThisProjectCanBeReleased(t *testing.T) {
	version := coming(t)
	require.NoError(t, (&Release{Root: repository, Version: version}).versionsAgree())
	require.Equal(t, []string{version, "adapter/" + version, "adapter/kubescheduler/" + version, "adapter/kubescheduler/cmd/" + version, "cmd/" + version},
		tagsOf(version))
}

func TestModulesThatNobodyCouldInstallAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"replace github.com/apportion/apportion => ..\n":      "has a replace line",
		"require github.com/apportion/apportion v0.0.9\n":     "requires github.com/apportion/apportion@v0.0.9",
		"require github.com/apportion/apportion/cmd v0.2.0\n": "requires github.com/apportion/apportion/cmd@v0.2.0",
	} {
		sources := sources(t)
		writeFile(t, filepath.Join(sources, "adapter", "go.mod"), "module github.com/apportion/apportion/adapter\n\ngo 1.26.0\n"+text)
		_, err := release(t, "make", "-root", sources, "-out", filepath.Join(t.TempDir(), "dist"), "-version", "v0.1.0")
		require.ErrorContains(t, err, want)
	}
}

// published writes the modules that users get as a proxy of modules has them, and returns where.
func published(t *testing.T, version string) string {
	t.Helper()
	directory, all := t.TempDir(), files(t)
	for _, folder := range modules {
		m := gomodule.Version{Path: path.Join(root, folder), Version: version}
		var list []zip.File
		for _, file := range all[folder] {
			list = append(list, source{filepath.Join(repository, folder, file), file})
		}
		var packed bytes.Buffer
		require.NoError(t, zip.Create(&packed, m, list))
		text, err := os.ReadFile(filepath.Join(repository, folder, "go.mod"))
		require.NoError(t, err)
		at := filepath.Join(directory, m.Path, "@v", version)
		writeFile(t, at+".mod", string(text))
		writeFile(t, at+".zip", packed.String())
		writeFile(t, at+".info", `{"Version":"`+version+`"}`)
	}
	return directory
}

// source is a file of a module.
type source struct{ file, name string }

func (s source) Path() string                 { return s.name }
func (s source) Lstat() (os.FileInfo, error)  { return os.Lstat(s.file) }
func (s source) Open() (io.ReadCloser, error) { return os.Open(s.file) }

// caller is a module of somebody else, who gets the modules of this project from a registry.
type caller struct {
	folder string
	env    []string
}

// newCaller makes a module with a program that imports packages. Modules of others come from the cache of this machine, and what that
// lacks from where it came from.
func newCaller(t *testing.T, proxy, version, required string, imports ...string) caller {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "go", "env", "-json", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	var env struct{ GOMODCACHE, GOPROXY string } //nolint:revive // Names of the go command.
	require.NoError(t, json.Unmarshal(text, &env))
	c := caller{folder: t.TempDir(), env: append(os.Environ(), "GOWORK=off", "GOMODCACHE="+t.TempDir(), "GOSUMDB=off",
		"GOPROXY=file://"+proxy+",file://"+filepath.ToSlash(env.GOMODCACHE)+"/cache/download,"+env.GOPROXY,
		"GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -modcacherw -trimpath")}
	writeFile(t, filepath.Join(c.folder, "go.mod"), "module example.org/caller\n\ngo 1.26.0\n\nrequire "+required+" "+version+"\n")
	program := "package main\n\nimport (\n"
	for _, name := range imports {
		program += "\t_ \"" + name + "\"\n"
	}
	writeFile(t, filepath.Join(c.folder, "main.go"), program+")\n\nfunc main() {}\n")
	return c
}

// golang runs the go command and returns what it prints.
func (c caller) golang(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Env = c.folder, c.env
	var said bytes.Buffer
	command.Stderr = &said
	printed, err := command.Output()
	require.NoError(t, err, said.String())
	return string(printed)
}

func TestWhoImportsTheClientHasNoModuleOfKubernetes(t *testing.T) {
	version := coming(t)
	c := newCaller(t, published(t, version), version, root, root+"/client", root+"/engine")
	c.golang(t, "build", "-o", os.DevNull, ".")
	list := c.golang(t, "list", "-m", "all")
	require.Contains(t, list, root+" "+version)
	t.Log(strings.Count(list, "\n"), "modules")
	for name := range strings.SplitSeq(list, "\n") {
		require.NotContains(t, name, "k8s.io")
		require.NotContains(t, name, "kubernetes")
	}
}

// TestAnInstalledProgramHasTheVersionsOfTheWorkspace shows that commands can be installed without the workspace, and are then the same.
func TestAnInstalledProgramHasTheVersionsOfTheWorkspace(t *testing.T) {
	version := coming(t)
	served := published(t, version)
	const format = `{{with .Module}}{{.Path}} {{.Version}}{{end}}`
	for _, program := range []string{"apportion", "apportion-kueue-admission"} {
		name := root + "/cmd/" + program
		installed := newCaller(t, served, version, root+"/cmd").golang(t, "list", "-deps", "-f", format, name)
		here := caller{repository, append(os.Environ(), "GOWORK=")}.golang(t, "list", "-deps", "-f", format, name)
		require.Equal(t, versioned(here), versioned(installed), program)
	}
}

// versioned are the modules of others, each once.
func versioned(list string) []string {
	lines := strings.Split(list, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return ours(strings.Fields(line + " .")[0]) })
	slices.Sort(lines)
	return slices.Compact(lines)
}
