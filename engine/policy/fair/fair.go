// Package fair divides a cluster through the tree of queues by guarantee, weight and limit in whole quanta, lends what no entitled queue
// can use now, and takes resources back only by plans that cannot go in circles. Its rules are docs/fair.md.
//
// All arithmetic is exact: amounts are integers, levels and potentials are fractions. Accounts follow the statuses of tasks, so the answers
// after any sequence of events are those of a snapshot that has these statuses.
package fair

import (
	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/division"
	"github.com/apportion/apportion/engine/resource"
)

const name = "fair"

// Base says what weights are applied on top of.
type Base = division.Base

// The bases.
const (
	OnNothing   = division.OnNothing
	OnGuarantee = division.OnGuarantee
	OnDeserved  = division.OnDeserved
)

// Quantum is the amount in which a dimension is given.
type Quantum struct {
	Dimension string
	Amount    int64
}

// Plugin is the policy with its settings.
type Plugin struct {
	Base Base
	// ReserveGuarantee withholds unused guarantees from borrowers.
	ReserveGuarantee bool
	// Quanta replace the default quanta, which are 1 of cpu and pods, 1 MiB of memory and 1000 of everything else. Amounts are at least 1;
	// no dimension is named twice.
	Quanta []Quantum
	// Memory says how past usage counts if the snapshot has a memory. Its zero value is one without any gain; see DefaultMemory.
	Memory Memory
	// Turns lets gangs hold reservations if the snapshot says what queues were entitled to. nil: none does.
	Turns *Turns
}

// Name is "fair"; Volcano has no such plugin.
func (Plugin) Name() string { return name }

// Excludes names the plugin backfill: evictions are planned on no node of which a part is kept for others, so that room which is kept for a
// borrower would keep a queue from what it is entitled to. Two reservations would also keep each other from starting.
func (Plugin) Excludes(other string) string {
	if other == "backfill" {
		return "it would keep room for borrowers on nodes from which entitled queues take back; turns {} of fair keep room for gangs"
	}
	return ""
}

// State is the plugin in a session.
type State struct {
	v      *policy.View
	plugin Plugin
	tree   tree
	width  int
	// dims are all dimensions in the order in which the snapshot names them.
	dims []int
	// quantum is the amount in which each dimension is given.
	quantum []int64
	// requests are those of the model's, in whole amounts.
	requests []request
	fitting  map[restricted]bool
	limits   []limit
	accounts accounts
	// memory is nil if the snapshot has none.
	memory   *memory
	owned    *owned
	division dividing
	// version tells states of the accounts apart; what is derived from them is valid for one version. latest is that of the newest state: a
	// rollback returns to an older version.
	version, latest uint64
	blocks          blocks
	order           order
	claims          claims
	rooms           rooms
	inqueue         inqueue
	// turns is nil if no gang can hold a reservation.
	turns        *Turns
	reservations reservations
	ends         ends
	scratch      scratch
	// back is moveBack and again versionAgain, made once.
	back, again func(a, b uint64)
}

// Open accounts for every task and divides the cluster.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	s := &State{v: v, plugin: p, width: v.Dims.Len(), dims: v.GivenDimensions()}
	s.back, s.again = s.moveBack, s.versionAgain
	s.quantum = p.quanta(v.Dims)
	if err := s.checkAmounts(); err != nil {
		return nil, err
	}
	s.tree.grow(v)
	s.openMemory()
	s.openOwners()
	s.limits = s.readLimits()
	var err error
	if s.requests, err = s.readRequests(); err != nil {
		return nil, err
	}
	if err := s.readRestricted(); err != nil {
		return nil, err
	}
	if err := s.openAccounts(); err != nil {
		return nil, err
	}
	s.division.open(s.width)
	s.scratch.open(s.width)
	s.settle()
	if v.Stop != nil && v.Stop() {
		return nil, policy.ErrStopped
	}
	if s.takesTurns() {
		s.openTurns()
		return &turning{s}, nil
	}
	return s, nil
}

func (p Plugin) quanta(dims resource.Dimensions) []int64 {
	quanta := make([]int64, dims.Len())
	for d := range quanta {
		switch dims.Name(d) {
		case "cpu", "pods":
			quanta[d] = 1
		case "memory":
			quanta[d] = 1 << 20
		default:
			quanta[d] = 1000
		}
	}
	for _, q := range p.Quanta {
		if d, ok := dims.Index(q.Dimension); ok {
			quanta[d] = max(q.Amount, 1)
		}
	}
	return quanta
}

// row returns the amounts of a place within a table.
func (s *State) row(table []int64, p place) []int64 {
	return table[int(p)*s.width : (int(p)+1)*s.width : (int(p)+1)*s.width]
}

// Refused returns why a queue is set aside: 0 if it takes part.
func (s *State) Refused(q model.QueueID) hierarchy.Kind { return s.tree.refused[q] }

// scratch is working memory of single questions.
type scratch struct {
	// request is a sum of requests within the plugin, asked one that a question is about.
	request, asked []int64
	trial          trial
	// rows are those of a share.
	rows []resource.Row
	// supposed is nil until it is first needed.
	supposed *supposed
	exceeded []excess
}

func (s *scratch) open(width int) {
	cells := make([]int64, 2*width)
	s.request, s.asked = cells[:width:width], cells[width:]
}
