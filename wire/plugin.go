package wire

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/binpack"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/cooldown"
	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/hdrf"
	"github.com/apportion/apportion/engine/policy/nodegroup"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/policy/undecided"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// plugin returns a plugin with its settings, and nil with a fault where there is none.
func plugin(p *apportionv1.Plugin, path string, faults *model.Error) policy.Plugin {
	switch settings := p.GetPlugin().(type) {
	case *apportionv1.Plugin_Proportion:
		return proportion.Plugin{}
	case *apportionv1.Plugin_Capacity:
		return capacity.Plugin{
			Hierarchical:         settings.Capacity.GetHierarchical(),
			AncestorReclaimLevel: int(max(settings.Capacity.GetAncestorReclaimLevel(), 0)),
		}
	case *apportionv1.Plugin_Drf:
		return drf.Plugin{}
	case *apportionv1.Plugin_HierarchicalDrf:
		return hdrf.Plugin{}
	case *apportionv1.Plugin_Gang:
		return gang.Plugin{}
	case *apportionv1.Plugin_Priority:
		return priority.Plugin{}
	case *apportionv1.Plugin_Conformance:
		return conformance.Plugin{}
	case *apportionv1.Plugin_Cooldown:
		return cooldown.Plugin{}
	case *apportionv1.Plugin_Binpack:
		return binpackPlugin(settings.Binpack, path+".binpack.", faults)
	case *apportionv1.Plugin_NodeGroup:
		return nodegroupPlugin(settings.NodeGroup)
	case *apportionv1.Plugin_Overcommit:
		return overcommitPlugin(settings.Overcommit, path+".overcommit.", faults)
	case *apportionv1.Plugin_Undecided:
		if settings.Undecided.GetName() == "" {
			faults.Add(path+".undecided.name", "a plugin needs a name")
		}
		return undecided.Plugin{Called: settings.Undecided.GetName()}
	}
	faults.Add(path+".plugin", "no plugin is named that this version knows")
	return nil
}

func binpackPlugin(settings *apportionv1.Binpack, path string, faults *model.Error) policy.Plugin {
	p := binpack.Default()
	number(settings.GetWeight(), settings != nil && settings.Weight != nil, &p.Weight, path+"weight", faults)
	number(settings.GetCpu(), settings != nil && settings.Cpu != nil, &p.CPU, path+"cpu", faults)
	number(settings.GetMemory(), settings != nil && settings.Memory != nil, &p.Memory, path+"memory", faults)
	for i, r := range settings.GetResources() {
		w := binpack.Weight{Name: r.GetName(), Weight: 1}
		number(r.GetWeight(), r != nil && r.Weight != nil, &w.Weight, indexed(path+"resources", i)+".weight", faults)
		p.Resources = append(p.Resources, w)
	}
	return p
}

func nodegroupPlugin(settings *apportionv1.NodeGroup) policy.Plugin {
	p := nodegroup.Default()
	if settings != nil && settings.Strict != nil {
		p.Strict = *settings.Strict
	}
	p.PreferredOrder, p.Hierarchical = settings.GetPreferredOrder(), settings.GetHierarchical()
	return p
}

func overcommitPlugin(settings *apportionv1.Overcommit, path string, faults *model.Error) policy.Plugin {
	p := overcommit.Default()
	number(settings.GetFactor(), settings != nil && settings.Factor != nil, &p.Factor, path+"factor", faults)
	return p
}

// number sets a setting that was given.
func number(x float64, given bool, setting *float64, path string, faults *model.Error) {
	switch {
	case !given:
	case math.IsNaN(x) || math.IsInf(x, 0):
		faults.Add(path, "%g is not a finite number", x)
	default:
		*setting = x
	}
}
