package suite

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	wording "github.com/apportion/apportion/internal/text"
)

// Result is the result of a test.
type Result struct {
	File string
	Test *Test
	// Fault is the reason why the test could not run; nil: it ran.
	Fault error
	// Failed contains the steps with unexpected answers.
	Failed []FailedStep
	Took   time.Duration
}

// FailedStep is a step with an unexpected answer.
type FailedStep struct {
	// Number counts from 1; Text is the step in one line.
	Number      int
	Text        string
	Differences []Difference
}

// Passed reports whether the test passed.
func (r *Result) Passed() bool { return r.Fault == nil && len(r.Failed) == 0 }

// Lines describes the failures, one per line.
func (r *Result) Lines() []string {
	if r.Fault != nil {
		return strings.Split(r.Fault.Error(), "\n")
	}
	var lines []string
	for _, step := range r.Failed {
		lines = append(lines, fmt.Sprintf("step %d, %s", step.Number, step.Text))
		for _, d := range step.Differences {
			lines = append(lines, fmt.Sprintf("  %s:%d: %s", r.File, d.Line, d.Path), "    expected "+d.Want, "    answered "+d.Got)
		}
	}
	return lines
}

// Report returns the JSON form of results.
func Report(results []*Result) any {
	type difference struct {
		Line     int    `json:"line"`
		Path     string `json:"path"`
		Expected string `json:"expected"`
		Answered string `json:"answered"`
	}
	type step struct {
		Step        int          `json:"step"`
		Text        string       `json:"text"`
		Differences []difference `json:"differences"`
	}
	type result struct {
		File   string `json:"file"`
		Line   int    `json:"line"`
		Name   string `json:"name"`
		Passed bool   `json:"passed"`
		Fault  string `json:"fault,omitempty"`
		Failed []step `json:"failed,omitempty"`
	}
	list := make([]result, len(results))
	for i, r := range results {
		list[i] = result{File: r.File, Line: r.Test.Line, Name: r.Test.Name, Passed: r.Passed()}
		if r.Fault != nil {
			list[i].Fault = r.Fault.Error()
		}
		for _, f := range r.Failed {
			s := step{Step: f.Number, Text: f.Text}
			for _, d := range f.Differences {
				s.Differences = append(s.Differences, difference{d.Line, d.Path, d.Want, d.Got})
			}
			list[i].Failed = append(list[i].Failed, s)
		}
	}
	return list
}

// WriteTAP writes results in the Test Anything Protocol, version 13.
func WriteTAP(to io.Writer, results []*Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "TAP version 13\n1..%d\n", len(results))
	for i, r := range results {
		verdict := "ok"
		if !r.Passed() {
			verdict = "not ok"
		}
		// A # begins a directive.
		name := strings.ReplaceAll(r.File+": "+r.Test.Name, "#", "\\#")
		fmt.Fprintf(&b, "%s %d - %s\n", verdict, i+1, name)
		for _, line := range r.Lines() {
			fmt.Fprintf(&b, "# %s\n", line)
		}
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// The elements of JUnit's XML that build servers read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string      `xml:"name,attr"`
		Class   string      `xml:"classname,attr"`
		File    string      `xml:"file,attr"`
		Line    int         `xml:"line,attr"`
		Time    string      `xml:"time,attr"`
		Failure *junitFault `xml:"failure"`
		Error   *junitFault `xml:"error"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes results as JUnit's XML, a suite for each file.
func WriteJUnit(to io.Writer, results []*Result) error {
	var all junitSuites
	var took time.Duration
	for _, r := range results {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != r.File {
			all.Suites, took = append(all.Suites, junitSuite{Name: r.File}), 0
		}
		s := &all.Suites[len(all.Suites)-1]
		c := junitCase{Name: r.Test.Name, Class: r.File, File: r.File, Line: r.Test.Line, Time: seconds(r.Took)}
		text := &junitFault{Text: strings.Join(r.Lines(), "\n")}
		switch {
		case r.Fault != nil:
			text.Message, c.Error = "the test could not be asked", text
			s.Errors++
		case !r.Passed():
			text.Message, c.Failure = wording.Are(len(r.Failed), "step")+" not as expected", text
			s.Failures++
		}
		took += r.Took
		s.Tests, s.Time, s.Cases = s.Tests+1, seconds(took), append(s.Cases, c)
	}
	if _, err := io.WriteString(to, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(to)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(to, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
