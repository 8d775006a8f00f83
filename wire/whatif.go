package wire

import (
	"errors"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

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
	err := s.engine.Change(q.GetDimensions(), func(b *model.Builder) {
		b.OnlyNew()
		c := compiler{b: b}
		c.job(0, q.GetJob())
	})
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

// ofJob makes the paths of an added job, which its builder numbers as the first, relative to the step.
func ofJob(err error) error {
	var violations *model.Error
	if !errors.As(err, &violations) {
		return err
	}
	out := prefixed(violations, "")
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
	if err := s.engine.Remove(jobs); err != nil {
		return nil, err
	}
	return done(), nil
}

func (s *Session) mark() (*apportionv1.Answer, error) {
	mark := s.engine.Mark()
	s.undo.mark()
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Mark{Mark: &apportionv1.MarkAnswer{Mark: uint32(mark)}}}, nil
}

func (s *Session) rollback(q *apportionv1.RollbackStep) (*apportionv1.Answer, error) {
	err := s.engine.Rollback(int(q.GetMark()))
	if errors.Is(err, engine.ErrNoMark) {
		return nil, &Fault{
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
