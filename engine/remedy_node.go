package engine

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// Bounds on the shapes of nodes that are tried, and on how many nodes are added or uncordoned.
const (
	maxRemedyShapes = 8
	maxRemedyNodes  = 64
	maxPairShapes   = 3
	maxPairNodes    = 16
)

// shape is what nodes have in common that offer the same and are in the same group and node sets.
type shape struct {
	// like is the first of them by name, of count.
	like  model.NodeID
	count int
}

// findShapes lists the shapes, those first of which there are most.
func (r *remedier) findShapes() {
	if r.shapes != nil {
		return
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
		r.view.Yield(i)
		node := &v.Nodes[n]
		key = binary.BigEndian.AppendUint64(key[:0], uint64(node.Allocatable.Has))
		for _, x := range node.Allocatable.V {
			key = binary.BigEndian.AppendUint64(key, math.Float64bits(x))
		}
		key = append(append(key, node.Group...), 0)
		if node.Labelled {
			key[len(key)-1] = 1
		}
		key = append(key, in[n]...)
		at, known := of[string(key)]
		if !known {
			at = len(r.shapes)
			of[string(key)] = at
			r.shapes = append(r.shapes, shape{like: n})
		}
		r.shapes[at].count++
	}
	slices.SortStableFunc(r.shapes, func(a, b shape) int { return cmp.Compare(b.count, a.count) })
}

// nodesDial adds nodes of a shape.
func (r *remedier) nodesDial(s shape) dial {
	e := r.edit(NodesLike)
	e.Job, e.Node, e.Given, e.Step = model.None, s.like, true, 1
	return dial{edit: e, most: maxRemedyNodes}
}

// moreNodes adds nodes of each shape. For a gang of more tasks than the bound as many nodes are tried, since each may need one of its own.
func (r *remedier) moreNodes() error {
	r.findShapes()
	if len(r.shapes) == 0 {
		r.untried(MoreNodes, NoneThere, 0, 0)
		return nil
	}
	if len(r.shapes) > maxRemedyShapes {
		r.untried(MoreNodes, BeyondBound, maxRemedyShapes, len(r.shapes))
	}
	for _, s := range r.shapes[:min(len(r.shapes), maxRemedyShapes)] {
		d := r.nodesDial(s)
		d.most = max(d.most, min(len(r.gang), maxRemedyNodes*maxRemedyNodes))
		if _, err := r.list(MoreNodes, []dial{d}); err != nil {
			return err
		}
	}
	return nil
}

// cordoned lists the nodes that are cordoned, those first that have most room for what the job needs.
func (r *remedier) cordoned() []model.NodeID {
	v := r.view
	var list []model.NodeID
	for _, n := range v.NodeOrder {
		if u := v.Nodes[n].Unschedulable; u != nil && u.Cause == model.Cordoned {
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
func (r *remedier) uncordoned() error {
	list := r.cordoned()
	if len(list) == 0 {
		r.untried(Uncordoned, NoneThere, 0, 0)
		return nil
	}
	if len(list) > maxRemedyNodes {
		r.untried(Uncordoned, BeyondBound, maxRemedyNodes, len(list))
		list = list[:maxRemedyNodes]
	}
	dials := r.uncordonDials(list)
	// Most often few of many are needed: the fewest from the front of the list that suffice.
	short := probe{dial: &dial{}, high: len(dials), stride: 1}
	if runs, err := r.runsWith(wholes(dials)); err != nil || !runs {
		return err
	}
	for short.high-short.low > 1 {
		k := short.choose(&standing{})
		runs, err := r.runsWith(wholes(dials[len(dials)-k:]))
		if err != nil {
			return err
		}
		short.most = len(dials)
		short.learn(k, runs)
	}
	_, err := r.list(Uncordoned, dials[len(dials)-short.high:])
	return err
}

// uncordonDials uncordon nodes. Those with least room, which are the last, are turned back first.
func (r *remedier) uncordonDials(list []model.NodeID) []dial {
	dials := make([]dial, len(list))
	for i, n := range list {
		e := r.edit(NodeUncordoned)
		e.Job, e.Node = model.None, n
		dials[len(list)-1-i] = whole(e)
	}
	return dials
}

// wholes are the edits of dials that are all turned.
func wholes(dials []dial) []Edit {
	edits := make([]Edit, len(dials))
	for i := range dials {
		edits[i] = dials[i].at(1)
	}
	return edits
}

// queueAndNodes changes a setting of the queues and adds nodes of a shape, or uncordons some, where neither helps alone.
func (r *remedier) queueAndNodes() error {
	settings := []RemedyKind{OpenQueue, HigherCapability, HigherDeserved, HigherGuarantee, HigherWeight}
	if r.found(append(settings, MoreNodes, Uncordoned)...) {
		r.untried(QueueAndNodes, NotNeeded, 0, 0)
		return nil
	}
	tried, sets := false, r.nodeSets()
	for _, kind := range settings {
		var dials []dial
		for _, q := range r.path {
			dials = append(dials, r.settingDials(kind, q)...)
		}
		if len(dials) == 0 {
			continue
		}
		for _, nodes := range sets {
			tried = true
			// Nodes cost more than settings: these are turned back later.
			listed, err := r.list(QueueAndNodes, slices.Concat(nodes, dials))
			if err != nil {
				return err
			}
			if listed {
				break
			}
		}
	}
	if !tried {
		r.untried(QueueAndNodes, NoneThere, 0, 0)
	}
	return nil
}

// nodeSets are the changes of nodes that are tried together with a setting: cordoned ones first, which are there already.
func (r *remedier) nodeSets() [][]dial {
	var sets [][]dial
	if list := r.cordoned(); len(list) > 0 {
		sets = append(sets, r.uncordonDials(list[:min(len(list), maxPairNodes)]))
	}
	r.findShapes()
	for _, s := range r.shapes[:min(len(r.shapes), maxPairShapes)] {
		sets = append(sets, []dial{r.nodesDial(s)})
	}
	return sets
}
