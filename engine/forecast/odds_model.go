package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// The compiler translates a session into plain numbers for the runs of package odds: nodes, queues, runtimes, jobs, and the past, in this
// order, because each refers to those before it by position. The model holds nothing of the session, which may change while runs work. What
// a policy divides, and in which order it serves queues, runs ask its Course; without one queues are served in the session's order.

// compiler makes a plain model of a session.
type compiler struct {
	engine.Host

	question *OddsQuestion
	m        odds.Model
	width    int
	// jobs are those of the model, asked is the position of the one that is asked about, -1: it cannot start.
	jobs  []model.JobID
	asked int
	// byPriority says that jobs of a queue are served by priority.
	byPriority bool
	// place is the position of a queue in order of service.
	place []int
	// refused are the queues that the policy gives nothing, such as all of a tree with faults.
	refused []bool
	// on are the nodes for a kind of task, alike those for what tasks of a queue ask for, open those that take tasks without constraints.
	on    map[engine.Kind][]bool
	alike map[string][]bool
	open  []bool
	kinds map[string]int
	shutting

	// shuts are what keeps a kind of tasks off nodes, and shut what keeps tasks off of which neither the job nor the end is known.
	shuts map[engine.Kind]*odds.Shut
	shut  *odds.Shut
	// drawn are runtimes of past jobs by what jobs have in common, pastDrawn those for each kind of past jobs.
	drawn     map[string]*odds.Sample
	pastDrawn []*odds.Sample
	sources   [NumSources]int
}

func (c *compiler) compile() error {
	v, q := c.View(), c.question
	c.width = v.Dims.Len()
	past := len(q.Past)
	if err := v.Work.Spend(v.Tasks.Len()+past+len(v.Nodes)+len(v.Queues)*len(v.Queues), c.width); err != nil {
		return err
	}
	if err := v.Work.Spend(past, numLikenesses*odds.Tried); err != nil {
		return err
	}
	if err := v.Work.Spend(len(q.Kinds)+len(v.Present()), naming); err != nil {
		return err
	}
	c.m.Horizon, c.m.Pause, c.m.Arrivals, c.m.Stop, c.m.Beside = min(q.Horizon, maxHorizon), q.Pause, q.Arrivals, v.Stop, q.Beside
	if c.m.Horizon <= 0 {
		c.m.Horizon = defaultHorizon
	}
	if c.m.Pause <= 0 {
		c.m.Pause = defaultPause
	}
	if c.m.Work = v.Work.Left() / int64(q.runs()); c.m.Work == 0 {
		// Runs without work would have no bound.
		return v.Work.Spend(q.runs(), 1)
	}
	c.findNodes()
	if err := c.findPeriods(); err != nil {
		return err
	}
	c.shut = c.shutFor(model.None, nil)
	c.findQueues()
	c.findRuntimes()
	if err := c.findJobs(); err != nil {
		return err
	}
	c.findPast()
	return nil
}

// findNodes lists what nodes have free besides jobs. A cluster without nodes is one node.
func (c *compiler) findNodes() {
	v := c.View()
	all := true
	for n := range v.Nodes {
		free := make([]float64, c.width)
		if v.HasNode(model.NodeID(n)) {
			row := v.Nodes[n].Allocatable.Clone()
			row.SubWithin(v.Nodes[n].UsedByOthers)
			copy(free, row.V)
		}
		c.m.Nodes = append(c.m.Nodes, free)
		opens := v.HasNode(model.NodeID(n)) && v.Closed(model.NodeID(n), model.AllNodes) == nil
		c.open = append(c.open, opens)
		all = all && opens
	}
	if all {
		c.open = nil
	}
	if len(c.m.Nodes) == 0 {
		c.m.Nodes = [][]float64{slices.Clone(v.Total.V)}
	}
}

// findJobs describes jobs that run or wait.
func (c *compiler) findJobs() error {
	v := c.View()
	rank := map[model.JobID]int{}
	waiting := c.Waiting()
	for i, j := range waiting {
		rank[j] = i
	}
	c.byPriority = slices.IsSortedFunc(waiting, func(l, r model.JobID) int {
		if v.Jobs.At(l).Queue != v.Jobs.At(r).Queue {
			return 0
		}
		return cmp.Compare(v.Jobs.At(r).Priority, v.Jobs.At(l).Priority)
	})
	c.asked = -1
	for i, j := range v.Present() {
		if v.Stopped(i) {
			return policy.ErrStopped
		}
		place, waits := rank[j]
		job := odds.Job{Rank: place, Ends: odds.Unknown, Pending: v.Phase(j) == model.PhasePending}
		c.hold(j, &job)
		c.book(j, &job)
		if waits {
			if err := c.want(j, &job); err != nil {
				return err
			}
		}
		if !job.Waits && job.Running == 0 {
			continue
		}
		if !job.Waits {
			job.Kind = c.kind(odds.Kind{Queue: c.place[v.Jobs.At(j).Queue]})
		}
		c.time(j, &job)
		if j == c.question.Job && job.Waits {
			c.asked, c.m.Asked = len(c.jobs), len(c.jobs)
		}
		c.jobs, c.m.Jobs = append(c.jobs, j), append(c.m.Jobs, job)
	}
	return nil
}

// hold lists what a job holds.
func (c *compiler) hold(j model.JobID, job *odds.Job) {
	v := c.View()
	for t := v.Jobs.At(j).FirstTask; t < v.Jobs.At(j).EndTask; t++ {
		if !v.Status(t).Occupies() {
			continue
		}
		job.Running++
		n := int(v.NodeOf(t))
		if len(v.Nodes) == 0 {
			n = 0
		}
		if n >= 0 {
			job.Held = append(job.Held, odds.Held{Node: n, Amount: v.Request(t).V})
		}
	}
	for g := v.Jobs.At(j).FirstGroup; g < v.Jobs.At(j).EndGroup; g++ {
		for count := range v.CountsOf(g) {
			if count.Status.Holds() && len(v.Nodes) == 0 {
				amount := resource.NewAccount(c.width)
				amount.AddTimes(v.Requests[v.Groups.At(g).Request], float64(count.N))
				job.Held = append(job.Held, odds.Held{Amount: amount.V})
				job.Running += int(count.N)
			}
		}
	}
}

// book says what a job that is admitted counts against the bounds of admission: its minimum, in which what it holds is contained.
func (c *compiler) book(j model.JobID, job *odds.Job) {
	for _, h := range job.Held {
		for d := range c.m.Admits {
			c.m.Admits[d] += h.Amount[d]
		}
	}
	if of := c.View().Jobs.At(j); !of.MinResources.Absent() && (!job.Pending || job.Running > 0) {
		job.Booked = c.minimum(of.MinResources)
	}
}

// minimum returns the amounts that count at admission: not a number of pods.
func (c *compiler) minimum(row resource.Row) []float64 {
	counted := row.Has & c.View().Dims.Pods()
	if counted == 0 {
		return row.V
	}
	least := slices.Clone(row.V)
	for ; counted != 0; counted = counted.Rest() {
		least[counted.First()] = 0
	}
	return least
}

// want describes what a job waits for, if it could start.
func (c *compiler) want(j model.JobID, job *odds.Job) error {
	v := c.View()
	w := c.NeedOf(j)
	queue := v.Jobs.At(j).Queue
	if w.Short || v.Queues[queue].State != model.Open || c.refused[queue] {
		return nil
	}
	gang, err := c.tasks(w.Needed)
	if err != nil {
		return err
	}
	var rest []model.TaskID
	if len(w.Needed) > 0 && len(w.Needed) < len(w.Tasks) {
		needs := map[model.TaskID]bool{}
		for _, t := range w.Needed {
			needs[t] = true
		}
		rest = slices.DeleteFunc(slices.Clone(w.Tasks), func(t model.TaskID) bool { return needs[t] })
	}
	more, err := c.tasks(rest)
	if err != nil {
		return err
	}
	switch account := v.Account(j); {
	case len(w.Tasks) == 0 && w.Counted > 0:
		gang = c.counted(j, w.Counted)
	case len(w.Tasks) == 0 && c.CreatesTasks(j):
		gang = c.created(j)
	case j != c.question.Job && account.Holding() > 0 && account.Ready() >= v.Jobs.At(j).MinAvailable:
		gang, more = nil, append(gang, more...)
	}
	if len(gang)+len(more) > 0 {
		kind := odds.Kind{Queue: c.place[queue], Priority: v.Jobs.At(j).Priority, Gang: gang, More: more}
		if least := v.Jobs.At(j).MinResources; !least.Absent() && c.m.Admission {
			kind.Min = c.minimum(least)
		}
		job.Waits, job.Kind = true, c.kind(kind)
	}
	return nil
}

// counted are the waiting tasks of a job that are given as counts.
func (c *compiler) counted(j model.JobID, most int) []odds.Tasks {
	v := c.View()
	var list []odds.Tasks
	needed := min(max(int(v.Jobs.At(j).MinAvailable-v.Account(j).Ready()), 1), most)
	for g := v.Jobs.At(j).FirstGroup; g < v.Jobs.At(j).EndGroup; g++ {
		for count := range v.CountsOf(g) {
			if n := min(needed, int(count.N)); count.Status == model.Pending && count.Gate != model.GateOther && n > 0 {
				needed -= n
				list = append(list, odds.Tasks{
					Request: v.Requests[v.Groups.At(g).Request].V, N: n, On: c.open, Shut: c.shutFor(j, nil),
				})
			}
		}
	}
	return list
}

// created are the tasks that a job will have once it has entered its queue, as far as that is known: equal parts of its minimum.
func (c *compiler) created(j model.JobID) []odds.Tasks {
	job := c.View().Jobs.At(j)
	if job.MinResources.Absent() {
		return nil
	}
	n := max(int(job.MinAvailable), 1)
	each := slices.Clone(job.MinResources.V)
	for d := range each {
		each[d] /= float64(n)
	}
	return []odds.Tasks{{Request: each, N: n, On: c.open, Shut: c.shutFor(j, nil)}}
}

// tasks groups tasks of one kind.
func (c *compiler) tasks(tasks []model.TaskID) ([]odds.Tasks, error) {
	var list []odds.Tasks
	var last engine.Kind
	for _, t := range tasks {
		key := c.KindOf(t)
		if len(list) > 0 && key == last {
			list[len(list)-1].N++
			continue
		}
		on, err := c.nodesOf(t, key)
		if err != nil {
			return nil, err
		}
		last = key
		list = append(list, odds.Tasks{Request: c.View().Request(t).V, N: 1, On: on, Shut: c.shuts[key]})
	}
	return list, nil
}

// nodesOf returns the nodes that may take a kind of tasks, nil for all.
func (c *compiler) nodesOf(t model.TaskID, key engine.Kind) ([]bool, error) {
	if on, known := c.on[key]; known {
		return on, nil
	}
	v := c.View()
	if err := v.Work.Spend(len(v.Nodes), c.width); err != nil {
		return nil, err
	}
	on, all := make([]bool, len(v.Nodes)), true
	for n := range on {
		on[n] = v.HasNode(model.NodeID(n)) && c.opens(t, model.NodeID(n))
		all = all && on[n]
	}
	if all {
		on = nil
	}
	tight, err := c.tightFor(t)
	if err != nil {
		return nil, err
	}
	c.on[key], c.shuts[key] = on, c.shutFor(v.Tasks.At(t).Job, tight)
	if kind := c.alikeKey(c.place[key.Queue], v.Request(t).V); c.alike[kind] == nil {
		c.alike[kind] = on
	}
	return on, nil
}

// alikeKey names what tasks of a queue ask for.
func (c *compiler) alikeKey(queue int, request []float64) string {
	return fmt.Sprint(queue, c.sized(request))
}

// kind returns the number of a kind of job.
func (c *compiler) kind(of odds.Kind) int {
	if !c.byPriority {
		of.Priority = 0
	}
	var text strings.Builder
	fmt.Fprint(&text, of.Queue, " ", of.Priority, " ", of.Min)
	for i, list := range [][]odds.Tasks{of.Gang, of.More} {
		for _, t := range list {
			fmt.Fprintf(&text, " %d %d %v %s %p", i, t.N, t.Request, c.setOf(t.On), t.Shut)
		}
	}
	key := text.String()
	k, known := c.kinds[key]
	if !known {
		k = len(c.m.Kinds)
		c.kinds[key] = k
		c.m.Kinds = append(c.m.Kinds, of)
	}
	return k
}

// setOf names a set of nodes: lists are equal only if they are the same.
func (c *compiler) setOf(on []bool) string {
	if on == nil {
		return ""
	}
	return fmt.Sprintf("%p", on)
}

// time states when a job ends, or which runtimes it may have.
func (c *compiler) time(j model.JobID, job *odds.Job) {
	v := c.View()
	of := v.Jobs.At(j)
	if job.Running > 0 {
		job.Elapsed = c.elapsed(j)
	}
	left := (of.ExpectedEnd - v.AsOf) / second
	switch {
	case job.Running > 0 && of.ExpectedEnd > v.AsOf && v.AsOf != 0 && !of.EndIsDeadline:
		job.Ends = left
		c.sources[FromStated]++
		return
	case job.Running > 0 && of.ExpectedEnd > v.AsOf && v.AsOf != 0:
		job.Limit = job.Elapsed + max(left, 1)
	case of.ExpectedRuntime > 0:
		job.Limit = max(of.ExpectedRuntime/second, 1)
	}
	var source Source
	job.Drawn, source = c.runtimes(j, job.Elapsed)
	if j != c.question.Job {
		c.sources[source]++
	}
}

// started returns since when a job runs, 0 if that is not known.
func (c *compiler) started(j model.JobID) int64 {
	if at := c.question.Started[j]; at != 0 {
		return at
	}
	v := c.View()
	first := int64(math.MaxInt64)
	for t := v.Jobs.At(j).FirstTask; t < v.Jobs.At(j).EndTask; t++ {
		if created := v.Tasks.At(t).CreateTime; created != 0 && v.Status(t).Holds() {
			first = min(first, created)
		}
	}
	if first == math.MaxInt64 {
		return v.Jobs.At(j).CreateTime
	}
	return first
}
