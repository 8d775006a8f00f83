// Command site writes what the page without a server has beside its program: the presets, and samples as snapshots with their manifests.
//
//	site FOLDER [LINKS]
//
// LINKS is a file that gets the addresses of the page at which the marks of documents lead, by document and line, in JSON.
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

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/cmd/offline/dump"
	"github.com/apportion/apportion/cmd/offline/example"
	"github.com/apportion/apportion/ui"
)

// sample is a cluster to begin with.
type sample struct {
	Name     string          `json:"name"`
	Title    string          `json:"title"`
	About    string          `json:"about"`
	Files    []string        `json:"files"`
	Warnings []string        `json:"warnings,omitempty"`
	Policy   json.RawMessage `json:"policy,omitempty"`
	// Trace is the name of a history of jobs in the folder of the sample.
	Trace string `json:"trace,omitempty"`

	folder, trace string
}

func main() {
	err := errors.New("usage: site FOLDER [LINKS]")
	switch arguments := os.Args[1:]; len(arguments) {
	case 1:
		err = run(arguments[0])
	case 2:
		err = errors.Join(run(arguments[0]), links(arguments[1]))
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
	var samples []*sample
	for _, of := range example.Samples {
		s := &sample{Name: of.Name, Title: of.Title, About: of.About, Trace: filepath.Base(of.Trace), folder: of.Folder, trace: of.Trace}
		if err := s.write(filepath.Join(out, "samples", s.Name)); err != nil {
			return fmt.Errorf("sample %s: %w", s.Name, err)
		}
		samples = append(samples, s)
	}
	data, err := json.Marshal(map[string]any{"policies": policies, "samples": samples})
	if err != nil {
		return err
	}
	return write(filepath.Join(out, "site.json"), data)
}

// links writes the addresses of all marks in documents.
func links(file string) error {
	found := map[string]map[int]string{}
	for _, name := range example.Documents {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		transcripts, err := example.Transcripts(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found[name] = map[int]string{}
		for _, t := range transcripts {
			if !t.Marked {
				continue
			}
			if found[name][t.MarkLine], err = t.Link("."); err != nil {
				return fmt.Errorf("%s: line %d: %w", name, t.Line, err)
			}
		}
	}
	data, err := json.Marshal(found)
	return errors.Join(err, write(file, data))
}

// write reads a sample's manifests, and writes them and their snapshot into a folder.
func (s *sample) write(out string) error {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return err
	}
	var sources []objects.Source
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(s.folder, entry.Name()))
		if err != nil {
			return err
		}
		if filepath.Ext(entry.Name()) != ".yaml" {
			continue
		}
		sources = append(sources, objects.Source{Name: entry.Name(), Data: data})
		s.Files = append(s.Files, entry.Name())
		if err := write(filepath.Join(out, entry.Name()), data); err != nil {
			return err
		}
	}
	history, err := os.ReadFile(s.trace)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(out, s.Trace), history); err != nil {
		return err
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
