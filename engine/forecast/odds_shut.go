package forecast

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// opens reports whether a node takes a task, reservations aside.
func (c *compiler) opens(t model.TaskID, n model.NodeID) bool {
	set := c.View().NodeSetOf(t)
	return c.PolicyFits(t, n, nil) && c.View().Closed(n, set) == nil && c.View().InSet(set, n)
}

// spans returns when reservations of nodes keep the tasks of a job from starting there, by node: from when they would not end before the
// reservation begins until it ends. A job of model.None is not known, and nor is its end. What is kept of a part of a node counts as the
// whole if there is no room now for a task of the job beside it, and else as nothing; t is model.None if there is no such task.
func (c *compiler) spans(j model.JobID, t model.TaskID) map[int][]odds.Span {
	v := c.View()
	if v.Reservations() == nil {
		return nil
	}
	lasts := policy.Endless
	if j != model.None {
		if end := v.EndOf(j); end != policy.Endless {
			lasts = end - v.AsOf
		}
	}
	spans := map[int][]odds.Span{}
	for _, n := range v.NodeOrder {
		list := v.Nodes[n].Reservations()
		for i := range list {
			one := &list[i]
			holder, known := v.Job(one.Holder)
			if !one.Whole() && (t == model.None || v.Reservations().Fits(t, n, resource.Row{}, nil)) {
				continue
			}
			if one.Over(v.AsOf) || known && one.Holder != "" && holder == j {
				continue
			}
			span := odds.Span{Until: odds.Never}
			if lasts != policy.Endless && one.From > v.AsOf && one.From-v.AsOf > lasts {
				span.From = (one.From-v.AsOf-lasts)/second + 1
			}
			if one.Until != 0 {
				span.Until = (one.Until - v.AsOf + second - 1) / second
			}
			spans[int(n)] = append(spans[int(n)], span)
		}
	}
	return spans
}
