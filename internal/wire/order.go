package wire

import (
	"slices"
	"strings"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// maxPairs is how many things every pair of is compared at most: to list the pairs, and to find out whether their order is transitive.
const maxPairs = 1000

var orderQuestion = question[*apportionv1.OrderStep]{
	of:      (*apportionv1.Step).GetOrder,
	answer:  (*Session).order,
	work:    (*Session).spendOnOrder,
	memory:  (*asking).order,
	permit:  (*Session).permitOrder,
	visible: map[string]string{"OrderAnswer": "items:aJob ties intransitive"},
}

func (s *Session) order(q *apportionv1.OrderStep) (*apportionv1.Answer, error) {
	var order *apportionv1.OrderAnswer
	var err error
	switch subject := q.GetSubject().(type) {
	case *apportionv1.OrderStep_Queues:
		order, err = s.orderQueues(q, subject.Queues)
	case *apportionv1.OrderStep_Jobs:
		order, err = s.orderJobs(q, subject.Jobs)
	case *apportionv1.OrderStep_Tasks:
		order, err = s.orderTasks(q, subject.Tasks)
	default:
		err = faultAt("subject", "no queues, jobs or tasks to order")
	}
	if err != nil {
		return nil, err
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Order{Order: order}}, nil
}

func (s *Session) orderQueues(q *apportionv1.OrderStep, subject *apportionv1.Selector) (*apportionv1.OrderAnswer, error) {
	var faults model.Error
	queues := s.selectQueues(subject, "queues", &faults)
	v := s.engine.View()
	compare, sort := s.engine.Order().CompareQueues, s.engine.Order().SortQueuesOnce
	if len(subject.GetIndices())+len(subject.GetNames()) == 0 {
		queues = v.Busy()
	}
	if q.GetClaimant() != nil {
		sort = nil
		claimant := s.claimantQueue(q, &faults)
		compare = func(l, r model.QueueID) engine.Comparison {
			return s.engine.Order().CompareVictimQueues(l, r, claimant)
		}
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	return ordered(s, q, queues, "queues", func(q model.QueueID) string { return v.Queues[q].Name }, compare, sort)
}

func (s *Session) claimantQueue(q *apportionv1.OrderStep, faults *model.Error) model.QueueID {
	var selection *apportionv1.Selector
	path := "claimant_queue"
	switch c := q.GetClaimant().(type) {
	case *apportionv1.OrderStep_ClaimantQueue:
		selection = &apportionv1.Selector{Indices: []uint32{c.ClaimantQueue}}
	case *apportionv1.OrderStep_ClaimantQueueName:
		selection, path = &apportionv1.Selector{Names: []string{c.ClaimantQueueName}}, "claimant_queue_name"
	default:
		faults.Add("claimant", "queues are ordered for a queue, not for a task")
		return model.None
	}
	return only(s.selectQueues(selection, path, faults))
}

func (s *Session) orderJobs(q *apportionv1.OrderStep, subject *apportionv1.Selector) (*apportionv1.OrderAnswer, error) {
	var faults model.Error
	jobs := s.selectJobs(subject, &faults)
	if len(subject.GetIndices())+len(subject.GetNames()) == 0 {
		jobs = s.allJobs()
	}
	if q.GetClaimant() != nil {
		faults.Add("claimant", "jobs have no order as victims")
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	v := s.engine.View()
	return ordered(s, q, jobs, "jobs", func(j model.JobID) string { return v.Jobs.At(j).UID }, s.engine.Order().CompareJobs, nil)
}

func (s *Session) orderTasks(q *apportionv1.OrderStep, subject *apportionv1.Selector) (*apportionv1.OrderAnswer, error) {
	var faults model.Error
	tasks := s.selectTasks(subject, "tasks", &faults)
	compare := s.engine.Order().CompareTasks
	if q.GetClaimant() != nil {
		claimant := s.claimantTask(q, &faults)
		compare = func(l, r model.TaskID) engine.Comparison { return s.engine.Order().CompareVictims(l, r, claimant) }
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	return ordered(s, q, tasks, "tasks", s.engine.View().TaskKey, compare, nil)
}

func (s *Session) claimantTask(q *apportionv1.OrderStep, faults *model.Error) model.TaskID {
	var selection *apportionv1.Selector
	path := "claimant_task"
	switch c := q.GetClaimant().(type) {
	case *apportionv1.OrderStep_ClaimantTask:
		selection = &apportionv1.Selector{Indices: []uint32{c.ClaimantTask}}
	case *apportionv1.OrderStep_ClaimantTaskUid:
		selection, path = &apportionv1.Selector{Names: []string{c.ClaimantTaskUid}}, "claimant_task_uid"
	default:
		faults.Add("claimant", "tasks are ordered for a task, not for a queue")
		return model.None
	}
	var own model.Error
	task := only(s.selectTasks(selection, path, &own))
	for _, v := range own.Violations {
		faults.Add(path, "%s", v.Detail) // The field holds one task, and no selection.
	}
	return task
}

// ordered sorts items, each named once, and returns ties, pairs, and whether there is an order at all. If once is not nil and sorts them,
// there is one, and it tells which neighbors are tied.
func ordered[ID ~int32](
	s *Session, q *apportionv1.OrderStep, ids []ID, kind string, name func(ID) string, compare func(l, r ID) engine.Comparison,
	once func([]ID) (tied func(i int) bool, ok bool),
) (*apportionv1.OrderAnswer, error) {
	if err := s.out.room(len(ids), kind); err != nil {
		return nil, err
	}
	if twice, ok := repeated(ids); ok {
		return nil, faultAt(kind, "%d is named twice", twice)
	}
	if q.GetPairs() {
		if len(ids) > maxPairs {
			return nil, faultAt("pairs", "pairs are listed for at most %d entries, not %d", maxPairs, len(ids))
		}
		if err := s.out.room(2*len(ids)*(len(ids)-1)/2, kind); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(ids)
	// Comparing is most of the work. Once the answer is no longer needed, all items compare equal, so that the rest ends at once.
	halt := halting{stop: s.stop}
	less := func(l, r ID) bool { return !halt.now() && compare(l, r).Less }
	tied, total := func(i int) bool { return compare(sorted[i], sorted[i+1]).Plugins == 0 }, false
	if once != nil {
		if known, ok := once(sorted); ok {
			tied, total = known, true
		}
	}
	if !total {
		engine.Sort(sorted, func(l, r ID) int {
			if halt.now() {
				return 0
			}
			return strings.Compare(name(l), name(r))
		}, less)
	}
	answer := &apportionv1.OrderAnswer{
		Items:        indices(&s.out, sorted),
		Ties:         s.ties(len(sorted), tied),
		Intransitive: !total && !transitive(sorted, maxPairs, less),
	}
	if halt.over {
		return nil, policy.ErrStopped
	}
	if !q.GetPairs() {
		return answer, s.out.check(kind)
	}
	pairs := make([]apportionv1.Pair, len(ids)*(len(ids)-1)/2)
	for i, l := range ids {
		if s.stop != nil && s.stop() {
			return nil, policy.ErrStopped
		}
		for _, r := range ids[i+1:] {
			c := compare(l, r)
			pair := &pairs[len(answer.Pairs)]
			pair.Left, pair.Right, pair.Compare, pair.Less = uint32(l), uint32(r), int32(c.Plugins), c.Less
			answer.Pairs = append(answer.Pairs, pair)
			s.out.left -= 2 * messageBytes
		}
	}
	return answer, s.out.check(kind)
}

// halting asks stop once in many calls, and remembers that it asked to stop.
type halting struct {
	stop  func() bool
	asked int
	over  bool
}

func (h *halting) now() bool {
	h.asked++
	if h.asked&1023 == 0 && !h.over && h.stop != nil {
		h.over = h.stop()
	}
	return h.over
}

// ties returns the length of each run of neighbours that are tied; the lengths add up to n.
func (s *Session) ties(n int, tied func(i int) bool) []uint32 {
	runs := make([]uint32, 0, n)
	for i := range n {
		if i == 0 || !tied(i-1) {
			runs = append(runs, 0)
		}
		runs[len(runs)-1]++
	}
	s.out.left -= len(runs) * numberBytes
	return runs
}

// spendOnOrder spends on sorting, on comparing pairs to find out whether there is an order, and on those that are wanted.
func (s *Session) spendOnOrder(q *apportionv1.OrderStep) error {
	v, n := s.engine.View(), 0
	switch subject := q.GetSubject().(type) {
	case *apportionv1.OrderStep_Queues:
		if n = len(subject.Queues.GetIndices()) + len(subject.Queues.GetNames()); n == 0 {
			n = len(v.Queues)
		}
	case *apportionv1.OrderStep_Jobs:
		if n = selected(subject.Jobs, 0); n == 0 {
			n = v.Jobs.Len()
		}
	case *apportionv1.OrderStep_Tasks:
		n = selected(subject.Tasks, 0)
	}
	pairs := min(n, maxPairs) * min(n, maxPairs)
	if err := s.work.Spend(sorting(n)+pairs, s.depth); err != nil {
		return err
	}
	return s.work.Spend(n, s.plugins)
}

func (a *asking) order(q *apportionv1.OrderStep) (answer, work int64) {
	n := int64(0)
	switch subject := q.GetSubject().(type) {
	case *apportionv1.OrderStep_Queues:
		if n = int64(len(subject.Queues.GetIndices()) + len(subject.Queues.GetNames())); n == 0 {
			n = a.Queues
		}
	case *apportionv1.OrderStep_Jobs:
		n = a.jobs(subject.Jobs)
	case *apportionv1.OrderStep_Tasks:
		n = int64(selected(subject.Tasks, 0))
	}
	answer = 16 * n
	if q.GetPairs() {
		answer += min(n, maxPairs) * min(n, maxPairs) / 2 * (decode.BytesOf[apportionv1.Pair](1) + 64)
	}
	return answer, 128 * n
}

// permitOrder lets an audience order jobs that it names.
func (s *Session) permitOrder(q *apportionv1.OrderStep) *decode.Fault {
	jobs := q.GetJobs()
	if q.GetClaimant() != nil || selected(jobs, 0) == 0 {
		return denied("")
	}
	return s.permitJobs(jobs, "jobs", false)
}

// transitive reports whether each id of a sorted list comes before all that follow it, that is, whether less is an order on them. It
// compares every pair of up to limit ids. For more ids it compares about limit² pairs, each id with the next ids, so that it costs less
// than the sort: violations between distant ids are not detected.
func transitive[ID ~int32](sorted []ID, limit int, less func(l, r ID) bool) bool {
	following := len(sorted)
	if len(sorted) > limit {
		following = max(limit*limit/len(sorted), 1)
	}
	for i, l := range sorted {
		for _, r := range sorted[i+1 : min(i+1+following, len(sorted))] {
			if !less(l, r) {
				return false
			}
		}
	}
	return true
}
