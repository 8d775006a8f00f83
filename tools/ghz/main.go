// Command ghz makes one run of load with ghz and writes its report in two forms.
//
//	ghz CONFIG.json REPORT.json REPORT.html
//
// CONFIG.json is a configuration file of ghz (https://ghz.sh/docs/options). A host of the form static:///HOST:PORT,HOST:PORT is several
// replicas, among which calls take turns.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/bojand/ghz/printer"
	"github.com/bojand/ghz/runner"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: ghz CONFIG.json REPORT.json REPORT.html")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "ghz:", err)
		os.Exit(1)
	}
}

func run(configuration, asJSON, asHTML string) error {
	var c runner.Config
	if err := runner.LoadConfig(configuration, &c); err != nil {
		return err
	}
	report, err := runner.Run(c.Call, c.Host, runner.WithConfig(&c))
	if err != nil {
		return err
	}
	return errors.Join(write(report, "pretty", asJSON), write(report, "html", asHTML))
}

func write(report *runner.Report, format, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	p := printer.ReportPrinter{Report: report, Out: file}
	return errors.Join(p.Print(format), file.Close())
}
