package volcano

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// selections numbers the selections of pods that rules name, and finds those in which a pod is.
type selections struct {
	byKey map[string]uint32
	all   []podSelection
	// byLabel are positions in all by a label that the pods of a selection must have; anyLabel those that ask for none.
	byLabel  map[labelOf][]uint32
	anyLabel []uint32
	// costs is what it takes to hold a pod against each.
	costs []int
	// spaces are the labels of namespaces, nil if no Namespace was read.
	spaces map[string]labelList
	// left is how often a pod may still be held against a selection.
	left int
}

// labelOf is a label with its value.
type labelOf struct{ name, value string }

// podSelection selects the pods that match all its terms.
type podSelection []*podTerm

func newSelections(spaces []namespace) *selections {
	s := &selections{byKey: map[string]uint32{}, byLabel: map[labelOf][]uint32{}, left: matches}
	for _, n := range spaces {
		if s.spaces == nil {
			s.spaces = map[string]labelList{}
		}
		s.spaces[n.name] = n.labels
	}
	return s
}

// known reports whether the namespaces of a term are known.
func (s *selections) known(t *podTerm) bool {
	return t.inNamespaces == nil || t.inNamespaces.Empty() || s.spaces != nil
}

// number returns the number of a selection.
func (s *selections) number(terms podSelection) uint32 {
	var key []string
	for _, t := range terms {
		spaces := "-"
		if t.inNamespaces != nil {
			spaces = strconv.Quote(t.inNamespaces.String())
		}
		// The selector that selects nothing has the same text as the one that selects everything.
		_, selectable := t.selector.Requirements()
		key = append(key, strings.Join(t.namespaces, ",")+"|"+spaces+"|"+strconv.FormatBool(selectable)+"|"+t.selector.String())
	}
	slices.Sort(key)
	text := strings.Join(slices.Compact(key), "&")
	n, found := s.byKey[text]
	if found {
		return n
	}
	n = uint32(len(s.all))
	s.byKey[text], s.all, s.costs = n, append(s.all, terms), append(s.costs, terms.cost())
	if label, some := terms.label(); some {
		s.byLabel[label] = append(s.byLabel[label], n)
	} else {
		s.anyLabel = append(s.anyLabel, n)
	}
	return n
}

// label is a label that all pods of a selection have; false if there is none.
func (s podSelection) label() (labelOf, bool) {
	for _, t := range s {
		requirements, _ := t.selector.Requirements()
		for i := range requirements {
			if value, some := t.selector.RequiresExactMatch(requirements[i].Key()); some {
				return labelOf{requirements[i].Key(), value}, true
			}
		}
	}
	return labelOf{}, false
}

// cost is what it takes to hold a pod against a selection. Eight expressions cost about as much as a term.
func (s podSelection) cost() int {
	const atOnce = 8
	cost := 0
	for _, t := range s {
		requirements, _ := t.selector.Requirements()
		cost += 1 + len(requirements)/atOnce
	}
	return cost
}

// of returns the selections in which a pod is, ascending; false if that takes too long.
func (s *selections) of(t *traits) (list []uint32, _ bool) {
	try := func(candidates []uint32) {
		for _, n := range candidates {
			if s.left -= s.costs[n]; s.left < 0 {
				return
			}
			if s.selects(n, t) {
				list = append(list, n)
			}
		}
	}
	for i := 0; i < len(t.labels); i += 2 {
		try(s.byLabel[labelOf{t.labels[i], t.labels[i+1]}])
	}
	try(s.anyLabel)
	slices.Sort(list)
	return slices.Compact(list), s.left >= 0
}

// selects reports whether a pod is in a selection.
func (s *selections) selects(n uint32, t *traits) bool {
	return !slices.ContainsFunc(s.all[n], func(term *podTerm) bool { return !s.matches(term, t) })
}

// matches reports whether a term selects a pod.
func (s *selections) matches(term *podTerm, t *traits) bool {
	_, inList := slices.BinarySearch(term.namespaces, t.namespace)
	if !inList && (term.inNamespaces == nil || !term.inNamespaces.Matches(s.spaces[t.namespace])) {
		return false
	}
	return term.selector.Matches(t.labels)
}

var _ labels.Labels = labelList{}

// podTally is what the engine counts for a rule: pods of a selection by domain. Of two rules with the same one it counts once.
type podTally struct {
	spread              bool
	selection, topology uint32
	// nodes tells apart which nodes a spread counts.
	nodes string
}

// weighedTally is a tally with how many of the engine's tallies it stands for.
type weighedTally struct {
	podTally

	weight int
}

// podTallies counts the tallies that concern the pods of each selection.
type podTallies struct {
	seen map[podTally]bool
	of   map[uint32]int
}

const (
	// maxPodTallies bounds the tallies that concern a class, and maxPodPairs those of all classes, as the engine does.
	maxPodTallies, maxPodPairs = 4096, 1 << 22
	// An anti-affinity is counted twice: by the pods that it keeps away, and by those that have it.
	talliesOfAnti = 2
)

// each calls f for the tallies of the rules of a class, with how many tallies of their selection's pods each is.
func (t *podTallies) each(c *apportionv1.PodClass, f func(key podTally, weight int)) {
	for _, topology := range c.GetAffinityTopologies() {
		f(podTally{selection: c.GetAffinitySelection(), topology: topology}, 1)
	}
	for _, a := range c.GetAntiAffinities() {
		f(podTally{selection: a.GetSelection(), topology: a.GetTopology(), nodes: "kept away"}, talliesOfAnti)
	}
	for _, s := range c.GetSpreads() {
		f(podTally{true, s.GetSelection(), s.GetTopology(), filterOf(c, s)}, 1)
	}
}

// addClass notes the rules of a class, and returns the tallies that were not there.
func (t *podTallies) addClass(c *apportionv1.PodClass) (added []weighedTally) {
	t.each(c, func(key podTally, weight int) {
		if !t.seen[key] {
			t.seen[key] = true
			t.of[key.selection] += weight
			added = append(added, weighedTally{key, weight})
		}
	})
	return added
}

// remove takes back what addClass did.
func (t *podTallies) remove(added []weighedTally) {
	for _, a := range added {
		delete(t.seen, a.podTally)
		t.of[a.selection] -= a.weight
	}
}

// filterOf tells apart the nodes that spreads count: those of a set, in domains of the topologies of all spreads of the class.
func filterOf(c *apportionv1.PodClass, s *apportionv1.PodSpread) string {
	var topologies []uint32
	for _, other := range c.GetSpreads() {
		topologies = append(topologies, other.GetTopology())
	}
	slices.Sort(topologies)
	return fmt.Sprint(s.GetNodeSet(), slices.Compact(topologies))
}

// concern returns how many tallies concern a class, or a few more.
func (t *podTallies) concern(c *apportionv1.PodClass) int {
	n := len(c.GetAntiAffinities()) + talliesOfPort*len(c.GetPorts())
	for _, s := range c.GetSelections() {
		n += t.of[s]
	}
	return n
}

// talliesOfPort is in how many tallies a port counts at most.
const talliesOfPort = 2
