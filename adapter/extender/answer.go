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
	// victimsAnswer is the form in which an observer records victims. The scheduler receives them byte for byte as it sent them.
	victimsAnswer struct {
		Status  int      `json:"status"`
		Victims []string `json:"victims"`
	}
)

// encoded returns the JSON of an answer. Encoding cannot fail: scores are finite.
func encoded(answer any) []byte {
	body, err := json.Marshal(answer)
	if err != nil {
		return nil
	}
	return body
}

const (
	permit    = "permit"
	reject    = "reject"
	abstained = "abstain"
)

// word returns a verdict as one word.
func word(permitted bool) string {
	if permitted {
		return permit
	}
	return reject
}

// decision is the outcome of a question.
type decision struct {
	// body is the response, sent its form for the observer. nil: it is the same.
	body, sent []byte
	// word is the decision in one word.
	word  string
	attrs []slog.Attr
}

func (r *request) predicate(body io.Reader) error {
	task, node, err := readPredicate(body)
	if err != nil {
		return err
	}
	r.ask(func(s *snapshot) (d decision, known bool) {
		why, fits, known := s.fits(task, node)
		answer := predicateAnswer{Status: why}
		if !fits {
			answer.Code = unresolvable
		}
		return decision{
			body: encoded(answer), word: word(fits),
			attrs: []slog.Attr{slog.String("task", task), slog.String("node", node), slog.String("why", why)},
		}, known
	})
	return nil
}

func (r *request) prioritize(body io.Reader) error {
	task, nodes, err := readPrioritize(body, &r.kept)
	if err != nil {
		return err
	}
	r.ask(func(s *snapshot) (d decision, known bool) {
		scored, known := s.score(task, nodes)
		answer := prioritizeAnswer{NodeScore: make(map[string]float64, len(scored))}
		for _, n := range scored {
			answer.NodeScore[n.name] = n.score
		}
		return decision{
			body: encoded(answer), word: "scored", attrs: []slog.Attr{slog.String("task", task), slog.Int("nodes", len(scored))},
		}, known
	})
	return nil
}

func (r *request) queueOverused(body io.Reader) error {
	queue, err := readQueue(body)
	if err != nil {
		return err
	}
	r.ask(func(s *snapshot) (d decision, known bool) {
		overused, known := s.overused(queue)
		return decision{
			body: encoded(overusedAnswer{overused}), word: word(!overused), attrs: []slog.Attr{slog.String("queue", queue)},
		}, known
	})
	return nil
}

func (r *request) jobEnqueueable(body io.Reader) error {
	job, err := readJob(body, &r.kept)
	if err != nil {
		return err
	}
	r.ask(func(s *snapshot) (d decision, known bool) {
		vote, known := s.enqueueable(job)
		answer, why := voteAnswer{}, ""
		d.word = abstained
		switch vote {
		case policy.Permit:
			answer.Status, d.word = 1, permit
		case policy.Reject:
			answer.Status, d.word, why = -1, reject, s.words()
		case policy.Abstain:
		}
		d.body, d.attrs = encoded(answer), []slog.Attr{slog.String("job", job.uid), slog.String("why", why)}
		return d, known
	})
	return nil
}

func (r *request) jobReady(body io.Reader) error {
	job, err := readJob(body, &r.kept)
	if err != nil {
		return err
	}
	r.ask(func(s *snapshot) (d decision, known bool) {
		ready, known := s.ready(job)
		return decision{body: encoded(readyAnswer{ready}), word: word(ready), attrs: []slog.Attr{slog.String("job", job.uid)}}, known
	})
	return nil
}

// event applies an event of allocation. It never returns a failure to Volcano, which would roll the allocation back.
func (r *request) event(body io.Reader) error {
	task, err := readEvent(body)
	if err != nil {
		return err
	}
	r.follow(func(s *snapshot) effect {
		if r.verb == allocate {
			return s.allocate(task)
		}
		return s.deallocate(task)
	})
	return nil
}

// jobEnqueued books a job that Volcano has admitted. Volcano sends it from version 1.16 on.
func (r *request) jobEnqueued(body io.Reader) error {
	job, err := readJob(body, &r.kept)
	if err == nil {
		err = drain(body)
	}
	if err != nil {
		return err
	}
	r.follow(func(s *snapshot) effect { return s.enqueued(job) })
	return nil
}

// follow applies an event and counts it.
func (r *request) follow(apply func(s *snapshot) effect) {
	r.ask(func(s *snapshot) (d decision, known bool) {
		outcome, became := apply(s), eventApplied
		if outcome == unchanged {
			became = eventRepeated
		}
		if outcome != notFound {
			r.metrics.events.WithLabelValues(r.from.path, string(r.verb), became).Inc()
		}
		return decision{body: []byte(noOpinion[r.verb])}, outcome != notFound
	})
}

// evict chooses victims among the offered tasks and echoes them unchanged.
func (r *request) evict(body io.Reader) error {
	bodies := share{of: &r.bodies}
	defer bodies.giveBack()
	sent, err := readAll(body, r.options.VictimBytes, &bodies)
	if err != nil {
		return err
	}
	offered, err := readEviction(sent, &r.kept)
	if err != nil {
		return err
	}
	if offered.offered == 0 {
		// Volcano's preempt action asks about each node, even one without candidates. There is nothing to decide then.
		r.answer(noOpinion[r.verb])
		return nil
	}
	r.ask(func(s *snapshot) (d decision, known bool) {
		chosen, decided, known := s.victims(offered.claimant, offered.uids, r.verb == preemptable)
		d.attrs = []slog.Attr{
			slog.String("task", offered.claimant), slog.Int("candidates", len(offered.uids)), slog.Int("victims", len(chosen)),
		}
		if !known || !decided {
			d.body, d.word = []byte(noOpinion[r.verb]), abstained
			return d, known
		}
		var echoed int
		d.body, echoed = echo(&offered, chosen)
		d.sent, d.word = uidsOf(&offered, chosen[:echoed]), word(len(chosen) > 0)
		if left := len(chosen) - echoed; left > 0 {
			r.metrics.cut.WithLabelValues(r.from.path).Add(float64(left))
		}
		return d, true
	})
	return nil
}

// uidsOf returns the answer with the uids of the victims instead of their objects.
func uidsOf(offered *eviction, chosen []int) []byte {
	answer := victimsAnswer{Status: -1, Victims: make([]string, len(chosen))}
	if len(chosen) > 0 {
		answer.Status = 1
	}
	for k, i := range chosen {
		answer.Victims[k] = offered.uids[i]
	}
	return encoded(answer)
}

// echo returns the answer with the chosen victims, and how many of them it contains: Volcano reads 10 MiB, so the last ones may be left
// out.
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
