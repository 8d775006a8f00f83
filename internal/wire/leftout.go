package wire

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/text"
)

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
func (s *Session) selectExplained(q *apportionv1.Jobs, faults *model.Error) (jobs []model.JobID, out []*model.LeftOut) {
	v := s.engine.View()
	jobs = s.selectJobs(&apportionv1.Jobs{Indices: q.GetIndices()}, faults)
	for i, uid := range q.GetUids() {
		if j, ok := v.Job(uid); ok && v.HasJob(j) && s.audience.Owns(v.Jobs.At(j).Queue) {
			jobs = append(jobs, j)
		} else if l := s.leftOutNamed(uid); l != nil {
			out = append(out, l)
		} else {
			faults.Add("jobs.uids["+strconv.Itoa(i)+"]", "%s", noKey("job", uid))
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
