package client

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
)

// The fields of the contract that a mirror writes by itself.
const (
	jobGroups  = protowire.Number(10)
	groupTasks = protowire.Number(4)
	taskUID    = protowire.Number(1)
	taskStatus = protowire.Number(2)
	taskNode   = protowire.Number(3)
)

// jobEntry is a job with the state of its tasks.
type jobEntry struct {
	id     string
	spec   *jobSpec
	places []taskState
}

func (e *jobEntry) key() string { return e.id }

// size is about what the encoded job takes.
func (e *jobEntry) size() int { return len(e.spec.data) + 8*len(e.places) }

// taskState holds the fields of a task that change often.
type taskState struct {
	// node is nil for a task that names none.
	node   *mirroredNode
	status uint8
}

// jobSpec is a job without the state of its tasks, encoded.
type jobSpec struct {
	queue string
	// data holds the job's own fields, then for each group its own fields and those of its tasks.
	data   []byte
	own    uint32
	groups []groupSpec
	// ends are where the fields of each task end in data.
	ends []uint32
}

// groupSpec is a group: where its own fields end in the data of its job, and how many tasks follow.
type groupSpec struct{ own, tasks uint32 }

func (s *jobSpec) equal(other *jobSpec) bool {
	return bytes.Equal(s.data, other.data) && slices.Equal(s.groups, other.groups) && slices.Equal(s.ends, other.ends)
}

// task returns the encoded fields of a task.
func (s *jobSpec) task(group, index int) []byte {
	from := s.groups[group].own
	if index > s.first(group) {
		from = s.ends[index-1]
	}
	return s.data[from:s.ends[index]]
}

// first returns the position of the first task of a group.
func (s *jobSpec) first(group int) int {
	n := 0
	for _, g := range s.groups[:group] {
		n += int(g.tasks)
	}
	return n
}

// uids calls do with the uid of each task that has one.
func (s *jobSpec) uids(do func(index int, uid []byte)) {
	index := 0
	for g := range s.groups {
		for range s.groups[g].tasks {
			if uid := s.uid(g, index); len(uid) > 0 {
				do(index, uid)
			}
			index++
		}
	}
}

// uid returns the uid of a task, empty if it has none.
func (s *jobSpec) uid(group, index int) (uid []byte) {
	field.Each(s.task(group, index), uint32(taskUID)<<3|field.Delimited, func(data []byte) bool {
		uid = data
		return true
	})
	return uid
}

// eachField calls do with every field of a message that was encoded here: its number, the whole field, and its value.
func eachField(data []byte, do func(number protowire.Number, whole []byte, value uint64, part []byte)) {
	for i := 0; i < len(data); {
		tag, value, from, to := field.At(data, i)
		do(protowire.Number(tag>>3), data[i:to], value, data[from:to])
		i = to
	}
}

// parse takes an encoded job apart. name gives nodes that tasks refer to their names.
func (m *Mirror) parse(data []byte, queue string, name func(uint32) string) (*jobSpec, []taskState) {
	s := &jobSpec{queue: queue, data: make([]byte, 0, len(data))}
	var places []taskState
	// own keeps the fields of a message, but for a list that it returns.
	own := func(data []byte, list protowire.Number) (parts [][]byte) {
		eachField(data, func(number protowire.Number, whole []byte, _ uint64, part []byte) {
			if number == list {
				parts = append(parts, part)
			} else {
				s.data = append(s.data, whole...)
			}
		})
		return parts
	}
	groups := own(data, jobGroups)
	s.own = uint32(len(s.data))
	for _, group := range groups {
		tasks := own(group, groupTasks)
		s.groups = append(s.groups, groupSpec{own: uint32(len(s.data)), tasks: uint32(len(tasks))})
		for _, task := range tasks {
			var place taskState
			eachField(task, func(number protowire.Number, whole []byte, value uint64, _ []byte) {
				switch number {
				case taskStatus:
					place.status = uint8(value)
				case taskNode:
					place.node = m.refer(name(uint32(value)))
				default:
					s.data = append(s.data, whole...)
				}
			})
			s.ends, places = append(s.ends, uint32(len(s.data))), append(places, place)
		}
	}
	return s, places
}

// SetJob adds a job with all its tasks, or replaces the job with the same uid, or else with the same namespace and name. An error changes
// nothing.
func (m *Mirror) SetJob(job Job) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var names []string
	built, err := m.build(func(s *Snapshot) { s.Job(job) })
	if err != nil {
		return err
	}
	message := built.message.GetJobs()[0]
	if err := m.checkJob(message); err != nil {
		return err
	}
	for _, p := range built.placed {
		p.task.Node = new(uint32(len(names)))
		names = append(names, p.node)
	}
	return m.setJob(message, func(node uint32) string { return names[node] })
}

// checkJob returns an error if a job refers to what is not there, or has what another job has.
func (m *Mirror) checkJob(job *apportionv1.Job) error {
	id := uidOf(job)
	if id == "" {
		return errors.New("a job needs a uid or a name")
	}
	if m.queueOf[job.GetQueue()] == nil {
		return fmt.Errorf("job %q: no queue %q", id, job.GetQueue())
	}
	slot, known := m.jobOf[id]
	uids := map[string]bool{}
	set := func(name string) error {
		if _, there := m.setOf[name]; name != "" && !there {
			return fmt.Errorf("job %q: no node set %q", id, name)
		}
		return nil
	}
	for _, group := range job.GetGroups() {
		if err := set(group.GetNodeSet()); err != nil {
			return err
		}
		for _, task := range group.GetTasks() {
			if err := set(task.GetDetail().GetNodeSet()); err != nil {
				return err
			}
			if task.GetStatus() < 0 || task.GetStatus() > apportionv1.TaskStatus_TASK_STATUS_UNKNOWN {
				return fmt.Errorf("job %q: task %q: no status %d", id, taskName(task), task.GetStatus())
			}
			for _, name := range task.GetDetail().GetDisruptionBudgets().GetNames() {
				if _, there := m.budgetOf.of[qualified(job.GetNamespace(), name)]; !there {
					return fmt.Errorf("job %q: no disruption budget %q", id, name)
				}
			}
			uid := task.GetUid()
			if uid == "" {
				continue
			}
			if at, taken := m.taskOf[uid]; uids[uid] || taken && (!known || int(at.job) != slot) {
				return fmt.Errorf("job %q: another task has the uid %q", id, uid)
			}
			uids[uid] = true
		}
	}
	return nil
}

// taskName returns the name of a task for errors.
func taskName(task *apportionv1.Task) string {
	if task.GetUid() != "" {
		return task.GetUid()
	}
	return task.GetName()
}

// setJob sets a job that was checked.
func (m *Mirror) setJob(job *apportionv1.Job, name func(uint32) string) error {
	data, err := encode(job)
	if err != nil {
		return err
	}
	id := uidOf(job)
	spec, places := m.parse(data, job.GetQueue(), name)
	for _, place := range places {
		m.use(place.node)
	}
	slot, known := m.jobOf[id]
	if !known {
		slot = m.jobSlots.take()
		m.jobOf[id] = slot
		m.live.jobs++
		m.enter(slot, &jobEntry{id: id, spec: spec, places: places})
		return nil
	}
	before := m.jobs.at(slot)
	if before.spec.equal(spec) {
		for _, place := range before.places {
			m.unuse(place.node)
		}
		if !slices.Equal(before.places, places) {
			m.jobs.put(m.writer, slot, &jobEntry{id: id, spec: before.spec, places: places})
			m.changed = true
		}
		return nil
	}
	m.leave(slot, before)
	m.enter(slot, &jobEntry{id: id, spec: spec, places: places})
	return nil
}

// enter puts a job into its slot and counts what it refers to, but for nodes.
func (m *Mirror) enter(slot int, job *jobEntry) {
	m.jobs.put(m.writer, slot, job)
	m.queueOf[job.spec.queue].jobs++
	job.spec.uids(func(index int, uid []byte) { m.taskOf[string(uid)] = taskPlace{int32(slot), int32(index)} })
	m.live.tasks += len(job.places)
	m.bytes += job.size()
	m.changed = true
}

// leave takes back what enter counted, and the references to nodes.
func (m *Mirror) leave(slot int, job *jobEntry) {
	for _, place := range job.places {
		m.unuse(place.node)
	}
	m.queueOf[job.spec.queue].jobs--
	job.spec.uids(func(_ int, uid []byte) {
		if m.taskOf[string(uid)].job == int32(slot) {
			delete(m.taskOf, string(uid))
		}
	})
	m.live.tasks -= len(job.places)
	m.bytes -= job.size()
	m.changed = true
}

// RemoveJob removes a job by its uid, or by namespace/name if it has none.
func (m *Mirror) RemoveJob(id string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	slot, known := m.jobOf[id]
	if !known {
		return fmt.Errorf("no job %q", id)
	}
	m.removeJob(id, slot)
	return nil
}

func (m *Mirror) removeJob(id string, slot int) {
	m.leave(slot, m.jobs.at(slot))
	m.jobs.put(m.writer, slot, nil)
	m.jobSlots.give(slot)
	delete(m.jobOf, id)
	m.live.jobs--
}

// SetTask sets the status and the node of a task, by uid; "" for no node. It sends less than SetJob.
func (m *Mirror) SetTask(uid string, status apportionv1.TaskStatus, node string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	at, known := m.taskOf[uid]
	if !known {
		return fmt.Errorf("no task %q", uid)
	}
	if status < 0 || status > apportionv1.TaskStatus_TASK_STATUS_UNKNOWN {
		return fmt.Errorf("task %q: no status %d", uid, status)
	}
	before := m.jobs.at(int(at.job))
	place := taskState{status: uint8(status)}
	if node != "" {
		place.node = m.refer(node)
	}
	was := before.places[at.index]
	if was == place {
		return nil
	}
	m.use(place.node)
	m.unuse(was.node)
	again := *before
	again.places = slices.Clone(before.places)
	again.places[at.index] = place
	m.jobs.put(m.writer, int(at.job), &again)
	m.changed = true
	return nil
}
