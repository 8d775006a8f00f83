package remedy

import (
	"math"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// dial is one number that a search turns: what an edit changes, in steps from the value now.
type dial struct {
	edit edit.Edit
	// most is how many steps it can be turned.
	most int
	// falls: each step lowers the value.
	falls bool
	// hints are numbers of steps worth trying first, by what holds the job back.
	hint func(*standing) int
}

// amountDial turns an amount of a dimension from before towards a limit, in whole steps of a size that suits people.
func amountDial(e edit.Edit, name string, limit float64) dial {
	d := dial{edit: e, falls: limit < e.Before}
	units := unitsOf(name)
	for _, unit := range units {
		d.edit.Step = unit
		if d.falls {
			d.most = int(min(math.Ceil(e.Before/unit)-math.Ceil(limit/unit), remedySteps+1))
		} else {
			d.most = int(min(math.Ceil(limit/unit)-math.Floor(e.Before/unit), remedySteps+1))
		}
		if d.most <= remedySteps {
			break
		}
	}
	d.most = max(min(d.most, remedySteps), 0)
	return d
}

// remedySteps bounds the steps of a dial.
const remedySteps = 1 << 20

// unitsOf returns the steps in which amounts of a dimension are tried, the finest first: thousandths of a core, MiB, pods, whole devices.
func unitsOf(name string) []float64 {
	const mega, kilo = 1 << 20, 1 << 10
	switch {
	case name == "cpu":
		return []float64{1, 1000, 1e6}
	case name == "memory":
		return []float64{mega, mega * kilo, mega * mega}
	case name == "pods":
		return []float64{1, 1000}
	case name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-"):
		return []float64{1000 * mega, 1000 * mega * kilo, 1000 * mega * mega}
	}
	return []float64{1000, 1e6}
}

// at returns the edit after k steps.
func (d *dial) at(k int) edit.Edit {
	e := d.edit
	if d.falls {
		e.Amount = (math.Ceil(e.Before/e.Step) - float64(k)) * e.Step
	} else {
		e.Amount = (math.Floor(e.Before/e.Step) + float64(k)) * e.Step
	}
	return e
}

// steps returns how many steps it takes to reach a value.
func (d *dial) steps(value float64) int {
	k := math.Ceil(value/d.edit.Step) - math.Floor(d.edit.Before/d.edit.Step)
	return int(max(min(k, float64(d.most)), 0))
}

// whole is a dial for a change that is made as a whole or not at all.
func whole(e edit.Edit) dial {
	e.Amount, e.Step = 1, 1
	return dial{edit: e, most: 1}
}

// search turns dials.
type search struct {
	*remedier

	dials []dial
	at    []int
}

// edits are the edits of the dials that are turned.
func (s *search) edits() []edit.Edit {
	var edits []edit.Edit
	for i := range s.dials {
		if s.at[i] > 0 {
			edits = append(edits, s.dials[i].at(s.at[i]))
		}
	}
	return edits
}

// stands returns how the job stands with dial i at k.
func (s *search) stands(i, k int) (*standing, error) {
	s.at[i] = k
	return s.standing(s.edits())
}

// smallest turns dials as little as makes the job run, one after the other from all at their most; nil if the job does not run even then.
// With the result, one step less of any dial does not suffice.
func (r *remedier) smallest(dials []dial) ([]edit.Edit, error) {
	s := &search{remedier: r, at: make([]int, len(dials))}
	for i := range dials {
		if dials[i].most > 0 {
			s.at[len(s.dials)] = dials[i].most
			s.dials = append(s.dials, dials[i])
		}
	}
	s.at = s.at[:len(s.dials)]
	if len(s.dials) == 0 {
		return nil, nil
	}
	if runs, err := r.runsWith(s.edits()); err != nil || !runs {
		return nil, err
	}
	for {
		before := r.out.Tries
		settled := true
		for i := range s.dials {
			was := s.at[i]
			if err := s.turnBack(i); err != nil {
				return nil, err
			}
			settled = settled && s.at[i] == was
		}
		// A later dial that was turned back may let an earlier one go further only where one thing makes up for another.
		if settled || len(s.dials) == 1 || r.out.Tries == before {
			return s.edits(), nil
		}
	}
}

// turnBack turns a dial as far back as the job runs: with one step less of it and the other dials unchanged it does not.
func (s *search) turnBack(i int) error {
	high, low := s.at[i], 0
	if high == 0 {
		return nil
	}
	// Most often the end, or the last step, shows that nothing is to be done.
	now, err := s.stands(i, low)
	if err != nil {
		return err
	}
	if now.runs {
		return nil
	}
	next := probe{dial: &s.dials[i], low: low, high: high, stride: 1}
	for next.high-next.low > 1 {
		k := next.choose(now)
		if now, err = s.stands(i, k); err != nil {
			return err
		}
		next.learn(k, now.runs)
	}
	s.at[i] = next.high
	return nil
}

// probe chooses which number of steps is tried next: the job does not run with low of them, and runs with high.
type probe struct {
	*dial

	low, high int
	// stride doubles until the job runs with a tried change; hints counts those followed, and hinted says that the last choice was one.
	stride, hints int
	hinted        bool
}

// maxHints bounds the hints that are followed, which may lead on in small steps.
const maxHints = 3

func (p *probe) choose(now *standing) int {
	middle, followed := p.low+(p.high-p.low)/2, p.hinted
	p.hinted = false
	switch {
	case now.runs && followed:
		// Is what was hinted at the least?
		return p.high - 1
	case p.hint == nil:
		k := min(middle, p.low+p.stride)
		p.stride *= 2
		return k
	case !now.runs && p.hints < maxHints:
		if k := p.hint(now); k > p.low && k < p.high {
			p.hints++
			p.hinted = true
			return k
		}
	}
	return middle
}

func (p *probe) learn(k int, runs bool) {
	if runs {
		p.high, p.stride = k, p.most
		return
	}
	p.low, p.hinted = k, false
}

// needed returns the amount of a dimension that a queue would have to be allowed, if the reason that blocks the job states it, and 0
// otherwise.
func needed(now *standing, queue func(model.QueueID) bool, dimension int) float64 {
	most := 0.0
	for i := range now.reasons {
		reason := &now.reasons[i]
		if reason.Dimension == dimension && (reason.Queue == model.None || queue(reason.Queue)) && comparesSum(reason) {
			most = max(most, reason.Have+reason.Need)
		}
	}
	return most
}

// comparesSum reports whether a reason compares what there is, together with what is asked for, with a limit.
func comparesSum(reason *policy.Reason) bool {
	switch reason.Code { //nolint:exhaustive // The others compare something else.
	case policy.AboveRealCapability, policy.AboveDeserved, policy.AboveLimit, policy.AboveOvercommit, policy.AboveTotal:
		return true
	}
	return false
}

// settings are the changes of settings of the queue, in the order in which they are tried together with others.
var settings = []Kind{OpenQueue, HigherCapability, HigherDeserved, HigherGuarantee, HigherWeight}

// firsts are the kinds that are tried together with a setting. One kind of a row is enough: nodes that are there already come before new
// ones.
var firsts = [][]Kind{{Uncordoned, MoreNodes}, {OtherNodes}, {SmallerMinimum}, {SmallerRequest}}

// combined changes a setting of the queues together with something else, where neither helps alone: it opens the queues too, changes nodes,
// or changes the job.
func (r *remedier) combined() error {
	if r.found(slices.Concat(settings, []Kind{MoreNodes, Uncordoned, OtherNodes})...) {
		r.untried(Combined, NotNeeded)
		return nil
	}
	rows, opens := firsts, r.settingDialsOfAll(OpenQueue)
	if len(opens) > 0 {
		rows = slices.Insert(slices.Clone(rows), 0, []Kind{Combined})
	}
	tried := false
	for _, row := range rows {
		for _, setting := range settings {
			dials := r.settingDialsOfAll(setting)
			if len(dials) == 0 {
				continue
			}
			if setting != OpenQueue {
				dials = slices.Concat(opens, dials)
			}
			some, err := r.together(row, dials)
			if err != nil {
				return err
			}
			tried = tried || some
		}
		if row[0] == Combined && r.found(Combined) {
			break
		}
	}
	if !tried {
		r.untried(Combined, NoneThere)
	}
	return nil
}

// together tries one kind of change after the other beside others until one helps, and reports whether there was anything to try.
func (r *remedier) together(kinds []Kind, beside []dial) (bool, error) {
	r.beside = beside
	defer func() { r.beside = nil }()
	tried, listed := false, len(r.out.List)
	for _, kind := range kinds {
		if r.found(kind) && kind != Combined {
			continue
		}
		if err := r.try(kind); err != nil {
			return tried, err
		}
		noted := len(r.out.Untried)
		r.out.Untried = slices.DeleteFunc(r.out.Untried, func(u Untried) bool { return u.Kind == Combined && u.Cause == NoneThere })
		if tried = tried || len(r.out.Untried) == noted; len(r.out.List) > listed {
			break
		}
	}
	return tried, nil
}

// as is the kind as which a change is listed.
func (r *remedier) as(kind Kind) Kind {
	if r.beside != nil {
		return Combined
	}
	return kind
}

// atMost are the edits of dials, and of those beside them, that are all turned to their most.
func (r *remedier) atMost(dials []dial) []edit.Edit {
	var edits []edit.Edit
	for _, d := range slices.Concat(dials, r.beside) {
		if d.most > 0 {
			edits = append(edits, d.at(d.most))
		}
	}
	return edits
}

// settingDialsOfAll are the dials of a setting of the job's queue and of those above it.
func (r *remedier) settingDialsOfAll(kind Kind) []dial {
	var dials []dial
	for _, q := range r.levels(Combined) {
		dials = append(dials, r.settingDials(kind, q)...)
	}
	return dials
}
