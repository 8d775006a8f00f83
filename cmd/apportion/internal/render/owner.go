package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/visible"
)

// ByOwners reports whether a policy serves jobs of equal priority by what their owners used.
func ByOwners(policy *apportionv1.Policy) bool {
	for _, tier := range policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if plugin.GetFair().GetMemory().GetOwners() {
				return true
			}
		}
	}
	return false
}

// owners says by whose usage waiting jobs of a queue are ordered; "" if usage decides nothing there: of each priority the jobs of one owner
// wait, or nothing was used.
func (p *Printer) owners(queue *apportionv1.Queue) string {
	if !p.ByOwners || p.Snapshot.GetMemory() == nil {
		return ""
	}
	waiting, ordered := map[int32]map[string]bool{}, map[string]bool{}
	for i := range p.Snapshot.Tasks {
		task := &p.Snapshot.Tasks[i]
		if task.Node != nil || task.Job.GetQueue() != queue.GetName() {
			continue
		}
		of := waiting[task.Job.GetPriority()]
		if of == nil {
			of = map[string]bool{}
			waiting[task.Job.GetPriority()] = of
		}
		of[task.Job.GetOwner()] = true
	}
	for _, of := range waiting {
		if len(of) > 1 {
			maps.Copy(ordered, of)
		}
	}
	parts := p.parts(queue, ordered)
	if parts == "" {
		return ""
	}
	return fmt.Sprintf("jobs of equal priority in queue %s go by what their owners used and hold, not by age: %s",
		visible.Text(queue.GetName()), parts)
}

// parts says which part of what the owners of a queue used some of them did, of one resource: a device, if some was used.
func (p *Printer) parts(queue *apportionv1.Queue, ordered map[string]bool) string {
	total := map[uint32]float64{}
	for _, o := range queue.GetOwners() {
		for i, d := range o.GetUsage().GetDimension() {
			total[d] += float64(o.GetUsage().GetQuantumSeconds()[i])
		}
	}
	shown, found := uint32(0), false
	for _, d := range slices.Sorted(maps.Keys(total)) {
		device := strings.Contains(p.Names.Dimension(d), "/")
		if total[d] > 0 && (!found || device && !strings.Contains(p.Names.Dimension(shown), "/")) {
			shown, found = d, true
		}
	}
	if !found || len(ordered) == 0 {
		return ""
	}
	used := map[string]float64{}
	for _, o := range queue.GetOwners() {
		amount, _ := lookup.Used(o.GetUsage(), shown)
		used[o.GetOwner()] = float64(amount) / total[shown]
	}
	names := slices.SortedFunc(maps.Keys(ordered), func(a, b string) int {
		return cmp.Or(cmp.Compare(used[a], used[b]), cmp.Compare(a, b))
	})
	const most = 6
	var list []string
	for _, name := range names[:min(most, len(names))] {
		list = append(list, fmt.Sprintf("%s used %s", cmp.Or(visible.Text(name), "who names no owner"), percent(used[name])))
	}
	if more := len(names) - most; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ") + " of its " + p.Names.Dimension(shown)
}
