package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/apportion/apportion/contract/lookup"
	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Past returns the jobs of a trace that had ended by a moment as the contract states them to questions about a snapshot, and what was left
// out. A trace that does not say when it was ends at that moment. Jobs do not start before they arrive, so one ends no earlier than its
// runtime after its arrival.
func (t *Trace) Past(s *lookup.Snapshot, now time.Time) (*apportionv1.PastJobs, []string) {
	p := pasts{out: &apportionv1.PastJobs{}, at: map[string]uint32{}, dimensions: map[string]uint32{}, names: map[string]string{}}
	for i, name := range s.GetDimensions() {
		p.dimensions[name] = uint32(i)
	}
	end := int64(0)
	if t.Start.IsZero() {
		for i := range t.Jobs {
			end = max(end, t.Jobs[i].Arrival+t.Jobs[i].Seconds)
		}
	} else {
		end = int64(now.Sub(t.Start) / time.Second)
	}
	for i := range t.Jobs {
		job := &t.Jobs[i]
		queue, err := s.Queue(job.Queue)
		switch {
		case err != nil:
			p.leave(" of queues that the cluster does not have", job.Queue)
			continue
		case job.Arrival > end:
			p.leave(" arriving after the time of the snapshot", job.Name)
			continue
		case job.Arrival+job.Seconds > end:
			p.leave(" ending after the time of the snapshot", job.Name)
			continue
		}
		p.out.Kind = append(p.out.Kind, p.kind(job, queue))
		p.out.Age = append(p.out.Age, uint64(end-job.Arrival))
		p.out.Seconds = append(p.out.Seconds, uint64(job.Seconds))
	}
	return p.out, p.notes()
}

// pasts collects past jobs.
type pasts struct {
	out        *apportionv1.PastJobs
	at         map[string]uint32
	dimensions map[string]uint32
	// left counts jobs that are left out by what they have in common, in the order of causes; names has the first of each.
	causes []string
	left   map[string]int
	names  map[string]string
}

func (p *pasts) leave(cause, name string) {
	if p.left == nil {
		p.left = map[string]int{}
	}
	if p.left[cause]++; p.left[cause] == 1 {
		p.causes, p.names[cause] = append(p.causes, cause), name
	}
}

func (p *pasts) notes() []string {
	var notes []string
	for _, cause := range p.causes {
		n := p.left[cause]
		notes = append(notes, fmt.Sprintf("%s%s %s left out, such as %s",
			text.Count(n, "job"), cause, text.Verb(n, "is", "are"), p.names[cause]))
	}
	return notes
}

// kind returns the position of a job's kind. All tasks count as those of its first group.
func (p *pasts) kind(job *Job, queue uint32) uint32 {
	kind := &apportionv1.PastKind{
		Queue: queue, Owner: job.Owner, Priority: job.Priority, Tasks: uint32(job.Tasks()), MinAvailable: uint32(job.Min),
		Request: &apportionv1.Resource{},
	}
	var key strings.Builder
	fmt.Fprintf(&key, "%d %q %d %d %d", queue, job.Owner, job.Priority, job.Tasks(), job.Min)
	if len(job.Groups) > 0 {
		for _, a := range job.Groups[0].Request {
			d, known := p.dimensions[a.Resource]
			if !known {
				continue
			}
			fmt.Fprintf(&key, " %d:%g", d, a.Amount)
			kind.Request.Dimension = append(kind.Request.Dimension, d)
			kind.Request.Amount = append(kind.Request.Amount, a.Amount)
		}
	}
	at, known := p.at[key.String()]
	if !known {
		at = uint32(len(p.out.GetKinds()))
		p.at[key.String()] = at
		p.out.Kinds = append(p.out.Kinds, kind)
	}
	return at
}
