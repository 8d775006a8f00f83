package docs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/engine/model"
)

// A cluster is written one thing a line: `node`, `total`, `queue`, `job`, `role` (of the job above) and `task` (of the job above, or
// `task a1..a3` for several). Settings follow as key=value; resources are written cpu:2,memory:4Gi,pods:1,gpu:1 in cores, bytes,
// whole pods and whole units. semantics.md explains the form to its readers.

type line struct {
	kind, name string
	flags      []string
	set        map[string]string
	path       string
}

func parseLine(text string) line {
	text, _, _ = strings.Cut(text, "#")
	words := strings.Fields(text)
	if len(words) == 0 {
		return line{}
	}
	l := line{kind: words[0], set: map[string]string{}, path: text}
	for _, word := range words[1:] {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case ok:
			l.set[key] = value
		case l.name == "" && !strings.Contains(word, ":"):
			l.name = word
		default:
			l.flags = append(l.flags, word)
		}
	}
	return l
}

// dimensions lists every dimension that a text names, besides cpu and memory.
func dimensions(text string) []string {
	names := []string{"cpu", "memory"}
	seen := map[string]bool{"cpu": true, "memory": true}
	for l := range strings.SplitSeq(text, "\n") {
		l, _, _ = strings.Cut(l, "#")
		for word := range strings.FieldsSeq(l) {
			key, value, ok := strings.Cut(word, "=")
			if !ok {
				value = word
			} else if key == "class" || key == "path" || key == "weights" {
				continue
			}
			if !strings.Contains(value, ":") {
				continue
			}
			for part := range strings.SplitSeq(value, ",") {
				if name, _, ok := strings.Cut(part, ":"); ok && !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
			}
		}
	}
	return names
}

type reader struct {
	b     *model.Builder
	dims  []string
	nodes map[string]model.NodeID
	group bool
}

const asOf = int64(1_000_000 * time.Second)

func compile(text string) (*model.Model, error) {
	r := &reader{b: model.NewBuilder(asOf), dims: dimensions(text), nodes: map[string]model.NodeID{}}
	r.b.Dimensions(r.dims)
	for t := range strings.SplitSeq(text, "\n") {
		if l := parseLine(t); l.kind != "" {
			if err := r.read(l); err != nil {
				return nil, fmt.Errorf("%q: %w", strings.TrimSpace(t), err)
			}
		}
	}
	return r.b.Build()
}

func (r *reader) read(l line) error {
	var err error
	switch l.kind {
	case "total":
		r.b.Total(r.amounts(l.flags[0], &err))
	case "node":
		r.nodes[l.name] = model.NodeID(len(r.nodes))
		group, labelled := l.set["group"]
		spec := model.NodeSpec{Name: l.name, Group: group, Labelled: labelled}
		spec.UsedByOthers = r.optional(l, "others", &err)
		if len(l.flags) > 0 {
			spec.Allocatable = r.amounts(l.flags[0], &err)
		}
		r.b.Node(spec)
	case "queue":
		err = r.readQueue(l)
	case "job":
		err = r.readJob(l)
	case "role":
		spec := model.GroupSpec{Role: l.name}
		if n, ok := l.set["min"]; ok {
			spec.MinAvailable, spec.HasMin = uint32(number(n, &err)), true
		}
		r.b.Group(spec)
		r.group = true
	case "task":
		err = r.readTask(l)
	default:
		err = fmt.Errorf("no kind %q", l.kind)
	}
	return err
}

func (r *reader) readQueue(l line) error {
	var err error
	spec := model.QueueSpec{
		Name: l.name, Parent: l.set["parent"], Weight: 1, Reclaimable: l.set["reclaimable"] != "false",
		Capability: r.optional(l, "capability", &err), Guarantee: r.optional(l, "guarantee", &err), Deserved: r.optional(l, "deserved", &err),
	}
	if w, ok := l.set["weight"]; ok {
		spec.Weight = uint32(number(w, &err))
	}
	spec.Priority = int32(number(l.set["priority"], &err))
	if l.set["state"] == "closed" {
		spec.State = model.Closed
	}
	if path, ok := l.set["path"]; ok {
		spec.Hierarchy = &model.Hierarchy{Path: path, Weights: l.set["weights"]}
	}
	spec.Affinity = affinity(l)
	if limit, ok := l.set["limit"]; ok {
		group, amounts, _ := strings.Cut(limit, ":")
		l.set["limit"] = amounts
		spec.NodeLimits = &model.NodeLimitsSpec{Groups: []model.NodeLimitSpec{{Group: group, Limit: r.optional(l, "limit", &err)}}}
	}
	r.b.Queue(spec)
	return err
}

func affinity(l line) *model.NodeAffinity {
	var a model.NodeAffinity
	some := false
	terms := func(to **model.Terms, key string, list func(*model.Terms) *[]string) {
		value, ok := l.set[key]
		if !ok {
			return
		}
		some = true
		if *to == nil {
			*to = &model.Terms{}
		}
		*list(*to) = strings.Split(value, ",")
	}
	required := func(t *model.Terms) *[]string { return &t.Required }
	preferred := func(t *model.Terms) *[]string { return &t.Preferred }
	terms(&a.Affinity, "requires", required)
	terms(&a.Affinity, "prefers", preferred)
	terms(&a.AntiAffinity, "refuses", required)
	terms(&a.AntiAffinity, "avoids", preferred)
	if l.set["affinity"] == "empty" {
		some = true
	}
	if !some {
		return nil
	}
	return &a
}

func (r *reader) readJob(l line) error {
	var err error
	spec := model.JobSpec{
		Name: l.name, UID: l.name, Namespace: l.set["namespace"], Queue: l.set["queue"], Priority: int32(number(l.set["priority"], &err)),
		MinAvailable: uint32(number(l.set["min"], &err)), MinResources: r.optional(l, "needs", &err),
	}
	phases := map[string]model.Phase{
		"": model.PhasePending, "pending": model.PhasePending, "inqueue": model.PhaseInqueue, "running": model.PhaseRunning,
		"completed": model.PhaseCompleted,
	}
	phase, ok := phases[l.set["phase"]]
	if !ok {
		err = fmt.Errorf("no phase %q", l.set["phase"])
	}
	spec.Phase = phase
	r.b.Job(spec)
	r.group = false
	return err
}

var statuses = map[string]model.Status{
	"pending": model.Pending, "allocated": model.Allocated, "pipelined": model.Pipelined, "binding": model.Binding, "bound": model.Bound,
	"running": model.Running, "releasing": model.Releasing, "succeeded": model.Succeeded, "failed": model.Failed, "unknown": model.Unknown,
}

func (r *reader) readTask(l line) error {
	if !r.group {
		r.b.Group(model.GroupSpec{})
		r.group = true
	}
	names, err := spread(l.name)
	for i, name := range names {
		spec := model.TaskSpec{UID: name, Name: name, Node: model.None, Priority: 1, Index: -1, Preemptable: l.set["preemptable"] != "false"}
		for _, flag := range l.flags {
			if status, ok := statuses[flag]; ok {
				spec.Status = status
			} else {
				spec.Request = r.amounts(flag, &err)
			}
		}
		if node, ok := l.set["node"]; ok {
			spec.Node = r.nodes[node]
		}
		if p, ok := l.set["priority"]; ok {
			spec.Priority = int32(number(p, &err))
		}
		if at, ok := l.set["index"]; ok {
			spec.Index = int32(number(at, &err)) + int32(i)
		}
		if l.set["gate"] == "other" {
			spec.Gate = model.GateOther
		}
		spec.CreateTime = int64(number(l.set["created"], &err))
		spec.Detail = detail(l, &err)
		r.b.Task(&spec)
	}
	return err
}

func detail(l line, err *error) *model.Detail {
	d := model.Detail{PriorityClass: l.set["class"]}
	if ago, ok := l.set["scheduled"]; ok {
		d.ScheduleTime, d.HasScheduleTime = asOf-duration(ago, err), true
	}
	if cooldown, ok := l.set["cooldown"]; ok {
		d.Cooldown, d.HasCooldown = duration(cooldown, err), true
	}
	if d == (model.Detail{}) {
		return nil
	}
	return &d
}

func duration(text string, err *error) int64 {
	d, e := time.ParseDuration(text)
	if e != nil {
		*err = e
	}
	return int64(d)
}

// spread turns a1..a3 into a1, a2, a3.
func spread(name string) ([]string, error) {
	from, to, ok := strings.Cut(name, "..")
	if !ok {
		return []string{name}, nil
	}
	stem := strings.TrimRight(from, "0123456789")
	first, err := strconv.Atoi(strings.TrimPrefix(from, stem))
	if err != nil {
		return nil, err
	}
	last, err := strconv.Atoi(strings.TrimPrefix(to, stem))
	if err != nil {
		return nil, err
	}
	var names []string
	for i := first; i <= last; i++ {
		names = append(names, stem+strconv.Itoa(i))
	}
	return names, nil
}

func (r *reader) optional(l line, key string, err *error) *model.Amounts {
	text, ok := l.set[key]
	if !ok {
		return nil
	}
	return r.amounts(text, err)
}

func (r *reader) amounts(text string, err *error) *model.Amounts {
	a := &model.Amounts{}
	if text == "none" {
		return a
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, ":")
		at := -1
		for i, d := range r.dims {
			if d == name {
				at = i
			}
		}
		if at < 0 {
			*err = fmt.Errorf("no dimension %q", name)
			continue
		}
		a.Dimension = append(a.Dimension, uint32(at))
		a.Amount = append(a.Amount, amount(name, value, err))
	}
	return a
}

// amount is in the units of the contract.
func amount(name, text string, err *error) float64 {
	scale := 1.0
	for suffix, by := range map[string]float64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "m": 1e-3} {
		if before, ok := strings.CutSuffix(text, suffix); ok {
			text, scale = before, by
			break
		}
	}
	return number(text, err) * scale * unit(name)
}

func unit(name string) float64 {
	if name == "memory" || name == "pods" {
		return 1
	}
	return 1000
}

func number(text string, err *error) float64 {
	if text == "" {
		return 0
	}
	x, e := strconv.ParseFloat(text, 64)
	if e != nil {
		*err = e
	}
	return x
}
