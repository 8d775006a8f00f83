package service

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// outcome returns the result of a decision as a label.
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
	// question is the label of the kind of step.
	question string
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
	counter := d.counter.WithLabelValues(key.question, outcomeNames[key.outcome], plugin, reasonLabel(key))
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
		if name, ok := apportionv1.CauseCode_name[key.reason]; ok {
			return strings.TrimPrefix(name, "CAUSE_CODE_")
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
	q := wire.QuestionOf(step)
	key := decided{question: q.Label()}
	if fault := answer.GetError(); fault != nil {
		key.outcome, key.reason = errorOutcome, int32(decode.ReasonOf(fault))
		t.note(key)
		return
	}
	vote, why, ok := q.Decision(answer, 0)
	if !ok && !q.Decides() {
		t.note(key)
	}
	for i := 1; ok; i++ {
		key.outcome, key.plugin, key.reason = outcomeOf(vote), "", 0
		if key.outcome != permitOutcome && why != nil {
			key.plugin, key.reason = why.GetPlugin(), int32(why.GetCode())
		}
		t.note(key)
		vote, why, ok = q.Decision(answer, i)
	}
}

// failure notes a step, or a call before its first, that ended in an error.
func (t *tally) failure(step *apportionv1.Step, err error) {
	t.note(decided{question: wire.QuestionOf(step).Label(), outcome: errorOutcome, reason: int32(decode.AsFault(err).Reason)})
}
