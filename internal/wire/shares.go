package wire

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
)

var sharesQuestion = question[*apportionv1.SharesStep]{
	of:       (*apportionv1.Step).GetShares,
	answer:   (*Session).shares,
	work:     (*Session).spendOnShares,
	memory:   (*asking).shares,
	explains: func(q *apportionv1.SharesStep) bool { return q.GetExplain() != nil },
	permit:   (*Session).permitShares,
	visible: map[string]string{
		"SharesAnswer": "plugins standings",
		"PluginShares": "plugin hierarchy_ready hierarchy_causes queues jobs others",
		"QueueShare": "queue name participating weight guarantee deserved allocated request inqueue elastic capability real_capability " +
			"share dominant overused ancestors:aQueue children:aQueue with_memory kueue reserved",
		"KueueShare":    "accounts weighted resource borrowing inactive parent cohort",
		"KueueAccount":  "flavor resource nominal usage available potential borrowing",
		"OtherShares":   "parent:aQueue queue_count weight guarantee deserved allocated request",
		"QueueStanding": "queue name overused rank causes",
		"JobShare":      "job uid share dominant allocated",
	},
	sums:     catalogue.SumsForShares,
	unranked: func(s *Session, _ *apportionv1.SharesStep) bool { return s.volcano },
}

// fields is a set of ShareField.
type fields uint32

const allFields fields = 1<<(apportionv1.ShareField_SHARE_FIELD_RESERVED+1) - 1

func (f fields) has(field apportionv1.ShareField) bool { return f>>field&1 != 0 }

func fieldSet(list []apportionv1.ShareField, faults *model.Error) fields {
	if len(list) == 0 {
		return allFields
	}
	set := fields(0)
	for i, f := range list {
		if f <= apportionv1.ShareField_SHARE_FIELD_UNSPECIFIED || f > apportionv1.ShareField_SHARE_FIELD_RESERVED {
			faults.Add(indexed("fields", i), "no field %d", f)
			continue
		}
		set |= 1 << f
	}
	return set
}

func (s *Session) shares(q *apportionv1.SharesStep) (*apportionv1.Answer, error) {
	var faults model.Error
	queues, jobs := s.allQueues(), []model.JobID(nil)
	if q.GetQueues() != nil {
		queues = s.selectQueues(q.GetQueues(), "queues", &faults)
	}
	if js := q.GetJobs(); js != nil {
		jobs = s.selectJobs(js, &faults)
		if len(js.GetIndices())+len(js.GetNames()) == 0 {
			jobs = s.audience.jobs(s.engine.View(), s.allJobs())
		}
	}
	wanted := fieldSet(q.GetFields(), &faults)
	explained := s.explained(q.GetExplain(), &faults)
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	answer := &apportionv1.SharesAnswer{}
	for _, d := range s.engine.Dividers() {
		plugin := &apportionv1.PluginShares{Plugin: d.Name}
		answer.Plugins = append(answer.Plugins, plugin)
		if err := s.divide(plugin, &d, queues, jobs, wanted, q); err != nil {
			return nil, err
		}
		if q.GetExplain() == nil {
			continue
		}
		if err := catalogue.Derive(plugin, d.State, explained, derivation{s}); err != nil {
			return nil, err
		}
	}
	var err error
	if answer.Standings, err = s.standings(queues); err != nil {
		return nil, err
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Shares{Shares: answer}}, nil
}

// divide fills in what one plugin gives.
func (s *Session) divide(
	plugin *apportionv1.PluginShares, d *engine.Divider, queues []model.QueueID, jobs []model.JobID, wanted fields,
	q *apportionv1.SharesStep,
) error {
	if d.Forest != nil {
		var why policy.Reasons
		ready := d.Forest.Accepted(&why)
		plugin.HierarchyReady, plugin.HierarchyCauses = &ready, s.out.reasonList(why.List)
	}
	if state, ok := d.State.(*kueue.State); ok && q.GetQueues() == nil && s.audience == nil {
		var err error
		if plugin.KueueLocals, err = s.kueueLocals(state); err != nil {
			return err
		}
	}
	if d.Queues != nil {
		if err := s.out.room(len(queues), "queues"); err != nil {
			return err
		}
		if err := s.queueShares(plugin, d.Queues, queues, wanted); err != nil {
			return err
		}
	}
	if d.Jobs != nil && q.GetJobs() != nil {
		if err := s.jobShares(plugin, d.Jobs, jobs); err != nil {
			return err
		}
	}
	if d.Tree != nil && q.GetTree() {
		return s.tree(plugin, d.Tree)
	}
	return nil
}

// queueShares fills in the shares of queues.
func (s *Session) queueShares(
	plugin *apportionv1.PluginShares, sharer policy.Sharer, queues []model.QueueID, wanted fields,
) error {
	if s.out.lent != nil && s.audience == nil {
		return s.encodedShares(plugin, sharer, queues, wanted)
	}
	shares := many(&s.out, &s.out.memory().queueShares, len(queues))
	plugin.Queues = many(&s.out, &s.out.memory().queueLists, len(queues))
	for i, id := range queues {
		plugin.Queues[i] = &shares[i]
		if s.queueShare(&shares[i], sharer, id, wanted); s.out.left < 0 {
			return s.out.tooLarge("queues")
		}
	}
	if s.audience != nil {
		plugin.Queues = s.others(plugin, plugin.Queues)
	}
	return nil
}

// pluginQueues is the field of PluginShares with the shares of queues.
const pluginQueues = 4

// encodedShares fills in the shares of queues as bytes: in a Room only the encoder reads the messages. One message is filled in for each
// queue and encoded at once, because the 8,000 messages of 1,000 queues leave the processor's caches before the answer is encoded: without
// this the server takes 1.2 times the processor time for a change of 1 % and all shares (`go run ./bench/wire -only change`). The bytes are
// entries of the field that they are, among the unknown fields of the plugin's message.
func (s *Session) encodedShares(
	plugin *apportionv1.PluginShares, sharer policy.Sharer, queues []model.QueueID, wanted fields,
) error {
	room := s.out.lent
	if room.queue == nil {
		room.queue = new(Room)
	}
	s.out.lent = room.queue
	defer func() { s.out.lent = room }()
	from := len(room.shares)
	for _, q := range queues {
		share := room.queue.queueShares.one()
		if s.queueShare(share, sharer, q, wanted); s.out.left < 0 {
			return s.out.tooLarge("queues")
		}
		size := share.SizeVT()
		data := protowire.AppendTag(room.shares, pluginQueues, protowire.BytesType)
		data = slices.Grow(protowire.AppendVarint(data, uint64(size)), size)
		data = data[:len(data)+size]
		if _, err := share.MarshalToSizedBufferVT(data[len(data)-size:]); err != nil {
			return err
		}
		room.shares = data
		room.queue.emptyShares()
	}
	plugin.ProtoReflect().SetUnknown(room.shares[from:])
	return nil
}

func (s *Session) queueShare(out *apportionv1.QueueShare, plugin policy.Sharer, q model.QueueID, wanted fields) {
	out.Queue = uint32(q)
	if !s.omitNames {
		out.Name = s.engine.View().Queues[q].Name
	}
	s.out.left -= messageBytes + len(out.Name)
	if state, ok := plugin.(*kueue.State); ok && s.audience.Owns(q) {
		s.kueueShare(out, state, q)
	}
	var share policy.Share
	if share, out.Participating = plugin.Share(q); !out.Participating {
		return
	}
	row := func(field apportionv1.ShareField, row resource.Row) *apportionv1.Resource {
		if !wanted.has(field) {
			return nil
		}
		return s.out.resource(row)
	}
	if wanted.has(apportionv1.ShareField_SHARE_FIELD_WEIGHT) {
		out.Weight = uint32(share.Weight)
	}
	out.Guarantee = row(apportionv1.ShareField_SHARE_FIELD_GUARANTEE, share.Guarantee)
	out.Deserved = row(apportionv1.ShareField_SHARE_FIELD_DESERVED, share.Deserved)
	out.Allocated = row(apportionv1.ShareField_SHARE_FIELD_ALLOCATED, share.Allocated)
	out.Request = row(apportionv1.ShareField_SHARE_FIELD_REQUEST, share.Request)
	out.Inqueue = row(apportionv1.ShareField_SHARE_FIELD_INQUEUE, share.Inqueue)
	out.Elastic = row(apportionv1.ShareField_SHARE_FIELD_ELASTIC, share.Elastic)
	out.Capability = row(apportionv1.ShareField_SHARE_FIELD_CAPABILITY, share.Capability)
	out.RealCapability = row(apportionv1.ShareField_SHARE_FIELD_REAL_CAPABILITY, share.RealCapability)
	out.WithMemory = row(apportionv1.ShareField_SHARE_FIELD_WITH_MEMORY, share.WithMemory)
	if r, ok := plugin.(policy.QueueReserver); ok && wanted.has(apportionv1.ShareField_SHARE_FIELD_RESERVED) {
		out.Reserved = s.out.resource(r.ReservedFor(q))
	}
	if wanted.has(apportionv1.ShareField_SHARE_FIELD_SHARE) {
		out.Share, out.Dominant = share.Share, s.out.dimension(share.Dominant)
	}
	out.Overused = share.Overused
	s.out.left -= 2 * messageBytes
	if wanted == allFields {
		out.Ancestors, out.Children = indices(&s.out, share.Ancestors), indices(&s.out, share.Children)
	}
}

func (s *Session) jobShares(plugin *apportionv1.PluginShares, sharer policy.JobSharer, jobs []model.JobID) error {
	if err := s.out.room(len(jobs), "jobs"); err != nil {
		return err
	}
	shares := make([]apportionv1.JobShare, len(jobs))
	plugin.Jobs = make([]*apportionv1.JobShare, 0, len(jobs))
	for i, id := range jobs {
		share, ok := sharer.JobShare(id)
		if !ok {
			continue
		}
		out := &shares[i]
		out.Job, out.Share = uint32(id), share.Share
		out.Dominant, out.Allocated = s.out.dimension(share.Dominant), s.out.resource(share.Allocated)
		if !s.omitNames {
			out.Uid = s.engine.View().Jobs.At(id).UID
		}
		plugin.Jobs = append(plugin.Jobs, out)
		if s.out.left -= 2*messageBytes + len(out.Uid); s.out.left < 0 {
			return s.out.tooLarge("jobs")
		}
	}
	return nil
}

func (s *Session) tree(plugin *apportionv1.PluginShares, sharer policy.TreeSharer) error {
	nodes := sharer.Nodes()
	if err := s.out.room(len(nodes), "tree"); err != nil {
		return err
	}
	out := make([]apportionv1.TreeNode, len(nodes))
	plugin.TreeNodes = make([]*apportionv1.TreeNode, len(nodes))
	for i := range nodes {
		n, to := &nodes[i], &out[i]
		to.Parent, to.Name, to.Weight, to.Share, to.Saturated = s.out.optional(n.Parent), n.Name, n.Weight, n.Share, n.Saturated
		to.Request, to.Allocated = s.out.resource(n.Request), s.out.resource(n.Allocated)
		to.Job, to.Dominant = s.out.optional(int(n.Job)), s.out.dimension(n.Dominant)
		plugin.TreeNodes[i] = to
		if s.out.left -= 4*messageBytes + len(n.Name); s.out.left < 0 {
			return s.out.tooLarge("tree")
		}
	}
	return nil
}

// standings returns the whole policy's view of queues.
func (s *Session) standings(queues []model.QueueID) ([]*apportionv1.QueueStanding, error) {
	if err := s.out.room(len(queues), "queues"); err != nil {
		return nil, err
	}
	v := s.engine.View()
	ranks := s.engine.Order().Ranks(queues)
	standings := many(&s.out, &s.out.memory().standings, len(queues))
	list := many(&s.out, &s.out.memory().standingLists, len(queues))[:0]
	for i, q := range queues {
		if !s.audience.Owns(q) {
			continue
		}
		s.reasons.List = s.reasons.List[:0]
		out := &standings[i]
		out.Queue, out.Rank = uint32(q), s.out.optional(int(ranks[i]))
		if !s.omitNames {
			out.Name = v.Queues[q].Name
		}
		if out.Overused = s.engine.IsOverused(q, &s.reasons); out.Overused {
			out.Causes = s.out.reasonList(s.reasons.List)
		}
		list = append(list, out)
		if s.out.left -= messageBytes + len(out.Name); s.out.left < 0 {
			return nil, s.out.tooLarge("queues")
		}
	}
	return list, nil
}

// spendOnShares spends on the accounts that are wanted, and on the order of all queues with jobs.
func (s *Session) spendOnShares(q *apportionv1.SharesStep) error {
	v := s.engine.View()
	queues, jobs := len(v.Queues), 0
	if wanted := q.GetQueues(); wanted != nil {
		queues = len(wanted.GetIndices()) + len(wanted.GetNames())
	}
	if wanted := q.GetJobs(); wanted != nil {
		if jobs = selected(wanted, 0); jobs == 0 {
			jobs = v.Jobs.Len()
		}
	}
	if q.GetTree() {
		jobs += v.Jobs.Len()
	}
	if err := s.work.Spend(queues+jobs, v.Dims.Len()*s.plugins); err != nil {
		return err
	}
	return s.work.Spend(v.Jobs.Len()+sorting(len(v.Queues)), 1)
}

func (s *Session) permitShares(q *apportionv1.SharesStep) *decode.Fault {
	switch {
	case q.GetTree():
		return denied("tree")
	case q.GetExplain() != nil:
		return denied("explain")
	}
	return cmp.Or(s.permitQueues(q.GetQueues(), "queues"), s.permitJobs(q.GetJobs(), "jobs", false))
}

func (a *asking) shares(q *apportionv1.SharesStep) (answer, work int64) {
	// Three plugins at most divide among queues, two among jobs.
	const ofQueues, ofJobs = 3, 2
	queues, fields := a.Queues, int64(len(apportionv1.ShareField_name))
	if wanted := q.GetQueues(); wanted != nil {
		queues = int64(len(wanted.GetIndices()) + len(wanted.GetNames()))
	}
	if n := len(q.GetFields()); n > 0 {
		fields = min(fields, int64(n))
	}
	answer = queues * (min(a.Plugins, ofQueues)*(decode.BytesOf[apportionv1.QueueShare](1)+16+fields*a.resource()) +
		decode.BytesOf[apportionv1.QueueStanding](1) + 32 + a.verdict())
	if q.GetJobs() != nil {
		answer += a.jobs(q.GetJobs()) * min(a.Plugins, ofJobs) * (decode.BytesOf[apportionv1.JobShare](1) + 16 + 2*a.resource())
	}
	if q.GetTree() {
		answer += (a.Jobs + a.Queues) * (decode.BytesOf[apportionv1.TreeNode](1) + 64 + 2*a.resource())
	}
	work = a.session() + 16*queues
	if q.GetExplain() != nil {
		rounds := a.Queues*a.Dimensions + 2
		answer += min(a.explain, rounds*a.Queues*(explainFactor*a.resource()))
	}
	return answer, work
}
