package reference

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// inspect asks what was understood: total, tasks, jobInfo, nodeInfo.
func (p *plan) inspect() {
	step := &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Nodes: true, Jobs: true, Tasks: true}}}
	p.ask(step, at(), "", inspected)
}

func inspected(f *form, a *apportionv1.Answer) any {
	answer := a.GetInspect()
	if answer == nil {
		return object{"total": unanswered}
	}
	tasks, jobs, nodes := object{}, object{}, object{}
	for _, t := range answer.Tasks {
		tasks[f.task(t.Task)] = inspectedTask(f, t)
	}
	for _, j := range answer.Jobs {
		jobs[f.job(j.Job)] = inspectedJob(f, j)
	}
	for _, n := range answer.Nodes {
		nodes[f.node(n.Node)] = object{allocatableKey: f.amounts(n.Allocatable), "used": f.amounts(n.Used), "idle": f.amounts(n.Idle)}
	}
	return object{"total": f.amounts(answer.Total), "tasks": tasks, "jobInfo": jobs, "nodeInfo": nodes}
}

func inspectedTask(f *form, t *apportionv1.InspectedTask) any {
	node := ""
	if t.Node != nil {
		node = f.node(*t.Node)
	}
	request := f.amounts(t.Request)
	return object{
		"bestEffort": t.BestEffort, "gated": t.Gated, "preemptable": t.Preemptable, "priority": number(t.Priority),
		"job": f.job(t.Job), nodeKey: node, "role": t.Role, "status": statusNames[t.Status],
		// Volcano keeps two requests that are always equal (semantics 7).
		"initResreq": request, "resreq": request,
	}
}

// statusNames are Volcano's names of the statuses.
var statusNames = map[apportionv1.TaskStatus]string{
	apportionv1.TaskStatus_TASK_STATUS_PENDING:   "Pending",
	apportionv1.TaskStatus_TASK_STATUS_ALLOCATED: "Allocated",
	apportionv1.TaskStatus_TASK_STATUS_PIPELINED: "Pipelined",
	apportionv1.TaskStatus_TASK_STATUS_BINDING:   "Binding",
	apportionv1.TaskStatus_TASK_STATUS_BOUND:     "Bound",
	apportionv1.TaskStatus_TASK_STATUS_RUNNING:   "Running",
	apportionv1.TaskStatus_TASK_STATUS_RELEASING: "Releasing",
	apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED: "Succeeded",
	apportionv1.TaskStatus_TASK_STATUS_FAILED:    "Failed",
	apportionv1.TaskStatus_TASK_STATUS_UNKNOWN:   "Unknown",
}

// inspectedJob is a job in the recorded form, in which no minimum and an empty one look alike.
func inspectedJob(f *form, j *apportionv1.InspectedJob) any {
	minimum := f.amounts(j.MinResources)
	if minimum == nil {
		minimum = amounts{"cpu": 0, "memory": 0}
	}
	return object{
		"queue": f.queue(j.Queue), "priority": number(j.Priority), "minAvailable": number(j.MinAvailable), "minResources": minimum,
		partAllocated: f.amounts(j.Allocated), "totalRequest": f.amounts(j.TotalRequest), "elastic": f.amounts(j.Elastic),
		"readyTaskNum": number(j.ReadyTasks), "validTaskNum": number(j.ValidTasks),
	}
}

// Names that stand in many places of the recorded form.
const (
	partAllocated = "allocated"
	partVictims   = "victims"
	partShare     = "share"
	partInqueue   = "inqueue"
)

// capacity is the plugin whose accounts of queues may form a tree.
const capacity = "capacity"

// everything selects all fields.
var everything []apportionv1.ShareField

// shares asks for the accounts of all queues and jobs. Its parts go under keys: queues, drfJobs, hdrfTree, verdicts.overused, and, at the
// root, hierarchyReady.
func (p *plan) shares(fields []apportionv1.ShareField, keys ...string) {
	step := &apportionv1.SharesStep{Jobs: &apportionv1.Selector{}, Fields: fields, Tree: true}
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: step}}, at(keys...), "", func(f *form, a *apportionv1.Answer) any {
		if a.GetShares() == nil {
			return object{queuesKey: unanswered}
		}
		accounts := sharesOf(f, a.GetShares(), queueShare)
		if len(keys) > 0 {
			delete(accounts, "hierarchyReady")
		}
		accounts["verdicts"] = object{"overused": p.overused(f, a.GetShares())}
		return accounts
	})
}

// overused says of the queues that have jobs whether some plugin calls them overused.
func (p *plan) overused(f *form, shares *apportionv1.SharesAnswer) object {
	verdicts, busy := object{}, p.busy()
	for _, s := range shares.Standings {
		if int64(s.Queue) < int64(len(busy)) && busy[s.Queue] {
			verdicts[f.queue(s.Queue)] = s.Overused
		}
	}
	return verdicts
}

// sharesOf returns the shares of the plugins in the recorded form.
func sharesOf(f *form, shares *apportionv1.SharesAnswer, read func(f *form, plugin string, q *apportionv1.QueueShare) object) object {
	queues, accounts := object{}, object{}
	accounts[queuesKey] = queues
	for _, plugin := range shares.Plugins {
		if plugin.HierarchyReady != nil {
			accounts["hierarchyReady"] = *plugin.HierarchyReady
		}
		given := object{}
		for _, q := range plugin.Queues {
			if q.Participating {
				given[f.queue(q.Queue)] = read(f, plugin.Plugin, q)
			}
		}
		if len(given) > 0 {
			queues[plugin.Plugin] = given
		}
		if len(plugin.Jobs) > 0 {
			accounts["drfJobs"] = jobShares(f, plugin.Jobs)
		}
		if len(plugin.TreeNodes) > 0 {
			accounts["hdrfTree"] = treeOf(f, plugin.TreeNodes)
		}
	}
	return accounts
}

// queueShare is a queue's account. Only proportion has weights, and only capacity has a place for the queue in a tree.
func queueShare(f *form, plugin string, q *apportionv1.QueueShare) object {
	account := object{
		"guarantee": f.amounts(q.Guarantee), "deserved": f.amounts(q.Deserved), partAllocated: f.amounts(q.Allocated),
		"request": f.amounts(q.Request), partInqueue: f.amounts(q.Inqueue), "elastic": f.amounts(q.Elastic),
		"capability": f.amounts(q.Capability), "realCapability": f.amounts(q.RealCapability), partShare: q.Share,
	}
	if plugin == capacity {
		account["ancestors"], account["children"] = list(q.Ancestors, f.queue), list(q.Children, f.queue)
	} else {
		account["weight"] = number(q.Weight)
	}
	return account
}

// queueUse is the part of a queue's account that is recorded after each event.
func queueUse(f *form, _ string, q *apportionv1.QueueShare) object {
	return object{partShare: q.Share, partAllocated: f.amounts(q.Allocated)}
}

// queueInqueue is the part of a queue's account that admission changes.
func queueInqueue(f *form, _ string, q *apportionv1.QueueShare) object {
	return object{partInqueue: f.amounts(q.Inqueue)}
}

func jobShares(f *form, jobs []*apportionv1.JobShare) object {
	shares := object{}
	for _, j := range jobs {
		shares[f.job(j.Job)] = jobShare(f, j)
	}
	return shares
}

func jobShare(f *form, j *apportionv1.JobShare) any {
	return object{partShare: j.Share, "dominant": f.dimension(j.Dominant), partAllocated: f.amounts(j.Allocated)}
}

// treeOf nests the nodes of the tree of hierarchical DRF, which are listed each before its children.
func treeOf(f *form, nodes []*apportionv1.TreeNode) any {
	nested := make([]object, len(nodes))
	for i, n := range nodes {
		nested[i] = object{
			"name": n.Name, "weight": n.Weight, partShare: n.Share, "saturated": n.Saturated,
			"request": f.amounts(n.Request), partAllocated: f.amounts(n.Allocated), "dominant": f.dimension(n.Dominant),
		}
		if n.Parent == nil {
			continue
		}
		if int64(*n.Parent) >= int64(i) {
			return outOfRange
		}
		parent := nested[*n.Parent]
		children, ok := parent["children"].(object)
		if !ok {
			children = object{}
			parent["children"] = children
		}
		children[n.Name] = nested[i]
	}
	return nested[0]
}
