package wire

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// changeSnapshot continues on the present state after a change; paths of an error begin with `change`. The message is read like an encoded
// one, so that it has one meaning.
func (s *Session) changeSnapshot(c *apportionv1.Change, answer *apportionv1.EventAnswer) error {
	data, err := proto.Marshal(c)
	if err != nil {
		return faultAt("change", "a text is not UTF-8")
	}
	change, err := decode.ReadChange(data, s.limits, s.stop)
	if err != nil {
		return err
	}
	s.leave()
	before := s.engine.View()
	if err := s.engine.ChangeIf(change.Dimensions(), change.Make, s.limits.Accept); err != nil {
		return within(err, "change.")
	}
	s.changed(before, c, answer)
	return nil
}

// changed adds the positions of the objects that a change has set to an answer.
func (s *Session) changed(before *policy.View, c *apportionv1.Change, answer *apportionv1.EventAnswer) {
	v := s.engine.View()
	answer.FirstTask = uint32(before.Tasks.Len())
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

// change returns the memory of the answer to a change, and records what it adds.
func (a *asking) change(c *apportionv1.Change) (answer int64) {
	size := decode.SizeOf(&apportionv1.Snapshot{
		Nodes: c.GetNodes(), NodeSets: c.GetNodeSets(), Queues: c.GetQueues(), Jobs: c.GetJobs(),
	}, 2*int64(proto.Size(c)))
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
	return 16 * int64(len(c.GetNodes())+len(c.GetQueues())+len(c.GetJobs()))
}
