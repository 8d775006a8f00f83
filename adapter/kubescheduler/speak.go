package kubescheduler

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/apportion/apportion/client"
)

const (
	// speakInterval is the time between two writes of sentences, speakMost the number of pods that get one each time, and sentenceAge the
	// age after which the sentence of a pod is formed again; replacedAge if something else stands in its place.
	speakInterval, speakMost, sentenceAge, replacedAge = time.Second, 50, time.Minute, 5 * time.Second
	// The reasons of a pod's condition PodScheduled and of its events: the queue has not let it in, or it has no place yet.
	reasonNotAdmitted, reasonNoPlace = "NotAdmitted", corev1.PodReasonUnschedulable
)

// saying is what was last said about a pod.
type saying struct {
	text string
	at   time.Time
}

// speaker tells why pods wait, in their conditions and events.
type speaker struct {
	loop    *loop
	clients kubernetes.Interface
	events  events.EventRecorder
}

func (s *speaker) run(ctx context.Context) {
	ticker := time.NewTicker(speakInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := s.once(ctx, time.Now()); err != nil && ctx.Err() == nil {
				s.loop.log.DebugContext(ctx, "sentences are not written", "error", err)
			}
		}
	}
}

// line is a sentence about a pod that waits.
type line struct {
	pod          *pod
	object       *corev1.Pod
	job          string
	reason, text string
}

// once writes the sentences of those pods that waited for one the longest.
func (s *speaker) once(ctx context.Context, now time.Time) error {
	lines, jobs := s.due(now)
	if len(jobs) > 0 {
		input := s.loop.input
		if input.State = s.loop.state.Load(); input.State == nil {
			return nil
		}
		answer, err := s.loop.decide.Explain(ctx, input, client.ExplainQuestion{Jobs: jobs})
		if err != nil {
			return err
		}
		texts := map[string]string{}
		for _, job := range answer.Answer.GetJobs() {
			texts[job.GetUid()] = job.GetText()
		}
		for _, l := range lines {
			l.text = cmp.Or(l.text, texts[l.job])
		}
	}
	for _, l := range lines {
		m := s.loop.model
		m.Lock()
		news := l.text != l.pod.said.text
		stands := l.text == l.pod.stands() && l.object.Status.NominatedNodeName == ""
		l.pod.said = saying{l.text, now}
		over := l.pod.planned != "" || l.pod.node != ""
		m.Unlock()
		if l.text == "" || stands && !news || over {
			continue
		}
		err := setCondition(ctx, s.clients, l.object, &corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: l.reason, Message: l.text,
		})
		if err != nil {
			return err
		}
		if news {
			s.events.Eventf(l.object, nil, corev1.EventTypeWarning, l.reason, "Scheduling", "%s", short(l.text))
		}
	}
	return nil
}

// stands returns what the pod's condition PodScheduled says of why it waits. The scheduler replaces it, for example after a timeout of
// Permit.
func (p *pod) stands() string {
	for i := range p.object.Status.Conditions {
		if c := &p.object.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// stale reports whether the pod's sentence has to be formed again.
func (p *pod) stale(now time.Time) bool {
	age := now.Sub(p.said.at)
	return age >= sentenceAge || age >= replacedAge && p.said.text != p.stands()
}

// due returns the pods that wait and have no fresh sentence, and the jobs to be explained.
func (s *speaker) due(now time.Time) (lines []*line, jobs []string) {
	m := s.loop.model
	m.Lock()
	defer m.Unlock()
	for _, p := range m.pods {
		if p.job == nil || p.planned != "" || p.node != "" || !p.stale(now) {
			continue
		}
		l := &line{pod: p, object: p.object, job: p.job.id, reason: reasonNotAdmitted, text: cmp.Or(p.job.fault, m.closed)}
		if l.text == "" && !p.job.known {
			continue
		}
		if p.job.admitted {
			l.reason = reasonNoPlace
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b *line) int {
		return cmp.Or(a.pod.said.at.Compare(b.pod.said.at), cmp.Compare(a.object.UID, b.object.UID))
	})
	lines = lines[:min(len(lines), speakMost)]
	for _, l := range lines {
		if l.text == "" && !slices.Contains(jobs, l.job) {
			jobs = append(jobs, l.job)
		}
	}
	return lines, jobs
}

func logrSlog(logger logr.Logger) slog.Handler { return logr.ToSlogHandler(logger) }
