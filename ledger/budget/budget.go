// Package budget reads the file in which operators write the budgets of queues.
//
//	budgets:
//	  - queue: vision
//	    kind: hard            # or soft
//	    carry: true           # the next period pays for what this one overspends; the default
//	    periods:              # each ends where the next begins
//	      - {begin: 2026-10-01, hours: {nvidia.com/gpu: 5000, cpu: 20000}}
//	      - {begin: 2027-01-01, hours: {nvidia.com/gpu: 4000}}
package budget

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/ledger"
)

type file struct {
	Budgets []struct {
		Queue   string `yaml:"queue"`
		Kind    string `yaml:"kind"`
		Carry   *bool  `yaml:"carry"`
		Periods []struct {
			Begin string            `yaml:"begin"`
			Hours map[string]string `yaml:"hours"`
		} `yaml:"periods"`
	} `yaml:"budgets"`
}

// ReadFile reads the budgets in a file. Without a name there are none.
func ReadFile(name string, o ledger.Options) ([]ledger.Budget, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	budgets, err := Read(data, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return budgets, nil
}

// Read reads a file of budgets. Amounts are hours of a Kubernetes quantity: 5000 of nvidia.com/gpu are 5,000 hours of one device, 8 of cpu
// are eight hours of a core. A period begins at a date, which is midnight UTC, or at a time such as 2026-10-01T06:00:00Z. The error names
// every fault of the file by its place.
func Read(data []byte, o ledger.Options) ([]ledger.Budget, error) {
	var read file
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&read); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var faults []error
	fail := func(path, format string, arguments ...any) {
		faults = append(faults, fmt.Errorf("%s: "+format, append([]any{path}, arguments...)...))
	}
	queues := map[string]bool{}
	out := make([]ledger.Budget, len(read.Budgets))
	for i, b := range read.Budgets {
		path := fmt.Sprintf("budgets[%d]", i)
		out[i] = ledger.Budget{Queue: b.Queue, Hard: b.Kind == "hard", Free: b.Carry != nil && !*b.Carry}
		switch {
		case b.Queue == "":
			fail(path+".queue", "the budget names no queue")
		case queues[b.Queue]:
			fail(path+".queue", "%q has two budgets", b.Queue)
		}
		queues[b.Queue] = true
		if b.Kind != "hard" && b.Kind != "soft" {
			fail(path+".kind", "hard or soft is expected, not %q", b.Kind)
		}
		if len(b.Periods) == 0 {
			fail(path+".periods", "there is none")
		}
		for j, p := range b.Periods {
			path := fmt.Sprintf("%s.periods[%d]", path, j)
			begin, err := parseTime(p.Begin)
			if err != nil {
				fail(path+".begin", "%w", err)
			}
			amount := map[string]int64{}
			for _, name := range slices.Sorted(maps.Keys(p.Hours)) {
				n, err := amountOf(name, p.Hours[name], o)
				if err != nil {
					fail(path+".hours."+name, "%w", err)
				}
				amount[name] = n
			}
			if len(amount) == 0 {
				fail(path+".hours", "there is none")
			}
			out[i].Periods = append(out[i].Periods, ledger.Period{Begin: begin.Unix(), Amount: amount})
		}
		if !slices.IsSortedFunc(out[i].Periods, func(a, b ledger.Period) int { return cmp.Compare(a.Begin, b.Begin) }) {
			fail(path+".periods", "they are not in order of begin")
		}
	}
	return out, errors.Join(faults...)
}

func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("a date such as 2026-10-01, or a time such as 2026-10-01T06:00:00Z, is expected, not %q", text)
}

// amountOf returns hours of a quantity in quantum-seconds.
func amountOf(name, hours string, o ledger.Options) (int64, error) {
	raw, err := quantity.Parse(name, hours)
	if err != nil {
		return 0, err
	}
	seconds := raw * 3600 / float64(o.Quantum(name))
	if seconds < 0 || seconds >= math.MaxInt64 {
		return 0, fmt.Errorf("%s hours are out of range", hours)
	}
	return int64(seconds), nil
}
