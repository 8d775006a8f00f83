package certificate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// weighing says how the weights with memory of the children of a queue follow from usage.
type weighing struct {
	Queue                                        json.Number
	Dimension                                    int
	Reference, Usage, Nominal, Weight, WeightAll number
	Children                                     []weighed
}

type weighed struct {
	Queue                                                json.Number
	Weight, Usage, Factor, BudgetFactor, EffectiveWeight number
	IsNew                                                bool
}

var one = big.NewInt(1 << 16)

// memory checks the division with memory like the others, that it has their bounds and the weights that are stated, and that these follow
// from the usage and the factors beside them. What usage the snapshot states, and the settings by which factors follow, it does not know.
func (c *check) memory(list []division, weights []weighing, given, sated map[string]*portion) {
	if len(list)+len(weights) == 0 {
		return
	}
	remembered := c.all("rememberedDivisions", list, nil)
	for _, at := range slices.Sorted(maps.Keys(remembered)) {
		c.path = "rememberedDivisions, " + at
		mine, its := remembered[at], cmp.Or(given[at], &portion{})
		c.expect("bounds", fmt.Sprint(&mine.Guaranteed, &mine.Begin, &mine.Useful), fmt.Sprint(&its.Guaranteed, &its.Begin, &its.Useful))
		c.lines(mine, its, cmp.Or(sated[at], its))
	}
	effective, nominal := map[string]*big.Int{}, map[string]*big.Int{}
	for i := range weights {
		w := &weights[i]
		c.path = fmt.Sprintf("weights[%d]", i)
		c.weigh(w, effective, nominal)
	}
	for i := range list {
		d := &list[i]
		for k := range d.Children {
			p := &d.Children[k]
			c.path = fmt.Sprintf("rememberedDivisions[%d].children[%d]", i, k)
			if want, ok := effective[d.at(p.Queue)]; ok && d.Rule == "FAIR_CASE_WEIGHT" {
				c.expect("weight", &p.Weight, want)
			} else if !ok {
				c.expect("its weight", "missing", "stated in weights")
			}
		}
	}
}

// weigh checks the sums, the reference and the weights of the children of one queue.
func (c *check) weigh(w *weighing, effective, nominal map[string]*big.Int) {
	at := func(queue json.Number) string { return (&division{Dimension: w.Dimension}).at(queue) }
	usage, weight, all := new(big.Int), new(big.Int), new(big.Int)
	for i := range w.Children {
		k := &w.Children[i]
		all.Add(all, &k.Weight.Int)
		if !k.IsNew && k.Weight.Sign() > 0 {
			usage.Add(usage, &k.Usage.Int)
			weight.Add(weight, &k.Weight.Int)
		}
	}
	c.expect("usage", &w.Usage, usage)
	c.expect("weight", &w.Weight, weight)
	c.expect("weightAll", &w.WeightAll, all)
	if known, ok := nominal[at(w.Queue)]; ok {
		c.expect("nominal", &w.Nominal, known)
	}
	reference := new(big.Int)
	if weight.Sign() > 0 {
		reference.Mul(&w.Nominal.Int, weight)
		reference = maxOf(usage, reference.Quo(reference, all))
	}
	c.expect("reference", &w.Reference, reference)
	for i := range w.Children {
		k := &w.Children[i]
		product := new(big.Int)
		if k.Weight.Sign() > 0 {
			product.Mul(&k.Weight.Int, &k.Factor.Int).Mul(product, &k.BudgetFactor.Int).Quo(product, one)
			product = maxOf(big.NewInt(1), product)
			part := new(big.Int).Mul(&w.Nominal.Int, &k.Weight.Int)
			nominal[at(k.Queue)] = part.Quo(part, all)
		} else {
			nominal[at(k.Queue)] = new(big.Int)
		}
		c.expect(fmt.Sprintf("children[%d].effectiveWeight", i), &k.EffectiveWeight, product)
		effective[at(k.Queue)] = product
	}
}
