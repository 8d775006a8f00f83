package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
)

// manualDirectory is the directory of the manual pages, below Out. All platforms have the same ones.
func (r *Release) manualDirectory() string { return filepath.Join(r.Out, "manual") }

// manual writes the manual pages, with a program for this machine.
func (r *Release) manual(ctx context.Context) error {
	directory, err := filepath.Abs(r.manualDirectory())
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // The system clears its directory of temporary files.
	binary := filepath.Join(temporary, "apportion")
	if err := r.compile(ctx, runtime.GOOS+"/"+runtime.GOARCH, binary); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, binary, "man", directory)
	command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.Created.Unix(), 10))
	command.Stderr = os.Stderr
	return command.Run()
}

// pages are the manual pages as files of an archive.
func (r *Release) pages() ([]entry, error) {
	files, err := filepath.Glob(filepath.Join(r.manualDirectory(), "*.1"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no manual page is there", r.manualDirectory())
	}
	var list []entry
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		list = append(list, entry{"man/man1/" + filepath.Base(file), 0o644, data})
	}
	return list, nil
}
