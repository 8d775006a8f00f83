package volcano

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/room"
	wording "github.com/apportion/apportion/internal/text"
)

// What rules use of what a snapshot has for them.
type ruleUse [6]float64

// The bounds that rules share.
const (
	// useOfWork is how often pods are held against selections, and nodes against conditions of spreads.
	useOfWork = iota
	useOfClasses
	useOfPairs
	useOfTallies
	useOfSets
	useOfCells
)

// choice finds rules that are judged where there are too many. In turn each namespace adds one, the namespace first whose rules use the
// smallest part of any bound: it has at least its equal part of each, whatever the rules of others are. Rules that select pods of their own
// namespace only come first, so that no other namespace uses up what may concern these pods. They have half of each bound, so that rules
// that select pods of others have room too, and then what these leave.
type choice struct {
	*relation

	most, used ruleUse
	// part is the part of the bounds that may be used.
	part float64
	// kinds by a label that they have.
	byLabel map[labelOf][]int32
	every   []int32
	// classOf has the class of each kind, and classes how many kinds are in it and how many tallies concern these.
	classOf []int32
	classes []chosenClass
	marks   []kindMark
}

// kindMark is what rules change for pods of a kind.
type kindMark struct {
	rules  []byte
	weight int
}

type chosenClass struct {
	kinds, tallies int
}

// ruleUnit is equal rules of pods of one namespace.
type ruleUnit struct {
	rules []*relatedRules
	kinds []int32
}

// choose says of each rule whether it is beyond the bounds.
func (r *relation) choose() {
	r.ruled = r.newRuled()
	c := &choice{
		relation: r, part: 1.0 / 2, byLabel: map[labelOf][]int32{}, classOf: make([]int32, len(r.kinds)), classes: make([]chosenClass, 1),
		marks: make([]kindMark, len(r.kinds)),
		most:  ruleUse{matches, maxPodClasses, maxPodPairs, maxPodTallies, float64(r.setsLeft()), float64(model.PodCells(r.tasks))},
	}
	for i, kind := range r.kinds {
		c.every = append(c.every, int32(i))
		for at := 0; at < len(kind.traits.labels); at += 2 {
			label := labelOf{kind.traits.labels[at], kind.traits.labels[at+1]}
			c.byLabel[label] = append(c.byLabel[label], int32(i))
		}
	}
	for _, rules := range r.rules {
		rules.beyond = true
	}
	used := map[string]*ruleUse{}
	for _, own := range []bool{true, false, true} {
		room.InTurns(c.units(own), func(namespace string, unit *ruleUnit) (share float64) {
			more, fits := c.add(unit)
			for _, rules := range unit.rules {
				rules.beyond = !fits
			}
			if used[namespace] == nil {
				used[namespace] = &ruleUse{}
			}
			return used[namespace].plus(&more, &c.most)
		})
		c.part = 1
	}
}

// plus adds what a rule uses, and returns the largest part of a bound that is used.
func (u *ruleUse) plus(more, most *ruleUse) (share float64) {
	for i := range u {
		if u[i] += more[i]; most[i] > 0 {
			share = max(share, u[i]/most[i])
		}
	}
	return share
}

// units lists for each namespace the rules that were not added yet: those that select pods of their own namespace only, or the others.
func (c *choice) units(own bool) map[string][]*ruleUnit {
	type unitKey struct {
		namespace string
		number    int
		rules     *relatedRules
	}
	units, list := map[unitKey]*ruleUnit{}, map[string][]*ruleUnit{}
	for i, kind := range c.kinds {
		if kind.rules == nil || !kind.rules.beyond || kind.rules.rules.own(kind.rules.namespace) != own {
			continue
		}
		key := unitKey{kind.rules.namespace, kind.rules.number, nil}
		if key.number == 0 {
			key.rules = kind.rules
		}
		unit := units[key]
		if unit == nil {
			unit = &ruleUnit{}
			units[key], list[key.namespace] = unit, append(list[key.namespace], unit)
		}
		unit.kinds = append(unit.kinds, int32(i))
		if kind.rules.unit != unit {
			kind.rules.unit, unit.rules = unit, append(unit.rules, kind.rules)
		}
	}
	return list
}

// own reports whether rules select pods of their own namespace only.
func (p *podRules) own(namespace string) bool {
	return !slices.ContainsFunc(slices.Concat(p.affinity, p.anti), func(t podTerm) bool {
		return t.inNamespaces != nil || !slices.Equal(t.namespaces, []string{namespace})
	})
}

// add adds equal rules, and returns what they use beyond all before. fits is false if that is too much: then they are not added, and use
// only the work of finding out.
func (c *choice) add(u *ruleUnit) (more ruleUse, fits bool) {
	of := u.rules[0]
	sets := len(c.sets)
	more[useOfWork] = c.spreadWork(of)
	if c.exceeds(&more) {
		return ruleUse{}, false
	}
	c.conditions = 0
	for _, rules := range u.rules {
		rules.beyond = false
	}
	whole := c.resolve(of)
	selected := selectionsOf(of.class)
	for _, n := range selected {
		more[useOfWork] += float64(c.selections.costs[n] * len(c.candidates(n)))
	}
	more[useOfSets] = float64(len(c.sets) - sets)
	spent := ruleUse{useOfWork: more[useOfWork], useOfSets: more[useOfSets]}
	if !whole || c.exceeds(&more) {
		spent[useOfWork] = c.spreadWork(of)
		c.spend(spent)
		return spent, false
	}
	known, added := len(c.classes), c.tallies.addClass(of.class)
	s := c.split(u, of.class, selected, added)
	more[useOfClasses], more[useOfPairs], more[useOfCells] = float64(s.classes), float64(s.pairs), float64(s.cells)
	for _, a := range added {
		more[useOfTallies] += float64(a.weight)
	}
	if float64(s.most) > c.part*maxPodTallies || c.exceeds(&more) {
		c.tallies.remove(added)
		c.classes = c.classes[:known]
		c.spend(spent)
		return spent, false
	}
	c.spend(more)
	for i, kind := range s.kinds {
		c.classes[c.classOf[kind]].kinds--
		c.classOf[kind] = s.to[i]
		c.classes[s.to[i]].kinds++
	}
	return more, true
}

// exceeds reports whether one more would be too much. Of tallies it is the most of one class that counts, and not their sum.
func (c *choice) exceeds(more *ruleUse) bool {
	for i := range more {
		if i != useOfTallies && c.used[i]+more[i] > c.part*c.most[i] {
			return true
		}
	}
	return false
}

func (c *choice) spend(more ruleUse) {
	for i := range more {
		c.used[i] += more[i]
	}
}

// spreadWork is what it takes to find the nodes that spreads count.
func (c *choice) spreadWork(of *relatedRules) (work float64) {
	for i := range of.rules.spreads {
		s := &of.rules.spreads[i]
		if _, known := c.countedAt[countedKey{of.placement, s.byAffinity, s.byTaints}]; !known && (s.byAffinity || s.byTaints) {
			work += float64(of.placement.conditions() * int64(len(c.nodes)))
		}
	}
	return work
}

// selectionsOf lists the selections that rules name.
func selectionsOf(class *apportionv1.PodClass) (list []uint32) {
	if len(class.GetAffinityTopologies()) > 0 {
		list = append(list, class.GetAffinitySelection())
	}
	for _, a := range class.GetAntiAffinities() {
		list = append(list, a.GetSelection())
	}
	for _, s := range class.GetSpreads() {
		list = append(list, s.GetSelection())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// candidates are the kinds of pods that may be in a selection.
func (c *choice) candidates(n uint32) []int32 {
	if label, some := c.selections.all[n].label(); some {
		return c.byLabel[label]
	}
	return c.every
}

// split is how rules would divide the classes.
type split struct {
	// kinds are those whose class changes, and to their new classes.
	kinds, to []int32
	// classes, pairs and cells are how many more there would be, most the most tallies of a new class.
	classes, pairs, cells, most int
}

// split finds how rules divide the classes of the kinds that they select, and of the kinds that have them.
func (c *choice) split(u *ruleUnit, class *apportionv1.PodClass, selected []uint32, added []weighedTally) (s split) {
	of := map[uint32]int{}
	for _, a := range added {
		of[a.selection] += a.weight
	}
	for _, n := range selected {
		for _, kind := range c.candidates(n) {
			if c.selections.selects(n, c.relation.kinds[kind].traits) {
				s.mark(c, kind, uint64(n)+1, of[n])
			}
		}
	}
	for _, kind := range u.kinds {
		s.mark(c, kind, 0, len(class.GetAntiAffinities())+talliesOfPort*len(class.GetPorts()))
	}
	slices.Sort(s.kinds)
	to, left := map[string]int32{}, map[int32]int{}
	var key, last []byte
	for _, kind := range s.kinds {
		old, mark := c.classOf[kind], &c.marks[kind]
		s.cells += mark.weight * c.relation.kinds[kind].pods
		key = append(binary.AppendUvarint(key[:0], uint64(old)), mark.rules...)
		var class int32
		if bytes.Equal(key, last) {
			class = s.to[len(s.to)-1]
		} else {
			class = s.class(c, to, key, c.classes[old].tallies+mark.weight)
			last = append(last[:0], key...)
		}
		s.to = append(s.to, class)
		if left[old]++; old != 0 && left[old] == c.classes[old].kinds {
			s.classes, s.pairs = s.classes-1, s.pairs-c.classes[old].tallies
		}
		mark.rules, mark.weight = mark.rules[:0], 0
	}
	return s
}

// class returns the new class of a key.
func (s *split) class(c *choice, to map[string]int32, key []byte, tallies int) int32 {
	class, known := to[string(key)]
	if !known {
		class = int32(len(c.classes))
		to[string(key)], c.classes = class, append(c.classes, chosenClass{tallies: tallies})
		s.classes, s.pairs, s.most = s.classes+1, s.pairs+tallies, max(s.most, tallies)
	}
	return class
}

// mark notes what changes for pods of a kind.
func (s *split) mark(c *choice, kind int32, rule uint64, weight int) {
	m := &c.marks[kind]
	if len(m.rules) == 0 {
		s.kinds = append(s.kinds, kind)
	}
	m.rules, m.weight = binary.AppendUvarint(m.rules, rule), m.weight+weight
}

// warnBeyond warns of rules that are not judged because there are too many, by namespace.
func (r *relation) warnBeyond() {
	count, first := map[string]int{}, []string(nil)
	for _, rules := range r.rules {
		if rules.beyond {
			if count[rules.namespace] == 0 {
				first = append(first, rules.namespace)
			}
			count[rules.namespace]++
		}
	}
	for _, namespace := range first {
		r.Warnings.Add(apportionv1.WarningCode_WARNING_CODE_DROPPED, func() string { return "" },
			"namespace %q has %s on other pods beyond its part of what can be judged: they are named as not judged, and what they keep "+
				"away is not looked at", namespace, wording.Count(count[namespace], "rule"))
	}
}
