package remedy

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// A remedy that ends jobs is found in two directions. Forward, the judge says what still holds the job back, and jobs end for that, until
// it runs: this may choose too many. Backward, list turns each end back that is not needed. What is listed was judged as a whole, so that
// only the number of ends, never that they help, depends on the order in which they were chosen.

const (
	// maxRemedyJobs bounds the jobs that one remedy ends, and maxRemedyRounds how often it is asked what still holds the job back.
	maxRemedyJobs   = 64
	maxRemedyRounds = 12
)

// jobsEnd ends jobs: greedily the jobs that release most of the lacking amount, or else all jobs if they are few. Then it drops the jobs
// that are not needed.
func (r *remedier) jobsEnd() error {
	e := &ender{remedier: r, ended: map[model.JobID]bool{}}
	if e.find(); len(e.jobs) == 0 {
		r.untried(JobsEnd, NoneThere)
		return nil
	}
	if err := r.View().Work.Spend(maxRemedyJobs*r.View().Tasks.Len(), r.View().Dims.Len()); err != nil {
		return errSpent
	}
	for range maxRemedyRounds {
		now, err := r.standing(r.atMost(e.dials))
		if err != nil {
			return err
		}
		if now.runs {
			_, err := r.list(JobsEnd, e.dials)
			return err
		}
		before := len(e.dials)
		if now.check == judge.CheckNodes {
			e.forRoom()
		} else {
			e.forLimits(now.reasons)
		}
		if len(e.dials) >= maxRemedyJobs || len(e.dials) == before {
			break
		}
	}
	// Where no node could take the tasks even if it were empty, no end helps.
	if err := e.spendOnOffers(len(e.View().NodeOrder)); err != nil {
		return err
	}
	if !r.everyKindFits() {
		return nil
	}
	if len(e.jobs) > maxRemedyJobs {
		r.cut(JobsEnd, BoundJobs, len(e.dials), len(e.jobs))
		return nil
	}
	for _, j := range e.jobs {
		if !e.ended[j] {
			e.end(j)
		}
	}
	_, err := r.list(JobsEnd, e.dials)
	return err
}

// ender chooses the jobs that end.
type ender struct {
	*remedier

	// jobs hold resources. Those come first that are missed least: of low priority, young, by uid.
	jobs  []model.JobID
	ended map[model.JobID]bool
	// dials end the chosen ones.
	dials []dial
	// free is the idle amount of each node, without the ended jobs and with the tasks that have found room.
	free []resource.Row
	// sum and stamp belong to one job at a time: what nodes have left without it.
	sum   []resource.Row
	stamp []model.JobID
	// filling is what the placed tasks use of the policy's bounds.
	filling place.Filling
}

// find lists the jobs that may end.
func (e *ender) find() {
	v := e.View()
	for _, j := range v.Present() {
		if j != e.job && e.Occupies(j) {
			e.jobs = append(e.jobs, j)
		}
	}
	slices.SortStableFunc(e.jobs, func(a, b model.JobID) int {
		l, r := v.Jobs.At(a), v.Jobs.At(b)
		return cmp.Or(cmp.Compare(l.Priority, r.Priority), cmp.Compare(r.CreateTime, l.CreateTime))
	})
}

// occupied sums what a job holds, including amounts that are being released, which some policies count until the release is complete.
func occupied(h engine.Host, j model.JobID) resource.Row {
	v := h.View()
	account := v.Account(j)
	if account.Tasks[model.Releasing] == 0 {
		return account.Allocated
	}
	sum, job := account.Allocated.Clone(), v.Jobs.At(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if v.Status(t) == model.Releasing {
			sum.Add(v.Request(t))
		}
	}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		for c := range v.CountsOf(g) {
			if c.Status == model.Releasing {
				sum.AddTimes(v.Requests[v.Groups.At(g).Request], float64(c.N))
			}
		}
	}
	return sum
}

// end chooses a job, and frees what it holds.
func (e *ender) end(j model.JobID) {
	end := e.edit(edit.End)
	end.Job = j
	e.ended[j] = true
	// Those chosen first go furthest: they are turned back last.
	e.dials = slices.Insert(e.dials, 0, whole(end))
	if e.free == nil {
		return
	}
	e.eachHeld(j, func(n model.NodeID, request resource.Row) { e.free[n].Add(request) })
}

// eachHeld calls do for each task of a job that occupies a node.
func (e *ender) eachHeld(j model.JobID, do func(n model.NodeID, request resource.Row)) {
	v := e.View()
	job := v.Jobs.At(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if n := v.NodeOf(t); n != model.None && v.Status(t).Counts() && v.Status(t) != model.Releasing {
			do(n, v.Request(t))
		}
	}
}

// forLimits ends jobs until those amounts fit that limits refuse: below the queue that the numbers are of, or anywhere if they are of the
// cluster.
func (e *ender) forLimits(reasons []policy.Reason) {
	v := e.View()
	for i := range reasons {
		reason := &reasons[i]
		if reason.Dimension < 0 {
			continue
		}
		short := max(reason.Have+reason.Need-reason.Limit, resource.Threshold)
		within := func(model.QueueID) bool { return true }
		if reason.Code != policy.AboveOvercommit && reason.Queue != model.None {
			within = func(q model.QueueID) bool { return slices.Contains(e.pathOf(q), reason.Queue) }
		}
		// A single job that suffices is better than several that release more.
		for short > 0 && len(e.dials) < maxRemedyJobs {
			best, most := model.JobID(model.None), 0.0
			for _, j := range e.jobs {
				held := min(occupied(e.Host, j).V[reason.Dimension], short)
				if held > most && !e.ended[j] && within(v.Jobs.At(j).Queue) {
					best, most = j, held
				}
			}
			if best == model.None {
				break
			}
			short -= most
			e.end(best)
		}
	}
}

// forRoom ends jobs until each task of the gang has room on some node, kind by kind, the largest first.
func (e *ender) forRoom() {
	v := e.View()
	width := v.Dims.Len()
	g := judge.New(e.Host)
	e.free, e.sum = resource.NewTable(len(v.Nodes), width), resource.NewTable(len(v.Nodes), width)
	e.stamp = make([]model.JobID, len(v.Nodes))
	for i := range e.stamp {
		e.stamp[i] = model.None
	}
	for _, n := range v.NodeOrder {
		g.Future(n, &e.free[n])
	}
	for i := range e.dials {
		e.eachHeld(e.dials[i].edit.Job, func(n model.NodeID, request resource.Row) { e.free[n].Add(request) })
	}
	e.filling = place.Filling{}
	place := place.Placer{Host: e.Host, Tasks: e.gang}
	place.Sort(v.Total)
	for k := range place.Kinds {
		kind := &place.Kinds[k]
		kind.Fits = make([]bool, len(v.Nodes))
		for _, n := range v.NodeOrder {
			kind.Fits[n] = e.Admits(e.gang[kind.Tasks[0]], n, nil)
		}
		if !e.roomFor(kind) {
			return
		}
	}
}

// roomFor ends jobs until all tasks of a kind have room, and reports whether they have.
func (e *ender) roomFor(kind *place.TaskKind) bool {
	missing, t := len(kind.Tasks), e.gang[kind.Tasks[0]]
	for {
		for _, n := range e.View().NodeOrder {
			b := place.BoundOf(e.Host, t, n)
			for missing > 0 && kind.Fits[n] && resource.Covers(e.free[n], kind.Request) && e.filling.Takes(b, kind.Request) {
				e.free[n].SubWithin(kind.Request)
				e.filling.Put(b, kind.Request)
				missing--
			}
		}
		if missing == 0 {
			return true
		}
		if len(e.dials) >= maxRemedyJobs || e.View().Stop != nil && e.View().Stop() {
			return false
		}
		chosen := e.widest(kind, missing)
		if chosen == nil {
			chosen = e.together(kind)
		}
		for _, j := range chosen {
			e.end(j)
		}
		if chosen == nil {
			return false
		}
	}
}

// widest returns the job whose end makes room for most tasks of a kind; nil if none alone makes room.
func (e *ender) widest(kind *place.TaskKind, missing int) []model.JobID {
	best, most := model.JobID(model.None), 0
	var nodes []model.NodeID
	for _, j := range e.jobs {
		if e.ended[j] {
			continue
		}
		nodes = nodes[:0]
		e.eachHeld(j, func(n model.NodeID, request resource.Row) {
			if !kind.Fits[n] {
				return
			}
			if e.stamp[n] != j {
				e.stamp[n] = j
				e.sum[n].CopyFrom(e.free[n])
				nodes = append(nodes, n)
			}
			e.sum[n].Add(request)
		})
		room := 0
		for _, n := range nodes {
			for room < missing && resource.Covers(e.sum[n], kind.Request) {
				e.sum[n].SubWithin(kind.Request)
				room++
			}
			e.stamp[n] = model.None
		}
		if room > most {
			best, most = j, room
		}
		if most == missing {
			break
		}
	}
	if best == model.None {
		return nil
	}
	return []model.JobID{best}
}

// together returns the fewest jobs found whose end makes room for a task of a kind on one node; nil if there are none.
func (e *ender) together(kind *place.TaskKind) []model.JobID {
	v := e.View()
	on := make([][]model.JobID, len(v.Nodes))
	for _, j := range e.jobs {
		if e.ended[j] {
			continue
		}
		e.eachHeld(j, func(n model.NodeID, _ resource.Row) {
			if last := len(on[n]) - 1; kind.Fits[n] && (last < 0 || on[n][last] != j) {
				on[n] = append(on[n], j)
			}
		})
	}
	var best []model.JobID
	for _, n := range v.NodeOrder {
		if len(on[n]) == 0 {
			continue
		}
		if set := e.onNode(kind, n, on[n], len(best)); set != nil {
			best = set
		}
	}
	return best
}

// onNode returns fewer than so many jobs, unless that is 0, whose end makes room for a task on a node, those first that hold most there.
func (e *ender) onNode(kind *place.TaskKind, n model.NodeID, jobs []model.JobID, fewer int) []model.JobID {
	holds := map[model.JobID]*resource.Row{}
	for _, j := range jobs {
		row := resource.NewRow(e.View().Dims.Len())
		e.eachHeld(j, func(at model.NodeID, request resource.Row) {
			if at == n {
				row.Add(request)
			}
		})
		holds[j] = &row
	}
	size := func(j model.JobID) float64 {
		size, _ := resource.DominantShare(*holds[j], kind.Request, kind.Request.Positive())
		return size
	}
	slices.SortStableFunc(jobs, func(a, b model.JobID) int { return cmp.Compare(size(b), size(a)) })
	row := e.free[n].Clone()
	for i, j := range jobs {
		if fewer > 0 && i+1 >= fewer {
			return nil
		}
		if row.Add(*holds[j]); resource.Covers(row, kind.Request) {
			return jobs[:i+1]
		}
	}
	return nil
}

// eviction asks the question of Plan, so that both have one answer.
func (r *remedier) eviction() error {
	if err := plan.Spend(r.Host); err != nil {
		return errSpent
	}
	made, err := plan.For(r.Session, &plan.Question{Job: r.job, Means: plan.ByAny})
	if err != nil {
		return err
	}
	switch {
	case made.Outcome == plan.Made && len(made.Victims) > 0:
		r.out.List = append(r.out.List, Remedy{Kind: Eviction, Plan: made})
	case made.Outcome == plan.NotFound:
		r.untried(Eviction, BeyondBound)
	}
	return nil
}

// wait tries the remedy of waiting for the ends on which a forecast depends.
func (r *remedier) wait() error {
	foreseen, err := forecast.For(r.Session, r.job)
	if err != nil {
		return err
	}
	switch {
	case foreseen == nil:
		r.untried(Wait, NoneThere)
		return nil
	case foreseen.Outcome == forecast.StartsAt:
		dials := make([]dial, 0, len(foreseen.Ends))
		for _, j := range foreseen.Ends {
			end := r.edit(edit.End)
			end.Job = j
			dials = append(dials, whole(end))
		}
		_, err := r.list(Wait, dials)
		return err
	case foreseen.CutShort:
		return errSpent
	}
	return nil
}
