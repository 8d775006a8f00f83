package nodegroup

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// groupID numbers the groups that nodes or queues name.
type groupID int32

// unlabelled is the group of a node without one; no queue names it.
const unlabelled groupID = -1

// names gives each name of a group its number.
type names map[string]groupID

func (n names) id(name string) groupID {
	id, ok := n[name]
	if !ok {
		id = groupID(len(n))
		n[name] = id
	}
	return id
}

// ruleID is a position in state.rules, or one of the following.
type ruleID int32

const (
	// free: the queue has no affinity and inherits none.
	free ruleID = -1
	// unset: the queue has no affinity but may inherit one.
	unset ruleID = -2
	// visited: the queue is on the way to the ancestor that is being looked for.
	visited ruleID = -3
)

// rule is the affinity that one queue writes.
type rule struct {
	queue model.QueueID
	// terms are those of the named groups, by number.
	terms []term
}

// term is the statement of an affinity about one group.
type term struct {
	group  groupID
	admits bool
	score  float64
}

// find returns the term of a group, or nil.
func (r *rule) find(group groupID) *term {
	low, high := 0, len(r.terms)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if r.terms[middle].group < group {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(r.terms) && r.terms[low].group == group {
		return &r.terms[low]
	}
	return nil
}

func (r *rule) admitsSome() bool {
	return slices.ContainsFunc(r.terms, func(t term) bool { return t.admits })
}

// list is one of the four lists of an affinity.
type list uint8

const (
	required list = 1 << iota
	preferred
	antiRequired
	antiPreferred
)

// mention is one entry of a list.
type mention struct {
	group    groupID
	list     list
	position int
}

// compile returns the terms of all groups that an affinity mentions, by number, and whether it mentions any.
func compile(a *model.NodeAffinity, known names, ordered bool) ([]term, bool) {
	mentions := mentioned(a, known)
	terms := make([]term, 0, len(mentions))
	distinct := 0
	for rest := range byGroup(mentions) {
		if lists(rest)&preferred != 0 {
			distinct++
		}
	}
	if !ordered {
		distinct = 0
	}
	for same := range byGroup(mentions) {
		terms = append(terms, judge(same, distinct))
	}
	return terms, len(terms) > 0
}

// mentioned lists the entries of all lists, those of one group together.
func mentioned(a *model.NodeAffinity, known names) []mention {
	var mentions []mention
	add := func(groups []string, l list) {
		for i, group := range groups {
			mentions = append(mentions, mention{known.id(group), l, i})
		}
	}
	if a.Affinity != nil {
		add(a.Affinity.Required, required)
		add(a.Affinity.Preferred, preferred)
	}
	if a.AntiAffinity != nil {
		add(a.AntiAffinity.Required, antiRequired)
		add(a.AntiAffinity.Preferred, antiPreferred)
	}
	slices.SortStableFunc(mentions, func(l, r mention) int { return cmp.Compare(l.group, r.group) })
	return mentions
}

// byGroup ranges over the mentions of one group after the other.
func byGroup(mentions []mention) func(yield func([]mention) bool) {
	return func(yield func([]mention) bool) {
		for len(mentions) > 0 {
			n := 1
			for n < len(mentions) && mentions[n].group == mentions[0].group {
				n++
			}
			if !yield(mentions[:n]) {
				return
			}
			mentions = mentions[n:]
		}
	}
}

func lists(mentions []mention) list {
	var all list
	for _, m := range mentions {
		all |= m.list
	}
	return all
}

// judge returns the term of a group from all its mentions (Volcano's queueGroupAffinity.predicate and score). Affinity admits, required
// anti-affinity overrides it, and preferred anti-affinity overrides both. With distinct > 0 preferred groups, the one at position i
// scores 50*(distinct-i)/distinct; of several positions the last counts.
func judge(mentions []mention, distinct int) term {
	t := term{group: mentions[0].group}
	all := lists(mentions)
	t.admits = all&(required|preferred) != 0 && all&antiRequired == 0
	if all&required != 0 {
		t.score = 100
	}
	if all&preferred != 0 {
		t.score += preference(mentions, distinct)
	}
	if all&antiPreferred != 0 {
		t.admits, t.score = true, -1
	}
	return t
}

func preference(mentions []mention, distinct int) float64 {
	if distinct == 0 {
		return 50
	}
	last := 0
	for _, m := range mentions {
		if m.list == preferred {
			last = m.position
		}
	}
	return float64(50*float64(distinct-last)) / float64(distinct)
}

// rootName is the queue that is the parent of those that name none.
const rootName = "root"

// inherit replaces every unset rule by the rule of the nearest ancestor that has one, or by free. Each queue is visited once: a walk ends
// at a queue whose rule is known, at root, at a parent that does not exist, or where it would repeat itself.
func inherit(m *model.Model, ruleOf []ruleID) {
	way := make([]model.QueueID, 0, len(ruleOf))
	for q := range ruleOf {
		way = way[:0]
		at := model.QueueID(q)
		for at != model.None && ruleOf[at] == unset {
			ruleOf[at] = visited
			way = append(way, at)
			at = parent(m, at)
		}
		found := free
		if at != model.None && ruleOf[at] != visited {
			found = ruleOf[at]
		}
		for _, passed := range way {
			ruleOf[passed] = found
		}
	}
}

func parent(m *model.Model, q model.QueueID) model.QueueID {
	queue := &m.Queues[q]
	if queue.Name == rootName {
		return model.None
	}
	name := queue.Parent
	if name == "" {
		name = rootName
	}
	if p, ok := m.Queue(name); ok {
		return p
	}
	return model.None
}
