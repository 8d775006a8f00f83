package wire

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

var addJobQuestion = question[*apportionv1.AddJobStep]{
	of: (*apportionv1.Step).GetAddJob, changes: true, need: noKind, answer: (*Session).addJob,
	memory: func(a *asking, q *apportionv1.AddJobStep) (answer, work int64) {
		a.reopen(decode.SizeOf(&apportionv1.Snapshot{Jobs: []*apportionv1.Job{q.GetJob()}}, 2*int64(proto.Size(q))))
		return 0, 0
	},
	added: func(z *decode.Size, job []byte) {
		z.Jobs++
		z.AddJob(job)
	},
}

var removeJobQuestion = question[*apportionv1.RemoveJobStep]{
	of: (*apportionv1.Step).GetRemoveJob, changes: true, need: noKind, answer: (*Session).removeJob,
	memory: func(a *asking, q *apportionv1.RemoveJobStep) (answer, work int64) {
		a.reopen(decode.Size{Bytes: 2 * int64(proto.Size(q))})
		return 0, 0
	},
}

var changeQuestion = question[*apportionv1.ChangeStep]{
	of: (*apportionv1.Step).GetChange, changes: true, need: noKind, answer: (*Session).changeSnapshot,
	memory: (*asking).change,
	added: func(z *decode.Size, change []byte) {
		size := decode.MeasureChange(change)
		z.Add(&size, 0)
	},
}

var markQuestion = question[*apportionv1.MarkStep]{
	of: (*apportionv1.Step).GetMark, changes: true, need: noKind, answer: (*Session).mark,
	memory: func(a *asking, _ *apportionv1.MarkStep) (answer, work int64) {
		a.marked = true
		a.undo += markBytes
		return 0, 0
	},
}

var rollbackQuestion = question[*apportionv1.RollbackStep]{
	of: (*apportionv1.Step).GetRollback, changes: true, need: noKind, undoes: true, answer: (*Session).rollback,
}

func (s *Session) addJob(q *apportionv1.AddJobStep) (*apportionv1.Answer, error) {
	if q.GetJob() == nil {
		return nil, faultAt("job", "no job is given")
	}
	for i, name := range q.GetDimensions() {
		if _, ok := s.engine.View().Dims.Index(name); !ok {
			return nil, faultAt("dimensions", "dimensions[%d]: the snapshot has no dimension %q", i, name)
		}
	}
	s.leave()
	err := s.engine.ChangeIf(q.GetDimensions(), func(b *model.ChangeBuilder) error {
		return decode.CompileJob(b, q.GetJob(), s.limits)
	}, s.limits.Accept)
	if err != nil {
		return nil, ofJob(err)
	}
	v := s.engine.View()
	j := model.JobID(v.Jobs.Len() - 1)
	job := v.Jobs.At(j)
	return &apportionv1.Answer{Answer: &apportionv1.Answer_AddJob{AddJob: &apportionv1.AddJobAnswer{
		Job: uint32(j), FirstTask: uint32(job.FirstTask), TaskCount: uint32(job.EndTask - job.FirstTask),
	}}}, nil
}

// changeSnapshot continues on the present state after a change. The message is read like an encoded one, so that it has one meaning.
func (s *Session) changeSnapshot(q *apportionv1.ChangeStep) (*apportionv1.Answer, error) {
	data, err := proto.Marshal(q.GetChange())
	if err != nil {
		return nil, faultAt("change", "a text is not UTF-8")
	}
	change, err := decode.ReadChange(data, s.limits, s.stop)
	if err != nil {
		return nil, err
	}
	s.leave()
	before := s.engine.View()
	err = s.engine.ChangeIf(change.Dimensions(), change.Make, s.limits.Accept)
	if err != nil {
		return nil, within(err, "change.")
	}
	return s.changed(before, q.GetChange()), nil
}

// within makes the paths of violations begin with a prefix.
func within(err error, prefix string) error {
	var violations *model.Error
	if !errors.As(err, &violations) {
		return err
	}
	return decode.Prefixed(violations, prefix)
}

// changed returns the positions of the objects that a change has set.
func (s *Session) changed(before *policy.View, c *apportionv1.Change) *apportionv1.Answer {
	v := s.engine.View()
	answer := &apportionv1.ChangeAnswer{FirstTask: uint32(before.Tasks.Len())}
	for _, n := range c.GetNodes() {
		id, _ := v.Node(n.GetName())
		answer.Nodes = append(answer.Nodes, uint32(id))
	}
	for _, q := range c.GetQueues() {
		id, _ := v.Queue(q.GetName())
		answer.Queues = append(answer.Queues, uint32(id))
	}
	for _, j := range c.GetJobs() {
		id, _ := v.Job(jobKey(j))
		answer.Jobs = append(answer.Jobs, uint32(id))
	}
	if names := v.Dims.OrderedNames(); !slices.Equal(names, before.Dims.OrderedNames()) {
		answer.Dimensions = names
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Change{Change: answer}}
}

// jobKey identifies a job.
func jobKey(j *apportionv1.Job) string {
	switch {
	case j.GetUid() != "":
		return j.GetUid()
	case j.GetNamespace() == "":
		return j.GetName()
	}
	return j.GetNamespace() + "/" + j.GetName()
}

// ofJob makes the paths of an added job, which its builder numbers as the first, relative to the step.
func ofJob(err error) error {
	var violations *model.Error
	if !errors.As(err, &violations) {
		return err
	}
	out := decode.Prefixed(violations, "")
	for i := range out.Violations {
		path := &out.Violations[i].Path
		if rest, ok := strings.CutPrefix(*path, "jobs[0]"); ok {
			*path = "job" + rest
		}
	}
	return out
}

func (s *Session) removeJob(q *apportionv1.RemoveJobStep) (*apportionv1.Answer, error) {
	var faults model.Error
	jobs := s.selectJobs(q.GetJobs(), &faults)
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	s.leave()
	if err := s.engine.Change(nil, func(b *model.ChangeBuilder) { b.RemoveJobs(jobs...) }); err != nil {
		return nil, err
	}
	return done(), nil
}

func (s *Session) mark(*apportionv1.MarkStep) (*apportionv1.Answer, error) {
	mark := s.engine.Mark()
	s.undo.mark()
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Mark{Mark: &apportionv1.MarkAnswer{Mark: uint32(mark)}}}, nil
}

func (s *Session) rollback(q *apportionv1.RollbackStep) (*apportionv1.Answer, error) {
	err := s.engine.Rollback(int(q.GetMark()))
	if errors.Is(err, engine.ErrNoMark) {
		return nil, &decode.Fault{
			Code: codes.NotFound, Reason: apportionv1.ErrorReason_ERROR_REASON_MARK_NOT_FOUND, Field: "mark",
			Text: "mark " + strconv.FormatUint(uint64(q.GetMark()), 10) + " was never set, or was undone",
		}
	}
	if err != nil {
		return nil, err
	}
	s.undo.rollback(int(q.GetMark()))
	return done(), nil
}

func (a *asking) change(q *apportionv1.ChangeStep) (answer, work int64) {
	c := q.GetChange()
	answer = 16 * int64(len(c.GetNodes())+len(c.GetQueues())+len(c.GetJobs()))
	size := decode.SizeOf(&apportionv1.Snapshot{
		Nodes: c.GetNodes(), NodeSets: c.GetNodeSets(), Queues: c.GetQueues(), Jobs: c.GetJobs(),
	}, 2*int64(proto.Size(q)))
	for _, name := range c.GetDimensions() {
		if !a.named[name] {
			if a.named == nil {
				a.named = map[string]bool{}
			}
			a.named[name] = true
			size.Dimensions++
		}
	}
	a.reopen(size)
	return answer, 0
}
