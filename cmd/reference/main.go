// Command reference compares our answers with recorded ones: those of Volcano and of Kueue, and for `fair` those of an independent
// implementation.
//
//	reference [flags] [PATH…]
//	reference -sessions [PATH…]
//
// With -sessions, PATH has whole sessions of Volcano; default: those in testdata.
//
// PATH is a file of cases (.jsonl or .jsonl.gz) or a folder of such files; default: those below testdata. The last line of the output sums
// up; the exit status is 1 if an answer differs or could not be compared, 2 if the cases could not be read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/apportion/apportion/cmd/internal/test/reference"
	"github.com/apportion/apportion/cmd/internal/test/sessions"
)

// defaultPaths are the folders of the project's recorded answers.
var defaultPaths = []string{"testdata/reference", "testdata/fair", "testdata/memory", "testdata/kueue"}

func main() {
	var run reference.Run
	flag.StringVar(&run.Group, "profile", "", "check only the cases of this profile (probes: the hand-made ones)")
	flag.StringVar(&run.Label, "case", "", "check only the case of this seed or name")
	flag.StringVar(&run.Only, "kind", "", "compare only answers whose JSON pointer contains this, such as /reclaims/ or /deserved/")
	way := flag.String("way", "", "ask along this way only: process or service")
	whole := flag.Bool("sessions", false, "play recorded whole sessions of Volcano in place of single answers")
	most := flag.Int("max", 10, "show at most this many differences of each profile")
	flag.Parse()
	run.Paths = flag.Args()
	if *whole {
		os.Exit(play(run.Paths))
	}
	os.Exit(check(&run, *way, *most))
}

// play compares whole sessions and returns the exit status.
func play(paths []string) int {
	if len(paths) == 0 {
		paths = []string{"testdata/volcano-sessions"}
	}
	status := 0
	for _, path := range paths {
		tally, err := sessions.Compare(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		for _, session := range slices.Sorted(maps.Keys(tally.Differences)) {
			fmt.Println(session, tally.Differences[session])
			status = 1
		}
		fmt.Println(tally)
	}
	return status
}

// check makes the run and returns the exit status.
func check(run *reference.Run, way string, most int) int {
	if len(run.Paths) == 0 {
		run.Paths = defaultPaths
	}
	ways, stop, err := reference.Ways(way)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	run.Ways = ways
	results, err := run.Do(context.Background())
	if err = errors.Join(err, stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	text, tally := reference.Report(results, ways, most)
	fmt.Print(text)
	if !tally.Good() {
		return 1
	}
	return 0
}
