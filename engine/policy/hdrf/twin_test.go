package hdrf_test

import (
	"strconv"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// twin is the tree as Volcano builds it: nested maps, computed anew and by recursion for every question.
type twin struct {
	name      string
	weight    float64
	share     float64
	saturated bool
	held      []float64
	asked     []float64
	leaf      bool
	children  map[string]*twin
	// order lists the children's names as they came.
	order []string
}

// newTwin builds and computes the tree of the amounts that jobs hold; used is their sum.
func newTwin(v *policy.View, held map[model.JobID][]float64, used []float64) *twin {
	root := &twin{name: "root", weight: 1, children: map[string]*twin{}}
	for _, j := range v.Present() {
		at := root
		if h := v.Queues[v.Jobs.At(j).Queue].Hierarchy; h != nil {
			weights := strings.Split(h.Weights, "/")
			for i, part := range strings.Split(h.Path, "/")[1:] {
				child := at.children[part]
				if child == nil {
					weight, err := strconv.ParseFloat(weights[i+1], 64)
					if err != nil || weight < 1 {
						weight = 1
					}
					child = &twin{name: part, weight: weight, children: map[string]*twin{}}
					at.children[part] = child
					at.order = append(at.order, part)
				}
				at = child
			}
		}
		uid := "job " + v.Jobs.At(j).UID
		at.children[uid] = &twin{name: v.Jobs.At(j).UID, weight: 1, leaf: true, held: held[j], asked: v.Account(j).Total.V}
		at.order = append(at.order, uid)
	}
	demanding := make([]bool, v.Dims.Len())
	for d, x := range v.Total.V {
		demanding[d] = x >= 0.1 && used[d] < x
	}
	root.compute(v.Total.V, demanding)
	return root
}

func (n *twin) compute(total []float64, demanding []bool) {
	if n.leaf {
		n.saturated = false
		for d, x := range n.held {
			if x >= 0.1 && n.asked[d] != 0 && (x >= n.asked[d] || !demanding[d]) {
				n.saturated = true
			}
		}
		n.share = dominant(n.held, total)
		return
	}
	least, all := 1.0, len(n.order) > 0
	for _, name := range n.order {
		child := n.children[name]
		child.compute(total, demanding)
		if !child.saturated {
			all = false
			if child.share != 0 && child.share < least {
				least = child.share
			}
		}
	}
	n.held = make([]float64, len(total))
	for _, name := range n.order {
		child := n.children[name]
		if child.share == 0 {
			continue
		}
		factor := 1.0
		if !child.saturated {
			factor = least / child.share
		}
		for d, x := range child.held {
			n.held[d] += float64(x * factor)
		}
	}
	n.share, n.saturated = dominant(n.held, total), all
}

func dominant(held, total []float64) float64 {
	share := 0.0
	for d, x := range total {
		if x >= 0.1 && held[d]/x > share {
			share = held[d] / x
		}
	}
	return share
}

// compare compares two paths.
func (n *twin) compare(l, r string) int {
	left, right := n, n
	lParts, rParts := strings.Split(l, "/")[1:], strings.Split(r, "/")[1:]
	for i := range min(len(lParts), len(rParts)) {
		left, right = left.child(lParts[i]), right.child(rParts[i])
		a, b := left.share/left.weight, right.share/right.weight
		switch {
		case !left.saturated && right.saturated:
			return -1
		case left.saturated && !right.saturated:
			return 1
		case a < b:
			return -1
		case a > b:
			return 1
		}
	}
	return 0
}

func (n *twin) child(part string) *twin {
	if child := n.children[part]; child != nil {
		return child
	}
	return &twin{weight: 1, saturated: true, children: map[string]*twin{}}
}

// reclaimable chooses victims.
func reclaimable(v *policy.View, held map[model.JobID][]float64, claimant model.TaskID, candidates []model.TaskID) []model.TaskID {
	var victims []model.TaskID
	mine := v.Tasks.At(claimant).Job
	forgotten := false
	for _, t := range candidates {
		theirs := v.Tasks.At(t).Job
		trial, used := map[model.JobID][]float64{}, make([]float64, v.Dims.Len())
		for j, row := range held {
			trial[j] = append([]float64(nil), row...)
			for d, x := range row {
				used[d] += x
			}
		}
		forgotten = forgotten || theirs == mine
		for d, x := range v.Request(claimant).V {
			used[d] += x
			if !forgotten {
				trial[mine][d] += x
			}
		}
		for d, x := range v.Request(t).V {
			used[d] -= x
			trial[theirs][d] -= x
		}
		if newTwin(v, trial, used).compare(path(v, mine), path(v, theirs)) < 0 {
			victims = append(victims, t)
		}
	}
	return victims
}

func path(v *policy.View, j model.JobID) string {
	if h := v.Queues[v.Jobs.At(j).Queue].Hierarchy; h != nil {
		return h.Path
	}
	return ""
}
