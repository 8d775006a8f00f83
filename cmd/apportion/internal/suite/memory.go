package suite

import (
	"math"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// memory adds to each queue, by resource, what past usage makes of its weight, if the shares are derived, and what is left of its budget:
// used, part and budgetLeft in percent, and weightWithMemory.
func (t *teller) memory(queues *Fact, plugin *apportionv1.PluginShares) {
	of := lookup.Memory(plugin)
	for _, q := range plugin.GetQueues() {
		to, index := queues.group(t.names.Queue(q.GetQueue())), q.GetQueue()
		for d, name := range t.names.Dimensions {
			if r, known := of[[2]uint32{index, uint32(d)}]; known {
				if r.Known {
					to.group("used").add(name, percent(r.Used))
				}
				to.group("part").add(name, percent(r.Part))
				to.group("weightWithMemory").add(name, r.WithMemory)
			}
			if int(index) >= len(t.snapshot.GetQueues()) {
				continue
			}
			if left, stated := lookup.Left(t.snapshot.GetQueues()[index].GetBudget(), uint32(d)); stated {
				to.group("budgetLeft").add(name, percent(left))
			}
		}
	}
}

// percent rounds to a tenth.
func percent(part float64) float64 { return math.Round(1000*part) / 10 }
