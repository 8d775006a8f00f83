package wire

import (
	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
)

// Audience is a reader that may see some queues, and only the sums of the others. It belongs to one model.
type Audience struct {
	// owns are the queues that the reader sees with their jobs; shows adds the ancestors of these, which are seen without theirs.
	owns, shows []bool
}

// NewAudience returns the reader that owns the queues with matching names, and all queues below them.
func NewAudience(m *model.Model, own func(name string) bool) *Audience {
	a := &Audience{owns: make([]bool, len(m.Queues)), shows: make([]bool, len(m.Queues))}
	for q := range m.Queues {
		if !m.HasQueue(model.QueueID(q)) {
			continue
		}
		path := pathOf(m, model.QueueID(q))
		for _, above := range path {
			a.owns[q] = a.owns[q] || own(m.Queues[above].Name)
		}
		if a.owns[q] {
			for _, above := range path {
				a.shows[above] = true
			}
		}
	}
	return a
}

// pathOf lists a queue and its ancestors. It ends where parents form a circle.
func pathOf(m *model.Model, q model.QueueID) []model.QueueID {
	path := []model.QueueID{q}
	seen := map[model.QueueID]bool{q: true}
	for {
		parent, ok := m.Queue(m.Queues[q].Parent)
		if !ok || seen[parent] || !m.HasQueue(parent) {
			return path
		}
		seen[parent] = true
		path, q = append(path, parent), parent
	}
}

// Owns reports whether the reader sees a queue and its jobs. Without an audience every queue is seen.
func (a *Audience) Owns(q model.QueueID) bool { return a == nil || has(a.owns, q) }

// Shows reports whether the reader sees a queue, as one of its own or as an ancestor of one.
func (a *Audience) Shows(q model.QueueID) bool { return a == nil || has(a.shows, q) }

func has(set []bool, q model.QueueID) bool { return q >= 0 && int(q) < len(set) && set[q] }

// Restrict restricts later answers to an audience: steps that it may not use fail with PERMISSION_DENIED, and texts contain no names of
// queues, jobs and tasks that it may not see. nil: no restriction, which is the default.
func (s *Session) Restrict(a *Audience) {
	s.audience, s.out.audience = a, a
	s.named = nil
}

// jobs returns those of a list that the reader may see.
func (a *Audience) jobs(v *policy.View, list []model.JobID) []model.JobID {
	if a == nil {
		return list
	}
	own := make([]model.JobID, 0, len(list))
	for _, j := range list {
		if a.Owns(v.Jobs.At(j).Queue) {
			own = append(own, j)
		}
	}
	return own
}

// leftOut returns the jobs and pods left out that the reader may see: the entries that name one of its queues. Kinds that were not read are
// not among them: what depends on these is no answer.
func (a *Audience) leftOut(v *policy.View) []*model.LeftOut {
	var list []*model.LeftOut
	for i := range v.LeftOut {
		if l := &v.LeftOut[i]; !isUnread(l) && a.ownsLeftOut(v, l) {
			list = append(list, l)
		}
	}
	return list
}

func (a *Audience) ownsLeftOut(v *policy.View, l *model.LeftOut) bool {
	if a == nil {
		return true
	}
	q, ok := v.Queue(l.Queue)
	return ok && a.Owns(q)
}

func (a *Audience) queueName(v *policy.View, q model.QueueID) string {
	if !a.Shows(q) {
		return text.HiddenQueue
	}
	return v.Queues[q].Name
}

// jobName names a job as far as the reader may see it.
func (a *Audience) jobName(v *policy.View, j model.JobID) string {
	if job := v.Jobs.At(j); a.Owns(job.Queue) {
		return JobName(job)
	}
	return "a job of another queue"
}

func (a *Audience) taskName(v *policy.View, t model.TaskID) string {
	if !a.Owns(v.QueueOf(t)) {
		return "a task of another queue"
	}
	if path := v.TaskPath(t); path != "" {
		return path
	}
	return "task " + v.TaskKey(t)
}

// permit returns a fault if the audience may not ask a step of a kind.
func (s *Session) permit(q *Question, step *apportionv1.Step) *decode.Fault {
	switch {
	case s.audience == nil:
		return nil
	case q == nil || q.permit == nil:
		return denied("")
	}
	return q.permit(s, step)
}

// permitJobs refuses jobs that the reader may not see, and those that do not exist in the same words.
func (s *Session) permitJobs(jobs *apportionv1.Selector, path string, leftOut bool) *decode.Fault {
	v := s.engine.View()
	own := func(j model.JobID) bool { return v.HasJob(j) && s.audience.Owns(v.Jobs.At(j).Queue) }
	for i, index := range jobs.GetIndices() {
		if int64(index) >= int64(v.Jobs.Len()) || !own(model.JobID(index)) {
			return denied(indexed(path+".indices", i))
		}
	}
	for i, uid := range jobs.GetNames() {
		if j, ok := v.Job(uid); ok && own(j) {
			continue
		}
		if leftOut && s.leftOutNamed(uid) != nil {
			continue
		}
		return denied(indexed(path+".names", i))
	}
	return nil
}

// permitQueues refuses queues that the reader may not see, and those that do not exist in the same words.
func (s *Session) permitQueues(queues *apportionv1.Selector, path string) *decode.Fault {
	v := s.engine.View()
	for i, index := range queues.GetIndices() {
		if int64(index) >= int64(len(v.Queues)) || !s.audience.Shows(model.QueueID(index)) {
			return denied(indexed(path+".indices", i))
		}
	}
	for i, name := range queues.GetNames() {
		if id, ok := v.Queue(name); !ok || !s.audience.Shows(id) {
			return denied(indexed(path+".names", i))
		}
	}
	return nil
}

func denied(field string) *decode.Fault {
	return &decode.Fault{
		Code: codes.PermissionDenied, Reason: apportionv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED, Field: field,
		Text: "the caller may see only its own queues",
	}
}

// others returns the shares that the audience may see, and adds the sums of the other ones to the plugin, by parent.
func (s *Session) others(plugin *apportionv1.PluginShares, all []*apportionv1.QueueShare) []*apportionv1.QueueShare {
	var shown []*apportionv1.QueueShare
	var sums []*otherSum
	at := map[int64]*otherSum{}
	for _, share := range all {
		if s.audience.Shows(model.QueueID(share.GetQueue())) {
			shown = append(shown, share)
			continue
		}
		key, parent := parentOf(share)
		if !share.GetParticipating() || parent != nil && !s.audience.Shows(model.QueueID(*parent)) {
			// The numbers of its ancestor include those of this queue.
			continue
		}
		sum := at[key]
		if sum == nil {
			sum = newOtherSum(s.engine.View().Dims.Len(), parent)
			at[key], sums = sum, append(sums, sum)
		}
		sum.add(s.engine.View().Dims.Order(), share)
	}
	for _, sum := range sums {
		plugin.Others = append(plugin.Others, sum.close(&s.out))
	}
	return shown
}

// parentOf returns the parent of a queue in the plugin's tree, nil for none, and a key for it.
func parentOf(share *apportionv1.QueueShare) (int64, *uint32) {
	above := share.GetAncestors()
	if len(above) == 0 {
		return -1, nil
	}
	return int64(above[len(above)-1]), &above[len(above)-1]
}

// otherSum adds up shares of queues.
type otherSum struct {
	out  apportionv1.OtherShares
	rows [4]resource.Row
}

func newOtherSum(width int, parent *uint32) *otherSum {
	sum := &otherSum{}
	sum.out.Parent = parent
	for i := range sum.rows {
		sum.rows[i] = resource.NewRow(width)
	}
	return sum
}

func (o *otherSum) add(order []int, share *apportionv1.QueueShare) {
	o.out.QueueCount++
	o.out.Weight += uint64(share.GetWeight())
	for i, r := range [...]*apportionv1.Resource{share.GetGuarantee(), share.GetDeserved(), share.GetAllocated(), share.GetRequest()} {
		for k, position := range r.GetDimensions() {
			d := order[position]
			o.rows[i].Set(d, o.rows[i].V[d]+r.GetAmounts()[k])
		}
	}
}

func (o *otherSum) close(out *encoder) *apportionv1.OtherShares {
	for i, field := range [...]**apportionv1.Resource{&o.out.Guarantee, &o.out.Deserved, &o.out.Allocated, &o.out.Request} {
		if o.rows[i].Has != 0 {
			*field = out.resource(o.rows[i])
		}
	}
	out.left -= 2 * messageBytes
	return &o.out
}
