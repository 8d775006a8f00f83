package lookup

import (
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Remembered is what past usage of one dimension makes of a queue's weight.
type Remembered struct {
	// Used is the queue's part of what it and its siblings used, Part its part by weight, both from 0 to 1.
	Used, Part float64
	// Weight is the queue's weight, WithMemory the weight that follows from usage, and PartWithMemory the part of it of all its siblings'.
	Weight                     uint64
	WithMemory, PartWithMemory float64
	// New: the usage is not known, and counts as the average of the siblings. Known: it is known, and some sibling used something.
	New, Known bool
}

// Memory returns what past usage makes of the weights of each queue and dimension, by their indices. It needs the derivation of the shares,
// and is empty without a memory.
func Memory(plugin *apportionv1.PluginShares) map[[2]uint32]Remembered {
	const one = 1 << 16
	out := map[[2]uint32]Remembered{}
	for _, division := range plugin.GetFair().GetWeights() {
		all, some := new(big.Rat).SetString(division.GetUsage())
		some = some && all.Sign() > 0
		effective := 0.0
		for _, child := range division.GetChildren() {
			effective += float64(child.GetEffectiveWeight())
		}
		for _, child := range division.GetChildren() {
			if child.Queue == nil {
				continue
			}
			r := Remembered{Weight: child.GetWeight(), WithMemory: float64(child.GetEffectiveWeight()) / one, New: child.GetIsNew()}
			if division.GetWeightAll() > 0 {
				r.Part = float64(child.GetWeight()) / float64(division.GetWeightAll())
			}
			if effective > 0 {
				r.PartWithMemory = float64(child.GetEffectiveWeight()) / effective
			}
			if own, ok := new(big.Rat).SetString(child.GetUsage()); ok && some {
				r.Used, _ = own.Quo(own, all).Float64()
				r.Known = true
			}
			out[[2]uint32{child.GetQueue(), division.GetDimension()}] = r
		}
	}
	return out
}

// Left returns which part of a budget's amount of a dimension is left, from 0 to 1; stated is false if the budget does not limit the
// dimension.
func Left(b *apportionv1.Budget, dimension uint32) (left float64, stated bool) {
	amount, stated := Used(b.GetAmount(), dimension)
	spent, _ := Used(b.GetSpent(), dimension)
	if amount <= 0 || spent >= amount {
		return 0, stated
	}
	return float64(amount-spent) / float64(amount), stated
}

// Used returns the quantum-seconds of a dimension; stated is false if there is no entry.
func Used(u *apportionv1.Usage, dimension uint32) (amount int64, stated bool) {
	at := slices.Index(u.GetDimensions(), dimension)
	if at < 0 || at >= len(u.GetQuantumSeconds()) {
		return 0, false
	}
	return u.GetQuantumSeconds()[at], true
}
