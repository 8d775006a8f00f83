package kubescheduler

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/apportion/apportion/adapter/connection"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/round"
)

var one = *resource.NewQuantity(1, resource.DecimalSI)

const (
	// reread is how often the file of queues is compared.
	reread = 10 * time.Second
	// refusalAge is how long a node is left out that another plugin refused, sparing how long a pod is no victim whose eviction was
	// refused.
	refusalAge, sparing = 10 * time.Second, time.Minute
)

// loop decides again after each change of the cluster. Its mirror belongs to its goroutine.
type loop struct {
	arguments *Arguments
	decide    *client.Client
	input     client.Input
	model     *model
	log       *slog.Logger
	// activate lets pods be tried that have a place now.
	activate func(map[string]*corev1.Pod)

	mirror *client.Mirror
	sets   *nodeSets
	told   map[string]bool
	file   []byte
	// state is the newest State that was decided about.
	state atomic.Pointer[client.State]
}

func (l *loop) run(ctx context.Context) {
	files, retry := time.NewTicker(reread), time.NewTicker(time.Second)
	defer files.Stop()
	defer retry.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-files.C:
			if data, err := os.ReadFile(l.arguments.Queues); err == nil && !bytes.Equal(data, l.file) {
				if err := l.reload(); err != nil {
					l.log.ErrorContext(ctx, "the queues stay as they were", "error", err)
					l.file = data
				}
			}
			continue
		case <-retry.C:
			// Nodes that were left out and victims that were spared count again after a while.
			if !failed && !l.waits() {
				continue
			}
		case <-l.model.changed:
		}
		if err := l.once(ctx); err != nil {
			failed = true
			l.log.WarnContext(ctx, "no decision", "error", err, "fallback", l.arguments.Fallback)
			l.suspend(err)
		} else {
			failed = false
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.arguments.Interval.Duration):
		}
	}
}

// waits reports whether time alone may change the decision.
func (l *loop) waits() bool {
	m := l.model
	m.Lock()
	defer m.Unlock()
	waits := len(m.spared) > 0
	for _, j := range m.jobs {
		if len(j.refused) > 0 {
			m.dirtyJobs[j.id] = true
			waits = true
		}
	}
	return waits
}

// suspend is what happens without a decision.
func (l *loop) suspend(err error) {
	m := l.model
	m.Lock()
	m.closed = "Apportion does not answer: " + client.Describe(err)
	m.open = l.arguments.Fallback == connection.FallbackOpen
	pods := map[string]*corev1.Pod{}
	if m.open {
		for _, p := range m.pods {
			if p.job != nil && p.node == "" {
				pods[key(p.object)] = p.object
			}
		}
	}
	m.Unlock()
	if len(pods) > 0 {
		l.activate(pods)
	}
}

// once decides about the cluster as it is now.
func (l *loop) once(ctx context.Context) error {
	m := l.model
	m.Lock()
	if err := l.tell(time.Now()); err != nil {
		m.Unlock()
		return err
	}
	waiting := m.waiting()
	m.Unlock()
	in := l.input
	in.State = l.mirror.State()
	l.state.Store(in.State)
	if len(waiting) == 0 {
		l.answered()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	told := round.Told{Admitted: l.admit, Planned: l.carry}
	if err := round.Decide(ctx, l.decide, in, waiting, told, connection.Actions(l.arguments.Evict)...); err != nil {
		return err
	}
	l.answered()
	return nil
}

// answered ends what suspend began. All pods that wait get a sentence again, because theirs was about the missing decision.
func (l *loop) answered() {
	m := l.model
	m.Lock()
	defer m.Unlock()
	if m.closed != "" {
		for _, p := range m.pods {
			p.said = saying{}
		}
	}
	m.open, m.closed = false, ""
}

// admit records that jobs were let in.
func (l *loop) admit(jobs []string) {
	m := l.model
	m.Lock()
	defer m.Unlock()
	for _, id := range jobs {
		if j := m.jobs[id]; j != nil && !j.admitted {
			j.admitted = true
			m.dirtyJobs[id] = true
		}
	}
}

// carry records a plan and lets its pods be tried, while the round goes on: the first pods of a long backlog are bound when their own plans
// are made. The session has the same places, and the next round corrects what has become of them.
func (l *loop) carry(plan *round.Plan) {
	pods := map[string]*corev1.Pod{}
	l.model.Lock()
	l.record(plan, pods)
	l.model.Unlock()
	if len(pods) > 0 {
		l.activate(pods)
	}
}

// record puts a plan into the model. It drops a plan of which a pod has gone in the meantime whole. The lock is held.
func (l *loop) record(plan *round.Plan, pods map[string]*corev1.Pod) {
	m := l.model
	j := m.jobs[plan.Job]
	m.touch(j)
	for _, at := range plan.Placements {
		p := m.pods[types.UID(at.Task)]
		if p == nil || p.job != j || p.node != "" || p.planned != "" || m.nodes[at.Node] == nil || m.nodes[at.Node].object == nil {
			return
		}
	}
	victims := make([]types.UID, len(plan.Victims))
	for i, victim := range plan.Victims {
		victims[i] = types.UID(victim.Task)
		if v := m.pods[victims[i]]; v != nil {
			v.releasing = true
			m.touch(v.job)
		}
	}
	for _, at := range plan.Placements {
		p := m.pods[types.UID(at.Task)]
		m.seq++
		p.planned, p.seq, p.victims, p.sentence = at.Node, m.seq, victims, plan.Sentence
		pods[key(p.object)] = p.object
	}
}

func key(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// waiting returns the jobs that have pods without a place; the lock is held.
func (m *model) waiting() []*round.Job {
	var waiting []*round.Job
	for id, j := range m.jobs {
		if !j.known {
			continue
		}
		bound := j.bound()
		c := &round.Job{
			UID: id, Queue: j.queue, Begun: bound > 0 && bound < j.least, Admitted: j.admitted || bound > 0,
			Least: j.least, Placed: j.placed(),
		}
		for _, p := range j.pods {
			if p.node == "" && p.planned == "" {
				c.Pending++
			}
			if c.Shape == "" {
				c.Shape = p.shape + requestKey(p.object)
			}
		}
		if c.Pending > 0 {
			if len(j.refused) > 0 {
				c.Shape += id
			}
			waiting = append(waiting, c)
		}
	}
	return waiting
}

func (j *job) placed() int {
	count := 0
	for _, p := range j.pods {
		if !p.releasing && (p.node != "" || p.planned != "") {
			count++
		}
	}
	return count
}

func requestKey(p *corev1.Pod) string { return written(requests(p)).String() }

// refuse withdraws the plan of a pod whose node another plugin refused, and leaves the node out for a while.
func (m *model) refuse(p *pod, name string, now time.Time) []types.UID {
	if p.job != nil {
		p.job.refused[name] = now.Add(refusalAge)
	}
	return m.withdraw(p)
}
