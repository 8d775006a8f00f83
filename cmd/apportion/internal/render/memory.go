package render

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/visible"
)

// memory shows what queues used, the weights that follow from it, and up to which amount each is given first what becomes free. It needs
// the derivation of the shares, and prints nothing without a memory.
func (p *Printer) memory(answer *apportionv1.SharesAnswer, plugin *apportionv1.PluginShares) {
	of := lookup.Memory(plugin)
	table := p.NewTable("QUEUE", "RESOURCE", ">USED", ">PART", ">WEIGHT", ">WITH MEMORY", ">FIRST UP TO", ">ALLOCATED", "BUDGET").
		Optional("ALLOCATED", "BUDGET")
	for _, q := range p.inOrder(answer, plugin.GetQueues()) {
		name := p.Names.Queue(q.GetQueue())
		for _, d := range p.shown(nil, q.GetRequest(), q.GetAllocated(), q.GetDeserved(), q.GetWithMemory()) {
			r, known := of[[2]uint32{q.GetQueue(), uint32(d)}]
			budget := p.budget(q.GetQueue(), uint32(d))
			if !known || len(p.Resources) == 0 && !touches(q, d) && budget == "" {
				continue
			}
			table.Row(name, p.Names.Dimensions[d], used(r), percent(r.Part), strconv.FormatUint(r.Weight, 10), significant(r.WithMemory),
				table.cell(p.Names, q.GetWithMemory(), d), table.cell(p.Names, q.GetAllocated(), d), budget)
			name = ""
		}
	}
	if table.Empty() {
		return
	}
	m := p.Snapshot.GetMemory()
	p.Line("")
	since := time.Unix(m.GetEpoch()*m.GetEpochSeconds(), 0).UTC().Format("2006-01-02 15:04")
	p.Wrapped("%s.", text.Say("withMemory", "half", HalfLife(m), "since", since))
	p.table(table)
}

// used says which part of its siblings' usage is the queue's.
func used(r lookup.Remembered) string {
	switch {
	case r.New:
		return "new"
	case !r.Known:
		return "-"
	}
	return percent(r.Used)
}

func percent(part float64) string { return strconv.Itoa(int(math.Round(100*part))) + "%" }

// finePercent writes a part in percent, below 10 with two digits.
func finePercent(part float64) string {
	if x := 100 * part; x > 0 && x < 9.95 {
		return strconv.FormatFloat(x, 'g', 2, 64) + "%"
	}
	return percent(part)
}

// significant writes three digits of a number, or all before the point.
func significant(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// budget says what is left of a queue's budget for a dimension; "" without one.
func (p *Printer) budget(queue, dimension uint32) string {
	if int(queue) >= len(p.Snapshot.GetQueues()) {
		return ""
	}
	b := p.Snapshot.GetQueues()[queue].GetBudget()
	left, stated := lookup.Left(b, dimension)
	if !stated {
		return ""
	}
	kind := "hard"
	if b.GetKind() == apportionv1.BudgetKind_BUDGET_KIND_SOFT {
		kind = "soft"
	}
	if left == 0 {
		return kind + ", nothing left"
	}
	return fmt.Sprintf("%s, %d%% left", kind, int(100*left))
}

// HalfLife writes after which time usage counts half.
func HalfLife(m *apportionv1.Memory) string {
	seconds := int64(m.GetHalfLifeEpochs()) * m.GetEpochSeconds()
	return duration.Format(time.Duration(seconds) * time.Second)
}

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
		for i, d := range o.GetUsage().GetDimensions() {
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
