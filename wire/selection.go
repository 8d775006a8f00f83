package wire

import (
	"strconv"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// indexed returns the path of an element.
func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// selectAll resolves indices, then names, and adds a fault for each that is nothing.
func selectAll[ID ~int32](
	path string, indices []uint32, keyField string, keys []string, faults *model.Error,
	byIndex func(uint32) (ID, string), byKey func(string) (ID, string),
) []ID {
	ids := make([]ID, 0, len(indices)+len(keys))
	for i, index := range indices {
		id, fault := byIndex(index)
		if fault != "" {
			faults.Add(indexed(path+".index", i), "%s", fault)
			continue
		}
		ids = append(ids, id)
	}
	for i, key := range keys {
		id, fault := byKey(key)
		if fault != "" {
			faults.Add(indexed(path+"."+keyField, i), "%s", fault)
			continue
		}
		ids = append(ids, id)
	}
	return ids
}

func noIndex(kind string, index uint32, n int) string {
	return "no " + kind + " " + strconv.FormatUint(uint64(index), 10) + ", there are " + strconv.Itoa(n)
}

func noKey(kind, key string) string { return "no " + kind + " " + strconv.Quote(cut(key, maxText)) }

func (s *Session) selectQueues(q *apportionv1.Queues, path string, faults *model.Error) []model.QueueID {
	v := s.engine.View()
	return selectAll(path, q.GetIndex(), "name", q.GetName(), faults,
		func(index uint32) (model.QueueID, string) {
			if int64(index) >= int64(len(v.Queues)) {
				return model.None, noIndex("queue", index, len(v.Queues))
			}
			if !v.HasQueue(model.QueueID(index)) {
				return model.None, wasRemoved("queue", index)
			}
			return model.QueueID(index), ""
		},
		func(name string) (model.QueueID, string) {
			if id, ok := v.Queue(name); ok {
				return id, ""
			}
			return model.None, noKey("queue", name)
		})
}

func (s *Session) selectNodes(n *apportionv1.Nodes, path string, faults *model.Error) []model.NodeID {
	v := s.engine.View()
	return selectAll(path, n.GetIndex(), "name", n.GetName(), faults,
		func(index uint32) (model.NodeID, string) {
			if int64(index) >= int64(len(v.Nodes)) {
				return model.None, noIndex("node", index, len(v.Nodes))
			}
			if !v.HasNode(model.NodeID(index)) {
				return model.None, wasRemoved("node", index)
			}
			return model.NodeID(index), ""
		},
		func(name string) (model.NodeID, string) {
			if id, ok := v.Node(name); ok {
				return id, ""
			}
			return model.None, noKey("node", name)
		})
}

func (s *Session) selectJobs(j *apportionv1.Jobs, faults *model.Error) []model.JobID {
	return s.jobsNamed(j, "jobs", faults)
}

func (s *Session) jobsNamed(j *apportionv1.Jobs, path string, faults *model.Error) []model.JobID {
	v := s.engine.View()
	return selectAll(path, j.GetIndex(), "uid", j.GetUid(), faults,
		func(index uint32) (model.JobID, string) {
			if int64(index) >= int64(v.Jobs.Len()) {
				return model.None, noIndex("job", index, v.Jobs.Len())
			}
			if !v.HasJob(model.JobID(index)) {
				return model.None, wasRemoved("job", index)
			}
			return model.JobID(index), ""
		},
		func(uid string) (model.JobID, string) {
			if id, ok := v.Job(uid); ok {
				return id, ""
			}
			return model.None, noKey("job", uid)
		})
}

func wasRemoved(kind string, index uint32) string {
	return kind + " " + strconv.FormatUint(uint64(index), 10) + " was removed"
}

func (s *Session) selectTasks(t *apportionv1.Tasks, path string, faults *model.Error) []model.TaskID {
	v := s.engine.View()
	return selectAll(path, t.GetIndex(), "uid", t.GetUid(), faults,
		func(index uint32) (model.TaskID, string) { return taskAt(v, index) },
		s.taskNamed)
}

func taskAt(v *policy.View, index uint32) (model.TaskID, string) {
	if int64(index) >= int64(v.Tasks.Len()) {
		return model.None, noIndex("task", index, v.Tasks.Len())
	}
	if !v.HasTask(model.TaskID(index)) {
		return model.None, wasRemoved("task", index)
	}
	return model.TaskID(index), ""
}

// taskNamed finds a task by uid, or by namespace/name.
func (s *Session) taskNamed(key string) (model.TaskID, string) {
	v := s.engine.View()
	id, ok := v.TaskOf(key)
	if !ok {
		if id, ok = s.paths.task(v, key); !ok {
			return model.None, noKey("task", key)
		}
	}
	return id, ""
}

// paths finds tasks by namespace/name. It is built on first use, and again after jobs were added or removed.
type paths struct {
	of    *policy.View
	tasks map[string]model.TaskID
}

// task returns the first task of a path among the jobs present.
func (p *paths) task(v *policy.View, path string) (model.TaskID, bool) {
	if p.of != v {
		p.of, p.tasks = v, make(map[string]model.TaskID, v.Tasks.Len())
		for _, t := range tasksOf(v, those(v.Jobs.Len(), v.HasJob)) {
			name := v.TaskPath(t)
			if _, taken := p.tasks[name]; name != "" && !taken {
				p.tasks[name] = t
			}
		}
	}
	t, ok := p.tasks[path]
	return t, ok
}

// allQueues lists all queues by index.
func (s *Session) allQueues() []model.QueueID {
	v := s.engine.View()
	return those(len(v.Queues), v.HasQueue)
}

// allNodes lists all nodes by index.
func (s *Session) allNodes() []model.NodeID {
	v := s.engine.View()
	return those(len(v.Nodes), v.HasNode)
}

// allJobs lists all jobs by index.
func (s *Session) allJobs() []model.JobID {
	v := s.engine.View()
	return those(v.Jobs.Len(), v.HasJob)
}

// tasksOf lists the tasks of jobs, job by job.
func tasksOf(v *policy.View, jobs []model.JobID) []model.TaskID {
	n := 0
	for _, j := range jobs {
		n += int(v.Jobs.At(j).EndTask - v.Jobs.At(j).FirstTask)
	}
	tasks := make([]model.TaskID, 0, n)
	for _, j := range jobs {
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// those lists the positions below n that hold something.
func those[ID ~int32](n int, has func(ID) bool) []ID {
	ids := make([]ID, 0, n)
	for id := range ID(n) {
		if has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}
