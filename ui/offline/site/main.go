// Command site writes what the page without a server has beside its program: the presets, and samples as snapshots with their manifests.
//
//	site FOLDER
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/ui"
	"github.com/apportion/apportion/ui/offline/dump"
)

// sample is a cluster to begin with.
type sample struct {
	Name     string          `json:"name"`
	Title    string          `json:"title"`
	About    string          `json:"about"`
	Files    []string        `json:"files"`
	Warnings []string        `json:"warnings,omitempty"`
	Policy   json.RawMessage `json:"policy,omitempty"`

	folder string
}

var samples = []sample{{
	Name: "research", Title: "research", About: "Five queues share 80 GPUs, and four jobs wait.", folder: "examples/clusters/research",
}}

func main() {
	const arguments = 2
	err := errors.New("usage: site FOLDER")
	if len(os.Args) == arguments {
		err = run(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string) error {
	policies, err := ui.Presets()
	if err != nil {
		return err
	}
	for i := range samples {
		if err := samples[i].write(filepath.Join(out, "samples", samples[i].Name)); err != nil {
			return fmt.Errorf("sample %s: %w", samples[i].Name, err)
		}
	}
	data, err := json.Marshal(map[string]any{"policies": policies, "samples": samples})
	if err != nil {
		return err
	}
	return write(filepath.Join(out, "site.json"), data)
}

// write reads a sample's manifests, and writes them and their snapshot into a folder.
func (s *sample) write(out string) error {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return err
	}
	var sources []volcano.Source
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(s.folder, entry.Name()))
		if err != nil {
			return err
		}
		if filepath.Ext(entry.Name()) != ".yaml" {
			continue
		}
		sources = append(sources, volcano.Source{Name: entry.Name(), Data: data})
		s.Files = append(s.Files, entry.Name())
		if err := write(filepath.Join(out, entry.Name()), data); err != nil {
			return err
		}
	}
	read, err := dump.Read(sources, time.Time{}, func(int) {})
	if err != nil {
		return err
	}
	for _, warning := range read.Warnings {
		s.Warnings = append(s.Warnings, warning.GetMessage())
	}
	text, err := protojson.Marshal(read.Snapshot)
	if err != nil {
		return err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(read.Snapshot)
	if err != nil {
		return err
	}
	return errors.Join(write(filepath.Join(out, "snapshot.json"), text), write(filepath.Join(out, "snapshot.binpb"), data))
}

// write writes a file that all may read, as a web server must.
func write(name string, data []byte) error {
	const folder, file = 0o755, 0o644
	return errors.Join(os.MkdirAll(filepath.Dir(name), folder), os.WriteFile(name, data, file))
}
