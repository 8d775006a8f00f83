package extender

import (
	"encoding/json"
	"io"
	"log/slog"

	"github.com/apportion/apportion/engine/policy"
)

// The shapes of the answers, with the names that Volcano reads.
type (
	predicateAnswer struct {
		// Status is the text of the refusal; empty: the task fits.
		Status string `json:"status"`
		Code   int    `json:"code"`
	}
	prioritizeAnswer struct {
		NodeScore    map[string]float64 `json:"nodeScore"`
		ErrorMessage string             `json:"errorMessage"`
	}
	overusedAnswer struct {
		Overused bool `json:"overused"`
	}
	voteAnswer struct {
		Status int `json:"status"`
	}
	readyAnswer struct {
		Status bool `json:"status"`
	}
)

// encoded is an answer as it is sent. None of the shapes can fail to be encoded: scores are finite.
func encoded(answer any) []byte {
	body, err := json.Marshal(answer)
	if err != nil {
		return nil
	}
	return body
}

const (
	permit = "permit"
	reject = "reject"
)

// word is a verdict in one word.
func word(permitted bool) string {
	if permitted {
		return permit
	}
	return reject
}

func (r *request) predicate(body io.Reader) error {
	task, node, err := readPredicate(body)
	if err == nil {
		err = drain(body)
	}
	if err != nil {
		return err
	}
	var why string
	var fits bool
	if r.ask(func(s *snapshot) (ok bool) {
		why, fits, ok = s.fits(task, node)
		return ok
	}) {
		answer := predicateAnswer{Status: why}
		if !fits {
			answer.Code = unresolvable
		}
		r.decided(encoded(answer), word(fits), slog.String("task", task), slog.String("node", node), slog.String("why", why))
	}
	return nil
}

func (r *request) prioritize(body io.Reader) error {
	task, nodes, err := readPrioritize(body)
	if err == nil {
		err = drain(body)
	}
	if err != nil {
		return err
	}
	var scored []nodeScore
	if r.ask(func(s *snapshot) (ok bool) {
		scored, ok = s.score(task, nodes)
		return ok
	}) {
		answer := prioritizeAnswer{NodeScore: make(map[string]float64, len(scored))}
		for _, n := range scored {
			answer.NodeScore[n.name] = n.score
		}
		r.decided(encoded(answer), "scored", slog.String("task", task), slog.Int("nodes", len(scored)))
	}
	return nil
}

func (r *request) queueOverused(body io.Reader) error {
	queue, err := readQueue(body)
	if err == nil {
		err = drain(body)
	}
	if err != nil {
		return err
	}
	var overused bool
	if r.ask(func(s *snapshot) (ok bool) {
		overused, ok = s.overused(queue)
		return ok
	}) {
		r.decided(encoded(overusedAnswer{overused}), word(!overused), slog.String("queue", queue))
	}
	return nil
}

func (r *request) jobEnqueueable(body io.Reader) error {
	job, err := readJob(body)
	if err == nil {
		err = drain(body)
	}
	if err != nil {
		return err
	}
	var vote policy.Vote
	var why string
	if r.ask(func(s *snapshot) (ok bool) {
		if vote, ok = s.enqueueable(job); vote == policy.Reject {
			why = s.words()
		}
		return ok
	}) {
		answer, decision := voteAnswer{}, "abstain"
		switch vote {
		case policy.Permit:
			answer.Status, decision = 1, permit
		case policy.Reject:
			answer.Status, decision = -1, reject
		case policy.Abstain:
		}
		r.decided(encoded(answer), decision, slog.String("job", job.uid), slog.String("why", why))
	}
	return nil
}

func (r *request) jobReady(body io.Reader) error {
	job, err := readJob(body)
	if err == nil {
		err = drain(body)
	}
	if err != nil {
		return err
	}
	var ready bool
	if r.ask(func(s *snapshot) (ok bool) {
		ready, ok = s.ready(job)
		return ok
	}) {
		r.decided(encoded(readyAnswer{ready}), word(ready), slog.String("job", job.uid))
	}
	return nil
}

// event follows an event. It never fails: Volcano would roll the allocation back.
func (r *request) event(body io.Reader) error {
	task, err := readEvent(body)
	if err == nil {
		err = drain(body)
	}
	if err != nil {
		return err
	}
	var outcome heard
	if r.ask(func(s *snapshot) bool {
		if r.verb == allocate {
			outcome = s.allocate(task)
		} else {
			outcome = s.deallocate(task)
		}
		return outcome != heardUnknown
	}) {
		became := eventApplied
		if outcome == heardAgain {
			became = eventAgain
		}
		r.metrics.events.WithLabelValues(r.from.path, string(r.verb), became).Inc()
		r.answer(noOpinion[r.verb])
	}
	return nil
}

// evict chooses victims among the tasks that were offered, and sends them back as they came.
func (r *request) evict(body io.Reader) error {
	select {
	case r.victims <- struct{}{}:
		defer func() { <-r.victims }()
	case <-r.in.Context().Done():
		r.abstain(callerGone)
		return nil
	}
	sent, err := readAll(body, r.options.VictimBytes)
	if err != nil {
		return err
	}
	offered, err := readEviction(sent)
	if err != nil {
		return err
	}
	var chosen []int
	var decided bool
	if !r.ask(func(s *snapshot) (ok bool) {
		chosen, decided, ok = s.victims(offered.claimant, offered.uids, r.verb == preemptable)
		return ok
	}) {
		return nil
	}
	attrs := []slog.Attr{slog.String("task", offered.claimant), slog.Int("candidates", len(offered.uids)), slog.Int("victims", len(chosen))}
	if !decided {
		r.decided([]byte(noOpinion[r.verb]), "abstain", attrs...)
		return nil
	}
	answer, echoed := echo(&offered, chosen)
	if left := len(chosen) - echoed; left > 0 {
		r.metrics.cut.WithLabelValues(r.from.path).Add(float64(left))
	}
	r.decided(answer, word(len(chosen) > 0), attrs...)
	return nil
}

// echo is the answer with the chosen victims, and how many of them it has: the first ones, as many as Volcano reads.
func echo(offered *eviction, chosen []int) (answer []byte, echoed int) {
	size := 64
	for _, i := range chosen {
		if size+len(offered.sent[i])+1 > answerBytes {
			break
		}
		size += len(offered.sent[i]) + 1
		echoed++
	}
	answer = make([]byte, 0, size)
	if echoed == 0 {
		return append(answer, `{"status":-1,"victims":[]}`...), 0
	}
	answer = append(answer, `{"status":1,"victims":[`...)
	for k, i := range chosen[:echoed] {
		if k > 0 {
			answer = append(answer, ',')
		}
		answer = append(answer, offered.sent[i]...)
	}
	return append(answer, `]}`...), echoed
}
