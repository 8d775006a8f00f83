package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// root is the path of the module at the root; those of the others are below it.
const root = "github.com/apportion/apportion"

// modules are the folders of the modules that users get.
var modules = []string{".", "adapter", "adapter/kubescheduler", "adapter/kubescheduler/cmd", "cmd"}

// ours reports whether a module is of this project.
func ours(module string) bool { return module == root || strings.HasPrefix(module, root+"/") }

// tagsOf returns the tags that the commit of a release needs: the go command looks for a module's version under its folder.
func tagsOf(version string) []string {
	names := make([]string, len(modules))
	for i, folder := range modules {
		names[i] = path.Join(folder, version)
	}
	return names
}

// modulesAgree refuses to release modules that nobody could install: the go command resolves neither `replace` lines of a module that it
// installs nor versions of this project that no tag has.
func (r *Release) modulesAgree() error {
	for _, folder := range modules {
		file := filepath.Join(r.Root, folder, "go.mod")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := modfile.Parse(file, text, nil)
		if err != nil {
			return err
		}
		if len(parsed.Replace) > 0 {
			return fmt.Errorf("%s has a replace line", file)
		}
		for _, required := range parsed.Require {
			if ours(required.Mod.Path) && required.Mod.Version != r.Version {
				return fmt.Errorf("the tag is %s, but %s requires %s", r.Version, file, required.Mod)
			}
		}
	}
	return nil
}
