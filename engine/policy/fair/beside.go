package fair

import "github.com/apportion/apportion/engine/model"

// left and leftOn return the future room of the cluster and of a node, beside a reservation, less the amounts that the claimant has taken.
func (t *trial) left(d int) int64 {
	left := t.s.future(d) + t.released[d]
	if t.beside != nil {
		left = min(left, t.beside.left[d]+t.later[d])
	}
	return left - t.placed[d]
}

func (t *trial) leftOn(n model.NodeID, d int) int64 {
	at := int(n)*t.s.width + d
	left := t.s.futureOn(n, d) + t.releasedNodes[at]
	if t.beside == nil {
		return left - t.placedNodes[at]
	}
	if spare := t.s.spareOn(t.beside, n); spare != nil {
		then := spare[d]
		if later := t.laterNodes[n]; later != nil {
			then += later[d]
		}
		left = min(left, then)
	}
	return left - t.placedNodes[at]
}

// releaseLater adds n times a victim to what a reservation has at its begin without it.
func (t *trial) releaseLater(v model.TaskID, r *request, n int64) {
	addTimes(t.later, r, n)
	node := t.s.v.NodeOf(v)
	if t.s.spareOn(t.beside, node) == nil {
		return
	}
	if t.laterNodes[node] == nil {
		t.laterNodes[node] = make([]int64, t.s.width)
	}
	addTimes(t.laterNodes[node], r, n)
}
