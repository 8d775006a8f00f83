package rehearsal

import (
	"fmt"
	"math"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
)

// renew states the usage of a new epoch in the base.
func (r *run) renew() error {
	r.renewed = false
	if r.memory == nil {
		return nil
	}
	var err error
	if r.renewed, err = r.memory.turn(r.now); err == nil && r.renewed {
		r.base, err = decode.Compile(r.memory.snapshot)
	}
	return err
}

// follow brings the session to the present: jobs that are done leave it, new ones enter it, and the phases are those that a scheduler would
// have set since the latest round.
func (r *run) follow() error {
	r.forget()
	if r.options.plain || r.renewed || r.timed || r.sparse() {
		return r.reopen()
	}
	err := r.session.Change(nil, func(b *model.ChangeBuilder) {
		b.AsOf(r.nanoseconds(r.now))
		for _, j := range r.left {
			b.RemoveJobs(j.id)
		}
		for _, j := range r.rephased {
			if want := j.wanted(); j.started != nil && j.phase != want {
				j.phase = want
				b.UpdatePhase(j.id, want)
			}
		}
		for _, j := range r.arrived {
			r.feed(&b.Builder, j)
		}
	})
	if err != nil {
		return err
	}
	return r.number(r.arrived)
}

// forget lets go of jobs that are done.
func (r *run) forget() {
	if len(r.left) == 0 {
		return
	}
	for _, j := range r.left {
		j.started, j.nodes = nil, nil
		delete(r.byID, j.id)
	}
	live := r.live[:0]
	for _, j := range r.live {
		if j.started != nil {
			live = append(live, j)
		}
	}
	clear(r.live[len(live):])
	r.live = live
}

// sparse reports whether most numbers of the session stand for jobs and tasks that are gone: a new session then takes less time and memory,
// and answers the same.
func (r *run) sparse() bool {
	const few = 4096
	m := r.session.View().Model
	tasks := 0
	for _, j := range r.live {
		tasks += len(j.started)
	}
	return m.Tasks.Len() > few+3*tasks
}

// reopen opens a session on the present.
func (r *run) reopen() error {
	b := r.base.Change(nil)
	b.AsOf(r.nanoseconds(r.now))
	for _, j := range r.live {
		if j.phase != model.PhasePending {
			j.phase = j.wanted()
		}
		r.feed(&b.Builder, j)
	}
	m, err := b.Build()
	if err != nil {
		return err
	}
	if r.session, err = engine.Open(m, r.policy, r.stop); err != nil {
		return err
	}
	clear(r.byID)
	return r.number(r.live)
}

// nanoseconds is a moment of the simulation as the engine counts time, from the start of 1970: no decision depends on the date.
func (r *run) nanoseconds(second int64) int64 {
	return min(second, math.MaxInt64/1_000_000_000) * 1_000_000_000
}

// feed describes a job to the engine.
func (r *run) feed(b *model.Builder, j *job) {
	created := r.nanoseconds(j.Arrival)
	end, runtime := r.expected(j)
	b.Job(model.JobSpec{
		UID: j.Name, Name: j.Name, Queue: j.Queue, Priority: j.Priority, Phase: j.phase, MinAvailable: uint32(j.Min),
		MinResources: j.minimumRequest(), CreateTime: created, Owner: j.Owner, ExpectedEnd: end, ExpectedRuntime: runtime,
	})
	task := 0
	for g := range j.Groups {
		b.Group(model.GroupSpec{Role: j.Groups[g].Role, Request: j.requests[g]})
		for i := range j.Groups[g].Tasks {
			spec := model.TaskSpec{
				UID: fmt.Sprintf("%s/%d", j.Name, task), Priority: j.Priority, Index: int32(i), CreateTime: created,
				Preemptable: !j.Protected, Node: model.None,
			}
			if j.started[task] != idle && r.kueue == nil {
				spec.Status, spec.Node = model.Running, j.nodes[task]
			}
			b.Task(&spec)
			task++
		}
	}
}

// minimumRequest returns the request of a job's first minAvailable tasks.
func (j *job) minimumRequest() *model.Amounts {
	sum := &model.Amounts{}
	left := j.Min
	for g := range j.Groups {
		n := min(left, j.Groups[g].Tasks)
		left -= n
		for i, d := range j.requests[g].Dimension {
			amount := j.requests[g].Amount[i] * float64(n)
			at := indexOf(sum.Dimension, d)
			if at < 0 {
				sum.Dimension, sum.Amount = append(sum.Dimension, d), append(sum.Amount, amount)
				continue
			}
			sum.Amount[at] += amount
		}
	}
	return sum
}

func indexOf(list []uint32, d uint32) int {
	for i, has := range list {
		if has == d {
			return i
		}
	}
	return -1
}

// number finds the numbers of jobs in the session.
func (r *run) number(jobs []*job) error {
	m := r.session.View().Model
	for _, j := range jobs {
		id, ok := m.Job(j.Name)
		if !ok {
			return fmt.Errorf("job %s is not in the session", j.Name)
		}
		j.id, j.first = id, m.Jobs.At(id).FirstTask
		r.byID[id] = j
	}
	return nil
}
