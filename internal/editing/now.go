package editing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// said says what the edit changes.
func (s *setting) said(subject string) string {
	e := s.edit
	switch e.GetKind() { //nolint:exhaustive // The others are settings.
	case apportionv1.EditKind_EDIT_KIND_NODES_LIKE:
		return fmt.Sprintf("add %s like %s", text.Count(int(e.GetAmount()), aNode), subject)
	case apportionv1.EditKind_EDIT_KIND_REMOVE:
		return "remove node " + subject + s.tasksOn(e.GetNode().GetIndex())
	case apportionv1.EditKind_EDIT_KIND_CORDON:
		return "cordon node " + subject
	case apportionv1.EditKind_EDIT_KIND_UNCORDON:
		return "uncordon node " + subject
	case apportionv1.EditKind_EDIT_KIND_END:
		return "finish " + subject
	case apportionv1.EditKind_EDIT_KIND_FLAVOR:
		return "create flavor " + subject
	}
	setting, now, then := s.setting, s.now(), cmp.Or(s.value, None)
	if e.Role != nil {
		setting = "role." + e.GetRole() + "." + setting
	}
	if e.Dimension != nil {
		if setting += s.Names[e.GetDimension()]; strings.Contains(s.of, "@") {
			setting += "@" + e.GetNodeSet()
		}
		if was, there := s.amountNow(); there && e.Amount != nil && s.form.value != seconds {
			unit := quantity.UnitOf(s.Names[e.GetDimension()], was, e.GetAmount()).Exactly(was, e.GetAmount())
			now, then = unit.Format(was), unit.Format(e.GetAmount())
		}
	}
	if e.To != nil {
		then = e.GetTo().GetName()
	}
	return fmt.Sprintf("set %s of %s %s to %s (now %s)", setting, s.object, subject, then, now)
}

// objects of the edit as the snapshot has them; nil where the edit is about another.
func (s *setting) objects() (*apportionv1.Queue, *apportionv1.Job, *apportionv1.Node) {
	switch of := s.edit.GetObject().(type) {
	case *apportionv1.Edit_Queue:
		return s.GetQueues()[of.Queue.GetIndex()], nil, nil
	case *apportionv1.Edit_Job:
		return nil, s.GetJobs()[of.Job.GetIndex()], nil
	case *apportionv1.Edit_Node:
		return nil, nil, s.GetNodes()[of.Node.GetIndex()]
	}
	return nil, nil, nil
}

// weightNow is the weight of a queue.
func weightNow(q *apportionv1.Queue) string {
	switch {
	case q.GetKueue() != nil && q.GetKueue().Weight != nil:
		return plain(q.GetKueue().GetWeight())
	case q.Weight != nil:
		return plain(float64(q.GetWeight()))
	}
	return "1"
}

// now is the value now.
func (s *setting) now() string {
	q, j, n := s.objects()
	if s.edit.Dimension != nil {
		amount, there := s.amountNow()
		switch {
		case !there:
			return None
		case s.form.value == seconds:
			return plain(amount)
		}
		return quantity.Short(s.Names[s.edit.GetDimension()], amount)
	}
	switch s.bare() {
	case "weight":
		return weightNow(q)
	case "priority":
		return strconv.Itoa(int(q.GetPriority() + j.GetPriority()))
	case "state":
		return cmp.Or(strings.ToLower(strings.TrimPrefix(q.GetState().String(), "QUEUE_STATE_")), "open")
	case "stopPolicy":
		if q.GetKueue().GetStopped() {
			return "stopped"
		}
		return "None"
	case "reclaimable":
		return strconv.FormatBool(q.Reclaimable == nil || q.GetReclaimable())
	case "cordoned":
		return strconv.FormatBool(n.GetUnschedulable() != nil)
	case "parent", aCohort:
		return cmp.Or(q.GetParent(), None)
	case "budgetKind":
		if q.GetBudget() == nil {
			return None
		}
		return strings.ToLower(strings.TrimPrefix(q.GetBudget().GetKind().String(), "BUDGET_KIND_"))
	case "queue":
		return j.GetQueue()
	case "minAvailable":
		return s.minimum(j)
	case "maintenance":
		return downtime(n)
	}
	return None
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// minimum is that of a job, of a role or of a pod set.
func (s *setting) minimum(j *apportionv1.Job) string {
	if s.edit.Role == nil {
		return strconv.Itoa(int(j.GetMinAvailable()))
	}
	for _, g := range j.GetGroups() {
		if g.GetRole() == s.edit.GetRole() && g.MinAvailable != nil {
			return strconv.Itoa(int(g.GetMinAvailable()))
		}
	}
	for _, p := range j.GetKueue().GetPodSets() {
		if p.GetName() == s.edit.GetRole() && p.MinCount != nil {
			return strconv.Itoa(int(p.GetMinCount()))
		}
	}
	return None
}

// amountNow is the amount now of the dimension of the edit; false: there is none.
func (s *setting) amountNow() (float64, bool) {
	q, j, n := s.objects()
	kueue := &apportionv1.Quota{}
	for _, o := range q.GetKueue().GetQuotas() {
		if o.GetNodeSet() == s.edit.GetNodeSet() && slices.Contains(o.GetNominal().GetDimensions(), s.edit.GetDimension()) {
			kueue = o
		}
	}
	var used *apportionv1.Usage
	var of *apportionv1.Resource
	switch s.bare() {
	case "usage":
		used = q.GetUsage()
	case "budget":
		used = q.GetBudget().GetAmount()
	case "spent":
		used = q.GetBudget().GetSpent()
	case "capability":
		of = q.GetCapability()
	case "guarantee":
		of = q.GetGuarantee()
	case "deserved":
		of = q.GetDeserved()
	case "nominal":
		of = kueue.GetNominal()
	case "borrowingLimit":
		of = kueue.GetBorrowingLimit()
	case "lendingLimit":
		of = kueue.GetLendingLimit()
	case "minResources":
		of = j.GetMinResources()
	case "allocatable":
		of = n.GetAllocatable()
	case "request":
		return s.greatest(j)
	}
	if seconds, there := lookup.Used(used, s.edit.GetDimension()); there {
		return float64(seconds), true
	}
	at := slices.Index(of.GetDimensions(), s.edit.GetDimension())
	if at < 0 {
		return 0, false
	}
	return of.GetAmounts()[at], true
}

// greatest is the most that a waiting task of the role requests.
func (s *setting) greatest(j *apportionv1.Job) (most float64, there bool) {
	take := func(asked *apportionv1.Resource) {
		if at := slices.Index(asked.GetDimensions(), s.edit.GetDimension()); at >= 0 {
			most, there = max(most, asked.GetAmounts()[at]), true
		}
	}
	for _, g := range j.GetGroups() {
		if g.GetRole() != s.edit.GetRole() {
			continue
		}
		for _, task := range g.GetTasks() {
			if t := (lookup.Task{Task: task, Group: g}); t.Pending() {
				take(t.Request())
			}
		}
	}
	for _, p := range j.GetKueue().GetPodSets() {
		if p.GetName() == s.edit.GetRole() {
			take(p.GetRequest())
		}
	}
	return most, there
}

// downtime writes the planned downtime of a node, without its reservations for jobs and those of a part of it.
func downtime(n *apportionv1.Node) string {
	var periods []string
	for _, r := range n.GetReservations() {
		if r.GetHolder() != "" || r.GetRequest() != nil {
			continue
		}
		end := ""
		if r.GetEndUnixNano() != 0 {
			end = moment(r.GetEndUnixNano())
		}
		periods = append(periods, moment(r.GetStartUnixNano())+"/"+end)
	}
	return cmp.Or(strings.Join(periods, ","), None)
}

func moment(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano)
}

// tasksOn says how many tasks are on a node.
func (s *setting) tasksOn(node uint32) string {
	n := 0
	for _, task := range s.Tasks {
		if task.Node != nil && task.GetNode() == node {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return " (its task would be on no node)"
	}
	return " (its " + text.Count(n, "task") + " would be on no node)"
}
