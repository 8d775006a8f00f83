package decode

import (
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
)

// Extent counts the entities that steps are about, the plugins, and those of them that choose victims.
type Extent struct {
	Dimensions, Nodes, Reservations, Queues, Jobs, Tasks, Plugins, Voters int64
	// Flavors is the most of them that a queue has for the policy kueue, Asked the most pod sets and requests that a job has; both are 0
	// under other policies.
	Flavors, Asked int64
}

// ExtentOf returns the extent of a model under a policy.
func ExtentOf(m *model.Model, p *apportionv1.Policy) Extent {
	e := Extent{
		Dimensions: int64(m.Dims.Len()), Nodes: int64(len(m.Nodes)), Reservations: int64(m.ReservationCount()),
		Queues: int64(len(m.Queues)), Jobs: int64(m.Jobs.Len()), Tasks: int64(m.Tasks.Len()),
	}
	flavors, asked := m.ExtraParts()
	e.Flavors, e.Asked = int64(flavors), int64(asked)
	e.ask(p)
	return e
}

// Extent returns the extent of a snapshot of this size under a policy.
func (z *Size) Extent(p *apportionv1.Policy) Extent {
	// cpu and memory are dimensions of every model.
	e := Extent{
		Dimensions: z.Dimensions + 2, Nodes: z.Nodes, Reservations: z.Reservations, Queues: z.Queues, Jobs: z.Jobs, Tasks: z.Tasks,
		Flavors: z.Flavors, Asked: z.Asked,
	}
	e.ask(p)
	return e
}

// With returns the extent of a snapshot after a change of a size.
func (e Extent) With(change *Size) Extent {
	e.Dimensions += change.Dimensions
	e.Nodes += change.Nodes
	e.Reservations += change.Reservations
	e.Queues += change.Queues
	e.Jobs += change.Jobs
	e.Tasks += change.Tasks
	e.Flavors, e.Asked = max(e.Flavors, change.Flavors), max(e.Asked, change.Asked)
	return e
}

// ask counts the plugins of a policy.
func (e *Extent) ask(p *apportionv1.Policy) {
	kueue := false
	for _, tier := range p.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			kueue = kueue || plugin.GetKueue() != nil
			e.Plugins++
			if row, ok := catalogue.Of(plugin); !ok || row.ChoosesVictims() {
				e.Voters++
			}
		}
	}
	if !kueue {
		e.Flavors, e.Asked = 0, 0
	}
}
