package policy

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// View is a model together with what has changed since: the state that all plugins of one session see.
type View struct {
	*model.Model
	// Journal undoes changes; plugins save to it what they are about to change.
	Journal *Journal
	// SortVictims sorts candidates by who is evicted first for a claimant, by all plugins of the session; it is set once they are open.
	SortVictims func(claimant model.TaskID, candidates []model.TaskID)
	// Stop, if not nil, reports that the answer is no longer needed; loops call it at intervals.
	Stop func() bool
	// Work, if not nil, is the work that may still be spent. A computation that costs more than a constant for each queue, job and task
	// spends it.
	Work *Work
	// Release is the release of Volcano whose decisions the plugins take, where releases differ.
	Release Release
	// Book, if not nil, is what scores count as asked for by the pods on nodes. nil: what the view counts as used.
	Book NodeBook

	// The following are nil until something differs from the model. accounts are those of jobs of which a task changed, and nil for all
	// others.
	status   []model.Status
	phase    []model.Phase
	node     []model.NodeID
	accounts []*model.Account
	// extras are what a policy reads of jobs that it decided about.
	extras map[model.JobID]func() *model.Extra
	// moved are the jobs of which a task changed, rolled back or not.
	moved []model.JobID
	// pods is nil if the model has no rules on other pods.
	pods *Pods
	// reservations is nil if no reservation of a node counts.
	reservations *NodeReservations
	// used is nil until a node's usage is asked for.
	used []resource.Row
	// moves counts for each queue how often one of its tasks was moved; nil until that is asked for.
	moves []uint32
}

// NewView returns the state of a model that nothing has happened to yet.
func NewView(m *model.Model, stop func() bool) *View {
	return &View{Model: m, Journal: &Journal{}, Stop: stop}
}

// Stopped reports whether Stop asks to stop, or the work that there may be has been used up. It is meant to be called for every row i of a
// loop and asks once in many calls.
func (v *View) Stopped(i int) bool { return i&1023 == 1023 && v.stopped() }

// stopped is called rarely. If it were inlined, Stopped, which is called for every row, could not be.
//
//go:noinline
func (v *View) stopped() bool { return v.Work.exhausted() || v.Stop != nil && v.Stop() }

// Look is Yield of a row at which Stop is asked.
func (v *View) Look() { _ = v.stopped() }

// Yield lets others go on, where Stop does that, in loops that run to their end: what follows them asks whether to stop. It is meant to be
// called for every row i.
func (v *View) Yield(i int) { _ = v.Stopped(i) }

// MayUse reports whether a task may use a node from a time on, now or later: the node takes it, and no room is kept there for others while
// the task runs.
func (v *View) MayUse(t model.TaskID, n model.NodeID, at int64) bool {
	return v.Takes(n, v.NodeSetOf(t)) && v.reservations.FitsAlone(t, n, at)
}

// Present lists the jobs of the session by uid.
func (v *View) Present() []model.JobID { return v.JobOrder }

// Busy lists the queues that have jobs, by name.
func (v *View) Busy() []model.QueueID {
	busy := make([]model.QueueID, 0, len(v.QueueOrder))
	for _, q := range v.QueueOrder {
		if v.QueueSumOf(q).Jobs > 0 {
			busy = append(busy, q)
		}
	}
	return busy
}

// Fresh reports whether nothing differs from the model, so that the model's sums are valid for the view.
func (v *View) Fresh() bool { return v.status == nil && v.phase == nil }

// Account returns what a job's tasks add up to now.
func (v *View) Account(j model.JobID) *model.Account {
	if v.accounts != nil && v.accounts[j] != nil {
		return v.accounts[j]
	}
	return v.Accounts.At(j)
}

// Status returns the status of a task now.
func (v *View) Status(t model.TaskID) model.Status {
	if v.status == nil {
		return v.Tasks.At(t).Status
	}
	return v.status[t]
}

// NodeOf returns the node of a task now, or model.None.
func (v *View) NodeOf(t model.TaskID) model.NodeID {
	if v.node == nil {
		return v.Tasks.At(t).Node
	}
	return v.node[t]
}

// QueuesOf returns the queues of tasks in dst, of which it uses the memory. Asked one after the other, without what depends on the answers
// between, the processor looks many of them up at once.
func (v *View) QueuesOf(tasks []model.TaskID, dst []model.QueueID) []model.QueueID {
	dst = slices.Grow(dst[:0], len(tasks))[:len(tasks)]
	for i, t := range tasks {
		v.Yield(i)
		dst[i] = v.QueueOf(t)
	}
	return dst
}

// Phase returns the phase of a job now.
func (v *View) Phase(j model.JobID) model.Phase {
	if v.phase == nil {
		return v.Jobs.At(j).Phase
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
		v.Yield(i)
		v.used[i].Add(v.Nodes[i].UsedByOthers)
	}
	passed := 0
	for _, j := range v.JobOrder {
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			v.Yield(passed)
			passed++
			if n := v.NodeOf(t); n != model.None && v.Status(t).Counts() {
				v.used[n].Add(v.Request(t))
			}
		}
	}
}

// SetPhase changes the phase of a job.
func (v *View) SetPhase(j model.JobID, p model.Phase) {
	if v.phase == nil {
		v.phase = make([]model.Phase, v.Jobs.Len())
		for i := range v.phase {
			v.phase[i] = v.Jobs.At(model.JobID(i)).Phase
		}
	}
	v.Journal.byte((*uint8)(&v.phase[j]))
	v.phase[j] = p
}

// SetExtra changes what a policy reads of a job in models that are made of the view's state, which call e. The policy itself does not see
// it before.
func (v *View) SetExtra(j model.JobID, e func() *model.Extra) {
	if v.extras == nil {
		v.extras = map[model.JobID]func() *model.Extra{}
	}
	before, known := v.extras[j]
	v.extras[j] = e
	v.Journal.Undo(func() {
		if v.extras[j] = before; !known {
			delete(v.extras, j)
		}
	})
}

// SetStatus changes the status of a task, and its node unless node is model.None: a task that becomes pending leaves its node.
func (v *View) SetStatus(t model.TaskID, to model.Status, node model.NodeID) {
	v.detach()
	if v.used == nil {
		// Usage that is first summed after a change could not be put back when the change is undone.
		v.fillUsed()
	}
	if v.pods != nil {
		v.pods.fill()
	}
	task := v.Tasks.At(t)
	from, was := v.status[t], v.node[t]
	switch {
	case to == model.Pending:
		node = model.None
	case node == model.None:
		node = was
	}
	v.occupy(t, was, from.Counts(), node, to.Counts())
	if v.pods != nil {
		v.pods.moved(t, from, was, to, node)
	}
	if v.reservations != nil {
		v.reservations.moved(t, from, was, to, node)
	}
	v.Journal.byte((*uint8)(&v.status[t]))
	v.status[t] = to
	v.Journal.Int((*int32)(&v.node[t]))
	v.node[t] = node
	if v.moves != nil {
		v.moves[v.Jobs.At(task.Job).Queue]++
	}
	account := v.accountToChange(task.Job)
	group := int(task.Group - v.Jobs.At(task.Job).FirstGroup)
	v.save(account, group, from, to)
	request := v.Requests[task.Request]
	account.Move(request, from, to, task.Gate, group, v.BestEffort(request))
}

// Moves returns for each queue how often one of its tasks was moved since the first call, which is updated from then on, and how often
// something may have been moved back.
func (v *View) Moves() (ofQueue []uint32, back uint64) {
	if v.moves == nil {
		v.moves = make([]uint32, len(v.Queues))
	}
	return v.moves, v.Journal.rollbacks
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
	if v.status != nil {
		return
	}
	v.status, v.node = make([]model.Status, v.Tasks.Len()), make([]model.NodeID, v.Tasks.Len())
	for t := range v.status {
		task := v.Tasks.At(model.TaskID(t))
		v.status[t], v.node[t] = task.Status, task.Node
	}
	v.accounts = make([]*model.Account, v.Jobs.Len())
}

// accountToChange returns the account of a job, which is the view's own.
func (v *View) accountToChange(j model.JobID) *model.Account {
	if v.accounts[j] == nil {
		v.accounts[j] = v.Accounts.At(j).Clone()
		v.moved = append(v.moved, j)
	}
	return v.accounts[j]
}

// Moved returns of how many jobs the view keeps accounts of its own, because a task changed.
func (v *View) Moved() int { return len(v.moved) }

// Changed returns a view of the model that a change makes of this view's state, which stays as it is. feed makes the change; its faults are
// a *model.Error.
//
// Sums equal those of a model that was built in that state: moving tasks one by one would leave rounding errors and dimensions behind.
func (v *View) Changed(dimensions []string, feed func(*model.ChangeBuilder) error) (*View, error) {
	reached, err := v.reached()
	if err != nil {
		return nil, err
	}
	b := reached.Change(dimensions)
	if err := feed(b); err != nil {
		return nil, err
	}
	m, err := b.Build()
	if err != nil {
		return nil, err
	}
	return &View{Model: m, Journal: v.Journal, Stop: v.Stop, Work: v.Work, Release: v.Release}, nil
}

// reached returns a model of the view's state.
func (v *View) reached() (*model.Model, error) {
	b := v.Change(nil)
	changes := 0
	for _, j := range v.moved {
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if task := v.Tasks.At(t); task.Status != v.status[t] || task.Node != v.node[t] {
				b.UpdateTask(changes, t, model.TaskUpdate{Status: v.status[t], Node: v.node[t], HasStatus: true, HasNode: true})
				changes++
			}
		}
	}
	for j, phase := range v.phase {
		if j := model.JobID(j); v.HasJob(j) && v.Jobs.At(j).Phase != phase {
			b.UpdatePhase(j, phase)
			changes++
		}
	}
	for j, e := range v.extras {
		if v.HasJob(j) {
			b.UpdateExtra(j, e())
			changes++
		}
	}
	if changes == 0 {
		return v.Model, nil
	}
	return b.Build()
}
