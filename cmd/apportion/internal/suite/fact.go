// Package suite reads files of tests, compares answers with the expectations of their steps, and reports the differences.
package suite

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// Fact is a part of an answer, with names and in displayed units.
type Fact struct {
	// Key is the name of a field, or of the queue, job, task, node, plugin or resource that the fact is about.
	Key string
	// Value is an Amount, a string, a float64, a bool or a []string. nil: the fact is a group.
	Value any
	// Below are the facts of a group.
	Below []*Fact
}

// Amount is an amount of a resource.
type Amount struct {
	Dimension string
	Value     float64
	// Present is false for a resource that the answer does not list.
	Present bool
}

// Facts returns the facts in an answer to a step.
func Facts(step *apportionv1.Step, snapshot *lookup.Snapshot, basis *apportionv1.Basis, answer *apportionv1.Answer) *Fact {
	root := &Fact{}
	if failed := answer.GetError(); failed != nil {
		root.add("error", client.Describe(status.FromProto(failed).Err()))
		return root
	}
	t := teller{names: snapshot.Names(basis), snapshot: snapshot, step: step}
	m := answer.ProtoReflect()
	if field := m.WhichOneof(m.Descriptor().Oneofs().ByName("answer")); field != nil {
		t.fields(root, m.Get(field).Message())
	}
	return root
}

func (f *Fact) add(key string, value any) *Fact {
	added := &Fact{Key: key, Value: value}
	f.Below = append(f.Below, added)
	return added
}

// find returns the fact of a key directly below; nil if there is none.
func (f *Fact) find(key string) *Fact {
	if i := slices.IndexFunc(f.Below, func(b *Fact) bool { return b.Key == key }); i >= 0 {
		return f.Below[i]
	}
	return nil
}

// group returns the group of a key directly below, and creates it if there is none.
func (f *Fact) group(key string) *Fact {
	if found := f.find(key); found != nil {
		return found
	}
	return f.add(key, nil)
}

// teller converts the fields of messages to facts.
type teller struct {
	names    text.Names
	snapshot *lookup.Snapshot
	step     *apportionv1.Step
}

// fields adds the fields of a message. A field that may be absent, and is, adds nothing.
func (t *teller) fields(to *Fact, m protoreflect.Message) {
	if row, ok := m.Interface().(*apportionv1.TaskNodes); ok {
		t.nodes(to, row)
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		switch {
		case f.IsList():
			t.list(to, f, m.Get(f).List())
		case f.Message() != nil:
			t.message(to, f.JSONName(), m.Get(f).Message())
		default:
			to.add(f.JSONName(), t.scalar(f, m.Get(f)))
		}
	}
	if plugin, ok := m.Interface().(*apportionv1.PluginShares); ok {
		t.memory(to.group("queues"), plugin)
	}
}

// message adds a field that is a message.
func (t *teller) message(to *Fact, key string, m protoreflect.Message) {
	switch v := m.Interface().(type) {
	case *apportionv1.Resource:
		t.resource(to.add(key, nil), v)
	case *apportionv1.Cause:
		to.add(key, text.Reason(t.names, v))
	case *apportionv1.Fraction:
		to.add(key, v.GetNumerator()+"/"+v.GetDenominator())
	case *apportionv1.Verdict:
		// A question with one verdict is answered by it alone: enqueue.permitted, but starving.permitted beside ready.permitted.
		if key != "verdict" {
			to = to.add(key, nil)
		}
		to.add("permitted", v.GetVote() == apportionv1.Vote_VOTE_PERMIT)
		to.add("vote", text.Vote(v.GetVote()))
		t.reasons(to, v.GetCauses())
	default:
		t.fields(to.add(key, nil), m)
	}
}

// reasons adds each reason, and all of them as one text.
func (t *teller) reasons(to *Fact, reasons []*apportionv1.Cause) {
	list := make([]string, len(reasons))
	for i, reason := range reasons {
		list[i] = text.Reason(t.names, reason)
	}
	to.add("reasons", list)
	to.add("reason", strings.Join(list, "; "))
}

// resource adds every dimension, also those that are not listed.
func (t *teller) resource(to *Fact, r *apportionv1.Resource) {
	for dimension, name := range t.names.Dimensions {
		amount := Amount{Dimension: name}
		if i := slices.Index(r.GetDimensions(), uint32(dimension)); i >= 0 && i < len(r.GetAmounts()) {
			amount.Value, amount.Present = r.GetAmounts()[i], true
		}
		to.add(name, amount)
	}
}

// list adds a list: of reasons, of texts, or of entries by their names.
func (t *teller) list(to *Fact, f protoreflect.FieldDescriptor, list protoreflect.List) {
	switch {
	case f.Message() == nil:
		texts := make([]string, list.Len())
		for i := range texts {
			texts[i] = shown(t.scalar(f, list.Get(i)))
		}
		to.add(f.JSONName(), texts)
	case f.Name() == "causes" || f.Name() == "hierarchy_causes":
		reasons := make([]*apportionv1.Cause, list.Len())
		for i := range reasons {
			reasons[i], _ = list.Get(i).Message().Interface().(*apportionv1.Cause)
		}
		t.reasons(to, reasons)
	case f.Message().FullName() == (*apportionv1.Victim)(nil).ProtoReflect().Descriptor().FullName():
		names := make([]string, list.Len())
		for i := range names {
			names[i] = t.identity(list.Get(i).Message(), i)
		}
		to.add(f.JSONName(), names)
	default:
		entries := to.add(f.JSONName(), nil)
		for i := range list.Len() {
			m := list.Get(i).Message()
			entry := entries.group(t.identity(m, i))
			t.fields(entry, m)
			if cause, ok := m.Interface().(*apportionv1.Cause); ok {
				entry.add("reason", text.Reason(t.names, cause))
			}
		}
	}
}

// identity returns the name of an entry of a list: the name of its subject, or else its position.
func (t *teller) identity(m protoreflect.Message, position int) string {
	keys := []protoreflect.Name{"task", "job", "queue", "node", "check", "name", "plugin"}
	if _, cause := m.Interface().(*apportionv1.Cause); cause {
		keys = keys[:1]
	}
	for _, key := range keys {
		if f := m.Descriptor().Fields().ByName(key); f != nil && !f.IsList() && f.Message() == nil && (!f.HasPresence() || m.Has(f)) {
			return shown(t.scalar(f, m.Get(f)))
		}
	}
	return strconv.Itoa(position)
}

// scalar returns a value: names in place of indices and numbers.
func (t *teller) scalar(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	if f.Kind() == protoreflect.Uint32Kind {
		if name := t.naming(f); name != nil {
			return name(uint32(v.Uint()))
		}
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return v.Bool()
	case protoreflect.EnumKind:
		return enum(f.Enum(), v.Enum())
	case protoreflect.StringKind:
		return v.String()
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return v.Float()
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return float64(v.Uint())
	case protoreflect.BytesKind:
		return string(v.Bytes())
	default:
		return float64(v.Int())
	}
}

// naming returns the function that names the indices in a field; nil for a field of plain numbers.
func (t *teller) naming(f protoreflect.FieldDescriptor) func(uint32) string {
	switch f.Name() {
	case "queue", "queues", "ancestors":
		return t.names.Queue
	case "children":
		return t.names.Queue
	case "job", "jobs", "first_jobs":
		return t.snapshot.JobName
	case "task", "tasks", "evictions", "victims":
		return t.snapshot.TaskName
	case "node", "nodes":
		return t.snapshot.NodeName
	case "dimension", "dimensions", "dominant":
		return t.names.Dimension
	case "items", "left", "right":
		return t.ordered()
	}
	return nil
}

// ordered returns the function that names the subjects of an order.
func (t *teller) ordered() func(uint32) string {
	switch t.step.GetOrder().GetSubject().(type) {
	case *apportionv1.OrderStep_Jobs:
		return t.snapshot.JobName
	case *apportionv1.OrderStep_Tasks:
		return t.snapshot.TaskName
	default:
		return t.names.Queue
	}
}

// enum returns a value in lower case, without the prefix that all values share.
func enum(e protoreflect.EnumDescriptor, number protoreflect.EnumNumber) string {
	value := e.Values().ByNumber(number)
	if value == nil {
		return strconv.Itoa(int(number))
	}
	prefix := strings.TrimSuffix(string(e.Values().ByNumber(0).Name()), "UNSPECIFIED")
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(value.Name()), prefix)), "_", " ")
}

// nodes adds a row of nodes: the nodes that fit, the scores, and why other nodes do not fit.
func (t *teller) nodes(to *Fact, row *apportionv1.TaskNodes) {
	to.add("task", t.snapshot.TaskName(row.GetTask()))
	fitting := []string{}
	scores := &Fact{Key: "scores"}
	for i, node := range row.GetNodes() {
		name := t.snapshot.NodeName(node)
		if i < len(row.GetFits()) && row.GetFits()[i] {
			fitting = append(fitting, name)
		}
		if i < len(row.GetScores()) {
			scores.add(name, row.GetScores()[i])
		}
	}
	to.add("fits", fitting)
	to.Below = append(to.Below, scores)
	unfit := to.add("unfit", nil)
	reasons := map[string][]*apportionv1.Cause{}
	for _, u := range row.GetCauses() {
		name := t.snapshot.NodeName(u.GetNode())
		reasons[name] = append(reasons[name], u)
	}
	for name, list := range reasons {
		t.reasons(unfit.group(name), list)
	}
	slices.SortFunc(unfit.Below, func(a, b *Fact) int { return cmp.Compare(a.Key, b.Key) })
}

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
