package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// licences are the names of files that may hold the licence of a module.
var licences = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._].*)?$`)

// certain is the part of a file, in percent, that must be the text of known licences.
const certain = 75

// licenceOf returns the SPDX identifiers of the licences in a module's directory, by their texts; none if none is known.
func licenceOf(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() || !licences.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return nil, err
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < certain {
			continue
		}
		for _, match := range coverage.Match {
			if !slices.Contains(found, match.ID) {
				found = append(found, match.ID)
			}
		}
	}
	return found, nil
}

// license sets the licences of a component, which is a module of Go.
func (r *Release) license(ctx context.Context, component *cyclonedx.Component, m *debug.Module) error {
	if m.Replace != nil {
		m = m.Replace
	}
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.Path+"@"+m.Version) //nolint:gosec // the module of a binary that was just built
	command.Dir = r.Root
	text, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	var place struct{ Dir string }
	if err := json.Unmarshal(text, &place); err != nil {
		return err
	}
	names, err := licenceOf(place.Dir)
	if err != nil || len(names) == 0 {
		return err
	}
	list := cyclonedx.Licenses{}
	for _, name := range names {
		list = append(list, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: name}})
	}
	component.Licenses = &list
	return nil
}
