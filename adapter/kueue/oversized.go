package kueue

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// account is a flavor-resource, of which each queue and cohort of a tree has an account.
type account struct{ flavor, resource string }

// member is an object of a tree of cohorts: a cohort, a queue or a workload. Cohorts that are only named are members without a key.
type member struct {
	kind, namespace, key string
	parent               int
	quotas               []*apportionv1.Quota
	names                []string
	// accounts are those that the object adds to its tree.
	accounts map[account]bool
}

func (m *member) identity() objects.Identity {
	return objects.Identity{Kind: m.kind, Namespace: m.namespace, Name: m.key}
}

// leaveOversized leaves out the objects that the policy judges alone, but not together with the others: what is nested too deeply, and of a
// tree with too many accounts the objects that name most of them.
func (r *reader) leaveOversized() {
	r.leaveNames()
	members := r.members()
	levels := levelsOf(members)
	for i := range members {
		if m := &members[i]; levels[i] > kueue.MaxDepth && m.key != "" {
			r.leave(m.identity(), "it is at level %d of cohorts, at most %d are judged", levels[i], kueue.MaxDepth)
		}
	}
	r.leaveWide()
}

func levelsOf(members []member) []int {
	return decode.Levels(len(members), func(i int) (int, bool) { return members[i].parent, members[i].parent >= 0 })
}

// members returns the queues and cohorts, each with its parent.
func (r *reader) members() []member {
	cohorts, queues := byName(r.cohorts), byName(r.queues)
	out := make([]member, 0, len(cohorts)+len(queues))
	index := make(map[string]int, len(cohorts))
	for i, c := range cohorts {
		index[c.message.GetName()] = i
		out = append(out, member{kind: cohortKind, key: c.message.GetName(), quotas: c.message.GetKueue().GetQuotas(), names: c.names})
	}
	for _, q := range queues {
		out = append(out, member{kind: queueKind, key: q.message.GetName(), quotas: q.message.GetKueue().GetQuotas(), names: q.names})
	}
	parent := func(i int, name string) {
		out[i].parent = -1
		if name == "" {
			return
		}
		at, ok := index[name]
		if !ok {
			at = len(out)
			index[name] = at
			out = append(out, member{parent: -1})
		}
		out[i].parent = at
	}
	for i, c := range cohorts {
		parent(i, c.message.GetParent())
	}
	for i, q := range queues {
		parent(len(cohorts)+i, q.message.GetParent())
	}
	return out
}

// leaveWide leaves out objects until the accounts of all trees are no more than the policy takes.
func (r *reader) leaveWide() {
	members := r.members()
	trees := treesOf(members)
	if r.few(members, trees) {
		return
	}
	members = r.listAccounts(members, trees)
	total := 0
	for _, t := range trees {
		total += t.size()
	}
	for total > kueue.MaxAccounts {
		largest := slices.MaxFunc(trees, func(a, b *accountTree) int { return cmp.Compare(a.size(), b.size()) })
		all := total
		total -= largest.size()
		m := &members[largest.withoutWidest(members)]
		total += largest.size()
		r.leave(m.identity(), "it names %d of %d accounts of flavor-resources of all queues and cohorts, at most %d are judged",
			len(m.accounts), all, kueue.MaxAccounts)
	}
}

// few reports whether the accounts are no more than the policy takes even if no two objects name the same ones.
func (r *reader) few(members []member, trees []*accountTree) bool {
	used := map[string]int{}
	for _, w := range r.workloads {
		used[w.admitted] += w.uses(nil)
	}
	total := 0
	for _, t := range trees {
		named := 0
		for _, i := range t.members {
			m := &members[i]
			named += products(m.quotas)
			if m.kind == queueKind {
				named += used[m.key]
			}
		}
		total += t.nodes * named
	}
	return total <= kueue.MaxAccounts
}

// products returns the number of flavor-resources of quotas.
func products(quotas []*apportionv1.Quota) int {
	n := 0
	for _, q := range quotas {
		n += len(q.GetNominal().GetDimensions())
	}
	return n
}

// accountTree is a tree of cohorts and queues, or a queue without a cohort.
type accountTree struct {
	// nodes is the number of queues and cohorts.
	nodes int
	// members are the objects, from listAccounts on by falling number of accounts.
	members []int
	// named counts the objects that name an account.
	named map[account]int
}

// size is the number of accounts.
func (t *accountTree) size() int { return t.nodes * len(t.named) }

// treesOf returns the trees in the order of their first members. What is in a circle, or below one, belongs to none.
func treesOf(members []member) []*accountTree {
	var trees []*accountTree
	byRoot := map[int]*accountTree{}
	levels := levelsOf(members)
	for i := range members {
		if levels[i] < 0 {
			continue
		}
		root := i
		for members[root].parent >= 0 {
			root = members[root].parent
		}
		t := byRoot[root]
		if t == nil {
			t = &accountTree{named: map[account]int{}}
			byRoot[root], trees = t, append(trees, t)
		}
		t.nodes++
		if members[i].key != "" {
			t.members = append(t.members, i)
		}
	}
	return trees
}

// listAccounts lists what each object of the trees names. What a workload uses that its queue does not name counts for the workload.
func (r *reader) listAccounts(members []member, trees []*accountTree) []member {
	treeOf, queueAt := map[string]*accountTree{}, map[string]int{}
	for _, t := range trees {
		for _, i := range t.members {
			m := &members[i]
			if m.list(); m.kind == queueKind {
				treeOf[m.key], queueAt[m.key] = t, i
			}
		}
	}
	for _, key := range sortedKeys(r.workloads) {
		w := r.workloads[key]
		if t := treeOf[w.admitted]; t != nil {
			if used := unnamed(w, members[queueAt[w.admitted]].accounts); len(used) > 0 {
				t.members = append(t.members, len(members))
				members = append(members, member{
					kind: workloadKind, namespace: w.message.GetNamespace(), key: w.message.GetName(), accounts: used,
				})
			}
		}
	}
	for _, t := range trees {
		for _, i := range t.members {
			for a := range members[i].accounts {
				t.named[a]++
			}
		}
		slices.SortStableFunc(t.members, func(a, b int) int { return cmp.Compare(len(members[b].accounts), len(members[a].accounts)) })
	}
	return members
}

// uses calls each for the accounts that a workload uses, and returns their number.
func (w *workload) uses(each func(account)) (n int) {
	if !w.message.GetKueue().GetAdmitted() {
		return 0
	}
	for _, set := range w.message.GetKueue().GetPodSets() {
		for _, u := range set.GetUses() {
			for _, list := range [][]uint32{u.GetUsed().GetDimensions(), u.GetUnusedDimensions()} {
				n += len(list)
				for k := 0; each != nil && k < len(list); k++ {
					each(account{u.GetNodeSet(), w.names[list[k]]})
				}
			}
		}
	}
	return n
}

// unnamed returns the accounts that a workload uses and its queue does not name.
func unnamed(w *workload, named map[account]bool) map[account]bool {
	var out map[account]bool
	w.uses(func(a account) {
		if !named[a] {
			if out == nil {
				out = map[account]bool{}
			}
			out[a] = true
		}
	})
	return out
}

// list adds what the quotas name.
func (m *member) list() {
	m.accounts = map[account]bool{}
	for _, q := range m.quotas {
		for _, d := range q.GetNominal().GetDimensions() {
			m.accounts[account{q.GetNodeSet(), m.names[d]}] = true
		}
	}
}

// withoutWidest removes the object with most accounts from the tree, and returns its index. A cohort stays a node, which its members name.
func (t *accountTree) withoutWidest(members []member) int {
	at := t.members[0]
	t.members = t.members[1:]
	for a := range members[at].accounts {
		if t.named[a]--; t.named[a] == 0 {
			delete(t.named, a)
		}
	}
	if members[at].kind == queueKind {
		t.nodes--
	}
	return at
}
