package catalogue

import (
	"fmt"
	"time"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/backfill"
	"github.com/apportion/apportion/engine/policy/binpack"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/cooldown"
	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/hdrf"
	"github.com/apportion/apportion/engine/policy/kueue"
	"github.com/apportion/apportion/engine/policy/nodegroup"
	"github.com/apportion/apportion/engine/policy/nodeorder"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/pdb"
	"github.com/apportion/apportion/engine/policy/predicates"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/policy/quota"
	"github.com/apportion/apportion/engine/policy/sla"
	"github.com/apportion/apportion/engine/policy/tdm"
	"github.com/apportion/apportion/engine/policy/undecided"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
)

// Policies are the policies of this program. Only tests change the list.
var Policies = []Policy{
	{
		Name: "proportion", Volcano: true, Sums: SumsForEnqueue, Derive: DerivationOf(deriveProportion),
		Settings: withoutSettings[*apportionv1.Proportion](proportion.Plugin{}),
		Decisions: engine.DecisionsOf(engine.QueueOrder, engine.Overused, engine.Allocatable, engine.JobEnqueued, engine.Preemptive,
			engine.Reclaimable),
		Forms: []Form{{Name: "proportion", Preset: volcanoDefault("drf", "proportion")}},
	},
	{
		Name: "capacity", Volcano: true, Sums: SumsForEnqueue, Derive: DerivationOf(deriveCapacity),
		Levels:   when(func(p capacity.Plugin) bool { return p.Hierarchical }),
		Settings: SettingsOf(readCapacity, writeCapacity),
		Decisions: engine.DecisionsOf(engine.QueueOrder, engine.Allocatable, engine.JobEnqueued, engine.Preemptive, engine.Reclaimable,
			engine.VictimQueueOrder),
		Forms: []Form{
			{Name: "capacity", Preset: volcanoDefault("drf", "capacity")},
			{
				Name: "capacity" + Hierarchical, Settings: &apportionv1.Capacity{Hierarchical: true},
				Preset: volcanoDefault("drf", "capacity"+Hierarchical),
			},
		},
	},
	{
		Name: "drf", Volcano: true, Sums: SumsForEnqueue,
		Settings:  withoutSettings[*apportionv1.Drf](drf.Plugin{}),
		Decisions: engine.DecisionsOf(engine.JobOrder, engine.Preemptable),
		Forms:     []Form{{Name: "drf"}},
	},
	{
		Name: "drf", Volcano: true, Levels: always,
		Settings:  withoutSettings[*apportionv1.HierarchicalDrf](hdrf.Plugin{}),
		Decisions: engine.DecisionsOf(engine.JobOrder, engine.Preemptable, engine.QueueOrder, engine.Reclaimable),
		Forms:     []Form{{Name: "drf" + Hierarchical, Preset: volcanoDefault("drf" + Hierarchical)}},
	},
	{
		Name: "gang", Volcano: true, Sums: SumsForEnqueue,
		Settings: withoutSettings[*apportionv1.Gang](gang.Plugin{}),
		Decisions: engine.DecisionsOf(engine.JobOrder, engine.JobValid, engine.JobReady, engine.JobPipelined, engine.JobStarving,
			engine.Reclaimable, engine.Preemptable),
		Forms: []Form{{Name: "gang"}},
	},
	{
		Name: "priority", Volcano: true, Sums: SumsForEnqueue,
		Settings:  withoutSettings[*apportionv1.Priority](priority.Plugin{}),
		Decisions: engine.DecisionsOf(engine.JobOrder, engine.TaskOrder, engine.JobStarving, engine.Preemptable),
		Forms:     []Form{{Name: "priority"}},
	},
	{
		Name: "conformance", Volcano: true, Sums: SumsForEnqueue,
		Settings:  withoutSettings[*apportionv1.Conformance](conformance.Plugin{}),
		Decisions: engine.DecisionsOf(engine.Reclaimable, engine.Preemptable),
		Forms:     []Form{{Name: "conformance"}},
	},
	{
		Name: "cdp", Volcano: true, Clock: true,
		Settings:  withoutSettings[*apportionv1.Cooldown](cooldown.Plugin{}),
		Decisions: engine.DecisionsOf(engine.Reclaimable, engine.Preemptable),
		Forms:     []Form{{Name: "cdp"}},
	},
	{
		Name: "binpack", Volcano: true,
		Settings:  SettingsOf(readBinpack, writeBinpack),
		Decisions: engine.DecisionsOf(engine.NodeOrder),
		Forms:     []Form{{Name: "binpack"}},
	},
	{
		Name: "nodegroup", Volcano: true,
		Settings:  SettingsOf(readNodeGroup, writeNodeGroup),
		Decisions: engine.DecisionsOf(engine.Predicate, engine.NodeOrder),
		Forms: []Form{
			{Name: "nodegroup"},
			{Name: "nodegroup" + Hierarchical, Settings: &apportionv1.NodeGroup{Hierarchical: true}},
		},
	},
	{
		Name: predicates.Name, Volcano: true, Sums: SumsForEnqueue,
		Settings:  withoutSettings[*apportionv1.Predicates](predicates.Plugin{}),
		Decisions: engine.DecisionsOf(engine.Predicate),
		Forms:     []Form{{Name: predicates.Name}},
	},
	{
		Name: nodeorder.Name, Volcano: true, Sums: SumsForEnqueue,
		Settings:  SettingsOf(readNodeOrder, writeNodeOrder),
		Decisions: engine.DecisionsOf(engine.NodeOrder),
		Forms:     []Form{{Name: nodeorder.Name}},
	},
	{
		Name: "overcommit", Volcano: true, Sums: SumsForShares,
		Settings:  SettingsOf(readOvercommit, writeOvercommit),
		Decisions: engine.DecisionsOf(engine.JobEnqueued),
		Forms:     []Form{{Name: "overcommit"}},
	},
	{
		Name: sla.Name, Volcano: true, Clock: true, Sums: SumsForEnqueue,
		Settings:  SettingsOf(readSLA, writeSLA),
		Decisions: engine.DecisionsOf(engine.JobOrder, engine.JobEnqueued, engine.JobPipelined),
		Forms:     []Form{{Name: sla.Name}},
	},
	{
		Name: quota.Name, Volcano: true, Sums: SumsForEnqueue,
		Settings:  withoutSettings[*apportionv1.ResourceQuota](quota.Plugin{}),
		Decisions: engine.DecisionsOf(engine.JobEnqueued),
		Forms:     []Form{{Name: quota.Name}},
	},
	{
		Name: pdb.Name, Volcano: true, Sums: SumsForEnqueue,
		Settings:  withoutSettings[*apportionv1.Pdb](pdb.Plugin{}),
		Decisions: engine.DecisionsOf(engine.Reclaimable, engine.Preemptable, engine.Victim),
		Forms:     []Form{{Name: pdb.Name}},
	},
	{
		Name: tdm.Name, Volcano: true, Clock: true, Sums: SumsForEnqueue,
		Settings: SettingsOf(readTdm, writeTdm),
		Decisions: engine.DecisionsOf(engine.JobOrder, engine.JobPipelined, engine.JobStarving, engine.Preemptable, engine.Predicate,
			engine.NodeOrder, engine.Victim),
		Forms: []Form{{Name: tdm.Name}},
	},
	{
		Name: "fair", Levels: always, Derive: DerivationOf(deriveFair),
		Terms:    Terms{Deserved: "entitled", Would: "would be entitled", Overused: "not served"},
		Settings: SettingsOf(readFair, writeFair),
		Decisions: engine.DecisionsOf(engine.QueueOrder, engine.JobOrder, engine.TaskOrder, engine.Overused, engine.Allocatable,
			engine.JobEnqueued, engine.Preemptive, engine.Reclaimable),
		Forms: []Form{{
			Name: "fair", Settings: &apportionv1.Fair{Turns: Turns()},
			Preset: [][]string{{"priority", "gang", "conformance", "fair"}},
		}},
	},
	{
		Name: kueue.Name, Clock: true,
		Settings:  SettingsOf(readKueue, writeKueue),
		Decisions: engine.DecisionsOf(engine.JobOrder, engine.JobEnqueued),
		Forms:     []Form{{Name: kueue.Name, Preset: [][]string{{kueue.Name}}}},
	},
	{
		Name: backfill.Name, Clock: true, Ends: true,
		Settings:  SettingsOf(readBackfill, writeBackfill),
		Decisions: engine.DecisionsOf(engine.JobEnqueued, engine.Allocatable),
		Forms: []Form{
			{Name: backfill.Name},
			{
				Name:     backfill.Name + "/conservative",
				Settings: &apportionv1.Backfill{Kind: apportionv1.BackfillKind_BACKFILL_KIND_CONSERVATIVE},
			},
		},
	},
	{Name: "undecided", Settings: SettingsOf(readUndecided, writeUndecided)},
}

// volcanoDefault is Volcano's default configuration with the given plugins in place of `drf` and `proportion`, and without those that
// decide about nodes (`predicates`, `nodeorder`).
func volcanoDefault(plugins ...string) [][]string {
	return [][]string{{"priority", "gang", "conformance"}, append([]string{"overcommit"}, plugins...)}
}

func always(policy.Plugin) bool { return true }

// when returns whether the settings of a plugin of type P fulfil a condition; those of other types do not.
func when[P policy.Plugin](condition func(P) bool) func(policy.Plugin) bool {
	return func(p policy.Plugin) bool {
		own, ok := p.(P)
		return ok && condition(own)
	}
}

func readCapacity(m *apportionv1.Capacity, _ Fault) capacity.Plugin {
	return capacity.Plugin{Hierarchical: m.GetHierarchical(), AncestorReclaimLevel: int(m.GetAncestorReclaimLevel())}
}

func writeCapacity(p capacity.Plugin) *apportionv1.Capacity {
	return &apportionv1.Capacity{Hierarchical: p.Hierarchical, AncestorReclaimLevel: int32(p.AncestorReclaimLevel)}
}

func readBinpack(m *apportionv1.Binpack, fault Fault) binpack.Plugin {
	p := binpack.Default()
	number(m.Weight, &p.Weight, "weight", fault)
	number(m.Cpu, &p.CPU, "cpu", fault)
	number(m.Memory, &p.Memory, "memory", fault)
	for i, r := range m.GetResources() {
		if r == nil {
			continue
		}
		w := binpack.Weight{Name: r.GetName(), Weight: 1}
		number(r.Weight, &w.Weight, fmt.Sprintf("resources[%d].weight", i), fault)
		p.Resources = append(p.Resources, w)
	}
	return p
}

func writeBinpack(p binpack.Plugin) *apportionv1.Binpack {
	m := &apportionv1.Binpack{Weight: new(p.Weight), Cpu: new(p.CPU), Memory: new(p.Memory)}
	for _, r := range p.Resources {
		m.Resources = append(m.Resources, &apportionv1.ResourceWeight{Name: r.Name, Weight: new(r.Weight)})
	}
	return m
}

func readNodeGroup(m *apportionv1.NodeGroup, _ Fault) nodegroup.Plugin {
	p := nodegroup.Default()
	if m.Strict != nil {
		p.Strict = m.GetStrict()
	}
	p.PreferredOrder, p.Hierarchical = m.GetPreferredOrder(), m.GetHierarchical()
	return p
}

func writeNodeGroup(p nodegroup.Plugin) *apportionv1.NodeGroup {
	return &apportionv1.NodeGroup{Strict: new(p.Strict), PreferredOrder: p.PreferredOrder, Hierarchical: p.Hierarchical}
}

func readNodeOrder(m *apportionv1.NodeOrder, _ Fault) nodeorder.Plugin {
	p := nodeorder.Default()
	given(m.LeastRequested, &p.LeastRequested)
	given(m.MostRequested, &p.MostRequested)
	given(m.BalancedResource, &p.BalancedResource)
	given(m.TaintToleration, &p.TaintToleration)
	given(m.NodeAffinity, &p.NodeAffinity)
	return p
}

func writeNodeOrder(p nodeorder.Plugin) *apportionv1.NodeOrder {
	return &apportionv1.NodeOrder{
		LeastRequested: new(p.LeastRequested), MostRequested: new(p.MostRequested), BalancedResource: new(p.BalancedResource),
		TaintToleration: new(p.TaintToleration), NodeAffinity: new(p.NodeAffinity),
	}
}

func readSLA(m *apportionv1.Sla, _ Fault) sla.Plugin {
	return sla.Plugin{WaitingTime: m.GetWaitingTime()}
}

func writeSLA(p sla.Plugin) *apportionv1.Sla { return &apportionv1.Sla{WaitingTime: p.WaitingTime} }

func readTdm(m *apportionv1.Tdm, _ Fault) tdm.Plugin {
	var p tdm.Plugin
	for _, z := range m.GetZones() {
		p.Zones = append(p.Zones, tdm.Zone{Name: z.GetName(), Period: z.GetPeriod()})
	}
	return p
}

func writeTdm(p tdm.Plugin) *apportionv1.Tdm {
	m := &apportionv1.Tdm{}
	for _, z := range p.Zones {
		m.Zones = append(m.Zones, &apportionv1.RevocableZone{Name: z.Name, Period: z.Period})
	}
	return m
}

func readOvercommit(m *apportionv1.Overcommit, fault Fault) overcommit.Plugin {
	p := overcommit.Default()
	number(m.Factor, &p.Factor, "factor", fault)
	return p
}

func writeOvercommit(p overcommit.Plugin) *apportionv1.Overcommit {
	return &apportionv1.Overcommit{Factor: new(p.Factor)}
}

func readUndecided(m *apportionv1.Undecided, fault Fault) undecided.Plugin {
	if m.GetName() == "" {
		fault("name", "a plugin needs a name")
	}
	return undecided.Plugin{Called: m.GetName(), VotesOn: uint32(unmodelled[m.GetName()])}
}

func writeUndecided(p undecided.Plugin) *apportionv1.Undecided {
	return &apportionv1.Undecided{Name: p.Called}
}

func readKueue(m *apportionv1.Kueue, fault Fault) kueue.Plugin {
	return kueue.Plugin{Settings: wirekueue.Settings(m, wirekueue.Fault(fault)), Cluster: wirekueue.ClusterOf, Admitted: wirekueue.Admitted}
}

func writeKueue(p kueue.Plugin) *apportionv1.Kueue { return wirekueue.Message(&p.Settings) }

// The bounds of the settings of backfill.
const (
	maxBackfillJobs   = 10_000
	maxBackfillWindow = 365 * 24 * 60 * 60
	maxBackfillStep   = 24 * 60 * 60
)

func readBackfill(m *apportionv1.Backfill, fault Fault) backfill.Plugin {
	p := backfill.Default()
	switch m.GetKind() {
	case apportionv1.BackfillKind_BACKFILL_KIND_UNSPECIFIED, apportionv1.BackfillKind_BACKFILL_KIND_EASY:
	case apportionv1.BackfillKind_BACKFILL_KIND_CONSERVATIVE:
		p.Kind = backfill.Conservative
	default:
		fault("kind", "no kind %d", m.GetKind())
	}
	within := func(given *uint32, most uint32, field string) (int64, bool) {
		if given != nil && (*given < 1 || *given > most) {
			fault(field, "%d is not from 1 to %d", *given, most)
		}
		if given == nil {
			return 0, false
		}
		return int64(min(max(*given, 1), most)), true
	}
	if jobs, ok := within(m.MaxJobs, maxBackfillJobs, "max_jobs"); ok {
		p.Jobs = int(jobs)
	}
	if window, ok := within(m.WindowSeconds, maxBackfillWindow, "window_seconds"); ok {
		p.Window = window * int64(time.Second)
	}
	if step, ok := within(m.ResolutionSeconds, maxBackfillStep, "resolution_seconds"); ok {
		p.Resolution = step * int64(time.Second)
	}
	return p
}

func writeBackfill(p backfill.Plugin) *apportionv1.Backfill {
	return &apportionv1.Backfill{
		Kind: apportionv1.BackfillKind(p.Kind + 1), MaxJobs: new(uint32(p.Jobs)),
		WindowSeconds:     new(uint32(p.Window / int64(time.Second))),
		ResolutionSeconds: new(uint32(p.Resolution / int64(time.Second))),
	}
}
