package decode

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
)

// entries reads the disruption budgets, which tasks name, and the quotas.
func (d *Decoder) entries(pieces [2][]byte) bool {
	return all(d, pieces, tagSnapshotBudget, &d.budget, budgetFields, d.c.budget) &&
		d.each(pieces, tagSnapshotQuota, func(_ int, data []byte) bool {
			var quota apportionv1.NamespaceQuota
			ok := quotaShape.Knows(data) && proto.Unmarshal(data, &quota) == nil
			if ok {
				d.c.quota(&quota)
			}
			return ok
		})
}

func (c *compiler) budget(_ int, b *apportionv1.DisruptionBudget) {
	c.text(b.GetNamespace())
	c.text(b.GetName())
	c.b.DisruptionBudget(model.DisruptionBudget{Namespace: b.GetNamespace(), Name: b.GetName(), Allowed: b.GetDisruptionsAllowed()})
}

func (c *compiler) quota(q *apportionv1.NamespaceQuota) {
	c.text(q.GetNamespace())
	c.text(q.GetName())
	c.b.Quota(model.Quota{
		Namespace: q.GetNamespace(), Name: q.GetName(), Hard: c.namedAmounts(q.GetHardAmounts()), Used: c.namedAmounts(q.GetUsedAmounts()),
	})
}

// namedAmounts lends a list to the builder.
func (c *compiler) namedAmounts(list []*apportionv1.NamedAmount) []model.NamedAmount {
	if len(list) == 0 {
		return nil
	}
	out := make([]model.NamedAmount, 0, len(list))
	for _, a := range list {
		c.text(a.GetName())
		out = append(out, model.NamedAmount{Name: a.GetName(), Amount: a.GetAmount()})
	}
	return out
}

func wireAmounts(list []model.NamedAmount) []*apportionv1.NamedAmount {
	var out []*apportionv1.NamedAmount
	for _, a := range list {
		out = append(out, &apportionv1.NamedAmount{Name: a.Name, Amount: a.Amount})
	}
	return out
}

// wireEntries sets the disruption budgets and the quotas of a snapshot, without those that a Change has removed.
func wireEntries(m *model.Model, out *apportionv1.Snapshot) {
	for _, b := range m.DisruptionBudgets {
		if b.Name != "" {
			out.DisruptionBudgets = append(out.DisruptionBudgets, &apportionv1.DisruptionBudget{
				Namespace: b.Namespace, Name: b.Name, DisruptionsAllowed: b.Allowed,
			})
		}
	}
	for _, q := range m.Quotas {
		if q.Name != "" {
			out.Quotas = append(out.Quotas, &apportionv1.NamespaceQuota{
				Namespace: q.Namespace, Name: q.Name, HardAmounts: wireAmounts(q.Hard), UsedAmounts: wireAmounts(q.Used),
			})
		}
	}
}

// jobDetail returns the rarely used properties of the job at position i.
func (c *compiler) jobDetail(i int, d *apportionv1.JobDetail) *model.JobDetail {
	if d == nil {
		return nil
	}
	c.text(d.GetDisruptionMinAvailable())
	c.text(d.GetDisruptionMaxUnavailable())
	if d.WaitingLimit != nil && d.GetWaitingLimit() <= 0 {
		c.b.Fault(fmt.Sprintf("jobs[%d].detail.waiting_limit", i), "%d is not above 0", d.GetWaitingLimit())
	}
	return &model.JobDetail{
		Preemptable: d.Preemptable, WaitingLimit: max(d.GetWaitingLimit(), 0), QuotaRequest: c.namedAmounts(d.GetQuotaRequests()),
		Disruption: model.JobDisruption{MinAvailable: d.GetDisruptionMinAvailable(), MaxUnavailable: d.GetDisruptionMaxUnavailable()},
	}
}

func wireJobDetail(d *model.JobDetail) *apportionv1.JobDetail {
	if d == nil {
		return nil
	}
	out := &apportionv1.JobDetail{
		Preemptable: d.Preemptable, QuotaRequests: wireAmounts(d.QuotaRequest),
		DisruptionMinAvailable: d.Disruption.MinAvailable, DisruptionMaxUnavailable: d.Disruption.MaxUnavailable,
	}
	if d.WaitingLimit > 0 {
		out.WaitingLimit = new(d.WaitingLimit)
	}
	return out
}

// unstatedOf returns what containers leave open.
func (c *compiler) unstatedOf(u *apportionv1.Unstated, path func(field string) string) model.Unstated {
	count := func(n uint32, field string) uint16 {
		if n > math.MaxUint16 {
			c.b.Fault(path(field), "%d is above %d", n, math.MaxUint16)
		}
		return uint16(min(n, math.MaxUint16))
	}
	return model.Unstated{CPU: count(u.GetCpu(), "cpu"), Memory: count(u.GetMemory(), "memory")}
}

func wireUnstated(u model.Unstated) *apportionv1.Unstated {
	return &apportionv1.Unstated{Cpu: uint32(u.CPU), Memory: uint32(u.Memory)}
}

// rareOf returns what hardly any task has; nil for none of it.
func (c *compiler) rareOf(at position, d *apportionv1.TaskDetail) *model.RareSpec {
	names := d.GetDisruptionBudgets().GetNames()
	if d.GetNominatedNode() == "" && d.GetRevocableZone() == "" && len(names) == 0 && d.Unstated == nil {
		return nil
	}
	for _, name := range names {
		c.text(name)
	}
	c.text(d.GetNominatedNode())
	c.text(d.GetRevocableZone())
	c.rare = model.RareSpec{Nominated: d.GetNominatedNode(), RevocableZone: d.GetRevocableZone(), Budgets: names}
	if d.Unstated != nil {
		c.unstated = c.unstatedOf(d.Unstated, func(field string) string { return at.path("tasks", "detail.unstated."+field) })
		c.rare.Unstated = &c.unstated
	}
	return &c.rare
}

// wireRare sets what a task has of its rare properties.
func wireRare(r *model.RareSpec, out *apportionv1.TaskDetail) {
	if r == nil {
		return
	}
	out.NominatedNode, out.RevocableZone = r.Nominated, r.RevocableZone
	if len(r.Budgets) > 0 {
		out.DisruptionBudgets = &apportionv1.DisruptionBudgetNames{Names: r.Budgets}
	}
	if r.Unstated != nil {
		out.Unstated = wireUnstated(*r.Unstated)
	}
}

// plainUnstated reads an encoded Unstated; false: it is faulty or unusual.
func plainUnstated(b []byte) (u model.Unstated, ok bool) {
	for i := 0; i < len(b); {
		tag, value, _, to := field.At(b, i)
		if to < 0 || value > math.MaxUint16 {
			return u, false
		}
		switch i = to; tag {
		case 1<<3 | field.Varint:
			u.CPU = uint16(value)
		case 2<<3 | field.Varint:
			u.Memory = uint16(value)
		default:
			return u, false
		}
	}
	return u, true
}

// plainJobDetail reads an encoded JobDetail; false: it is faulty, unusual, or has more than numbers.
func plainJobDetail(b []byte) (*model.JobDetail, bool) {
	d := &model.JobDetail{}
	for i := 0; i < len(b); {
		tag, value, _, to := field.At(b, i)
		if to < 0 {
			return nil, false
		}
		switch i = to; tag {
		case 1<<3 | field.Varint:
			d.Preemptable = new(value != 0)
		case 2<<3 | field.Varint:
			if d.WaitingLimit = int64(value); d.WaitingLimit <= 0 {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return d, true
}

// isBudget reports whether encoded names of disruption budgets are one, which the namespace of the job has.
func (d *Decoder) isBudget(b []byte) bool {
	n := 0
	ok := field.Each(b, 1<<3|field.Delimited, func(name []byte) bool {
		n++
		return n == 1 && d.c.isText(name) && d.c.b.HasBudget(lent(d.namespace), lent(name))
	})
	return ok && budgetNamesShape.Knows(b)
}
