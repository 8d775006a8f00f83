// Package example finds the questions in the transcripts of documents that the page without a server can show, and the addresses that show
// them: the same cluster, the same policy, the same question.
package example

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/apportion/apportion/cmd/offline/dump"
)

// Sample is a cluster that the site has.
type Sample struct {
	Name, Title, About string
	// Folder has the manifests, and Trace is a history of jobs on them.
	Folder, Trace string
}

// Samples are those of the site.
var Samples = []Sample{{
	Name: "research", Title: "research", About: "Five queues share 80 GPUs, and four jobs wait.", Folder: "examples/clusters/research",
	Trace: "examples/traces/week.csv",
}}

// Documents are those in which each transcript that the page can show has a mark.
var Documents = []string{
	"README.md", "docs/cli.md", "docs/fair.md", "docs/forecast.md", "docs/kueue.md", "docs/quickstart.md", "docs/rehearse.md",
	"docs/semantics.md", "docs/volcano.md",
}

// Mark begins the line below a transcript that links to the page. On a code host it leads to the section of docs/site.md about such links;
// in the documents of the site it leads to the question itself.
const Mark = "[Open this in the page]("

// Transcript is a console block of a document: commands of apportion, or questions about a cluster in the notation of docs/semantics.md.
type Transcript struct {
	// Line is the number of the first command's or question's line, from 1.
	Line int
	// Command is what stands after the first prompt of a shell; empty: the block has Questions.
	Command string
	// Questions are about Cluster.
	Questions []string
	Cluster   string
	// Marked says that a mark follows the block, in line MarkLine.
	Marked   bool
	MarkLine int
}

const (
	fence    = "```"
	opens    = fence + "console"
	cluster  = fence + "cluster"
	prompt   = "$ apportion "
	question = "> "
)

// Transcripts returns the console blocks of a document that begin with a command of apportion or a question, in order. A mark that follows
// no such block is an error.
func Transcripts(document string) ([]Transcript, error) {
	var s scan
	for i, line := range strings.Split(document, "\n") {
		if err := s.read(i+1, line); err != nil {
			return nil, err
		}
	}
	return s.list, nil
}

// scan reads a document line by line.
type scan struct {
	list []Transcript
	// inside is the line that opened the present block, empty between blocks.
	inside  string
	cluster strings.Builder
	// fresh says that the last thing read is the last of the list.
	fresh bool
}

func (s *scan) read(number int, line string) error {
	switch {
	case s.inside != "" && line == fence:
		s.inside = ""
	case s.inside == cluster:
		s.cluster.WriteString(line + "\n")
	case s.inside == opens:
		s.readConsole(number, line)
	case s.inside != "":
	case strings.HasPrefix(line, fence):
		if s.inside, s.fresh = line, false; line == cluster {
			s.cluster.Reset()
		}
	case strings.HasPrefix(line, Mark):
		if !s.fresh {
			return fmt.Errorf("line %d: no transcript of apportion stands above this link", number)
		}
		last := &s.list[len(s.list)-1]
		last.Marked, last.MarkLine, s.fresh = true, number, false
	case line != "":
		s.fresh = false
	}
	return nil
}

// readConsole reads a line of a console block.
func (s *scan) readConsole(number int, line string) {
	asked, asks := strings.CutPrefix(line, question)
	switch {
	case s.fresh && asks:
		last := &s.list[len(s.list)-1]
		last.Questions = append(last.Questions, asked)
	case s.fresh:
	case asks:
		s.list = append(s.list, Transcript{Line: number, Questions: []string{asked}, Cluster: s.cluster.String()})
		s.fresh = true
	case strings.HasPrefix(line, prompt):
		s.list = append(s.list, Transcript{Line: number, Command: strings.TrimPrefix(line, prompt)})
		s.fresh = true
	case strings.HasPrefix(line, "$ "):
		// Another program is asked: the rest of the block has no part in it.
		s.inside = fence
	}
}

// Link returns the fragment of the address at which the page shows the first question of a transcript that it can show. Files are read
// below root. It fails if the page has no view of any, and says why.
func (t *Transcript) Link(root string) (string, error) {
	if t.Command == "" {
		return t.ask()
	}
	return Link(t.Command, root)
}

// Link returns the fragment of the address at which the page shows the question of a command. Files are read below root. It fails if the
// page has no view of the question, and says why.
func Link(command, root string) (string, error) {
	words := split(command)
	if len(words) == 0 {
		return "", errors.New("there is no command")
	}
	q := &asking{root: root, verb: words[0]}
	if err := q.parse(words[1:]); err != nil {
		return "", err
	}
	if err := q.read(); err != nil {
		return "", err
	}
	q.policy = cmp.Or(q.policy, q.dump.Preset, "proportion")
	return q.fragment()
}

// split splits a command line into words; those in single quotes stay together.
func split(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// asking is a command, as far as the page has a view of it.
type asking struct {
	root string

	verb, policy, resource, job string
	names                       []string
	file, snapshot              string
	// edits are as --set has them, and added is the number of nodes that --like adds.
	edits []string
	added string

	// from names the cluster in the address.
	from string
	dump *dump.Dump
}

// flags are those that the page has a counterpart of, and how many words each takes.
func (q *asking) flags() map[string]func(string) error {
	set := func(to *string) func(string) error {
		return func(value string) error {
			*to = value
			return nil
		}
	}
	return map[string]func(string) error{
		"-f": set(&q.file), "--snapshot": set(&q.snapshot), "--policy": set(&q.policy), "--resource": set(&q.resource),
		"--job": set(&q.job), "--set": q.edit("%s"),
		"--add-nodes": set(&q.added), "--like": q.like, "--finish": q.edit("job/%q.ended=true"),
	}
}

// parse reads the words after the name of a command.
func (q *asking) parse(words []string) error {
	// What the views show anyway.
	shown := map[string]bool{"--explain": true, "--remedies": true, "--tree": true}
	flags := q.flags()
	for ; len(words) > 0; words = words[1:] {
		word := words[0]
		set := flags[word]
		switch {
		case shown[word]:
		case set != nil && len(words) > 1:
			if err := set(words[1]); err != nil {
				return err
			}
			words = words[1:]
		case strings.HasPrefix(word, "-") || word == "|":
			return fmt.Errorf("the page has no counterpart of %s", word)
		default:
			q.names = append(q.names, word)
		}
	}
	return nil
}

// edit reads a flag that stands for an edit.
func (q *asking) edit(form string) func(string) error {
	return func(value string) error {
		q.edits = append(q.edits, fmt.Sprintf(form, value))
		return nil
	}
}

func (q *asking) like(node string) error {
	if q.added == "" {
		return fmt.Errorf("--like %s comes without --add-nodes", node)
	}
	q.edits = append(q.edits, fmt.Sprintf("node/%q.copies=%s", node, q.added))
	q.added = ""
	return nil
}

// text returns a file below the root.
func (q *asking) text(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(q.root, filepath.FromSlash(name)))
}
