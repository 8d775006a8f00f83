package extender

import (
	"slices"
	"strings"

	"github.com/go-faster/jx"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/decode"
)

// job reads a JobInfo. It contains its tasks four times; Tasks is complete.
func (p *push) job(d *jx.Decoder, _ []byte) error {
	j := jobRecord{first: len(p.tasks)}
	err := object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case "UID":
			return setText(d, &j.uid)
		case nameField:
			return setText(d, &j.name)
		case "Namespace":
			return setText(d, &j.namespace)
		case "Queue":
			return setText(d, &j.queue)
		case "Priority":
			return setWhole(d, &j.priority)
		case "MinAvailable":
			return setWhole(d, &j.minAvailable)
		case "TaskMinAvailable":
			return p.roleMinimums(d, &j)
		case "CreationTimestamp":
			return setMoment(d, &j.created)
		case "PodGroup":
			return within("PodGroup", p.podGroup(d, &j))
		case tasksField:
			return within(tasksField, object(d, p.taskOfJob))
		}
		return d.Skip()
	})
	j.end = len(p.tasks)
	p.jobs = append(p.jobs, j)
	p.groups += int64(len(j.roles))
	if err == nil {
		err = p.held(j.uid, j.name, j.namespace, j.queue)
	}
	return within(j.uid, err)
}

// roleMinimums reads how many tasks each role needs, in the order of the roles' names.
func (p *push) roleMinimums(d *jx.Decoder, j *jobRecord) error {
	err := object(d, func(d *jx.Decoder, name []byte) error {
		r := roleMinimum{role: p.roles.of(name)}
		err := setWhole(d, &r.minimum)
		j.roles = append(j.roles, r)
		return err
	})
	slices.SortFunc(j.roles, func(a, b roleMinimum) int { return strings.Compare(p.roles.list[a.role], p.roles.list[b.role]) })
	return err
}

// podGroup reads the members that only the PodGroup has: the phase and the job's minimum.
func (p *push) podGroup(d *jx.Decoder, j *jobRecord) error {
	return object(d, func(d *jx.Decoder, name []byte) error {
		switch string(name) {
		case specField:
			return member(d, "minResources", func(d *jx.Decoder) (err error) {
				j.minResources, err = p.vectors.quantities(d)
				return err
			})
		case stateField:
			return member(d, "phase", func(d *jx.Decoder) error {
				phase, err := text(d)
				j.phase, _ = decode.PhaseOf(volcano.JobPhase(phase))
				return err
			})
		}
		return d.Skip()
	})
}

// taskOfJob reads a task of the job being read.
func (p *push) taskOfJob(d *jx.Decoder, _ []byte) error {
	p.tasks = append(p.tasks, taskRecord{})
	t := &p.tasks[len(p.tasks)-1]
	raw, err := d.Raw()
	if err != nil {
		return err
	}
	// A decoder of bytes in memory copies no names.
	p.one.ResetBytes(raw)
	err = p.task(&p.one, t)
	if err == nil {
		err = p.held(t.uid, t.name)
	}
	p.known[t.uid] = struct{}{}
	return within(t.uid, err)
}

// task reads a TaskInfo. It reads from the pod only what Volcano has not put into the TaskInfo.
func (p *push) task(d *jx.Decoder, t *taskRecord) error {
	*t = taskRecord{status: model.Unknown, node: none, index: none, detail: none}
	p.pod = podRecord{}
	err := object(d, func(d *jx.Decoder, name []byte) (err error) {
		switch string(name) {
		case "UID":
			return setText(d, &t.uid)
		case nameField:
			return setText(d, &t.name)
		case "TaskRole":
			t.role, err = p.number(&p.roles, d)
			return err
		case requestField:
			t.request, err = p.vectors.request(d)
			return err
		case "NodeName":
			t.node, err = p.number(&p.places, d)
			return err
		case statusField:
			return setStatus(d, &t.status)
		case "Priority":
			return setWhole(d, &t.priority)
		case "Preemptable":
			return setFlag(d, &t.preemptable)
		case "Pod":
			return within("Pod", p.pod.read(d))
		}
		return d.Skip()
	})
	if err != nil {
		return err
	}
	if index, ok := volcano.TaskIndex(t.name); ok && index <= 1<<31-1 {
		t.index = int32(index)
	}
	t.created = p.pod.created
	t.gate, _ = decode.GateOf(volcano.Gate(p.pod.gates, p.pod.gate))
	if detail := p.pod.detail(); detail != (model.Detail{}) {
		t.detail = int32(len(p.details))
		detail.PriorityClass = p.classes.keep(detail.PriorityClass)
		p.details = append(p.details, detail)
	}
	return nil
}

// number reads a text and returns its number in n; null is the empty text.
func (p *push) number(n *names, d *jx.Decoder) (int32, error) {
	if d.Next() == jx.Null {
		return n.of(nil), d.Null()
	}
	read, err := text(d)
	if err == nil {
		err = p.vectors.short(read)
	}
	return n.keepNumber(read), err
}

// keepNumber returns the number of a string.
func (n *names) keepNumber(name string) int32 {
	if id, ok := n.ids[name]; ok {
		return id
	}
	return n.of([]byte(name))
}

// keep returns the one copy of a text.
func (n *names) keep(name string) string { return n.list[n.keepNumber(name)] }

// setStatus reads the number of a status into *to.
func setStatus(d *jx.Decoder, to *model.Status) error {
	var number int32
	err := setWhole(d, &number)
	*to = statusOf(number)
	return err
}

// statusOf returns the status with Volcano's number. An unknown number gives a status that holds no resources.
func statusOf(number int32) model.Status {
	switch number {
	case 1:
		return model.Pending
	case 2:
		return model.Allocated
	case 4:
		return model.Pipelined
	case 8:
		return model.Binding
	case 16:
		return model.Bound
	case 32:
		return model.Running
	case 64:
		return model.Releasing
	case 128:
		return model.Succeeded
	case 256:
		return model.Failed
	}
	return model.Unknown
}
