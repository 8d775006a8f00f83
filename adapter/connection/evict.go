package connection

import (
	"slices"

	"github.com/apportion/apportion/engine/cycle"
)

// EvictAll is the default of the setting `evict`: plans may evict tasks of the same queue and of others.
const EvictAll = "all"

// Evict returns what is wrong with a value of the setting `evict`, "" if nothing is.
func Evict(value string) string {
	return OneOf("evict", value, EvictAll, string(cycle.Reclaim), string(cycle.Preempt), "none")
}

// Actions returns the actions of a cycle by a value of the setting `evict`: that which it names, or all that evict, beside those that do
// not.
func Actions(evict string) cycle.Actions {
	return slices.DeleteFunc(cycle.All(), func(a cycle.Action) bool {
		return (a == cycle.Preempt || a == cycle.Reclaim) && evict != EvictAll && evict != string(a)
	})
}
