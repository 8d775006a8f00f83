package main

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// cause is a directory of testdata/pending: a cluster in which a job waits, and the expected explanation.
type cause struct {
	folder string
	// headers of expect.txt, and its sentence.
	headers  map[string]string
	sentence string
}

// input are the flags that name the cause's files.
func (c *cause) input() []string {
	flags := []string{"-f", filepath.Join(c.folder, "dump.yaml")}
	if config := filepath.Join(c.folder, "volcano-scheduler.conf"); exists(config) {
		flags = append(flags, "--policy", config)
	}
	if policy := c.preset(); policy != "" {
		flags = append(flags, "--policy", policy)
	}
	if moment := c.headers["as-of"]; moment != "" {
		flags = append(flags, "--as-of", moment)
	}
	return flags
}

// preset is the policy of a cause without a configuration: unless it names one, one that may evict.
func (c *cause) preset() string {
	if exists(filepath.Join(c.folder, "volcano-scheduler.conf")) {
		return ""
	}
	return cmp.Or(c.headers["policy"], "proportion")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// causes are all directories of testdata/pending.
func causes(t *testing.T) map[string]*cause {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "pending", "*", "expect.txt"))
	require.NoError(t, err)
	all := make(map[string]*cause, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		head, sentence, found := strings.Cut(string(data), "\n\n")
		require.True(t, found, "%s has no empty line after its headers", file)
		c := &cause{folder: filepath.Dir(file), headers: make(map[string]string), sentence: unwrapped(sentence)}
		for line := range strings.Lines(head) {
			name, value, found := strings.Cut(strings.TrimSpace(line), ": ")
			require.True(t, found, "%s: no header: %q", file, line)
			c.headers[name] = value
		}
		all[filepath.Base(c.folder)] = c
	}
	return all
}

// agrees asks the Explain call about the cause, and then the question of the check, whose answer must be the same.
func (c *cause) agrees(t *testing.T) {
	t.Helper()
	var flags question.InputFlags
	flags.Files = []string{filepath.Join(c.folder, "dump.yaml")}
	flags.Policy = c.preset()
	if config := filepath.Join(c.folder, "volcano-scheduler.conf"); exists(config) {
		flags.Policy = config
	}
	flags.AsOf = c.headers["as-of"]
	in, err := flags.Load(t.Context(), cli.Streams{In: strings.NewReader(""), Err: io.Discard})
	require.NoError(t, err)
	decider := client.InProcess()
	explanations, err := decider.Explain(t.Context(), in.Input, client.ExplainQuestion{Jobs: []string{jobOf(in, c.headers["job"])}})
	require.NoError(t, err)
	require.Equal(t, c.sentence, unwrapped(explanations.Answer.GetText()))
	if c.headers["check"] == "" {
		return
	}
	explained := explanations.Answer.GetJobs()[0]
	require.NotNil(t, explained.Blocking)
	finding := explained.GetFindings()[explained.GetBlocking()]
	require.Equal(t, c.headers["check"], text.Enum(finding.GetCheck(), "CHECK_KIND_"))
	require.NotEmpty(t, finding.GetCauses())
	require.Equal(t, c.headers["reason"], strings.TrimPrefix(finding.GetCauses()[0].GetCode().String(), "CAUSE_CODE_"))
	index, err := in.Lookup.Job(c.headers["job"])
	require.NoError(t, err)
	asked, err := decider.Simulate(t.Context(), in.Input, plainQuestion(t, in, index, finding)...)
	require.NoError(t, err)
	require.True(t, refused(asked.Answers[len(asked.Answers)-1]), "the question by itself is answered with yes")
}

// jobOf returns the contract's name of a job, or of an entity that is left out.
func jobOf(in *question.Loaded, name string) string {
	if index, err := in.Lookup.Job(name); err == nil {
		return question.JobID(in.Lookup.GetJobs()[index])
	}
	return name
}

// plainQuestion are the steps that ask what a check asks, the last of them the question itself.
func plainQuestion(t *testing.T, in *question.Loaded, job uint32, finding *apportionv1.Finding) []*apportionv1.Step {
	t.Helper()
	jobs := &apportionv1.Selector{Indices: []uint32{job}}
	waiting := &apportionv1.Selector{}
	for _, task := range in.Lookup.TasksOf(job) {
		if task.Pending() {
			waiting.Indices = append(waiting.Indices, task.Number)
		}
	}
	if finding.Task != nil {
		waiting.Indices = []uint32{finding.GetTask()}
	}
	switch finding.GetCheck() {
	case apportionv1.CheckKind_CHECK_KIND_ADMISSION:
		return []*apportionv1.Step{{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: jobs}}}}
	case apportionv1.CheckKind_CHECK_KIND_TASKS:
		if finding.GetCauses()[0].GetCode() == apportionv1.CauseCode_CAUSE_CODE_TASKS_GATED {
			return []*apportionv1.Step{{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Tasks: true}}}}
		}
		return []*apportionv1.Step{{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{Jobs: jobs}}}}
	case apportionv1.CheckKind_CHECK_KIND_QUEUE:
		queue := in.Lookup.GetJobs()[job].GetQueue()
		return []*apportionv1.Step{{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{
			Queues: &apportionv1.Selector{Names: []string{queue}},
		}}}}
	case apportionv1.CheckKind_CHECK_KIND_SHARE:
		return []*apportionv1.Step{{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: waiting, Jointly: true}}}}
	case apportionv1.CheckKind_CHECK_KIND_FEASIBILITY:
		switch phase := in.Lookup.GetJobs()[job].GetPhase(); {
		case finding.Task == nil && phase == apportionv1.JobPhase_JOB_PHASE_PENDING && in.Lookup.GetJobs()[job].GetMinResources() != nil:
			return []*apportionv1.Step{{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: jobs}}}}
		case finding.Task == nil && finding.GetCauses()[0].Queue != nil:
			return []*apportionv1.Step{{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: waiting, Jointly: true}}}}
		}
		return []*apportionv1.Step{{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: waiting, Jointly: true}}}}
	case apportionv1.CheckKind_CHECK_KIND_NODES:
		return []*apportionv1.Step{{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: waiting, Jointly: true}}}}
	case apportionv1.CheckKind_CHECK_KIND_ORDER:
		// The same question is permitted without the jobs that come first, and refused with them.
		steps := make([]*apportionv1.Step, 0, 2)
		first := &apportionv1.Selector{}
		for _, other := range finding.GetFirstJobs() {
			for _, task := range in.Lookup.TasksOf(other) {
				if task.Pending() {
					first.Indices = append(first.Indices, task.Number)
				}
			}
		}
		if in.Lookup.GetJobs()[job].GetPhase() == apportionv1.JobPhase_JOB_PHASE_PENDING {
			return append(steps, &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{
				Jobs: &apportionv1.Selector{Indices: append(finding.GetFirstJobs(), job)}, Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION,
			}}})
		}
		waiting.Indices = append(first.GetIndices(), waiting.GetIndices()...)
		return append(steps, &apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: waiting, Jointly: true}}})
	default:
		require.FailNow(t, "no question of its own", finding.GetCheck())
		return nil
	}
}

// refused reports whether an answer is no.
func refused(answer *apportionv1.Answer) bool {
	const reject = apportionv1.Vote_VOTE_REJECT
	switch a := answer.GetAnswer().(type) {
	case *apportionv1.Answer_Enqueue:
		jobs := a.Enqueue.GetJobs()
		return jobs[len(jobs)-1].GetVerdict().GetVote() == reject
	case *apportionv1.Answer_Jobs:
		return a.Jobs.GetJobs()[0].GetValid().GetVote() == reject
	case *apportionv1.Answer_Inspect:
		return a.Inspect.GetTasks()[0].GetGated()
	case *apportionv1.Answer_Shares:
		return a.Shares.GetStandings()[0].GetOverused()
	case *apportionv1.Answer_Allocatable:
		return a.Allocatable.GetTasks()[0].GetVerdict().GetVote() == reject
	case *apportionv1.Answer_Nodes:
		return a.Nodes.GetPlacement().GetOutcome() == apportionv1.PlacementOutcome_PLACEMENT_OUTCOME_IMPOSSIBLE
	default:
		return false
	}
}

// write replaces the sentence of expect.txt.
func (c *cause) write(t *testing.T, sentence string) {
	t.Helper()
	file := filepath.Join(c.folder, "expect.txt")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	head, _, _ := strings.Cut(string(data), "\n\n")
	require.NoError(t, os.WriteFile(file, []byte(head+"\n\n"+sentence+"\n"), 0o600))
}

// unwrapped is a text on one line.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestPending asks about every cause as a person does, and compares the sentence that is printed. With -update it writes the sentence.
func TestPending(t *testing.T) {
	for name, c := range causes(t) {
		t.Run(name, func(t *testing.T) {
			var out, warnings bytes.Buffer
			root := newRoot(cli.Streams{In: strings.NewReader(""), Out: &out, Err: &warnings})
			root.SetArgs(append([]string{"explain", "--no-remedies", c.headers["job"]}, c.input()...))
			err := root.ExecuteContext(t.Context())
			require.ErrorIs(t, err, cli.ErrDecidedNo, "%s%s", out.String(), warnings.String())
			paragraphs := strings.Split(strings.TrimSpace(out.String()), "\n\n")
			said := unwrapped(paragraphs[len(paragraphs)-1])
			if *update {
				c.write(t, said)
				return
			}
			require.Equal(t, c.sentence, said)
			c.agrees(t)
		})
	}
}
