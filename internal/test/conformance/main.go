// Command conformance plays the requests of the conformance vectors to the service in this process, and writes the vectors anew: each
// request in both forms, and what the service answered.
//
//	conformance [-check] [FOLDER]
//	conformance -serve-newer ADDRESS [FOLDER]
//
// docs/clients.md says how the folder (default: testdata/conformance) is laid out. With -check it writes nothing, and the exit status is 1
// if a file would change. With -serve-newer it serves as a later version of the contract might.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

const defaultFolder = "testdata/conformance"

func main() {
	check := flag.Bool("check", false, "compare the vectors with what would be written, and write nothing")
	address := flag.String("serve-newer", "", "serve at this address, with fields that clients do not know yet")
	flag.Parse()
	folder := defaultFolder
	if flag.NArg() > 0 {
		folder = flag.Arg(0)
	}
	work := func() error { return run(context.Background(), os.Stdout, folder, *check) }
	if *address != "" {
		work = func() error { return serveNewer(context.Background(), os.Stderr, *address, folder) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run makes every vector of a folder, and writes or compares it.
func run(ctx context.Context, out io.Writer, folder string, check bool) error {
	policies, err := readPolicies(folder)
	if err != nil {
		return err
	}
	server, err := serve(ctx, policies)
	if err != nil {
		return err
	}
	finish := store
	if check {
		finish = compare
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil || len(paths) == 0 {
		return errors.Join(fmt.Errorf("%s: no vectors are there", folder), err, server.stop())
	}
	var faults []error
	for _, path := range paths {
		files, err := remake(ctx, server, path)
		if err == nil {
			err = finish(path, files)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", path, err))
		}
	}
	if err := errors.Join(append(faults, server.stop())...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d vectors\n", len(paths))
	return err
}

// remake returns the files of one vector.
func remake(ctx context.Context, server *server, path string) (map[string][]byte, error) {
	requests, err := readRequests(path)
	if err != nil {
		return nil, err
	}
	exchange, err := server.play(ctx, filepath.Base(filepath.Dir(path)), requests)
	if err != nil {
		return nil, err
	}
	return encode(exchange)
}

// store writes the files of a vector, and removes those that are no part of it.
func store(path string, files map[string][]byte) error {
	present, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range present {
		if _, kept := files[entry.Name()]; !kept {
			if err := os.Remove(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(path, name), data, 0o644); err != nil { //nolint:gosec // All users may read test data.
			return err
		}
	}
	return nil
}

// compare returns an error that names the files of a vector that store would change.
func compare(path string, files map[string][]byte) error {
	present, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	var stale []string
	for _, entry := range present {
		if _, kept := files[entry.Name()]; !kept {
			stale = append(stale, entry.Name())
		}
	}
	for name, data := range files {
		if written, err := os.ReadFile(filepath.Join(path, name)); err != nil || !slices.Equal(written, data) {
			stale = append(stale, name)
		}
	}
	if len(stale) > 0 {
		slices.Sort(stale)
		return fmt.Errorf("%v: run 'make conformance' and commit the result", stale)
	}
	return nil
}
