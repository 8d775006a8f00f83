// Command reference compares our answers with the recorded answers of Volcano.
//
//	reference [flags] [PATH…]
//
// PATH is a file of cases (.jsonl or .jsonl.gz) or a folder of such files; default: testdata/reference. The last line sums up; the exit
// status is 1 if any answer differs or could not be compared.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/apportion/apportion/internal/reference"
)

// defaultPath is where the project keeps its recorded answers.
const defaultPath = "testdata/reference"

func main() {
	os.Exit(run())
}

func run() int {
	var r reference.Run
	flag.StringVar(&r.Group, "profile", "", "check only the cases of this profile (probes: the hand-made ones)")
	flag.StringVar(&r.Label, "case", "", "check only the case of this seed or name")
	flag.StringVar(&r.Only, "kind", "", "compare only answers whose JSON pointer contains this, such as /reclaims/ or /deserved/")
	way := flag.String("way", "", "ask only along this way: process or service (default: both)")
	most := flag.Int("max", 10, "show at most this many differences of each profile")
	flag.Parse()
	r.Paths = flag.Args()
	if len(r.Paths) == 0 {
		r.Paths = []string{defaultPath}
	}
	ways, closeWays, err := reference.Ways(*way)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer closeWays()
	r.Ways = ways
	results, err := r.Do(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	tally, err := reference.Report(os.Stdout, results, ways, *most)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if tally.Different() > 0 || tally.Unsupported > 0 || tally.Failed > 0 {
		return 1
	}
	return 0
}
