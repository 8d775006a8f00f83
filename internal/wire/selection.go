package wire

import (
	"math/bits"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/text"
)

// indexed returns the path of an element.
func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// things are the entities of one kind that a step may name.
type things[ID ~int32] struct {
	kind string
	// n is the number of positions; a position may be unused.
	n     int
	has   func(ID) bool
	keyed func(key string) (ID, bool)
}

// named resolves indices, then keys, and adds a fault for each that names nothing.
func (of *things[ID]) named(path string, indices []uint32, keys []string, faults *model.Error) []ID {
	ids := make([]ID, 0, len(indices)+len(keys))
	for i, index := range indices {
		switch {
		case int64(index) >= int64(of.n):
			faults.Add(indexed(path+".indices", i), "%s", noIndex(of.kind, index, of.n))
		case !of.has(ID(index)):
			faults.Add(indexed(path+".indices", i), "%s %d was removed", of.kind, index)
		default:
			ids = append(ids, ID(index))
		}
	}
	for i, key := range keys {
		if id, ok := of.keyed(key); ok {
			ids = append(ids, id)
		} else {
			faults.Add(indexed(path+".names", i), "%s", noKey(of.kind, key))
		}
	}
	return ids
}

func noIndex(kind string, index uint32, n int) string {
	return "no " + kind + " " + strconv.FormatUint(uint64(index), 10) + ", there are " + strconv.Itoa(n)
}

func noKey(kind, key string) string {
	return "no " + kind + " " + strconv.Quote(decode.Cut(key, decode.MaxText))
}

func (s *Session) selectQueues(q *apportionv1.Selector, path string, faults *model.Error) []model.QueueID {
	v := s.engine.View()
	of := things[model.QueueID]{"queue", len(v.Queues), v.HasQueue, v.Queue}
	return of.named(path, q.GetIndices(), q.GetNames(), faults)
}

func (s *Session) selectNodes(n *apportionv1.Selector, path string, faults *model.Error) []model.NodeID {
	v := s.engine.View()
	of := things[model.NodeID]{"node", len(v.Nodes), v.HasNode, v.Node}
	return of.named(path, n.GetIndices(), n.GetNames(), faults)
}

func (s *Session) selectJobs(j *apportionv1.Selector, faults *model.Error) []model.JobID {
	return s.jobsNamed(j, "jobs", faults)
}

func (s *Session) jobsNamed(j *apportionv1.Selector, path string, faults *model.Error) []model.JobID {
	v := s.engine.View()
	of := things[model.JobID]{"job", v.Jobs.Len(), v.HasJob, v.Job}
	return of.named(path, j.GetIndices(), j.GetNames(), faults)
}

func (s *Session) selectTasks(t *apportionv1.Selector, path string, faults *model.Error) []model.TaskID {
	v := s.engine.View()
	of := things[model.TaskID]{"task", v.Tasks.Len(), v.HasTask, s.taskNamed}
	return of.named(path, t.GetIndices(), t.GetNames(), faults)
}

// taskNamed finds a task by uid, or by namespace/name.
func (s *Session) taskNamed(key string) (model.TaskID, bool) {
	v := s.engine.View()
	if id, ok := v.TaskOf(key); ok {
		return id, true
	}
	return s.paths.task(v, key)
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

// workOfTask is the work of a step for each task that it names.
func (s *Session) workOfTask() int { return s.engine.View().Dims.Len() * s.plugins * s.depth }

// selected returns how many things a selection names, which are all if it is absent.
func selected(s *apportionv1.Selector, all int) int {
	if s == nil {
		return all
	}
	return len(s.GetIndices()) + len(s.GetNames())
}

// sorting is about how many comparisons sorting n things takes.
func sorting(n int) int { return n * bits.Len(uint(n)) }

// faultAt is a violation in a step.
func faultAt(path, format string, args ...any) *model.Error {
	faults := &model.Error{}
	faults.Add(path, format, args...)
	return faults
}

// only returns the one selected thing, or none if the selection was faulty.
func only[ID ~int32](ids []ID) ID {
	if len(ids) != 1 {
		return model.None
	}
	return ids[0]
}

// repeated returns an id that a list has twice. All ids are those of the model, so that the largest of them is bounded by its size.
func repeated[ID ~int32](ids []ID) (ID, bool) {
	const word = 64
	if len(ids) == 0 {
		return 0, false
	}
	seen := make([]uint64, slices.Max(ids)/word+1)
	for _, id := range ids {
		if seen[id/word]&(1<<(id%word)) != 0 {
			return id, true
		}
		seen[id/word] |= 1 << (id % word)
	}
	return 0, false
}

// leftOutNamed returns what is left out under a name: namespace/name, or name alone. What the reader may not see is not found.
func (s *Session) leftOutNamed(name string) *model.LeftOut {
	v := s.engine.View()
	for i := range v.LeftOut {
		if l := &v.LeftOut[i]; (name == l.Namespace+"/"+l.Name || name == l.Name) && s.audience.ownsLeftOut(v, l) {
			return l
		}
	}
	return nil
}

// selectExplained resolves the jobs named, and what is left out under the names that no job has.
func (s *Session) selectExplained(q *apportionv1.Selector, faults *model.Error) (jobs []model.JobID, out []*model.LeftOut) {
	v := s.engine.View()
	jobs = s.selectJobs(&apportionv1.Selector{Indices: q.GetIndices()}, faults)
	for i, uid := range q.GetNames() {
		if j, ok := v.Job(uid); ok && v.HasJob(j) && s.audience.Owns(v.Jobs.At(j).Queue) {
			jobs = append(jobs, j)
		} else if l := s.leftOutNamed(uid); l != nil {
			out = append(out, l)
		} else {
			faults.Add("jobs.names["+strconv.Itoa(i)+"]", "%s", noKey("job", uid))
		}
	}
	return jobs, out
}

// leftOutExplanation says why something is left out.
func (s *Session) leftOutExplanation(l *model.LeftOut) *apportionv1.LeftOutExplanation {
	out := &apportionv1.LeftOutExplanation{LeftOut: decode.WireLeftOut(l)}
	if l.Queue != "" {
		v := s.engine.View()
		out.SimilarQueue = spelling.Similar(l.Queue, func(yield func(string) bool) {
			for _, q := range v.QueueOrder {
				if !yield(v.Queues[q].Name) {
					return
				}
			}
		})
	}
	out.Text = text.LeftOut(out)
	s.out.left -= 2*messageBytes + proto.Size(out)
	return out
}
