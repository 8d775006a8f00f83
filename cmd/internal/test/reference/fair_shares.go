package reference

import (
	"math/big"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// rootName is the name of the root, whether or not it is a queue.
const rootName = "root"

// divisions is the answer to `shares`.
func (a *fairAsked) divisions() any {
	named := map[string]bool{}
	for _, name := range a.snapshot.GetDimensions() {
		named[name] = true
	}
	queues, nodes := object{}, object{}
	fair := a.plugin.GetFair()
	for _, division := range fair.GetDivisions() {
		d := division.GetDimension()
		dimension := a.dimension(d)
		if !named[dimension] {
			continue
		}
		unit := fair.GetQuanta()[d]
		if root := division.GetRoot(); root != nil && root.Queue != nil {
			queues[rootName+" "+dimension] = a.portion(root, dimension, unit)
		}
		for _, child := range division.GetChildren() {
			queues[a.queueName(child.GetQueue())+" "+dimension] = a.portion(child, dimension, unit)
		}
		if len(division.GetChildren()) == 0 {
			continue
		}
		name, level := rootName, any(nil)
		if division.Queue != nil {
			name = a.queueName(division.GetQueue())
		}
		if division.GetLevel() != nil {
			level = fraction(division.GetLevel())
		}
		nodes[name+" "+dimension] = object{
			nodeKey: name, "dimension": dimension, "X": times(division.GetAmount(), unit), "R": level,
			"case": []string{"", "a", "b", "c"}[division.GetRule()],
		}
	}
	if a.memory {
		a.steered(queues, nodes)
	}
	refusedQueues, refusedJobs := a.setAside()
	return object{queuesKey: queues, "nodes": nodes, "refusedQueues": refusedQueues, "refusedJobs": refusedJobs}
}

// portion is one queue's numbers. The recording has the weight and the base of the third case, whatever the case is.
func (a *fairAsked) portion(p *apportionv1.FairPortion, dimension string, unit uint64) any {
	bound := strings.TrimPrefix(p.GetBound().String(), "FAIR_BOUND_")
	if p.GetBound() == apportionv1.FairBound_FAIR_BOUND_UNSPECIFIED {
		bound = "ROOT"
	}
	base := p.GetBegin()
	if a.base == apportionv1.FairBase_FAIR_BASE_NONE {
		base = 0
	}
	return object{
		"queue": a.queueName(p.GetQueue()), "dimension": dimension, "bound": bound,
		"lo": times(p.GetGuaranteed(), unit), "m": times(p.GetBegin(), unit), "hi": times(p.GetUseful(), unit),
		"b": times(base, unit), "e": times(p.GetShare(), unit),
		"weight": whole(float64(a.plugin.GetQueues()[p.GetQueue()].GetWeight())),
		"lines":  []any{times(p.GetGuaranteeLine(), unit), times(p.GetFairLine(), unit), times(p.GetShare(), unit)},
	}
}

// times is a product as text.
func times(x, unit uint64) string {
	return new(big.Int).Mul(new(big.Int).SetUint64(x), new(big.Int).SetUint64(unit)).String()
}

// setAside names the queues and jobs that take no part.
func (a *fairAsked) setAside() (queues, jobs object) {
	queues, jobs = object{}, object{}
	for _, reason := range a.plugin.GetHierarchyCauses() {
		if reason.GetHierarchyFault() != apportionv1.HierarchyFault_HIERARCHY_FAULT_JOB_ON_INNER_QUEUE {
			queues[a.queueName(reason.GetQueue())] = refusedText
		}
	}
	for _, j := range a.snapshot.GetJobs() {
		if a.refused[a.queues[j.GetQueue()]] {
			jobs[j.GetUid()] = refusedText
		}
	}
	return queues, jobs
}
