package question

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/internal/tree"
)

// ReadMessage reads a message from a file; what describes it in errors.
func ReadMessage(file, what string, message proto.Message) error {
	source, err := ReadSource(file)
	if err != nil {
		return err
	}
	return parseMessage(source, what, message)
}

func parseMessage(source objects.Source, what string, message proto.Message) error {
	if len(bytes.TrimSpace(source.Data)) == 0 {
		return fmt.Errorf("%s is empty: a %s is expected, as `apportion convert` writes it", source.Name, what)
	}
	return document.Unmarshal(source.Name, source.Data, message)
}

// perhapsSnapshot adds a hint to the faults of a source that looks like a snapshot of the contract.
func perhapsSnapshot(err error, sources []objects.Source) error {
	for _, source := range sources {
		head := source.Data[:min(len(source.Data), 4<<10)]
		if bytes.Contains(head, []byte("dimensions")) && !bytes.Contains(head, []byte("kind")) {
			return fmt.Errorf("%w\n%s may be a snapshot as written by convert: name it with --snapshot", err, source.Name)
		}
	}
	return err
}

// Sources are the manifests: files, the files of directories in the order of their names, standard input, or the lists of a live cluster.
func (f *InputFlags) Sources(ctx context.Context, in io.Reader) ([]objects.Source, error) {
	if given := len(f.Files) > 0 || f.Snapshot != ""; f.Live.Named() && given {
		return nil, errors.New("--cluster cannot be used with -f or --snapshot")
	} else if f.Live.On && !given {
		return f.cluster(ctx)
	}
	if len(f.Files) == 0 {
		if f.Snapshot == "" {
			return nil, errors.New("no input: name manifests with -f FILE (- is standard input), --snapshot FILE, " +
				"or the live cluster with --cluster")
		}
		return nil, nil
	}
	if f.Snapshot != "" {
		return nil, errors.New("--snapshot cannot be used with -f")
	}
	var sources []objects.Source
	for _, name := range f.Files {
		files, err := expand(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			source, err := ReadInput(file, in)
			if err != nil {
				return nil, err
			}
			sources = append(sources, source)
		}
	}
	return sources, nil
}

// ReadSource reads a file of manifests or a configuration, which may be compressed by gzip.
func ReadSource(name string) (objects.Source, error) {
	data, err := os.ReadFile(name)
	if err == nil {
		data, err = plain(name, data, maxUnpacked)
	}
	return objects.Source{Name: name, Data: data}, err
}

// maxUnpacked bounds what a file that is compressed unpacks to.
const maxUnpacked = 2 << 30

// plain returns data unpacked if gzip compressed it.
func plain(name string, data []byte, most int64) ([]byte, error) {
	if !tree.Packed(data) {
		return data, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(reader, most+1))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be unpacked by gzip: %w", name, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: unpacks to more than %d MiB", name, most>>20)
	}
	return data, nil
}

// ReadInput reads a file, or standard input; either may be compressed by gzip.
func ReadInput(name string, in io.Reader) (objects.Source, error) {
	if name != cli.Stdin {
		return ReadSource(name)
	}
	data, err := io.ReadAll(in)
	if err == nil {
		data, err = plain("stdin", data, maxUnpacked)
	}
	return objects.Source{Name: "stdin", Data: data}, err
}

// cluster reads the live cluster. It returns a warning for each kind that it may not read.
func (f *InputFlags) cluster(ctx context.Context) ([]objects.Source, error) {
	f.Live.Configuration = f.Policy == "" && f.PolicyName == ""
	read, err := f.Live.Read(ctx)
	if err != nil {
		return nil, err
	}
	f.unread, f.missing = nil, read.Missing
	for _, sentence := range read.Unread {
		f.unread = append(f.unread, dropped("%s", sentence))
	}
	return read.Sources, nil
}

// expand returns the file, standard input, or the manifests in a directory.
func expand(name string) ([]string, error) {
	if name == cli.Stdin {
		return []string{name}, nil
	}
	stat, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !stat.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the directory contains no .yaml, .yml or .json file", name)
	}
	return files, nil
}

// slowBytes is the size of manifests from which the progress of reading is shown.
const slowBytes = 16 << 20

// showReading shows the progress of reading large manifests on a terminal until end is called. The returned option reports the progress.
func showReading(out io.Writer, sources []objects.Source) (options []volcano.Option, end func()) {
	total := 0
	for _, source := range sources {
		total += len(source.Data)
	}
	if total < slowBytes || cli.TerminalOf(out) == nil {
		return nil, func() {}
	}
	line := cli.NewStatusLine(out)
	return []volcano.Option{volcano.WithProgress(func(read int) {
		line.Show("reading %d MiB of manifests: %d %%", total>>20, min(int(100*float64(read)/float64(total)), 100))
	})}, line.End
}
