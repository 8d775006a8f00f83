package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/client/lookup"
	"github.com/apportion/apportion/client/quantity"
	"github.com/apportion/apportion/client/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Outcome is how a check went.
type Outcome string

const (
	// Passed does not hold the job back.
	Passed Outcome = "passed"
	// Failed holds the job back.
	Failed Outcome = "failed"
	// Noted decides nothing by itself.
	Noted Outcome = "noted"
)

// Finding is one check and how it went.
type Finding struct {
	Check   string  `json:"check"`
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"`
}

// Diagnosis is what holds a job back, if anything does.
type Diagnosis struct {
	Job      string    `json:"job"`
	Queue    string    `json:"queue"`
	Waits    bool      `json:"waits"`
	Findings []Finding `json:"findings"`
	// Verdict says it in plain words.
	Verdict string `json:"verdict"`
}

// examiner makes findings of answers.
type examiner struct {
	*Case
	*Answers

	names    text.Names
	findings []Finding
}

// Diagnose says what the answers mean for the job.
func (c *Case) Diagnose(names text.Names, answers *Answers) *Diagnosis {
	e := &examiner{Case: c, Answers: answers, names: names}
	e.admission()
	e.tasks()
	if len(c.Waiting) > 0 {
		e.service()
		e.account()
		e.room()
		e.eviction()
	}
	d := &Diagnosis{Job: lookup.JobName(c.Job), Queue: c.Job.GetQueue(), Findings: e.findings}
	d.Waits = slices.ContainsFunc(e.findings, func(f Finding) bool { return f.Outcome == Failed })
	d.Verdict = e.verdict(d)
	return d
}

func (e *examiner) find(check string, outcome Outcome, format string, args ...any) {
	e.findings = append(e.findings, Finding{Check: check, Outcome: outcome, Text: fmt.Sprintf(format, args...)})
}

func rejected(v *apportionv1.Verdict) bool { return v.GetVote() == apportionv1.Vote_VOTE_REJECT }

func (e *examiner) reasons(v *apportionv1.Verdict) string {
	return text.Reasons(e.names, v.GetReasons())
}

// pending says whether the job still has to be admitted.
func (e *examiner) pending() bool {
	return e.Job.GetPhase() == apportionv1.JobPhase_JOB_PHASE_PENDING || e.Job.GetPhase() == apportionv1.JobPhase_JOB_PHASE_UNSPECIFIED
}

const (
	checkAdmission = "admission"
	checkTasks     = "tasks"
	checkService   = "queue"
	checkAccount   = "share"
	checkRoom      = "nodes"
	checkEviction  = "eviction"
)

// admission: may the job enter its queue?
func (e *examiner) admission() {
	phase := text.Enum(e.Job.GetPhase(), "JOB_PHASE_")
	switch {
	case !e.pending():
		e.find(checkAdmission, Passed, "the job was admitted (phase %s)", phase)
	case e.Job.GetMinResources() == nil:
		e.find(checkAdmission, Passed, "the job names no minimum resources and enters unasked")
	case rejected(e.enqueue):
		e.find(checkAdmission, Failed, "%s", e.reasons(e.enqueue))
	default:
		e.find(checkAdmission, Passed, "the job is pending, and may enter queue %s now", e.Job.GetQueue())
	}
}

// tasks: has the job what its gang needs?
func (e *examiner) tasks() {
	standing := e.job
	minimum := fmt.Sprintf("%d ready, %d waiting, minimum %d",
		standing.GetReadyTasks(), len(e.Waiting)+int(e.Counted), standing.GetMinAvailable())
	switch {
	case rejected(standing.GetValid()):
		e.find(checkTasks, Failed, "%s", e.reasons(standing.GetValid()))
	case len(e.Gated) > 0 && len(e.Waiting) == 0:
		e.find(checkTasks, Failed, "%d tasks are held back by a scheduling gate", len(e.Gated))
	case len(e.Gated) > 0:
		e.find(checkTasks, Noted, "%s; %d more are held back by a scheduling gate", minimum, len(e.Gated))
	case len(e.Waiting) == 0 && e.Counted > 0:
		e.find(checkTasks, Noted, "%s; they are counted, not listed, so nothing more can be asked about them", minimum)
	case len(e.Waiting) == 0:
		e.find(checkTasks, Passed, "%s: nothing waits to be placed", minimum)
	default:
		e.find(checkTasks, Passed, "%s", minimum)
	}
}

// service: is the queue served at all, and how soon?
func (e *examiner) service() {
	for _, standing := range e.shares.GetStandings() {
		if e.names.Queue(standing.GetQueue()) != e.Job.GetQueue() {
			continue
		}
		if standing.GetOverused() {
			e.find(checkService, Failed, "%s", text.Reasons(e.names, standing.GetReasons()))
			return
		}
		if standing.Rank != nil {
			e.find(checkService, Passed, "queue %s is number %d in queue order", e.Job.GetQueue(), standing.GetRank()+1)
			return
		}
	}
}

// account: may the queue use that much more?
func (e *examiner) account() {
	what := fmt.Sprintf("what the gang needs (%s)", e.sum(e.Needed))
	if len(e.Needed) == 1 {
		what = "one more task (" + e.sum(e.Needed) + ")"
	}
	for _, sample := range e.samples {
		if rejected(sample.GetVerdict()) {
			e.find(checkAccount, Failed, "%s", e.reasons(sample.GetVerdict()))
			return
		}
	}
	switch {
	case rejected(e.jointly):
		e.find(checkAccount, Failed, "not for %s: %s", what, e.reasons(e.jointly))
	case e.jointly != nil:
		e.find(checkAccount, Passed, "the queue's share has room for %s", what)
	}
}

// sum adds up requests in words.
func (e *examiner) sum(tasks []lookup.Task) string {
	totals := make([]float64, len(e.names.Dimensions))
	for _, task := range tasks {
		request := task.Request()
		for i, index := range request.GetDimension() {
			if int(index) < len(totals) && i < len(request.GetAmount()) {
				totals[index] += request.GetAmount()[i]
			}
		}
	}
	return e.amounts(totals)
}

// amounts lists what is not zero; pods only if there is nothing else.
func (e *examiner) amounts(totals []float64) string {
	var parts []string
	for i, total := range totals {
		if name := e.names.Dimensions[i]; total != 0 && name != "pods" {
			parts = append(parts, quantity.Short(name, total)+" "+name)
		}
	}
	if len(parts) == 0 {
		return "nothing but room for pods"
	}
	return strings.Join(parts, ", ")
}
