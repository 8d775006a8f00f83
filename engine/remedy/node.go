package remedy

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Bounds on the shapes of nodes that are tried, and on how many nodes are added, uncordoned or used besides. Where a setting is tried too,
// fewer nodes of the cluster are.
const (
	maxRemedyShapes = 8
	maxRemedyNodes  = 64
	maxPairNodes    = 16
)

// shape is a set of nodes with equal allocatable amounts that are in the same group, node sets and domains.
type shape struct {
	// like is the first of them by name, of count.
	like  model.NodeID
	count int
	// useful says that a waiting task could use a node of the shape if it were empty and schedulable.
	useful bool
}

// offers reports whether a node could take a task if it were empty, schedulable, and among those that the task may use, and if no other
// task counted to a bound.
func (r *remedier) offers(t model.TaskID, n model.NodeID) bool {
	return (r.PolicyFits(t, n, nil) || r.onlyBounded(t, n)) &&
		resource.Covers(r.base.Nodes[n].Allocatable, r.View().Request(t))
}

// onlyBounded reports whether a bound is the first reason for which the policy keeps a task off a node.
func (r *remedier) onlyBounded(t model.TaskID, n model.NodeID) bool {
	if !r.Bounded(r.View().QueueOf(t)) {
		return false
	}
	var why policy.Reasons
	return !r.Admits(t, n, &why) && why.List[0].Code == policy.AboveNodeGroupLimit
}

// spendOnOffers spends what it costs to ask of so many nodes whether they could take a task of each kind.
func (r *remedier) spendOnOffers(nodes int) error {
	if err := r.View().Work.Spend(nodes*len(r.kinds), r.View().Dims.Len()); err != nil {
		return errSpent
	}
	return nil
}

// everyKindFits reports whether there is a schedulable node for each kind of the waiting tasks that could take one if it were empty.
func (r *remedier) everyKindFits() bool {
	return !slices.ContainsFunc(r.kinds, func(t model.TaskID) bool {
		return !slices.ContainsFunc(r.View().NodeOrder, func(n model.NodeID) bool { return r.Takes(t, n, nil) && r.offers(t, n) })
	})
}

// findShapes lists the shapes. Where nodes hold the job back, those are left out of which no waiting task could use a node. Elsewhere such
// a node may still help, because it adds to what there is, unless no shape at all has room for a task.
func (r *remedier) findShapes() error {
	if r.shapes != nil {
		return nil
	}
	v := r.base
	in := map[model.NodeID][]byte{}
	for set := 1; set < len(v.NodeSets); set++ {
		for _, n := range v.NodeSets[set].Nodes {
			in[n] = binary.AppendUvarint(in[n], uint64(set))
		}
	}
	of, key := map[string]int{}, []byte(nil)
	r.shapes = []shape{}
	for i, n := range v.NodeOrder {
		r.View().Yield(i)
		node := &v.Nodes[n]
		key = binary.BigEndian.AppendUint64(key[:0], uint64(node.Allocatable.Has))
		for _, x := range node.Allocatable.V {
			key = binary.BigEndian.AppendUint64(key, math.Float64bits(x))
		}
		key = append(append(key, node.Group...), 0)
		if node.Labelled {
			key[len(key)-1] = 1
		}
		key = append(r.appendDomains(key, node), in[n]...)
		at, known := of[string(key)]
		if !known {
			at = len(r.shapes)
			of[string(key)] = at
			r.shapes = append(r.shapes, shape{like: n})
		}
		r.shapes[at].count++
	}
	if err := r.spendOnOffers(len(r.shapes)); err != nil {
		return err
	}
	for i := range r.shapes {
		s := &r.shapes[i]
		s.useful = slices.ContainsFunc(r.kinds, func(t model.TaskID) bool {
			set := v.NodeSetOf(t)
			return (set == model.AllNodes || !v.NodeSets[set].Fixed && v.InSet(set, s.like)) && r.offers(t, s.like)
		})
	}
	some := slices.ContainsFunc(r.shapes, func(s shape) bool { return s.useful })
	if r.out.Check == judge.CheckNodes || !some && len(r.kinds) > 0 {
		r.shapes = slices.DeleteFunc(r.shapes, func(s shape) bool { return !s.useful })
	}
	slices.SortStableFunc(r.shapes, func(a, b shape) int {
		if a.useful != b.useful {
			if a.useful {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.count, a.count)
	})
	return nil
}

// appendDomains appends the domains of a node that others may share.
func (r *remedier) appendDomains(key []byte, n *model.Node) []byte {
	if r.base.Pods == nil || n.Pods == nil {
		return append(key, 0)
	}
	for at, d := range n.Pods.Domains {
		if d != 0 && !r.base.Pods.Topologies[at].Node {
			key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(at+1)), uint64(d))
		}
	}
	return append(key, 0)
}

// triedShapes are the shapes that are tried.
func (r *remedier) triedShapes(kind Kind) ([]shape, error) {
	if err := r.findShapes(); err != nil {
		return nil, err
	}
	if len(r.shapes) > maxRemedyShapes {
		r.cut(kind, BoundShapes, maxRemedyShapes, len(r.shapes))
		return r.shapes[:maxRemedyShapes], nil
	}
	return r.shapes, nil
}

// nodesDial adds nodes of a shape. For a gang of more tasks than the bound as many nodes are tried, since each may need one of its own.
func (r *remedier) nodesDial(s shape) dial {
	e := r.edit(edit.NodesLike)
	e.Job, e.Node, e.Given, e.Step = model.None, s.like, true, 1
	return dial{edit: e, most: max(maxRemedyNodes, min(len(r.gang), maxRemedyNodes*maxRemedyNodes))}
}

// moreNodes adds nodes of each shape.
func (r *remedier) moreNodes() error {
	shapes, err := r.triedShapes(MoreNodes)
	if err != nil {
		return err
	}
	if len(shapes) == 0 {
		r.untried(MoreNodes, NoneThere)
		return nil
	}
	for _, s := range shapes {
		d := r.nodesDial(s)
		listed, err := r.list(MoreNodes, []dial{d})
		if err != nil {
			return err
		}
		if listed && r.beside != nil {
			return nil
		}
		if listed || r.beside != nil {
			continue
		}
		grows, err := r.grows(&d)
		if err != nil {
			return err
		}
		if grows {
			r.cut(MoreNodes, BoundAddedNodes, d.most, 0)
		}
	}
	return nil
}

// grows reports whether what holds the job back differs between the most nodes that are tried and half of them, so that still more could
// help.
func (r *remedier) grows(d *dial) (bool, error) {
	most, err := r.standing([]edit.Edit{d.at(d.most)})
	if err != nil {
		return false, err
	}
	half, err := r.standing([]edit.Edit{d.at(d.most / 2)})
	if err != nil {
		return false, err
	}
	return most.check != half.check || !slices.Equal(most.reasons, half.reasons), nil
}

// cordoned lists the nodes that are cordoned.
func (r *remedier) cordoned() []model.NodeID {
	return r.byRoom(func(n model.NodeID) bool {
		u := r.View().Nodes[n].Unschedulable
		return u != nil && u.Cause == model.Cordoned
	})
}

// leftOut lists the schedulable nodes that could take a waiting task if they were empty and among those that the task may use.
func (r *remedier) leftOut() []model.NodeID {
	v := r.View()
	restricted := slices.DeleteFunc(slices.Clone(r.kinds), func(t model.TaskID) bool { return v.NodeSetOf(t) == model.AllNodes })
	if len(restricted) == 0 {
		return nil
	}
	return r.byRoom(func(n model.NodeID) bool {
		return v.Nodes[n].Unschedulable == nil && slices.ContainsFunc(restricted, func(t model.TaskID) bool {
			return edit.Openable(v.Model, v.NodeSetOf(t), n) && r.offers(t, n)
		})
	})
}

// byRoom lists nodes, those first that have most room for what the job needs.
func (r *remedier) byRoom(is func(model.NodeID) bool) []model.NodeID {
	v := r.View()
	var list []model.NodeID
	for i, n := range v.NodeOrder {
		v.Yield(i)
		if is(n) {
			list = append(list, n)
		}
	}
	room := map[model.NodeID]float64{}
	idle := resource.NewAccount(v.Dims.Len())
	for _, n := range list {
		v.Idle(n, &idle)
		least := math.Inf(1)
		for m := r.need.Positive(); m != 0; m = m.Rest() {
			least = min(least, idle.V[m.First()]/r.need.V[m.First()])
		}
		room[n] = least
	}
	slices.SortStableFunc(list, func(a, b model.NodeID) int { return cmp.Compare(room[b], room[a]) })
	return list
}

// uncordoned uncordons as few nodes as suffice.
func (r *remedier) uncordoned() error { return r.fewest(Uncordoned, edit.Uncordon, r.cordoned()) }

// otherNodes lets the waiting tasks use as few nodes besides theirs as suffice.
func (r *remedier) otherNodes() error {
	if err := r.spendOnOffers(len(r.View().NodeOrder)); err != nil {
		return err
	}
	return r.fewest(OtherNodes, edit.AllowedNode, r.leftOut())
}

// fewest edits a field of as few nodes as suffice.
func (r *remedier) fewest(kind Kind, field edit.Kind, list []model.NodeID) error {
	if len(list) == 0 {
		r.untried(kind, NoneThere)
		return nil
	}
	most := maxRemedyNodes
	if r.beside != nil {
		most = maxPairNodes
	}
	if len(list) > most {
		r.cut(kind, BoundNodes, most, len(list))
		list = list[:most]
	}
	dials := r.nodeDials(field, list)
	// Most often few of many are needed: the fewest from the front of the list that suffice.
	short := probe{dial: &dial{}, high: len(dials), stride: 1}
	if runs, err := r.runsWith(r.atMost(dials)); err != nil || !runs {
		return err
	}
	for short.high-short.low > 1 {
		k := short.choose(&standing{})
		runs, err := r.runsWith(r.atMost(dials[len(dials)-k:]))
		if err != nil {
			return err
		}
		short.most = len(dials)
		short.learn(k, runs)
	}
	_, err := r.list(kind, dials[len(dials)-short.high:])
	return err
}

// nodeDials edit a field of each node. Those with least room, which are the last, are turned back first.
func (r *remedier) nodeDials(field edit.Kind, list []model.NodeID) []dial {
	dials := make([]dial, len(list))
	for i, n := range list {
		e := r.edit(field)
		e.Node = n
		if field == edit.Uncordon {
			e.Job = model.None
		}
		dials[len(list)-1-i] = whole(e)
	}
	return dials
}
