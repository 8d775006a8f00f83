package wire

import (
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire/catalogue"
)

// Extent counts the entities that steps are about, the plugins, and those of them that choose victims.
type Extent struct {
	Dimensions, Nodes, Queues, Jobs, Tasks, Plugins, Voters int64
}

// ExtentOf returns the extent of a model under a policy.
func ExtentOf(m *model.Model, p *apportionv1.Policy) Extent {
	e := Extent{
		Dimensions: int64(m.Dims.Len()), Nodes: int64(len(m.Nodes)), Queues: int64(len(m.Queues)), Jobs: int64(m.Jobs.Len()),
		Tasks: int64(m.Tasks.Len()),
	}
	e.ask(p)
	return e
}

// Extent returns the extent of a snapshot of this size under a policy.
func (z *Size) Extent(p *apportionv1.Policy) Extent {
	// cpu and memory are dimensions of every model.
	e := Extent{Dimensions: z.Dimensions + 2, Nodes: z.Nodes, Queues: z.Queues, Jobs: z.Jobs, Tasks: z.Tasks}
	e.ask(p)
	return e
}

// With returns the extent of a snapshot after a change of a size.
func (e Extent) With(change *Size) Extent {
	e.Dimensions += change.Dimensions
	e.Nodes += change.Nodes
	e.Queues += change.Queues
	e.Jobs += change.Jobs
	e.Tasks += change.Tasks
	return e
}

// ask counts the plugins of a policy.
func (e *Extent) ask(p *apportionv1.Policy) {
	for _, tier := range p.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			e.Plugins++
			if row, ok := catalogue.Of(plugin); !ok || row.ChoosesVictims() {
				e.Voters++
			}
		}
	}
}

// SizeOf is Measure for a decoded snapshot.
func SizeOf(s *apportionv1.Snapshot, bytes int64) Size {
	z := Size{
		Bytes: bytes, Dimensions: int64(len(s.GetDimensions())), Nodes: int64(len(s.GetNodes())), NodeSets: int64(len(s.GetNodeSets())),
		Queues: int64(len(s.GetQueues())), Jobs: int64(len(s.GetJobs())), LeftOut: int64(len(s.GetLeftOut())),
	}
	for _, set := range s.GetNodeSets() {
		z.NodeSetBytes += 5 * int64(len(set.GetNodes()))
	}
	z.decoded(s.GetKueue())
	for _, queue := range s.GetQueues() {
		z.decoded(queue.GetKueue())
		z.Usages += int64(len(queue.GetOwners()))
		if queue.GetUsage() != nil {
			z.Usages++
		}
		if queue.GetBudget() != nil {
			z.Usages += 2
		}
		a := queue.GetNodeGroupAffinity()
		for _, terms := range []*apportionv1.NodeGroupTerms{a.GetAffinity(), a.GetAntiAffinity()} {
			z.Terms += int64(len(terms.GetRequired()) + len(terms.GetPreferred()))
		}
	}
	for _, job := range s.GetJobs() {
		z.decoded(job.GetKueue())
		z.Groups += int64(len(job.GetGroups()))
		for _, group := range job.GetGroups() {
			z.Tasks += int64(len(group.GetTasks()))
			z.Counts += int64(len(group.GetCounts()))
		}
	}
	return z
}

// decoded is extra for a decoded message, which counts all bytes as fields.
func (z *Size) decoded(m interface{ SizeVT() int }) {
	n := int64(m.SizeVT())
	z.ExtraBytes += n
	z.ExtraParts += n / 16
}
