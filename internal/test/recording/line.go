// Package recording reads files of recorded cases, line by line, and what the cases of `fair` hold.
package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Line is the case as it is written in its file.
type Line struct {
	File   string
	Number int
	Data   []byte
}

// maxLine bounds a line of a case file, so that a file of another kind ends in an error rather than in a full memory.
const maxLine = 256 << 20

// Lines yields the cases of a .jsonl or .jsonl.gz file, or those of all such files of a folder, file by file in order of their names.
func Lines(path string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		files, err := files(path)
		if err != nil {
			yield(Line{}, err)
			return
		}
		for _, file := range files {
			for line, err := range linesOf(file) {
				if !yield(line, err) || err != nil {
					return
				}
			}
		}
	}
}

func files(path string) ([]string, error) {
	status, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !status.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if name := entry.Name(); !entry.IsDir() && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.gz")) {
			found = append(found, filepath.Join(path, name))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no file ends in .jsonl or .jsonl.gz", path)
	}
	slices.Sort(found)
	return found, nil
}

func linesOf(file string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		opened, err := os.Open(file)
		if err != nil {
			yield(Line{}, err)
			return
		}
		defer func() { _ = opened.Close() }()
		source := io.Reader(opened)
		if strings.HasSuffix(file, ".gz") {
			if source, err = gzip.NewReader(opened); err != nil {
				yield(Line{}, fmt.Errorf("%s: %w", file, err))
				return
			}
		}
		scanner := bufio.NewScanner(source)
		scanner.Buffer(make([]byte, 0, 1<<20), maxLine)
		for number := 1; scanner.Scan(); number++ {
			if data := bytes.TrimSpace(scanner.Bytes()); len(data) > 0 && !yield(Line{file, number, bytes.Clone(data)}, nil) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			yield(Line{}, fmt.Errorf("%s: %w", file, err))
		}
	}
}
