package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/client/round"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
)

// The states of an AdmissionCheck.
const stateReady, stateRetry, stateRejected, statePending = "Ready", "Retry", "Rejected", "Pending"

// standing is where a Workload stands for this controller.
type standing struct {
	*workload

	uid, key string
	// queue is the ClusterQueue.
	queue string
	// own are the positions of the checks of this controller in status.admissionChecks.
	own []int
	// reserved: Kueue has reserved quota. asking: it has, and a check of this controller waits for the answer.
	reserved, asking bool
	// nodes are the flavors of the quota, as nodes of the translation.
	nodes map[string]bool
	// position is that of the job.
	position int
}

// view is the cluster at one moment, as the policy sees it.
type view struct {
	// snapshot has the jobs of the Workloads. The tasks of a Workload have uids that begin with its own.
	snapshot  *apportionv1.Snapshot
	standings map[string]*standing
	// quotas are the names of the sets of one node, by the node.
	quotas map[uint32]string
	// waiting are the Workloads that may be given a place: those that ask, and those without quota in queues with a check.
	waiting []*round.Job
}

// newView makes a view. Workloads in aside count as not there, for a while.
func newView(
	snapshot *apportionv1.Snapshot, workloads map[string]*workload, checks map[string]*checkObject, aside func(uid string) bool,
) *view {
	v := &view{standings: map[string]*standing{}, quotas: map[uint32]string{}}
	checked := map[string]bool{}
	for _, q := range snapshot.GetQueues() {
		checked[q.GetName()] = slices.ContainsFunc(q.GetKueue().GetChecks(), func(c *apportionv1.KueueCheck) bool {
			return checks[c.GetName()] != nil
		})
	}
	for i, job := range snapshot.GetJobs() {
		s := standingOf(job, workloads[job.GetNamespace()+"/"+job.GetName()], checks)
		if s == nil {
			continue
		}
		s.position = i
		v.standings[s.uid] = s
		switch own := job.GetKueue(); {
		case s.reserved && s.some(stateRetry, stateRejected):
			own.Evicted = true // Kueue has not carried it out yet.
			s.asking = false
		case !s.reserved && aside(s.uid):
			own.Withheld = cmp.Or(own.GetWithheld(), apportionv1.KueueWithheld_KUEUE_WITHHELD_BACKOFF)
		}
	}
	v.snapshot = asfair.Of(snapshot).Snapshot
	for _, s := range v.standings {
		v.describe(s)
	}
	for _, uid := range slices.Sorted(maps.Keys(v.standings)) {
		s := v.standings[uid]
		withheld := snapshot.GetJobs()[s.position].GetKueue().GetWithheld() != apportionv1.KueueWithheld_KUEUE_WITHHELD_UNSPECIFIED
		if s.asking || !s.reserved && checked[s.queue] && !withheld {
			v.wait(s)
		}
	}
	return v
}

func standingOf(job *apportionv1.Job, w *workload, checks map[string]*checkObject) *standing {
	if w == nil || string(w.Metadata.UID) != job.GetUid() || job.GetUid() == "" {
		return nil
	}
	s := &standing{workload: w, uid: job.GetUid(), key: w.Metadata.Namespace + "/" + w.Metadata.Name, queue: job.GetQueue()}
	for i := range w.Status.Checks {
		if checks[w.Status.Checks[i].Name] != nil {
			s.own = append(s.own, i)
		}
	}
	s.reserved = job.GetKueue().GetAdmitted()
	s.asking = s.reserved && !job.GetKueue().GetEvicted() && s.some(statePending)
	return s
}

// some reports whether a check of this controller has one of some states.
func (s *standing) some(states ...string) bool {
	return slices.ContainsFunc(s.own, func(i int) bool { return slices.Contains(states, s.Status.Checks[i].State) })
}

// describe completes the job of a Workload: a Workload that asks waits for a place on the flavors of its quota, and one that runs leaves as
// a whole, or not at all if no check of this controller can evict it.
func (v *view) describe(s *standing) {
	job := v.snapshot.GetJobs()[s.position]
	s.nodes = map[string]bool{}
	if s.reserved {
		job.MinAvailable = 0
	}
	if s.asking {
		job.Phase = apportionv1.JobPhase_JOB_PHASE_PENDING
	}
	for i, g := range job.GetGroups() {
		if s.reserved {
			g.MinAvailable = new(uint32(len(g.GetTasks())))
			job.MinAvailable += g.GetMinAvailable()
		}
		for k, task := range g.GetTasks() {
			task.Uid = fmt.Sprintf("%s/%d/%d", s.uid, i, k)
			if s.reserved && task.Node != nil {
				s.nodes[v.snapshot.GetNodes()[task.GetNode()].GetName()] = true
			}
			switch {
			case s.asking:
				g.NodeSet = v.only(task.Node)
				task.Status, task.Node = apportionv1.TaskStatus_TASK_STATUS_PENDING, nil
			case s.reserved && len(s.own) == 0:
				task.Detail = &apportionv1.TaskDetail{Preemptable: new(false)}
			}
		}
	}
}

// only returns the name of the set of one node; "" for no node.
func (v *view) only(node *uint32) string {
	if node == nil {
		return ""
	}
	name, made := v.quotas[*node]
	if !made {
		flavor := v.snapshot.GetNodes()[*node].GetName()
		name = "quota of " + flavor
		v.quotas[*node] = name
		v.snapshot.NodeSets = append(v.snapshot.NodeSets, &apportionv1.NodeSet{
			Name: name, Nodes: []uint32{*node}, Rule: "the flavor of its quota: " + strings.TrimPrefix(flavor, "flavor-"),
		})
	}
	return name
}

// wait adds a Workload to those that may be given a place.
func (v *view) wait(s *standing) {
	job := v.snapshot.GetJobs()[s.position]
	waits := &round.Job{UID: s.uid, Queue: job.GetQueue(), Least: int(job.GetMinAvailable())}
	for _, g := range job.GetGroups() {
		waits.Pending += len(g.GetTasks())
		waits.Shape += fmt.Sprint(len(g.GetTasks()), g.GetRequest(), g.GetNodeSet(), job.GetPriority())
	}
	if waits.Pending > 0 {
		v.waiting = append(v.waiting, waits)
	}
}

// workloadOf returns the Workload of a task.
func (v *view) workloadOf(task string) *standing {
	uid, _, _ := strings.Cut(task, "/")
	return v.standings[uid]
}

// returned returns the changes that let the checks of evicted Workloads wait again. Kueue must have taken over until when they are held
// back, because it reads that from checks in Retry alone.
func (v *view) returned(now time.Time) []change {
	var changes []change
	for _, uid := range slices.Sorted(maps.Keys(v.standings)) {
		s := v.standings[uid]
		if !s.reserved && s.some(stateRetry) && (s.Status.RequeueState.RequeueAt != nil || !now.Before(s.until())) {
			changes = append(changes, change{standing: s, state: statePending, message: "Waits for quota again."})
		}
	}
	return changes
}

// until returns until when the checks of this controller in Retry hold a Workload back.
func (s *standing) until() time.Time {
	at := time.Time{}
	for _, i := range s.own {
		check := &s.Status.Checks[i]
		if until := check.Since.Add(time.Duration(check.After) * time.Second); check.State == stateRetry && until.After(at) {
			at = until
		}
	}
	return at
}

// order returns Workloads by time of creation.
func order(list []*standing) {
	slices.SortFunc(list, func(a, b *standing) int {
		return cmp.Or(a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp.Time), cmp.Compare(a.uid, b.uid))
	})
}

// since returns when a check of this controller took its state.
func (s *standing) since() time.Time {
	at := time.Time{}
	for _, i := range s.own {
		if since := s.Status.Checks[i].Since.Time; at.IsZero() || since.Before(at) {
			at = since
		}
	}
	return at
}
