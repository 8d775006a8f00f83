package policy

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// View is a model together with what has changed since: the state that all plugins of one session see.
type View struct {
	*model.Model
	// Journal undoes changes; plugins save to it whatever they are about to change.
	Journal *Journal
	// SortVictims sorts candidates by who is evicted first for a claimant, by all plugins of the session; it is set once they are open.
	SortVictims func(claimant model.TaskID, candidates []model.TaskID)
	// Stop, if not nil, says that nobody waits for the answer any more; loops ask it now and then.
	Stop func() bool

	jobs     []model.JobID
	absent   map[model.JobID]bool
	accounts []model.Account
	// The following are nil until something differs from the model.
	status []model.Status
	phase  []model.Phase
	node   []model.NodeID
	// moved says of which jobs the status of some task changed, rolled back or not: their accounts may have rounding errors.
	moved []bool
	// used is nil until somebody asks for a node's usage.
	used []resource.Row
	own  bool
}

// NewView returns the state of a model that nothing has happened to yet.
func NewView(m *model.Model, stop func() bool) *View {
	return &View{Model: m, Journal: &Journal{}, Stop: stop, jobs: m.JobOrder, accounts: m.Accounts}
}

// Stopped reports whether Stop asks to stop. It is meant to be called for every row i of a loop and asks Stop only now and then.
func (v *View) Stopped(i int) bool { return i&1023 == 1023 && v.Stop != nil && v.Stop() }

// Present lists the jobs of the session by uid.
func (v *View) Present() []model.JobID { return v.jobs }

// Has reports whether a job is in the session: all are but those removed.
func (v *View) Has(j model.JobID) bool { return !v.absent[j] }

// Account returns what a job's tasks add up to now.
func (v *View) Account(j model.JobID) *model.Account { return &v.accounts[j] }

// Status returns the status of a task now.
func (v *View) Status(t model.TaskID) model.Status {
	if v.status == nil {
		return v.Tasks[t].Status
	}
	return v.status[t]
}

// NodeOf returns the node of a task now, or model.None.
func (v *View) NodeOf(t model.TaskID) model.NodeID {
	if v.node == nil {
		return v.Tasks[t].Node
	}
	return v.node[t]
}

// Phase returns the phase of a job now.
func (v *View) Phase(j model.JobID) model.Phase {
	if v.phase == nil {
		return v.Jobs[j].Phase
	}
	return v.phase[j]
}

// Used returns what is used of a node now: by tasks on it that have not finished, and by others.
func (v *View) Used(n model.NodeID) resource.Row {
	if v.used == nil {
		v.fillUsed()
	}
	return v.used[n]
}

// Idle sets row to what is not used of a node; amounts are negative where more is used than there is. A scalar that the node does not
// offer is named only if the node offers some scalar (Volcano's NodeInfo subtracts from a map that may be missing).
func (v *View) Idle(n model.NodeID, row *resource.Row) {
	row.CopyFrom(v.Nodes[n].Allocatable)
	row.SubWithin(v.Used(n))
}

func (v *View) fillUsed() {
	v.used = resource.NewAccounts(len(v.Nodes), v.Dims.Len())
	for i := range v.Nodes {
		v.used[i].Add(v.Nodes[i].UsedByOthers)
	}
	for _, j := range v.jobs {
		job := &v.Jobs[j]
		for t := job.FirstTask; t < job.EndTask; t++ {
			if n := v.NodeOf(t); n != model.None && v.Status(t).Occupies() {
				v.used[n].Add(v.Request(t))
			}
		}
	}
}

// SetPhase changes the phase of a job.
func (v *View) SetPhase(j model.JobID, p model.Phase) {
	if v.phase == nil {
		v.phase = make([]model.Phase, len(v.Jobs))
		for i := range v.Jobs {
			v.phase[i] = v.Jobs[i].Phase
		}
	}
	v.Journal.Byte((*uint8)(&v.phase[j]))
	v.phase[j] = p
}

// SetStatus changes the status of a task, and its node unless node is model.None: a task that becomes pending leaves its node.
func (v *View) SetStatus(t model.TaskID, to model.Status, node model.NodeID) {
	v.detach()
	if v.used == nil {
		// Usage that is first summed after a change could not be put back when the change is undone.
		v.fillUsed()
	}
	task := &v.Tasks[t]
	from, was := v.status[t], v.node[t]
	switch {
	case to == model.Pending:
		node = model.None
	case node == model.None:
		node = was
	}
	v.occupy(t, was, from.Occupies(), node, to.Occupies())
	v.Journal.Byte((*uint8)(&v.status[t]))
	v.status[t] = to
	v.Journal.Int((*int32)(&v.node[t]))
	v.node[t] = node
	v.moved[task.Job] = true
	account := &v.accounts[task.Job]
	group := int(task.Group - v.Jobs[task.Job].FirstGroup)
	v.save(account, group, from, to)
	request := v.Requests[task.Request]
	account.Move(request, from, to, task.Gate, group, v.BestEffort(request))
}

func (v *View) save(a *model.Account, group int, from, to model.Status) {
	if !v.Journal.Recording() {
		return
	}
	v.Journal.Row(&a.Allocated)
	v.Journal.Row(&a.Pending)
	v.Journal.Row(&a.Gated)
	v.Journal.Int(&a.PendingBestEffort)
	v.Journal.Int(&a.GroupPendingBestEffort[group])
	v.Journal.Int(&a.Tasks[from])
	v.Journal.Int(&a.Tasks[to])
	v.Journal.Int(&a.GroupTasks[group][from])
	v.Journal.Int(&a.GroupTasks[group][to])
}

// occupy moves a task's usage between nodes.
func (v *View) occupy(t model.TaskID, from model.NodeID, did bool, to model.NodeID, does bool) {
	if from == to && did == does {
		return
	}
	if from != model.None && did {
		v.Journal.Row(&v.used[from])
		v.used[from].SubWithin(v.Request(t))
	}
	if to != model.None && does {
		v.Journal.Row(&v.used[to])
		v.used[to].Add(v.Request(t))
	}
}

// detach makes the parts that change the view's own.
func (v *View) detach() {
	if v.own {
		return
	}
	v.own = true
	v.status, v.node = make([]model.Status, len(v.Tasks)), make([]model.NodeID, len(v.Tasks))
	for t := range v.Tasks {
		v.status[t], v.node[t] = v.Tasks[t].Status, v.Tasks[t].Node
	}
	v.accounts = model.CloneAccounts(v.accounts, v.Jobs, len(v.Groups), v.Dims.Len())
	v.moved = make([]bool, len(v.Jobs))
}

// formedAnew returns copies of the accounts as a model has them that is built in this view's state.
func (v *View) formedAnew() []model.Account {
	accounts := model.CloneAccounts(v.accounts, v.Jobs, len(v.Groups), v.Dims.Len())
	for j, moved := range v.moved {
		if moved {
			v.Rebook(&accounts[j], model.JobID(j), v.status)
		}
	}
	return accounts
}

// Extended returns a view of a larger model that begins in this view's state. build is given the accounts of this view's jobs and
// returns the larger model, which may share them. This view stays as it is.
func (v *View) Extended(build func([]model.Account) (*model.Model, error)) (*View, error) {
	accounts := v.accounts
	if v.own {
		accounts = v.formedAnew()
	}
	larger, err := build(accounts)
	if err != nil {
		return nil, err
	}
	w := &View{Model: larger, Journal: v.Journal, Stop: v.Stop, absent: v.absent, accounts: larger.Accounts, own: v.own}
	w.jobs = slices.DeleteFunc(slices.Clone(larger.JobOrder), func(j model.JobID) bool { return v.absent[j] })
	if v.own {
		w.moved = make([]bool, len(larger.Jobs))
		w.status, w.node = slices.Clone(v.status), slices.Clone(v.node)
		for t := len(v.Tasks); t < len(larger.Tasks); t++ {
			w.status, w.node = append(w.status, larger.Tasks[t].Status), append(w.node, larger.Tasks[t].Node)
		}
	}
	if v.phase != nil {
		w.phase = slices.Clone(v.phase)
		for j := len(v.Jobs); j < len(larger.Jobs); j++ {
			w.phase = append(w.phase, larger.Jobs[j].Phase)
		}
	}
	return w, nil
}

// Without returns a view in this view's state that lacks the given jobs. This view stays as it is.
func (v *View) Without(jobs []model.JobID) *View {
	w := &View{Model: v.Model, Journal: v.Journal, Stop: v.Stop, accounts: v.accounts, own: v.own}
	w.absent = make(map[model.JobID]bool, len(v.absent)+len(jobs))
	for j := range v.absent {
		w.absent[j] = true
	}
	for _, j := range jobs {
		w.absent[j] = true
	}
	w.jobs = slices.DeleteFunc(slices.Clone(v.jobs), func(j model.JobID) bool { return w.absent[j] })
	if v.own {
		w.accounts, w.moved = v.formedAnew(), make([]bool, len(v.Jobs))
		w.status, w.node = slices.Clone(v.status), slices.Clone(v.node)
	}
	w.phase = slices.Clone(v.phase)
	return w
}
