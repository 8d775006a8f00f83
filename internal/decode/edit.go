package decode

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/moment"
)

const (
	// MaxEdits bounds the edits of one list.
	MaxEdits = 1000
	// maxLike bounds the nodes that one edit adds.
	maxLike = 100_000
	// maxSeconds bounds amounts of quantum-seconds: numbers up to it are exact.
	maxSeconds = 1 << 53
)

// object is what an edit is about.
type object uint8

const (
	ofSnapshot object = iota
	ofQueue
	ofJob
	ofNode
)

// value is what an edit sets.
type value uint8

const (
	noValue value = iota
	amountValue
	countValue
	secondsValue
	quotaValue
	textValue
	queueValue
	nodeValue
)

// counts reports whether a value is an amount.
func (v value) counts() bool {
	return v == amountValue || v == countValue || v == secondsValue || v == quotaValue
}

// EditCounts reports whether edits of a kind have an amount.
func EditCounts(kind edit.Kind) bool { return editRules[kind].value.counts() }

// editRule says what an edit of a kind has beside its kind.
type editRule struct {
	object object
	value  value
	// removable: without the value the setting is removed. unlimited: the amount may be infinite.
	removable, unlimited bool
	// least and most bound a count. role: it may be that of a role.
	least, most float64
	role        bool
}

// editRules are those of all kinds.
var editRules = map[edit.Kind]editRule{
	edit.Capability:     {object: ofQueue, value: amountValue, removable: true, unlimited: true},
	edit.Guarantee:      {object: ofQueue, value: amountValue, removable: true},
	edit.Deserved:       {object: ofQueue, value: amountValue, removable: true},
	edit.Weight:         {object: ofQueue, value: countValue, most: math.MaxInt32},
	edit.Open:           {object: ofQueue},
	edit.Close:          {object: ofQueue, value: textValue, removable: true},
	edit.Parent:         {object: ofQueue, value: textValue, removable: true},
	edit.Priority:       {object: ofQueue, value: countValue, least: math.MinInt32, most: math.MaxInt32},
	edit.Reclaimable:    {object: ofQueue},
	edit.Unreclaimable:  {object: ofQueue},
	edit.Usage:          {object: ofQueue, value: secondsValue, removable: true},
	edit.Budget:         {object: ofQueue, value: secondsValue, removable: true},
	edit.BudgetKind:     {object: ofQueue, value: textValue, removable: true},
	edit.Spent:          {object: ofQueue, value: secondsValue, removable: true},
	edit.Nominal:        {object: ofQueue, value: quotaValue},
	edit.BorrowingLimit: {object: ofQueue, value: quotaValue, removable: true},
	edit.LendingLimit:   {object: ofQueue, value: quotaValue, removable: true},
	edit.Flavor:         {object: ofSnapshot},
	edit.Queue:          {object: ofJob, value: queueValue},
	edit.Minimum:        {object: ofJob, value: countValue, most: math.MaxInt32, role: true},
	edit.MinResources:   {object: ofJob, value: amountValue, removable: true},
	edit.Request:        {object: ofJob, value: amountValue, role: true},
	edit.AllowedNode:    {object: ofJob, value: nodeValue},
	edit.End:            {object: ofJob},
	edit.NodesLike:      {object: ofNode, value: countValue, least: 1, most: maxLike},
	edit.Remove:         {object: ofNode},
	edit.Cordon:         {object: ofNode},
	edit.Uncordon:       {object: ofNode},
	edit.Allocatable:    {object: ofNode, value: amountValue, removable: true},
	edit.Maintenance:    {object: ofNode, value: textValue, removable: true},
	edit.Forget:         {object: ofSnapshot},
}

// Edits reads edits of a model, which may have so many nodes afterwards; 0: any number. A *model.Error names every field that is wrong, by
// paths that begin with `edits`.
func Edits(m *model.Model, list []*apportionv1.Edit, nodes int64) ([]edit.Edit, error) {
	r := editReader{m: m, ended: map[model.JobID]int{}, gone: map[model.NodeID]int{}, budgets: map[model.QueueID]bool{}}
	if len(list) > MaxEdits {
		r.faults.Add("edits", "there are %d edits, more than %d", len(list), MaxEdits)
		return nil, &r.faults
	}
	r.findRemoved(list)
	out, added := make([]edit.Edit, 0, len(list)), 0.0
	for i, e := range list {
		r.at = i
		out = append(out, r.read(e))
		if out[i].Kind == edit.NodesLike {
			added += out[i].Amount
		}
	}
	if nodes > 0 && float64(len(m.Nodes))+added > float64(nodes) {
		r.faults.Add("edits", "there would be %.0f nodes, more than %d", float64(len(m.Nodes))+added, nodes)
	}
	return out, r.faults.OrNil()
}

// editReader reads a list of edits.
type editReader struct {
	m      *model.Model
	faults model.Error
	// at is the position of the edit that is read; ended and gone are those of the edits that remove jobs and nodes.
	at    int
	ended map[model.JobID]int
	gone  map[model.NodeID]int
	// budgets are the queues that earlier edits give a budget, or take theirs.
	budgets map[model.QueueID]bool
}

func (r *editReader) fault(field, format string, args ...any) {
	r.faults.Add(fmt.Sprintf("edits[%d].%s", r.at, field), format, args...)
}

// findRemoved notes what edits remove.
func (r *editReader) findRemoved(list []*apportionv1.Edit) {
	silent := editReader{m: r.m}
	for i, e := range list {
		switch edit.Kind(e.GetKind()) { //nolint:exhaustive // The others remove nothing.
		case edit.End:
			if j, ok := silent.job(e.GetJob(), "job"); ok {
				r.ended[j] = i
			}
		case edit.Remove:
			if n, ok := silent.node(e.GetNode(), "node"); ok {
				r.gone[n] = i
			}
		}
	}
}

// read reads one edit.
func (r *editReader) read(e *apportionv1.Edit) edit.Edit {
	kind := edit.Kind(e.GetKind())
	rule, known := editRules[kind]
	out := edit.Of(kind)
	if !known || int(e.GetKind()) != int(kind) {
		r.fault("kind", "no kind %d", e.GetKind())
		return out
	}
	if kind == edit.Priority && e.GetJob() != nil {
		rule.object = ofJob
	}
	r.object(e, rule, &out)
	r.value(e, rule, &out)
	r.budget(&out)
	if rule.role {
		r.role(e, &out)
	} else if e.Role != nil {
		r.fault("role", "the kind has no role")
	}
	return out
}

// object reads what an edit is about.
func (r *editReader) object(e *apportionv1.Edit, rule editRule, out *edit.Edit) {
	switch rule.object {
	case ofQueue:
		out.Queue, _ = r.queue(e.GetQueue(), "queue")
	case ofJob:
		if j, ok := r.job(e.GetJob(), "job"); ok {
			out.Job = j
			r.stays("job", r.ended[j], out.Kind == edit.End || !r.ends(j))
		}
	case ofNode:
		if n, ok := r.node(e.GetNode(), "node"); ok {
			out.Node = n
			r.stays("node", r.gone[n], out.Kind == edit.Remove || !r.goes(n))
		}
	default:
		if e.GetObject() != nil {
			r.fault("object", "the kind is about the snapshot as a whole")
		}
	}
}

func (r *editReader) ends(j model.JobID) bool {
	_, ends := r.ended[j]
	return ends
}

func (r *editReader) goes(n model.NodeID) bool {
	_, goes := r.gone[n]
	return goes
}

// stays reports a fault unless an object stays.
func (r *editReader) stays(field string, by int, stays bool) {
	if !stays {
		r.fault(field, "the %s is removed by edits[%d]", field, by)
	}
}

// form reads the amount of an edit, and reports the fields that its kind does not have, and those that it needs.
func (r *editReader) form(e *apportionv1.Edit, rule editRule, out *edit.Edit) {
	if rule.value.counts() {
		if out.None = e.Amount == nil; out.None && !rule.removable {
			r.fault("amount", "the kind needs an amount")
		}
		out.Amount = e.GetAmount()
	} else if e.Amount != nil {
		r.fault("amount", "the kind has no amount")
	}
	if rule.value != textValue && e.GetText() != "" {
		r.fault("text", "the kind has no text")
	}
	if (rule.value == queueValue || rule.value == nodeValue) != (e.GetTo() != nil) {
		r.fault("to", "the kind needs a queue or a node to which the job moves, and only such a kind")
	}
	if e.Dimension != nil && (rule.value == countValue || !rule.value.counts()) {
		r.fault("dimension", "the kind has no dimension")
	}
	if rule.value != quotaValue && out.Kind != edit.Flavor && e.GetNodeSet() != "" {
		r.fault("node_set", "the kind has no flavor")
	}
}

// value reads what an edit sets.
func (r *editReader) value(e *apportionv1.Edit, rule editRule, out *edit.Edit) {
	r.form(e, rule, out)
	switch rule.value {
	case amountValue:
		r.dimension(e, out)
		if e.Amount != nil {
			r.within(out.Amount, 0, math.Inf(1))
			if math.IsInf(out.Amount, 1) && !rule.unlimited {
				r.fault("amount", "+Infinity is not finite")
			}
		}
	case secondsValue:
		r.dimension(e, out)
		r.within(out.Amount, 0, maxSeconds)
		r.whole(out.Amount)
	case countValue:
		r.within(out.Amount, rule.least, rule.most)
		if out.Kind != edit.Weight || out.Queue == model.None || kueue.QueueOf(r.m, out.Queue) == nil {
			r.whole(out.Amount)
		}
	case quotaValue:
		r.quota(e, out)
	case textValue:
		r.text(e.GetText(), out)
	case queueValue, nodeValue:
		r.target(e, rule, out)
	default:
		if out.Kind == edit.Flavor {
			// The empty name is that of the set of all nodes.
			out.Flavor = e.GetNodeSet()
			if _, taken := r.m.NodeSetNamed(out.Flavor); taken {
				r.fault("node_set", "the flavor needs a name that no node set has")
			}
		}
	}
}

// quota reads the quota of a flavor.
func (r *editReader) quota(e *apportionv1.Edit, out *edit.Edit) {
	r.within(out.Amount, 0, math.Inf(1))
	if r.dimension(e, out); out.Queue == model.None || out.Dimension < 0 {
		return
	}
	var fault string
	if out.Flavor, fault = kueue.FlavorOf(r.m, out.Queue, e.GetNodeSet(), out.Dimension); fault != "" {
		r.fault("node_set", "%s", fault)
	}
}

// budget requires that a queue whose budget changes has one.
func (r *editReader) budget(e *edit.Edit) {
	if e.Queue == model.None || e.Kind != edit.Budget && e.Kind != edit.BudgetKind && e.Kind != edit.Spent {
		return
	}
	has, changed := r.budgets[e.Queue]
	if memory := r.m.Queues[e.Queue].Memory; !changed {
		has = memory != nil && memory.Budget != nil
	}
	if !has && e.Kind != edit.Budget {
		r.fault("kind", "the queue has no budget")
	}
	r.budgets[e.Queue] = e.Kind != edit.BudgetKind || e.Text != ""
}

// target reads the queue or the node to which a job moves.
func (r *editReader) target(e *apportionv1.Edit, rule editRule, out *edit.Edit) {
	switch {
	case e.GetTo() == nil:
	case rule.value == queueValue:
		out.Queue, _ = r.queue(e.GetTo(), "to")
	default:
		if n, ok := r.node(e.GetTo(), "to"); ok {
			out.Node = n
			r.stays("to", r.gone[n], !r.goes(n))
		}
	}
}

// within requires that an amount is in a range.
func (r *editReader) within(x, least, most float64) {
	if !(x >= least && x <= most) {
		r.fault("amount", "%g is not from %g to %g", x, least, most)
	}
}

// whole requires that an amount is a whole number.
func (r *editReader) whole(x float64) {
	if x != math.Trunc(x) {
		r.fault("amount", "%g is not a whole number", x)
	}
}

// dimension reads the dimension of an amount.
func (r *editReader) dimension(e *apportionv1.Edit, out *edit.Edit) {
	order := r.m.Dims.Order()
	switch {
	case e.Dimension == nil:
		r.fault("dimension", "the amount needs a dimension")
	case int64(e.GetDimension()) >= int64(len(order)):
		r.fault("dimension", "no dimension %d, there are %d", e.GetDimension(), len(order))
	default:
		out.Dimension = order[e.GetDimension()]
	}
}

// text reads a value that is a text.
func (r *editReader) text(text string, out *edit.Edit) {
	out.Text = text
	words := map[edit.Kind][]string{edit.Close: {"", edit.Closing}, edit.BudgetKind: {"", edit.Hard, edit.Soft}}
	if known := words[out.Kind]; known != nil && !slices.Contains(known, text) {
		r.fault("text", "%q is not one of %q", Cut(text, MaxText), known)
	}
	if out.Kind != edit.Maintenance {
		return
	}
	out.Downtime = &[]model.ReservationSpec{}
	if text == "" {
		return
	}
	for period := range strings.SplitSeq(text, ",") {
		from, until, err := moment.Period(period)
		if err == nil && r.m.AsOf != 0 && until <= r.m.AsOf {
			err = fmt.Errorf("the period is over at %s, the time of the question", time.Unix(0, r.m.AsOf).UTC().Format(time.RFC3339))
		}
		if err != nil {
			r.fault("text", "%q: %s", Cut(strings.TrimSpace(period), MaxText), err)
			continue
		}
		*out.Downtime = append(*out.Downtime, model.ReservationSpec{From: from, Until: until, Reason: "maintenance"})
	}
	if out.Node == model.None {
		return
	}
	n := len(*out.Downtime)
	for _, kept := range r.m.Nodes[out.Node].Reservations() {
		if kept.Holder != "" || !kept.Request.Absent() {
			n++
		}
	}
	if n > model.MaxReservations {
		r.fault("text", "the node would have %d reservations, more than %d", n, model.MaxReservations)
	}
}

// role reads the role of a job.
func (r *editReader) role(e *apportionv1.Edit, out *edit.Edit) {
	switch {
	case out.Job == model.None:
	case e.Role == nil:
		if out.Kind == edit.Request {
			r.fault("role", "the kind needs a role")
		}
	case kueue.HasPodSet(r.m, out.Job, e.GetRole()):
		out.Text = e.GetRole()
	default:
		job := r.m.Jobs.At(out.Job)
		for g := job.FirstGroup; g < job.EndGroup; g++ {
			if r.m.Groups.At(g).Role == e.GetRole() {
				out.Group = g
				return
			}
		}
		r.fault("role", "the job has no role %q", Cut(e.GetRole(), MaxText))
	}
}
