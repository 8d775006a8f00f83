package forecast

import (
	"encoding/binary"

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

// shutting is what the model has of the reservations of nodes.
type shutting struct {
	// holders are the numbers of the jobs that hold some.
	holders map[model.JobID]int32
	// parts are the nodes of which a part is kept.
	parts []model.NodeID
	// latest is when the last of them begins, in nanoseconds after the time of the snapshot.
	latest int64
	// known has each shut once, by its contents.
	known map[string]*odds.Shut
}

// findPeriods lists the reservations of nodes. Those of a job that the snapshot does not have keep all tasks off.
func (c *compiler) findPeriods() error {
	v := c.View()
	if v.Reservations() == nil {
		return nil
	}
	all := 0
	for n := range v.Nodes {
		all += len(v.Nodes[n].Reservations())
	}
	const period, list = 32, 24
	if err := v.Work.Hold(len(v.Nodes)*list + all*period); err != nil {
		return err
	}
	if err := v.Work.Spend(all, 1); err != nil {
		return err
	}
	c.m.Periods = make([][]odds.Period, len(v.Nodes))
	c.shutting = shutting{holders: map[model.JobID]int32{}, known: map[string]*odds.Shut{}}
	for _, n := range v.NodeOrder {
		part := false
		list := v.Nodes[n].Reservations()
		c.m.Periods[n] = make([]odds.Period, 0, len(list))
		for i := range list {
			one := &list[i]
			if one.Over(v.AsOf) {
				continue
			}
			p := odds.Period{From: one.From - v.AsOf, Until: odds.Never, Holder: -1, Part: !one.Whole()}
			if one.Until != 0 {
				p.Until = (one.Until - v.AsOf + second - 1) / second
			}
			if holder, known := v.Job(one.Holder); known && one.Holder != "" {
				p.Holder = c.holder(holder)
			}
			part, c.latest = part || p.Part, max(c.latest, p.From)
			c.m.Periods[n] = append(c.m.Periods[n], p)
		}
		if part {
			c.parts = append(c.parts, n)
		}
	}
	return nil
}

// holder numbers a job that holds a reservation.
func (c *compiler) holder(j model.JobID) int32 {
	number, known := c.holders[j]
	if !known {
		number = int32(len(c.holders))
		c.holders[j] = number
	}
	return number
}

// shutFor returns which reservations of nodes keep the tasks of a job from starting there, nil for none. A job of model.None is not known,
// and nor is its end. What is kept of a part of a node counts as the whole where it is tight, and else as nothing.
func (c *compiler) shutFor(j model.JobID, tight []bool) *odds.Shut {
	if c.m.Periods == nil {
		return nil
	}
	shut := odds.Shut{Lasts: odds.Never, Holder: -1, Tight: tight}
	if j != model.None {
		// What ends after the last of them begins might as well never end.
		v := c.View()
		if end := v.EndOf(j); end != policy.Endless && end-v.AsOf < c.latest {
			shut.Lasts = end - v.AsOf
		}
		if number, holds := c.holders[j]; holds {
			shut.Holder = number
		}
	}
	key := binary.AppendVarint(binary.AppendVarint(nil, shut.Lasts), int64(shut.Holder))
	for _, n := range c.parts {
		if tight != nil && tight[n] {
			key = binary.AppendVarint(key, int64(n))
		}
	}
	one, known := c.known[string(key)]
	if !known {
		one = &shut
		c.known[string(key)] = one
	}
	return one
}

// tightFor returns the nodes without room now for a task beside the parts that are kept, nil if there are none.
func (c *compiler) tightFor(t model.TaskID) ([]bool, error) {
	if len(c.parts) == 0 {
		return nil, nil
	}
	v := c.View()
	if err := v.Work.Spend(len(c.parts), c.width); err != nil {
		return nil, err
	}
	if err := v.Work.Hold(len(v.Nodes) + len(c.parts)*binary.MaxVarintLen32); err != nil {
		return nil, err
	}
	var tight []bool
	for i, n := range c.parts {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		if !v.Reservations().Fits(t, n, resource.Row{}, nil) {
			if tight == nil {
				tight = make([]bool, len(v.Nodes))
			}
			tight[n] = true
		}
	}
	return tight, nil
}
