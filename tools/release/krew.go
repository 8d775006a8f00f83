package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"golang.org/x/mod/semver"
)

// krewFile is the manifest of kubectl's plugin for krew, kubectl's own installer of plugins.
const krewFile = "krew.yaml"

// project is the URL at which releases are published.
const project = "https://github.com/apportion/apportion"

var krewTemplate = template.Must(template.New(krewFile).Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: apportion
spec:
  version: {{.Semantic}}
  homepage: {{.Project}}
  shortDescription: Say why a job is pending, and who deserves what
  description: |
    Reads the queues, jobs and nodes of a cluster with the Volcano scheduler, decides as the scheduler does, and says
    why each waiting job waits, what each queue deserves, and what a change would do. It changes nothing.
  platforms:
{{- range .Platforms}}
  - selector:
      matchLabels:
        os: {{.OS}}
        arch: {{.Arch}}
    uri: {{$.Project}}/releases/download/{{$.Version}}/{{.Archive}}
    sha256: {{.Sum}}
    files:
    - from: "{{.Directory}}/*"
      to: .
    bin: {{.Program}}
{{- end}}
`))

// semantic returns the version as krew and other tools read it: one of semantic versioning. What git says of a commit without a tag becomes
// a version before the first one.
func (r *Release) semantic() string {
	if semver.IsValid(r.Version) && strings.Count(r.Version, ".") >= 2 {
		return r.Version
	}
	return "v0.0.0-g" + strings.NewReplacer(".", "-", "_", "-", "+", "-").Replace(r.Version)
}

// krew writes the manifest of the archives made.
func (r *Release) krew() error {
	type platform struct{ OS, Arch, Archive, Sum, Directory, Program string }
	data := struct {
		Version, Semantic, Project string
		Platforms                  []platform
	}{Version: r.Version, Semantic: r.semantic(), Project: project}
	for _, name := range r.Platforms {
		packed, err := os.ReadFile(r.archiveFile(name))
		if err != nil {
			return err
		}
		system, arch, _ := strings.Cut(name, "/")
		sum := sha256.Sum256(packed)
		data.Platforms = append(data.Platforms, platform{
			OS: system, Arch: arch, Archive: filepath.Base(r.archiveFile(name)), Sum: hex.EncodeToString(sum[:]),
			Directory: r.name(name), Program: filepath.Base(r.binary(name)),
		})
	}
	var text bytes.Buffer
	if err := krewTemplate.Execute(&text, data); err != nil {
		return fmt.Errorf("%s: %w", krewFile, err)
	}
	return os.WriteFile(filepath.Join(r.Out, krewFile), text.Bytes(), 0o600)
}
