package trace

import (
	"fmt"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// Past returns the jobs of a trace that had ended by a moment as the contract states them to questions about a snapshot, and what was left
// out. A trace that does not say when it was ends at that moment. Jobs do not start before they arrive, so one ends no earlier than its
// runtime after its arrival.
func (t *Trace) Past(s *lookup.Snapshot, now time.Time) (*apportionv1.PastJobs, []string) {
	p := pasts{out: &apportionv1.PastJobs{}, at: map[string]uint32{}, dimensions: map[string]uint32{}, names: map[string]string{}}
	for i, name := range s.GetDimensions() {
		p.dimensions[name] = uint32(i)
	}
	end, from, until := int64(0), 0, len(t.Jobs)
	if t.Start.IsZero() {
		from, until = t.together()
		for i := from; i < until; i++ {
			end = max(end, t.Jobs[i].Arrival+t.Jobs[i].Wait+t.Jobs[i].Seconds)
		}
	} else {
		end = int64(now.Sub(t.Start) / time.Second)
	}
	for i := range t.Jobs {
		job := &t.Jobs[i]
		queue, err := s.Queue(job.Queue)
		switch {
		case i < from || i >= until:
			why := fmt.Sprintf(" arriving %d days or more apart from the others, as if the clock had jumped,", silence/(24*3600))
			p.leave(why, job.Name)
			continue
		case err != nil:
			p.leave(" of queues that the cluster does not have", job.Queue)
			continue
		case job.Arrival > end:
			p.leave(" arriving after the time of the snapshot", job.Name)
			continue
		case job.Unfinished && s.Has("job", job.Name):
			// The snapshot says how long it has run.
			continue
		case job.Arrival+job.Wait+job.Seconds > end:
			p.leave(" ending after the time of the snapshot", job.Name)
			continue
		}
		if job.Unfinished {
			p.out.UnfinishedJobs = append(p.out.UnfinishedJobs, uint32(len(p.out.GetKindIndices())))
		}
		p.unknown = p.unknown || !job.Waited
		p.out.WaitSeconds = append(p.out.WaitSeconds, uint64(job.Wait))
		p.out.KindIndices = append(p.out.KindIndices, p.kind(job, queue))
		p.out.AgeSeconds = append(p.out.AgeSeconds, uint64(end-job.Arrival))
		p.out.RunSeconds = append(p.out.RunSeconds, uint64(job.Seconds))
	}
	if p.unknown {
		p.out.WaitSeconds = nil
	}
	p.gaps = t.gaps(end)
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
	// unknown says that it is not known of all jobs how long they waited.
	unknown bool
	// gaps says where no job arrived for a long time.
	gaps []string
}

// silence is for how long no job arrives if a clock has jumped, or if a source lacks jobs, in seconds.
const silence = 30 * 24 * 3600

// together returns the longest part of a trace, as positions of jobs, in which jobs arrive without a silence.
func (t *Trace) together() (from, until int) {
	for first, i := 0, 1; i <= len(t.Jobs); i++ {
		if i < len(t.Jobs) && t.Jobs[i].Arrival-t.Jobs[i-1].Arrival < silence {
			continue
		}
		// Of equal ones the last.
		if i-first >= until-from {
			from, until = first, i
		}
		first = i
	}
	return from, until
}

// gaps notes silences of a trace that says when it was, until an arrival.
func (t *Trace) gaps(end int64) []string {
	n, first := 0, 0
	for i := 1; i < len(t.Jobs) && t.Jobs[i].Arrival <= end && !t.Start.IsZero(); i++ {
		if t.Jobs[i].Arrival-t.Jobs[i-1].Arrival >= silence {
			if n++; n == 1 {
				first = i
			}
		}
	}
	if n == 0 {
		return nil
	}
	before := &t.Jobs[first-1]
	return []string{fmt.Sprintf(
		"no job arrives for %d days or more in %s, as if the clock had jumped or jobs were missing; the first follows %s",
		silence/(24*3600), text.Count(n, "place"), before.Name)}
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
	notes := p.gaps
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
			kind.Request.Dimensions = append(kind.Request.Dimensions, d)
			kind.Request.Amounts = append(kind.Request.Amounts, a.Amount)
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
