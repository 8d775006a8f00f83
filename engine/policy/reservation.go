package policy

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// Reservations of nodes are kept as moments: times at which some part of a node begins to be kept. Between two moments of a node what is
// kept only shrinks, by ends of reservations, and tasks only end. A task therefore fits beside the reservations for as long as it runs
// exactly if it fits now and at each moment before its end.
//
// What holds before and after each event: used of a moment is the sum of the tasks on the node that have not ended by then, held that of
// the tasks of a holder, and left is settled from both. moved keeps this with each task, in the journal, so that a rollback restores it.

// NodeReservations says which tasks may use nodes of which room is kept, in the state of a view: a task may if its job holds what is kept,
// if it is known to end before that begins, or if the room is free beside it then. A task that is being released counts as gone.
type NodeReservations struct {
	view  *View
	nodes map[model.NodeID]*reservedNode
	// ends has when the tasks of a job end that run or start now, and likely when those of jobs end that have run longer than expected.
	ends   []int64
	likely map[model.JobID]int64
	// begins are the times at which reservations begin, in order, and holders the jobs that hold one.
	begins  []int64
	holders map[model.JobID]bool
	// keeper is the plugin that keeps room for jobs that wait, owner the job of each reservation that it makes, and planned where it is
	// kept for each task; empty if there is none.
	keeper  string
	owner   map[*model.Reservation]model.JobID
	planned map[model.TaskID]plannedAt
}

// reservedNode is a node with the reservations that have not ended.
type reservedNode struct {
	*model.Node

	list []*model.Reservation
	// holder has the job that holds each of them, model.None if the model has none. held has what the tasks of a holder use, at the first
	// reservation that it holds, which is first.
	holder []model.JobID
	first  []int
	held   []resource.Row
	// several says of such a first reservation that its holder has more.
	several []bool
	// moments are the times at which one begins that keeps a part of the node, now at the earliest.
	moments []moment
}

// moment is a time at which parts of a node are kept. used is what tasks use then, and left what is left beside all parts, in the
// dimensions that are kept.
//
// A job that has run longer than expected is known to have ended at no time. It counts as long as it is likely to run at a moment that
// is planned, at which a plugin alone keeps parts: it planned so, and else what it planned beside that room could not start.
type moment struct {
	at         int64
	planned    bool
	used, left resource.Row
}

// Endless is the end of what has none, or one that is not known.
const Endless = int64(1<<63 - 1)

// OpenReservations prepares the reservations of nodes, if the model has any, before the view is asked about them.
func (v *View) OpenReservations() error {
	v.reservations = nil
	if !v.Reserves() {
		return nil
	}
	n := 0
	for _, id := range v.NodeOrder {
		n += len(v.Nodes[id].Reservations())
	}
	if n == 0 {
		return nil
	}
	if err := v.Work.Spend(v.Tasks.Len()+v.Jobs.Len()+n*model.MaxReservations, v.Dims.Len()); err != nil {
		return err
	}
	r := newNodeReservations(v)
	for _, id := range v.NodeOrder {
		if node := r.open(&v.Nodes[id]); node != nil {
			r.nodes[id] = node
		}
	}
	if len(r.nodes) > 0 {
		r.finish()
		v.reservations = r
	}
	return nil
}

func newNodeReservations(v *View) *NodeReservations {
	r := &NodeReservations{
		view: v, nodes: map[model.NodeID]*reservedNode{}, holders: map[model.JobID]bool{}, ends: make([]int64, v.Jobs.Len()),
		likely: map[model.JobID]int64{},
	}
	for i, j := range v.Present() {
		v.Yield(i)
		r.ends[j] = v.EndOf(j)
		if likely := v.LikelyEnd(j); likely != r.ends[j] {
			r.likely[j] = likely
		}
	}
	return r
}

// finish finds what is used and left of the nodes once all reservations are known.
func (r *NodeReservations) finish() {
	slices.Sort(r.begins)
	r.begins = slices.Compact(r.begins)
	partly := false
	for _, node := range r.nodes {
		r.arrange(node)
		partly = partly || len(node.moments) > 0
	}
	if partly {
		r.count()
	}
}

// arrange finds the moments of a node.
func (r *NodeReservations) arrange(node *reservedNode) {
	var moments []int64
	for _, one := range node.list {
		if !one.Whole() {
			moments = append(moments, max(one.From, r.view.AsOf))
		}
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	node.moments, node.held = make([]moment, len(moments)), nil
	for i, at := range moments {
		rows := resource.NewAccounts(2, r.view.Dims.Len())
		rows[0].Add(node.UsedByOthers)
		planned := !slices.ContainsFunc(node.list, func(one *model.Reservation) bool { return !r.isPlanned(one) && one.KeepsPart(at) })
		node.moments[i] = moment{at, planned, rows[0], rows[1]}
	}
	if len(moments) > 0 {
		node.held = resource.NewAccounts(len(node.list), r.view.Dims.Len())
	}
}

// add adds a reservation; first is the position of the first one of the same holder.
func (n *reservedNode) add(one *model.Reservation, holder model.JobID, first int) {
	n.list, n.holder = append(n.list, one), append(n.holder, holder)
	n.first, n.several = append(n.first, first), append(n.several, false)
}

// open returns what is kept of a node, nil for nothing.
func (r *NodeReservations) open(node *model.Node) *reservedNode {
	out := &reservedNode{Node: node}
	list := node.Reservations()
	for i := range list {
		one := &list[i]
		if one.Over(r.view.AsOf) {
			continue
		}
		holder, first := model.JobID(model.None), len(out.list)
		if j, known := r.view.Job(one.Holder); known && one.Holder != "" {
			holder, r.holders[j] = j, true
			if at := slices.Index(out.holder, j); at >= 0 {
				first, out.several[at] = at, true
			}
		}
		out.add(one, holder, first)
		r.begins = append(r.begins, one.From)
	}
	if len(out.list) == 0 {
		return nil
	}
	return out
}

// EndOf returns when the tasks of a job end that run or that start now: at its expected end, or after its expected runtime. It is Endless
// if neither is known, and for a job that has run longer than expected.
func (v *View) EndOf(j model.JobID) int64 {
	job := v.Jobs.At(j)
	runs, end := v.Accounts.At(j).Holding() > 0, Endless
	switch {
	case runs && job.ExpectedEnd > v.AsOf, job.EndIsDeadline && job.ExpectedEnd > v.AsOf:
		end = job.ExpectedEnd
	case runs && job.ExpectedEnd != 0:
		return Endless
	}
	if job.ExpectedRuntime > 0 && job.ExpectedRuntime < Endless-max(v.AsOf, 0) {
		end = min(end, v.AsOf+job.ExpectedRuntime)
	}
	return end
}

// count adds the tasks on nodes to what is used of them.
func (r *NodeReservations) count() {
	passed := 0
	for _, j := range r.view.JobOrder {
		job := r.view.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			r.view.Yield(passed)
			passed++
			r.add(t, r.view.Status(t), r.view.NodeOf(t), false, 1)
		}
	}
	for _, node := range r.nodes {
		for i := range node.moments {
			r.settle(node, &node.moments[i].left, i)
		}
	}
}

// add adds a task to what is used of its node, or takes it away.
func (r *NodeReservations) add(t model.TaskID, s model.Status, n model.NodeID, saved bool, sign int) {
	if n == model.None || !s.Stays() {
		return
	}
	node := r.nodes[n]
	if node == nil || len(node.moments) == 0 {
		return
	}
	j, request := r.view.Tasks.At(t).Job, r.view.Request(t)
	save := func(row *resource.Row) *resource.Row {
		if saved {
			r.view.Journal.Row(row)
		}
		return row
	}
	if i := slices.Index(node.holder, j); i >= 0 && !r.isPlanned(node.list[i]) {
		move(save(&node.held[i]), request, sign)
	}
	for i := range node.moments {
		m := &node.moments[i]
		if r.endAt(j, m) > m.at {
			move(save(&m.used), request, sign)
		}
		if saved {
			r.settle(node, save(&node.moments[i].left), i)
		}
	}
}

// endAt returns when the tasks of a job end as far as a moment is concerned.
func (r *NodeReservations) endAt(j model.JobID, m *moment) int64 {
	if likely, late := r.likely[j]; late && m.planned {
		return likely
	}
	return r.ends[j]
}

func move(row *resource.Row, request resource.Row, sign int) {
	if sign > 0 {
		row.Add(request)
	} else {
		row.SubWithin(request)
	}
}

// settle finds what is left at a moment beside all that is kept then.
func (r *NodeReservations) settle(node *reservedNode, left *resource.Row, i int) {
	m := &node.moments[i]
	left.Has = 0
	for _, one := range node.list {
		if one.KeepsPart(m.at) {
			left.Has |= one.Request.Positive()
		}
	}
	for dims := left.Has; dims != 0; dims = dims.Rest() {
		d := dims.First()
		left.V[d] = node.Allocatable.V[d] - m.used.V[d]
		for k := range node.list {
			if node.first[k] == k {
				left.V[d] -= r.kept(node, m.at, d, k)
			}
		}
	}
}

// kept returns how much of a dimension is kept at a time by a reservation, and others of its holder, beyond what the holder uses.
func (r *NodeReservations) kept(node *reservedNode, at int64, d, first int) float64 {
	sum, end := 0.0, first+1
	if node.several[first] {
		end = len(node.list)
	}
	for k := first; k < end; k++ {
		if node.first[k] == first && node.list[k].KeepsPart(at) {
			sum += max(0, node.list[k].Request.V[d])
		}
	}
	if holder := node.holder[first]; holder != model.None && r.ends[holder] > at && !r.isPlanned(node.list[first]) {
		sum = max(0, sum-node.held[first].V[d])
	}
	return sum
}

// isPlanned reports whether a plugin keeps the room: then what the holder uses is no part of it.
func (r *NodeReservations) isPlanned(one *model.Reservation) bool {
	_, planned := r.owner[one]
	return planned
}

// Holds reports whether room of nodes is kept for a job.
func (r *NodeReservations) Holds(j model.JobID) bool { return r != nil && r.holders[j] }

// moved follows a task whose status or node has changed.
func (r *NodeReservations) moved(t model.TaskID, from model.Status, was model.NodeID, to model.Status, on model.NodeID) {
	r.follows(t, from == model.Pending, to == model.Pending)
	r.add(t, from, was, true, -1)
	r.add(t, to, on, true, 1)
}

// Reservations returns the reservations of nodes, nil if none counts.
func (v *View) Reservations() *NodeReservations { return v.reservations }

// Class returns a number that is the same for jobs whose tasks may use the same nodes, as far as reservations decide that.
func (r *NodeReservations) Class(j model.JobID) int64 {
	if r == nil {
		return 0
	}
	n, _ := slices.BinarySearch(r.begins, r.ends[j])
	class := int64(n)
	if r.holders[j] {
		class |= (int64(j) + 1) << 32
	}
	return class
}

// Reserved reports whether room of a node is kept now or later.
func (r *NodeReservations) Reserved(n model.NodeID) bool { return r != nil && r.nodes[n] != nil }

// Fits reports whether a task may start on a node beside beside, which other tasks of its job are to use there; absent: none.
func (r *NodeReservations) Fits(t model.TaskID, n model.NodeID, beside resource.Row, why *Reasons) bool {
	if !r.Reserved(n) {
		return true
	}
	against := r.against(t, n, beside)
	if against != nil {
		why.Add(r.because(against))
	}
	return against == nil
}

// FitsAlone is Fits where what is used of the node may still change: no part of it may be kept for others while the task runs, which starts
// at a time.
func (r *NodeReservations) FitsAlone(t model.TaskID, n model.NodeID, at int64) bool {
	if !r.Reserved(n) {
		return true
	}
	node, j := r.nodes[n], r.view.Tasks.At(t).Job
	end := r.ends[j]
	if end < Endless-(at-r.view.AsOf) {
		end += at - r.view.AsOf
	}
	for i, one := range node.list {
		if node.holder[i] != j && one.From < end && !one.Over(at) {
			return false
		}
	}
	return true
}

// short returns a reservation of others for which a node would lack room at a moment if a request of a job were used of it as well, nil if
// there is none.
func (r *NodeReservations) short(node *reservedNode, m *moment, j model.JobID, request, beside resource.Row) *model.Reservation {
	own := slices.Index(node.holder, j)
	for dims := request.Positive() & m.left.Has; dims != 0; dims = dims.Rest() {
		d := dims.First()
		asked, left := request.V[d], m.left.V[d]
		if !beside.Absent() {
			asked += beside.V[d]
		}
		if own >= 0 {
			left += r.kept(node, m.at, d, own)
		}
		if asked-left < resource.Threshold {
			continue
		}
		for i, one := range node.list {
			if node.holder[i] != j && one.KeepsPart(m.at) && one.Request.V[d] > 0 {
				return one
			}
		}
	}
	return nil
}

// because is the reason that a reservation keeps a task off a node.
func (r *NodeReservations) because(one *model.Reservation) Reason {
	const second = 1_000_000_000
	if holder, planned := r.owner[one]; planned {
		return r.becausePlanned(one, holder)
	}
	reason := Because("", NodeReserved, model.None)
	reason.Detail = one.Reason
	reason.Have = float64(max(0, one.From-r.view.AsOf) / second)
	if one.Until != 0 {
		reason.Limit = float64(max(1, (one.Until-r.view.AsOf)/second))
	}
	return reason
}

// Against returns the reservation that keeps a task off a node beside beside, as Fits has it, nil if none does.
func (r *NodeReservations) Against(t model.TaskID, n model.NodeID, beside resource.Row) *model.Reservation {
	if !r.Reserved(n) {
		return nil
	}
	return r.against(t, n, beside)
}

func (r *NodeReservations) against(t model.TaskID, n model.NodeID, beside resource.Row) *model.Reservation {
	node, j := r.nodes[n], r.view.Tasks.At(t).Job
	for i, one := range node.list {
		if one.Whole() && node.holder[i] != j && one.From < r.ends[j] {
			return one
		}
	}
	for i := range node.moments {
		if node.moments[i].at >= r.ends[j] {
			break
		}
		if against := r.short(node, &node.moments[i], j, r.view.Request(t), beside); against != nil {
			return against
		}
	}
	return nil
}
