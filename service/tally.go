package service

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
	"github.com/apportion/apportion/wire/catalogue"
)

// question is a kind of step, as a label.
type question uint8

const (
	otherQuestion question = iota
	sharesQuestion
	jobsQuestion
	enqueueQuestion
	allocatableQuestion
	preemptiveQuestion
	reclaimQuestion
	preemptQuestion
	orderQuestion
	nodesQuestion
	inspectQuestion
	explainQuestion
	planQuestion
	remediesQuestion
	changeQuestion
)

var questionNames = [...]string{
	"other", "shares", "jobs", "enqueue", "allocatable", "preemptive", "reclaim", "preempt", "order", "nodes", "inspect", "explain",
	"plan", "remedies", "change",
}

func questionOf(step *apportionv1.Step) question {
	switch step.GetStep().(type) {
	case *apportionv1.Step_Shares:
		return sharesQuestion
	case *apportionv1.Step_Jobs:
		return jobsQuestion
	case *apportionv1.Step_Enqueue:
		return enqueueQuestion
	case *apportionv1.Step_Allocatable:
		return allocatableQuestion
	case *apportionv1.Step_Preemptive:
		return preemptiveQuestion
	case *apportionv1.Step_Reclaim:
		return reclaimQuestion
	case *apportionv1.Step_Preempt:
		return preemptQuestion
	case *apportionv1.Step_Order:
		return orderQuestion
	case *apportionv1.Step_Nodes:
		return nodesQuestion
	case *apportionv1.Step_Inspect:
		return inspectQuestion
	case *apportionv1.Step_Explain:
		return explainQuestion
	case *apportionv1.Step_Plan:
		return planQuestion
	case *apportionv1.Step_Remedies:
		return remediesQuestion
	case nil:
		return otherQuestion
	default:
		return changeQuestion
	}
}

// outcome is what became of a decision, as a label.
type outcome uint8

const (
	answeredOutcome outcome = iota
	permitOutcome
	abstainOutcome
	rejectOutcome
	errorOutcome
)

var outcomeNames = [...]string{"answered", "permit", "abstain", "reject", "error"}

func outcomeOf(vote apportionv1.Vote) outcome {
	switch vote {
	case apportionv1.Vote_VOTE_PERMIT:
		return permitOutcome
	case apportionv1.Vote_VOTE_REJECT:
		return rejectOutcome
	default:
		return abstainOutcome
	}
}

// decided is a series of decisions. plugin and reason are those of the first reason given; reason is an ErrorReason for errors.
type decided struct {
	question question
	outcome  outcome
	reason   int32
	plugin   string
}

// decisions counts decisions by series. Whatever the labels hold comes from enums, so that there are as many series as kinds of answers
// that were given, never more.
type decisions struct {
	counter *prometheus.CounterVec
	// known is replaced, never changed, so that it is read without a lock.
	known  atomic.Pointer[map[decided]prometheus.Counter]
	adding sync.Mutex
}

func newDecisions() *decisions {
	d := &decisions{counter: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apportion_decisions_total",
		Help: "Decisions by kind of question, verdict, and the plugin and reason named first.",
	}, []string{"question", "verdict", "plugin", "reason"})}
	d.known.Store(&map[decided]prometheus.Counter{})
	return d
}

func (d *decisions) add(key decided, n int) {
	counter, ok := (*d.known.Load())[key]
	if !ok {
		counter = d.learn(key)
	}
	counter.Add(float64(n))
}

func (d *decisions) learn(key decided) prometheus.Counter {
	d.adding.Lock()
	defer d.adding.Unlock()
	plugin := key.plugin
	// The frame's own reasons name no plugin.
	if plugin != "" && !catalogue.Named(plugin) {
		plugin = "other"
	}
	key.plugin = strings.Clone(key.plugin)
	counter := d.counter.WithLabelValues(questionNames[key.question], outcomeNames[key.outcome], plugin, reasonLabel(key))
	// A name that is not known is not learnt, because there may be any number of them.
	if known := d.known.Load(); plugin == key.plugin {
		next := maps.Clone(*known)
		next[key] = counter
		d.known.Store(&next)
	}
	return counter
}

func reasonLabel(key decided) string {
	switch {
	case key.reason == 0:
		return ""
	case key.outcome == errorOutcome:
		if name, ok := apportionv1.ErrorReason_name[key.reason]; ok {
			return strings.TrimPrefix(name, "ERROR_REASON_")
		}
	default:
		if name, ok := apportionv1.ReasonCode_name[key.reason]; ok {
			return strings.TrimPrefix(name, "REASON_CODE_")
		}
	}
	return "OTHER"
}

// tally adds decisions up before they are counted: the answers of one call are alike.
type tally struct {
	into *decisions
	size int
	runs [8]struct {
		key   decided
		count int
	}
}

func (t *tally) note(key decided) {
	for i := range t.size {
		if t.runs[i].key == key {
			t.runs[i].count++
			return
		}
	}
	if t.size == len(t.runs) {
		t.flush()
	}
	t.runs[t.size].key, t.runs[t.size].count = key, 1
	t.size++
}

func (t *tally) flush() {
	for i := range t.size {
		t.into.add(t.runs[i].key, t.runs[i].count)
	}
	t.size = 0
}

// answer notes every decision of an answer.
func (t *tally) answer(step *apportionv1.Step, answer *apportionv1.Answer) {
	q := questionOf(step)
	switch a := answer.GetAnswer().(type) {
	case *apportionv1.Answer_Error:
		t.note(decided{question: q, outcome: errorOutcome, reason: errorReason(a.Error)})
	case *apportionv1.Answer_Enqueue:
		for _, job := range a.Enqueue.GetJobs() {
			t.verdict(q, job.GetVerdict())
		}
	case *apportionv1.Answer_Allocatable:
		for _, task := range a.Allocatable.GetTasks() {
			t.verdict(q, task.GetVerdict())
		}
	case *apportionv1.Answer_Preemptive:
		for _, task := range a.Preemptive.GetTasks() {
			t.verdict(q, task.GetVerdict())
		}
	case *apportionv1.Answer_Reclaim:
		t.victims(q, a.Reclaim)
	case *apportionv1.Answer_Preempt:
		t.victims(q, a.Preempt)
	default:
		t.note(decided{question: q, outcome: answeredOutcome})
	}
}

func (t *tally) verdict(q question, v *apportionv1.Verdict) {
	key := decided{question: q, outcome: outcomeOf(v.GetVote())}
	if reasons := v.GetReasons(); len(reasons) > 0 && key.outcome != permitOutcome {
		key.plugin, key.reason = reasons[0].GetPlugin(), int32(reasons[0].GetCode())
	}
	t.note(key)
}

// victims is one decision, whatever the number of candidates: some may be evicted, none may, or no plugin had an opinion.
func (t *tally) victims(q question, a *apportionv1.VictimsAnswer) {
	key := decided{question: q, outcome: abstainOutcome}
	switch {
	case a.GetDecided() && len(a.GetVictims()) > 0:
		key.outcome = permitOutcome
	case a.GetDecided():
		key.outcome = rejectOutcome
		if spared := a.GetSpared(); len(spared) > 0 && len(spared[0].GetReasons()) > 0 {
			first := spared[0].GetReasons()[0]
			key.plugin, key.reason = first.GetPlugin(), int32(first.GetCode())
		}
	}
	t.note(key)
}

// failure notes a step, or a call before its first, that ended in an error.
func (t *tally) failure(step *apportionv1.Step, err error) {
	t.note(decided{question: questionOf(step), outcome: errorOutcome, reason: int32(wire.AsFault(err).Reason)})
}

// errorReason reads the reason out of an error of one step.
func errorReason(st *rpcstatus.Status) int32 {
	for _, detail := range st.GetDetails() {
		var info errdetails.ErrorInfo
		if detail.MessageIs(&info) && detail.UnmarshalTo(&info) == nil {
			return apportionv1.ErrorReason_value["ERROR_REASON_"+info.GetReason()]
		}
	}
	return 0
}
