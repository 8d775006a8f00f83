// Command proof writes certificates of fair and mutants of them, and what client/check/certificate says of each, to compare it with the
// checker that is proved and with the one in Python.
//
//	proof [-mutants N] [-seed N] FOLDER
//
// It takes the recorded cases and the clusters of the conformance vectors, and writes three files with a line for each certificate:
// numbers, which proof/main.ml reads; certificates.jsonl, which proof/compare.py reads; and go, 1 if it is accepted and 0 if it is not. It
// prints how many there are of each kind. `make proof` runs it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/apportion/apportion/client/check/certificate"
)

func main() {
	n := flag.Int("mutants", 100_000, "how many mutants to write")
	seed := flag.Uint64("seed", 1, "what the choice of mutants starts from")
	flag.Parse()
	if err := run(os.Stdout, flag.Arg(0), *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes the certificates, then the mutants.
func run(out io.Writer, folder string, n int, seed uint64) error {
	if folder == "" {
		return errors.New("name a folder to write to")
	}
	list, err := collect()
	if err != nil {
		return err
	}
	w, err := newWriter(folder)
	if err != nil {
		return err
	}
	for _, c := range list {
		err = errors.Join(err, w.write(c.kind, c.certificate))
	}
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // The same mutants every time.
	for range n {
		kind, mutant := mutate(random, list)
		err = errors.Join(err, w.write(kind, mutant))
	}
	return errors.Join(err, w.close(out))
}

// writer writes one line for each certificate to each of its files, and counts.
type writer struct {
	files                   []*os.File
	numbers, texts, verdict *bufio.Writer
	kinds                   []string
	count                   map[string]*[2]int
}

func newWriter(folder string) (*writer, error) {
	w := &writer{count: map[string]*[2]int{}}
	for _, name := range []string{"numbers", "certificates.jsonl", "go"} {
		file, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		w.files = append(w.files, file)
	}
	w.numbers, w.texts, w.verdict = bufio.NewWriter(w.files[0]), bufio.NewWriter(w.files[1]), bufio.NewWriter(w.files[2])
	return w, nil
}

func (w *writer) write(kind string, c *fair) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	faults, err := certificate.Check(fmt.Appendf(nil, `{"plugins":[{"fair":%s}]}`, text))
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	verdict := 0
	if len(faults) == 0 {
		verdict = 1
	}
	if w.count[kind] == nil {
		w.kinds, w.count[kind] = append(w.kinds, kind), &[2]int{}
	}
	w.count[kind][verdict]++
	_, err1 := fmt.Fprintf(w.texts, "%s\n", text)
	_, err2 := fmt.Fprintf(w.numbers, "%s\n", c.numbers())
	_, err3 := fmt.Fprintf(w.verdict, "%d\n", verdict)
	return errors.Join(err1, err2, err3)
}

func (w *writer) close(out io.Writer) error {
	err := errors.Join(w.numbers.Flush(), w.texts.Flush(), w.verdict.Flush())
	for _, file := range w.files {
		err = errors.Join(err, file.Close())
	}
	slices.Sort(w.kinds)
	for _, kind := range w.kinds {
		_, failed := fmt.Fprintf(out, "%7d accepted, %7d refused  %s\n", w.count[kind][1], w.count[kind][0], kind)
		err = errors.Join(err, failed)
	}
	return err
}
