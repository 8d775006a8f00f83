package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/resource"
)

// What jobs have in common with past jobs, from the most to the least. Runtimes of past jobs are found under a key for each.
const (
	ofOwnerAndSize = iota
	ofQueueAndSize
	ofSize
	ofOwner
	ofQueue
	ofAll
	numLikenesses int = iota
)

// likeness are the keys under which runtimes of past jobs are found.
func (c *compiler) likeness(queue model.QueueID, owner string, tasks int, request resource.Row) (keys [numLikenesses]string) {
	size := fmt.Sprint(tasks, c.sized(request.V))
	keys[ofOwnerAndSize] = fmt.Sprintf("%d %q %s", queue, owner, size)
	keys[ofQueueAndSize] = fmt.Sprintf("%d %s", queue, size)
	keys[ofSize] = "all " + size
	keys[ofOwner] = fmt.Sprintf("%d %q", queue, owner)
	keys[ofQueue] = fmt.Sprint(int32(queue))
	return keys
}

// sized names the amounts that tasks ask for. A number of pods is left out, which histories do not state.
func (c *compiler) sized(request []float64) string {
	var name strings.Builder
	for d, amount := range request {
		if amount != 0 && !c.View().Dims.Pods().Has(d) {
			fmt.Fprintf(&name, " %d:%g", d, amount)
		}
	}
	return name.String()
}

// sourceOf says for each key of likeness which source it is.
func sourceOf(key int) Source {
	return [...]Source{FromKind, FromKind, FromKind, FromQueue, FromQueue, FromAll}[key]
}

// findRuntimes makes samples of the runtimes of past jobs, and of those that run, under the keys of likeness.
func (c *compiler) findRuntimes() {
	observed := map[string][]odds.Observed{}
	keys := make([][numLikenesses]string, len(c.question.Kinds))
	for i := range keys {
		k := &c.question.Kinds[i]
		keys[i] = c.likeness(k.Queue, k.Owner, k.Tasks, k.Request)
	}
	for i := range c.question.Past {
		p := &c.question.Past[i]
		for _, key := range keys[p.Kind] {
			observed[key] = append(observed[key], odds.Observed{
				Began: p.Arrival + max(p.Wait, 0), Seconds: max(p.Seconds, 1), Ended: !p.Unfinished,
			})
		}
	}
	for _, j := range c.View().Present() {
		if elapsed := c.elapsed(j); elapsed > 0 {
			for _, key := range c.likenessOf(j) {
				if observed[key] != nil {
					observed[key] = append(observed[key], odds.Observed{Began: -elapsed, Seconds: elapsed})
				}
			}
		}
	}
	c.drawn = make(map[string]*odds.Sample, len(observed))
	for key, list := range observed {
		c.drawn[key] = odds.NewSample(list)
	}
	c.relate(keys)
	c.pastDrawn = make([]*odds.Sample, len(keys))
	for i := range keys {
		c.pastDrawn[i] = c.drawn[keys[i][ofOwnerAndSize]]
	}
}

// relate says of which samples each is a part, and how much it is like them. Jobs of a queue and size are some of the size if their
// runtimes are likelier then than as some of the queue; if not, the samples by size alone are left out.
func (c *compiler) relate(keys [][numLikenesses]string) {
	above := ofSize
	if !odds.Likelier(c.kin(keys, ofQueueAndSize, ofSize), c.kin(keys, ofQueueAndSize, ofQueue)) {
		above = ofQueue
		for i := range keys {
			delete(c.drawn, keys[i][ofSize])
		}
	}
	for _, of := range [][2]int{
		{ofOwnerAndSize, ofQueueAndSize}, {ofQueueAndSize, above}, {ofSize, ofAll}, {ofOwner, ofQueue}, {ofQueue, ofAll},
	} {
		kin := c.kin(keys, of[0], of[1])
		trust := odds.Trust(kin)
		for _, k := range kin {
			k.Some.Like, k.Some.Trust = k.Like, trust
		}
	}
}

// kin lists the samples of one likeness with those of another of which they are some.
func (c *compiler) kin(keys [][numLikenesses]string, some, like int) []odds.Kin {
	var list []odds.Kin
	listed := map[string]bool{}
	for i := range keys {
		if key := keys[i][some]; !listed[key] && c.drawn[key] != nil {
			listed[key] = true
			list = append(list, odds.Kin{Some: c.drawn[key], Like: c.drawn[keys[i][like]]})
		}
	}
	return list
}

// elapsed returns how many seconds a job has run, 0 if it does not run or that is not known.
func (c *compiler) elapsed(j model.JobID) int64 {
	v := c.View()
	if v.AsOf == 0 || !c.Occupies(j) {
		return 0
	}
	started := c.started(j)
	if started == 0 || started >= v.AsOf {
		return 0
	}
	return min((v.AsOf-started)/second, maxHorizon)
}

// likenessOf returns the keys of a job of the snapshot.
func (c *compiler) likenessOf(j model.JobID) [numLikenesses]string {
	v := c.View()
	job := v.Jobs.At(j)
	request := resource.NewRow(c.width)
	switch {
	case job.FirstTask < job.EndTask:
		request = v.Request(job.FirstTask)
	case job.FirstGroup < job.EndGroup:
		request = v.Requests[v.Groups.At(job.FirstGroup).Request]
	}
	return c.likeness(job.Queue, job.Owner, int(v.Account(j).AllTasks()), request)
}

// runtimes returns the sample of the past jobs that are most alike, and which jobs most of what is drawn from it will be of: the most alike
// of which enough are longer than what has elapsed, else of which one is.
func (c *compiler) runtimes(j model.JobID, elapsed int64) (*odds.Sample, Source) {
	keys := c.likenessOf(j)
	sample := c.drawn[""]
	for _, key := range slices.Backward(keys[:]) {
		if of := c.drawn[key]; of != nil {
			sample = of
		}
	}
	for _, enough := range []int{enoughPast, 1} {
		for i, key := range keys {
			if c.drawn[key].Longer(elapsed, enough) >= enough {
				return sample, sourceOf(i)
			}
		}
	}
	return sample, FromPrior
}

// findPast describes past jobs as kinds, so that jobs like them may arrive.
func (c *compiler) findPast() {
	if !c.question.Arrivals {
		return
	}
	kinds := make([]int, len(c.question.Kinds))
	for i := range kinds {
		kinds[i] = c.pastKind(&c.question.Kinds[i])
	}
	for i := range c.question.Past {
		if p := &c.question.Past[i]; p.Arrival < 0 {
			past := odds.Past{Arrival: p.Arrival, Seconds: max(p.Seconds, 1), Kind: kinds[p.Kind], Drawn: c.pastDrawn[p.Kind], Wait: p.Wait}
			if p.Unfinished {
				past.Seconds, past.Elapsed = 0, past.Seconds
			}
			c.m.Past = append(c.m.Past, past)
		}
	}
	c.findArrived()
	slices.SortStableFunc(c.m.Past, func(l, r odds.Past) int { return cmp.Compare(l.Arrival, r.Arrival) })
}

// findArrived adds the jobs of the snapshot that arrived since the first past job: without them long jobs would be missing among the
// arrivals of the last days. One that runs is known to run longer than it has.
func (c *compiler) findArrived() {
	v := c.View()
	first := int64(0)
	for i := range c.m.Past {
		first = min(first, c.m.Past[i].Arrival)
	}
	at := map[model.JobID]int{}
	for i, j := range c.jobs {
		at[j] = i
	}
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		arrival := -(v.AsOf - job.CreateTime) / second
		if job.CreateTime == 0 || v.AsOf == 0 || arrival >= 0 || arrival < first || job.FirstTask == job.EndTask {
			continue
		}
		elapsed := c.elapsed(j)
		sample, _ := c.runtimes(j, elapsed)
		if i, known := at[j]; known {
			c.m.Jobs[i].Arrived = true
		}
		c.m.Past = append(c.m.Past, odds.Past{
			Arrival: arrival, Elapsed: elapsed, Drawn: sample, Wait: max(-arrival-elapsed, 0), Waits: elapsed == 0,
			Kind: c.pastKind(&PastKind{
				Queue: job.Queue, Priority: job.Priority, Tasks: int(v.Account(j).AllTasks()), Min: int(job.MinAvailable),
				Request: v.Request(job.FirstTask),
			}),
		})
	}
}

func (c *compiler) pastKind(k *PastKind) int {
	queue := c.place[k.Queue]
	on, known := c.alike[c.alikeKey(queue, k.Request.V)]
	if !known {
		on = c.open
	}
	least := max(min(k.Min, k.Tasks), 1)
	kind := odds.Kind{Queue: queue, Priority: k.Priority, Gang: []odds.Tasks{{Request: k.Request.V, N: least, On: on, Shut: c.shut}}}
	if rest := k.Tasks - least; rest > 0 {
		kind.More = []odds.Tasks{{Request: k.Request.V, N: rest, On: on, Shut: c.shut}}
	}
	if c.m.Admission {
		kind.Min = slices.Clone(c.minimum(k.Request))
		for d := range kind.Min {
			kind.Min[d] *= float64(least)
		}
	}
	return c.kind(kind)
}
