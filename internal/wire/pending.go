package wire

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
)

// pendingQueueBytes is the memory of the numbers of a queue.
const pendingQueueBytes = messageBytes + 5*numberBytes

// pendingGroups collects jobs by cause.
type pendingGroups struct {
	list []*pendingGroup
	at   map[cause]*pendingGroup
}

// pendingGroup is a group, with the constraints of its first job and what its jobs are counted by.
type pendingGroup struct {
	apportionv1.PendingGroup

	unjudged []apportionv1.PlacementConstraint
	counts   []pendingCount
}

// pendingCount is what of a job is counted.
type pendingCount struct{ queue, tasks uint32 }

// cause is the common cause of the jobs of a group.
type cause struct {
	verdict     apportionv1.PendingVerdict
	check       apportionv1.CheckKind
	code        apportionv1.CauseCode
	plugin      string
	detail      string
	queue       int64
	dimension   int64
	constraints model.Constraints
	free        bool
}

func (g *pendingGroups) add(e *apportionv1.Explanation) {
	key := cause{verdict: e.GetVerdict(), queue: -1, dimension: -1}
	var reason *apportionv1.Cause
	if e.Blocking != nil {
		finding := e.GetFindings()[e.GetBlocking()]
		key.check = finding.GetCheck()
		if reasons := finding.GetCauses(); len(reasons) > 0 && key.check != apportionv1.CheckKind_CHECK_KIND_ORDER {
			first := reasons[0]
			reason = &apportionv1.Cause{
				Plugin: first.GetPlugin(), Code: first.GetCode(), Queue: first.Queue, Dimensions: first.Dimensions,
				Detail: first.GetDetail(), HierarchyFault: first.GetHierarchyFault(),
			}
			key.code, key.plugin, key.detail = first.GetCode(), first.GetPlugin(), first.GetDetail()
			key.free = text.Barred(finding)
			if first.Queue != nil {
				key.queue = int64(first.GetQueue())
			}
			if d := first.GetDimensions(); len(d) > 0 {
				key.dimension = int64(d[0])
			}
		}
	} else {
		for _, c := range e.GetUnjudgedConstraints() {
			key.constraints |= 1 << c
		}
		if f := blindFinding(e.GetFindings()); f != nil {
			key.check, key.code, reason = f.GetCheck(), f.GetCauses()[0].GetCode(), f.GetCauses()[0]
		}
	}
	group := g.at[key]
	if group == nil {
		group = &pendingGroup{unjudged: e.GetUnjudgedConstraints()}
		group.Verdict, group.Check, group.Cause, group.Free = key.verdict, key.check, reason, key.free
		if g.at == nil {
			g.at = make(map[cause]*pendingGroup)
		}
		g.at[key] = group
		g.list = append(g.list, group)
	}
	group.Jobs = append(group.Jobs, e.GetJob())
	group.counts = append(group.counts, pendingCount{e.GetQueue(), e.GetWaitingTasks()})
}

// blindFinding returns the finding that nothing is judged, because no node states what it offers; nil if there is none.
func blindFinding(findings []*apportionv1.Finding) *apportionv1.Finding {
	i := slices.IndexFunc(findings, func(f *apportionv1.Finding) bool {
		return len(f.GetCauses()) > 0 && f.GetCauses()[0].GetCode() == apportionv1.CauseCode_CAUSE_CODE_NOTHING_OFFERED
	})
	if i < 0 {
		return nil
	}
	return findings[i]
}

// possible orders checks: jobs that can never run come first.
func possible(check apportionv1.CheckKind) int {
	if check == apportionv1.CheckKind_CHECK_KIND_FEASIBILITY {
		return 0
	}
	return 1
}

// sorted returns the groups: those of jobs that can never run first, and of both the largest first; among equals the one whose first job
// comes first.
func (g *pendingGroups) sorted(names text.Names) []*apportionv1.PendingGroup {
	slices.SortStableFunc(g.list, func(l, r *pendingGroup) int {
		return cmp.Or(possible(l.GetCheck())-possible(r.GetCheck()), len(r.Jobs)-len(l.Jobs))
	})
	groups := make([]*apportionv1.PendingGroup, len(g.list))
	for i, group := range g.list {
		group.Text = text.Group(names, &group.PendingGroup, group.unjudged)
		groups[i] = &group.PendingGroup
	}
	return groups
}

// count adds groups, their kinds and queues, and the text to an answer.
func (s *Session) count(answer *apportionv1.ExplainAnswer, groups *pendingGroups, names text.Names) {
	answer.Groups = groups.sorted(names)
	answer.Kinds, answer.Queues = groups.kinds(names)
	answer.Text = text.Pending(answer)
	s.out.left -= len(answer.GetQueues()) * pendingQueueBytes
	for _, kind := range answer.GetKinds() {
		s.out.left -= messageBytes + decode.MaxText + len(kind.GetGroups())*numberBytes + len(kind.GetQueues())*pendingQueueBytes
	}
}

// kind is what the causes of a kind have in common: the reason, or the check if there is none.
type kind struct {
	verdict apportionv1.PendingVerdict
	check   apportionv1.CheckKind
	code    apportionv1.CauseCode
}

// pendingKind is a kind of cause with its groups and queues.
type pendingKind struct {
	apportionv1.PendingKind

	members []*apportionv1.PendingGroup
	at      map[uint32]*apportionv1.PendingQueue
}

// kinds returns the kinds of causes of the sorted groups, and the queues of all jobs, the worst of both first.
func (g *pendingGroups) kinds(names text.Names) ([]*apportionv1.PendingKind, []*apportionv1.PendingQueue) {
	var list []*pendingKind
	at := make(map[kind]*pendingKind)
	for i, group := range g.list {
		key := kind{verdict: group.GetVerdict(), code: group.GetCause().GetCode()}
		if key.code == apportionv1.CauseCode_CAUSE_CODE_UNSPECIFIED || possible(group.GetCheck()) == 0 {
			key.check = group.GetCheck()
		}
		of := at[key]
		if of == nil {
			of = &pendingKind{at: make(map[uint32]*apportionv1.PendingQueue)}
			of.Verdict, of.Check, of.Code = key.verdict, group.GetCheck(), key.code
			at[key], list = of, append(list, of)
		}
		of.add(uint32(i), group)
	}
	slices.SortStableFunc(list, func(l, r *pendingKind) int {
		return cmp.Or(possible(l.GetCheck())-possible(r.GetCheck()), severity(l.GetVerdict())-severity(r.GetVerdict()),
			cmp.Compare(r.GetJobCount(), l.GetJobCount()))
	})
	kinds := make([]*apportionv1.PendingKind, len(list))
	all := make(map[uint32]*apportionv1.PendingQueue)
	most := make(map[uint32]uint32)
	var queues []*apportionv1.PendingQueue
	for i, of := range list {
		sortQueues(of.Queues)
		of.Text = text.Kind(names, &of.PendingKind, of.members)
		kinds[i] = &of.PendingKind
		for _, q := range of.Queues {
			sum := all[q.GetQueue()]
			if sum == nil {
				sum = &apportionv1.PendingQueue{Queue: q.GetQueue()}
				all[q.GetQueue()], queues = sum, append(queues, sum)
			}
			// Kinds that block come first, so that none that does not takes the place of one that does.
			if sum.GetJobCount() == 0 || q.GetJobCount() > most[q.GetQueue()] && (q.GetBlockedCount() > 0 || sum.GetBlockedCount() == 0) {
				sum.Kind, most[q.GetQueue()] = uint32(i), q.GetJobCount()
			}
			sum.JobCount += q.GetJobCount()
			sum.BlockedCount += q.GetBlockedCount()
			sum.TaskCount += q.GetTaskCount()
		}
	}
	sortQueues(queues)
	return kinds, queues
}

// add adds a group, which has position i in the answer.
func (k *pendingKind) add(i uint32, group *pendingGroup) {
	k.Groups = append(k.Groups, i)
	k.members = append(k.members, &group.PendingGroup)
	for _, count := range group.counts {
		q := k.at[count.queue]
		if q == nil {
			q = &apportionv1.PendingQueue{Queue: count.queue}
			k.at[count.queue], k.Queues = q, append(k.Queues, q)
		}
		k.JobCount++
		k.TaskCount += count.tasks
		q.JobCount++
		q.TaskCount += count.tasks
		if k.GetVerdict() == apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED {
			q.BlockedCount++
		}
	}
}

// severity orders verdicts: what blocks first, then what is not known, then the rest.
func severity(v apportionv1.PendingVerdict) int {
	switch v {
	case apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED:
		return 0
	case apportionv1.PendingVerdict_PENDING_VERDICT_UNDETERMINED:
		return 1
	default:
		return 2
	}
}

// sortQueues sorts queues by blocked jobs, jobs and tasks, the most first, and then by position.
func sortQueues(list []*apportionv1.PendingQueue) {
	slices.SortFunc(list, func(l, r *apportionv1.PendingQueue) int {
		return cmp.Or(
			cmp.Compare(r.GetBlockedCount(), l.GetBlockedCount()), cmp.Compare(r.GetJobCount(), l.GetJobCount()),
			cmp.Compare(r.GetTaskCount(), l.GetTaskCount()), cmp.Compare(l.GetQueue(), r.GetQueue()),
		)
	})
}

// pendingFilter selects waiting jobs; nil selects all.
type pendingFilter struct {
	queues     []bool
	names      map[string]bool
	own        map[model.JobID]bool
	namespaces []string
	checks     []apportionv1.CheckKind
	dimensions []int
}

// pendingFilter resolves the names of a filter. An empty list of queues selects none.
func (s *Session) pendingFilter(q *apportionv1.PendingFilter, faults *model.Error) *pendingFilter {
	if q == nil {
		return nil
	}
	v := s.engine.View()
	f := &pendingFilter{namespaces: q.GetNamespaces(), checks: q.GetChecks()}
	if q.GetQueues() != nil {
		f.queues, f.names = make([]bool, len(v.Queues)), make(map[string]bool)
		chosen := make([]bool, len(v.Queues))
		for _, id := range s.selectQueues(q.GetQueues(), "filter.queues", faults) {
			chosen[id] = true
		}
		for id := range v.Queues {
			if !v.HasQueue(model.QueueID(id)) {
				continue
			}
			path := pathOf(v.Model, model.QueueID(id))
			if slices.ContainsFunc(path, func(q model.QueueID) bool { return chosen[q] }) {
				f.queues[id], f.names[v.Queues[id].Name] = true, true
			}
		}
	}
	if q.GetJobs() != nil {
		f.own = make(map[model.JobID]bool)
		for _, j := range s.jobsNamed(q.GetJobs(), "filter.jobs", faults) {
			f.own[j] = true
		}
	}
	order := v.Dims.Order()
	for i, d := range q.GetDimensions() {
		if int64(d) >= int64(len(order)) {
			faults.Add(indexed("filter.dimensions", i), "%s", noIndex("resource", d, len(order)))
			continue
		}
		f.dimensions = append(f.dimensions, order[d])
	}
	return f
}

// jobs returns those of a list that are named, and whose queue and namespace match.
func (f *pendingFilter) jobs(v *policy.View, list []model.JobID) []model.JobID {
	if f == nil {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(j model.JobID) bool {
		job := v.Jobs.At(j)
		return f.own != nil && !f.own[j] ||
			f.queues != nil && !has(f.queues, job.Queue) || len(f.namespaces) > 0 && !slices.Contains(f.namespaces, job.Namespace)
	})
}

// leftOut returns those of a list whose queue and namespace match; none if the filter asks for what blocks or names jobs.
func (f *pendingFilter) leftOut(list []*model.LeftOut) []*model.LeftOut {
	switch {
	case f == nil:
		return list
	case len(f.checks) > 0 || len(f.dimensions) > 0 || f.own != nil:
		return nil
	}
	return slices.DeleteFunc(list, func(l *model.LeftOut) bool {
		return f.queues != nil && !f.names[l.Queue] || len(f.namespaces) > 0 && !slices.Contains(f.namespaces, l.Namespace)
	})
}

// wants reports whether what blocks a job matches.
func (f *pendingFilter) wants(e *explain.Explanation) bool {
	if f == nil {
		return true
	}
	check := apportionv1.CheckKind_CHECK_KIND_UNSPECIFIED
	if e.Blocking >= 0 {
		check = apportionv1.CheckKind(e.Findings[e.Blocking].Check)
	}
	return f.matches(check, f.short(e))
}

// short returns the first dimension that is asked for of those of which some check of a job finds too little, -1 if there is none.
func (f *pendingFilter) short(e *explain.Explanation) int {
	for _, d := range f.dimensions {
		for i := range e.Findings {
			of := &e.Findings[i]
			lacks := func(c place.NodeCount) bool { return c.Dimensions.Has(d) }
			if of.Outcome == judge.Failed && (slices.ContainsFunc(of.Reasons, func(r policy.Reason) bool { return r.Dimension == d }) ||
				slices.ContainsFunc(of.NodeCounts, lacks)) {
				return d
			}
		}
	}
	return -1
}

// matches reports whether jobs that a check blocks in a dimension are asked for; -1: in none.
func (f *pendingFilter) matches(check apportionv1.CheckKind, dimension int) bool {
	return (len(f.checks) == 0 || slices.Contains(f.checks, check)) && (len(f.dimensions) == 0 || slices.Contains(f.dimensions, dimension))
}
