// Package fairshare reads the settings by which Slurm, KAI and Kueue share by past usage, and proposes the nearest of policy `fair` with
// memory: a policy, settings of the ledger, budgets and queues.
//
// Nothing is dropped in silence: notes say what is not carried over, or has another meaning.
package fairshare

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
	"github.com/apportion/apportion/internal/duration"
)

// System is a scheduler whose settings are read.
type System string

// The systems.
const (
	Slurm System = "slurm"
	KAI   System = "kai"
	Kueue System = "kueue"
)

// Systems lists all systems.
func Systems() []System { return []System{Slurm, KAI, Kueue} }

// memory and gpu are resources of Kubernetes, in bytes and devices.
const (
	memory = "memory"
	gpu    = "nvidia.com/gpu"
)

// Source is a file.
type Source struct {
	// Name is the file name that notes and errors show.
	Name string
	Data []byte
}

// Proposal is what is nearest to the settings.
type Proposal struct {
	Policy *apportionv1.Policy
	// HalfLife is that of usage; 0: usage does not count. Epoch divides it.
	HalfLife, Epoch time.Duration
	Queues          []Queue
	Budgets         []Budget
	// Notes say what is not carried over, or has another meaning.
	Notes []string
}

// Queue is a queue below another; an empty parent is the root. Amounts are quantities of Kubernetes by resource.
type Queue struct {
	Name, Parent         string
	Weight               uint32
	Priority             int32
	Deserved, Capability map[string]string
}

// Budget is the hours of each resource that a queue may use in the period that begins at a time.
type Budget struct {
	Queue string
	Begin time.Time
	Hours map[string]string
}

// Read reads the settings of a system. Periods of budgets begin at or before now.
func Read(system System, sources []Source, now time.Time) (*Proposal, error) {
	p := &proposal{settings: &apportionv1.FairMemory{}, now: now.UTC(), base: apportionv1.FairBase_FAIR_BASE_NONE}
	var err error
	switch system {
	case Slurm:
		err = p.slurm(sources)
	case KAI:
		err = p.kai(sources)
	case Kueue:
		err = p.kueue(sources)
	default:
		err = fmt.Errorf("no system %q is known", system)
	}
	if err != nil {
		return nil, err
	}
	fair := &apportionv1.Fair{Base: p.base, Turns: catalogue.Turns()}
	if p.HalfLife > 0 {
		fair.Memory = p.settings
	}
	p.Policy = &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Priority{Priority: &apportionv1.Priority{}}},
		{Plugin: &apportionv1.Plugin_Gang{Gang: &apportionv1.Gang{}}, DisabledDecisions: p.unprotected},
		{Plugin: &apportionv1.Plugin_Fair{Fair: fair}},
	}}}}
	if system == Kueue {
		asfair.Adapt(p.Policy)
	}
	p.names()
	slices.SortFunc(p.Queues, func(a, b Queue) int { return slices.Compare([]string{a.Parent, a.Name}, []string{b.Parent, b.Name}) })
	return &p.Proposal, nil
}

// proposal is a Proposal in the making.
type proposal struct {
	Proposal

	settings *apportionv1.FairMemory
	base     apportionv1.FairBase
	// unprotected are the decisions in which gangs are not protected.
	unprotected []apportionv1.Decision
	now         time.Time
}

// maxWeight is the greatest weight that Volcano's Queues take; the least is 1.
const maxWeight = 65535

// names notes what Kubernetes and Volcano refuse, and parents that are not there.
func (p *proposal) names() {
	known, parent := map[string]bool{"": true}, map[string]string{}
	for _, q := range p.Queues {
		known[q.Name], parent[q.Name] = true, q.Parent
	}
	for _, q := range p.Queues {
		if q.Weight < 1 || q.Weight > maxWeight {
			p.note("queue %s: Volcano takes weights from 1 to %d, not %d: state another one", q.Name, maxWeight, q.Weight)
		}
		above := q.Parent
		for range p.Queues {
			if above == "" || above == q.Name {
				break
			}
			above = parent[above]
		}
		if above == q.Name {
			p.note("queue %s is above itself, so that nothing is divided to it: give it another parent", q.Name)
		}
		if len(validation.IsDNS1123Subdomain(q.Name)) > 0 {
			p.note("queue %q: Kubernetes takes no such name, only lower case letters, digits, - and .: give it another one in all files "+
				"that are written, and import its usage with --path %s=NAME/…/root", q.Name, q.Name)
		}
		if !known[q.Parent] {
			p.note("queue %s: its parent %s is in none of the files, so that nothing is divided to it: add it", q.Name, q.Parent)
		}
	}
}

func (p *proposal) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// The lengths of an epoch, the longest first; a half-life has 8 epochs or more where it can, so that shares settle.
var epochs = []time.Duration{6 * time.Hour, time.Hour, 10 * time.Minute, time.Minute, time.Second}

// halfLife sets the half-life, rounded to whole epochs of which the ledger takes 1 to 512.
func (p *proposal) halfLife(half time.Duration) {
	const fewest, most = 8, 512
	if half <= 0 {
		return
	}
	p.Epoch = epochs[0]
	for _, p.Epoch = range epochs {
		if half >= fewest*p.Epoch {
			break
		}
	}
	p.HalfLife = min(max(half.Round(p.Epoch), p.Epoch), most*p.Epoch)
	if p.HalfLife != half {
		p.note("the half-life of %s becomes %s: it is 1 to %d epochs of %s",
			duration.Format(half), duration.Format(p.HalfLife), most, duration.Format(p.Epoch))
	}
}

// prices sets what the use of a whole unit costs: of a core, a byte of memory, a device.
func (p *proposal) prices(units map[string]*big.Rat) {
	quantum := func(name string) *big.Rat {
		switch name {
		case "cpu":
			return big.NewRat(1, 1000)
		case memory:
			return big.NewRat(1<<20, 1)
		}
		return big.NewRat(1, 1)
	}
	scaled, scale, greatest := map[string]*big.Rat{}, big.NewInt(1), new(big.Rat)
	for name, price := range units {
		x := new(big.Rat).Mul(price, quantum(name))
		scaled[name] = x
		if x.Cmp(greatest) > 0 {
			greatest = x
		}
		common := new(big.Int).GCD(nil, nil, scale, x.Denom())
		scale.Mul(scale, common.Div(x.Denom(), common))
	}
	factor := new(big.Rat).SetInt(scale)
	const most = 1 << 31
	if new(big.Rat).Mul(greatest, factor).Cmp(big.NewRat(most, 1)) > 0 {
		factor.Quo(big.NewRat(most, 1), greatest)
		p.note("prices are rounded to whole numbers up to %d", most)
	}
	list := &apportionv1.Prices{}
	for _, name := range slices.Sorted(maps.Keys(scaled)) {
		x := new(big.Rat).Mul(scaled[name], factor)
		amount := new(big.Int).Quo(x.Num(), x.Denom()).Uint64()
		if x.Sign() > 0 {
			list.Prices = append(list.Prices, &apportionv1.Price{Dimension: name, Amount: uint32(max(1, amount))})
		}
	}
	if len(list.GetPrices()) > 0 {
		p.settings.Prices = list
	}
}
