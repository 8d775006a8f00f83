// Package notation reads the clusters of docs/semantics.md, which are written one thing a line: `node`, `total`, `queue`, `job`, `role` (of
// the job above) and `task` (of the job above, or `task a1..a3` for several). Settings follow as key=value; resources are written
// cpu:2,memory:4Gi,pods:1,gpu:1 in cores, bytes, whole pods and whole units. The document explains the form to its readers.
package notation

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/engine/model"
)

// Line is a line of a cluster: what it is about, its name, the words without a key, and the settings.
type Line struct {
	Kind, Name string
	Flags      []string
	Set        map[string]string
}

// ParseLine reads a line, of which a comment is no part. Without a Kind it is empty.
func ParseLine(text string) Line {
	text, _, _ = strings.Cut(text, "#")
	words := strings.Fields(text)
	if len(words) == 0 {
		return Line{}
	}
	l := Line{Kind: words[0], Set: map[string]string{}}
	for _, word := range words[1:] {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case ok:
			l.Set[key] = value
		case l.Name == "" && !strings.Contains(word, ":"):
			l.Name = word
		default:
			l.Flags = append(l.Flags, word)
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

// Reader reads the lines of a cluster.
type Reader struct {
	b     *model.Builder
	dims  []string
	nodes map[string]model.NodeID
	group bool
}

// NewReader returns a reader that adds to a builder with these dimensions.
func NewReader(b *model.Builder, dims []string) *Reader { return &Reader{b: b, dims: dims} }

// asOf is the time of every cluster, in nanoseconds.
const asOf = int64(1_000_000 * time.Second)

// Compile returns the model of a cluster.
func Compile(text string) (*model.Model, error) {
	r := &Reader{b: model.NewBuilder(asOf), dims: dimensions(text), nodes: map[string]model.NodeID{}}
	r.b.Dimensions(r.dims)
	for t := range strings.SplitSeq(text, "\n") {
		if l := ParseLine(t); l.Kind != "" {
			if err := r.read(l); err != nil {
				return nil, fmt.Errorf("%q: %w", strings.TrimSpace(t), err)
			}
		}
	}
	return r.b.Build()
}

func (r *Reader) read(l Line) error {
	var err error
	switch l.Kind {
	case "total":
		r.b.Total(r.Amounts(l.Flags[0], &err))
	case "node":
		r.nodes[l.Name] = model.NodeID(len(r.nodes))
		group, labelled := l.Set["group"]
		spec := model.NodeSpec{Name: l.Name, Group: group, Labelled: labelled}
		spec.UsedByOthers = r.Optional(l, "others", &err)
		if len(l.Flags) > 0 {
			spec.Allocatable = r.Amounts(l.Flags[0], &err)
		}
		r.b.Node(spec)
	case "queue":
		err = r.readQueue(l)
	case "job":
		err = r.readJob(l)
	case "role":
		spec := model.GroupSpec{Role: l.Name}
		if n, ok := l.Set["min"]; ok {
			spec.MinAvailable, spec.HasMin = uint32(number(n, &err)), true
		}
		r.b.Group(spec)
		r.group = true
	case "task":
		err = r.readTask(l)
	default:
		err = fmt.Errorf("no kind %q", l.Kind)
	}
	return err
}

func (r *Reader) readQueue(l Line) error {
	var err error
	spec := model.QueueSpec{
		Name: l.Name, Parent: l.Set["parent"], Weight: 1, Reclaimable: l.Set["reclaimable"] != "false",
		Capability: r.Optional(l, "capability", &err), Guarantee: r.Optional(l, "guarantee", &err),
		Deserved: r.Optional(l, "deserved", &err),
	}
	if w, ok := l.Set["weight"]; ok {
		spec.Weight = uint32(number(w, &err))
	}
	spec.Priority = int32(number(l.Set["priority"], &err))
	if l.Set["state"] == "closed" {
		spec.State = model.Closed
	}
	if path, ok := l.Set["path"]; ok {
		spec.Hierarchy = &model.Hierarchy{Path: path, Weights: l.Set["weights"]}
	}
	spec.Affinity = affinity(l)
	if limit, ok := l.Set["limit"]; ok {
		group, amounts, _ := strings.Cut(limit, ":")
		l.Set["limit"] = amounts
		spec.NodeLimits = &model.NodeLimitsSpec{Groups: []model.NodeLimitSpec{{Group: group, Limit: r.Optional(l, "limit", &err)}}}
	}
	r.b.Queue(spec)
	return err
}

func affinity(l Line) *model.NodeAffinity {
	var a model.NodeAffinity
	some := false
	terms := func(to **model.Terms, key string, list func(*model.Terms) *[]string) {
		value, ok := l.Set[key]
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
	if l.Set["affinity"] == "empty" {
		some = true
	}
	if !some {
		return nil
	}
	return &a
}

func (r *Reader) readJob(l Line) error {
	var err error
	spec := model.JobSpec{
		Name: l.Name, UID: l.Name, Namespace: l.Set["namespace"], Queue: l.Set["queue"], Priority: int32(number(l.Set["priority"], &err)),
		MinAvailable: uint32(number(l.Set["min"], &err)), MinResources: r.Optional(l, "needs", &err),
	}
	phases := map[string]model.Phase{
		"": model.PhasePending, "pending": model.PhasePending, "inqueue": model.PhaseInqueue, "running": model.PhaseRunning,
		"completed": model.PhaseCompleted,
	}
	phase, ok := phases[l.Set["phase"]]
	if !ok {
		err = fmt.Errorf("no phase %q", l.Set["phase"])
	}
	spec.Phase = phase
	r.b.Job(spec)
	r.group = false
	return err
}

// Statuses are those of tasks by name.
var Statuses = map[string]model.Status{
	"pending": model.Pending, "allocated": model.Allocated, "pipelined": model.Pipelined, "binding": model.Binding, "bound": model.Bound,
	"running": model.Running, "releasing": model.Releasing, "succeeded": model.Succeeded, "failed": model.Failed, "unknown": model.Unknown,
}

func (r *Reader) readTask(l Line) error {
	if !r.group {
		r.b.Group(model.GroupSpec{})
		r.group = true
	}
	names, err := Spread(l.Name)
	for i, name := range names {
		spec := model.TaskSpec{
			UID: name, Name: name, Node: model.None, Priority: 1, Index: -1, Preemptable: l.Set["preemptable"] != "false",
		}
		for _, flag := range l.Flags {
			if status, ok := Statuses[flag]; ok {
				spec.Status = status
			} else {
				spec.Request = r.Amounts(flag, &err)
			}
		}
		if node, ok := l.Set["node"]; ok {
			spec.Node = r.nodes[node]
		}
		if p, ok := l.Set["priority"]; ok {
			spec.Priority = int32(number(p, &err))
		}
		if at, ok := l.Set["index"]; ok {
			spec.Index = int32(number(at, &err)) + int32(i)
		}
		if l.Set["gate"] == "other" {
			spec.Gate = model.GateOther
		}
		spec.CreateTime = int64(number(l.Set["created"], &err))
		spec.Detail = detail(l, &err)
		r.b.Task(&spec)
	}
	return err
}

func detail(l Line, err *error) *model.Detail {
	d := model.Detail{PriorityClass: l.Set["class"]}
	if ago, ok := l.Set["scheduled"]; ok {
		d.ScheduleTime, d.HasScheduleTime = asOf-duration(ago, err), true
	}
	if cooldown, ok := l.Set["cooldown"]; ok {
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

// Spread turns a1..a3 into a1, a2, a3.
func Spread(name string) ([]string, error) {
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

// Optional reads the amounts of a setting; nil if the line has none.
func (r *Reader) Optional(l Line, key string, err *error) *model.Amounts {
	text, ok := l.Set[key]
	if !ok {
		return nil
	}
	return r.Amounts(text, err)
}

// Amounts reads amounts in units of the contract; none has no dimension.
func (r *Reader) Amounts(text string, err *error) *model.Amounts {
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
	return number(text, err) * scale * Unit(name)
}

// Unit returns how many units of the contract one unit of the notation is.
func Unit(name string) float64 {
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
