package variation

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
	"github.com/apportion/apportion/internal/text"
)

// clusterQueue are the fields of a ClusterQueue. RESOURCE is RESOURCE@FLAVOR if several flavors have the resource.
var clusterQueue = fields{
	"weight":     queueField((*setting).fairWeight),
	"cohort":     queueField((*setting).cohort),
	"stopPolicy": queueField((*setting).stopPolicy),
	"nominal.": quotaField(func(s *setting, q *apportionv1.KueueQuota) error {
		if s.value == none {
			return errors.New("a nominal quota is needed: 0 is the least")
		}
		was := q.GetNominal()
		n, err := s.kueueAmount(q.GetName())
		if err == nil {
			shown := text.KueueQuantities(q.GetName(), was, *n)
			q.Nominal, s.before, s.after = *n, shown[0], shown[1]
		}
		return err
	}),
	"borrowingLimit.": quotaField(func(s *setting, q *apportionv1.KueueQuota) error { return s.limit(q.GetName(), &q.BorrowingLimit) }),
	"lendingLimit.":   quotaField(func(s *setting, q *apportionv1.KueueQuota) error { return s.limit(q.GetName(), &q.LendingLimit) }),
}

// quotaField applies a change to the quota of a resource of a ClusterQueue.
func quotaField(apply func(*setting, *apportionv1.KueueQuota) error) func(*setting) error {
	return queueField(func(s *setting, q *apportionv1.Queue) error {
		resource, flavor, flavored := strings.Cut(s.resource, "@")
		var found []*apportionv1.KueueQuota
		var there []string
		for _, g := range q.GetKueue().GetGroups() {
			for _, f := range g.GetFlavors() {
				for _, quota := range f.GetResources() {
					there = append(there, quota.GetName()+"@"+f.GetName())
					meant := quota.GetName() == resource || strings.HasSuffix(quota.GetName(), "/"+resource)
					if meant && (!flavored || f.GetName() == flavor) {
						found = append(found, quota)
					}
				}
			}
		}
		switch {
		case len(there) == 0:
			return fmt.Errorf("queue %s has no quota of Kueue", q.GetName())
		case len(found) == 0:
			return fmt.Errorf("the queue has no quota of %s; it has %s", s.resource, lookup.Some(there))
		case len(found) > 1:
			return fmt.Errorf("several flavors have %s: name one of %s", resource, lookup.Some(there))
		}
		s.resource = resource
		if flavored {
			s.resource += "@" + flavor
		}
		return apply(s, found[0])
	})
}

// kueueAmount reads an amount in Kueue's units: thousandths of a CPU, whole units of everything else, rounded up.
func (s *setting) kueueAmount(resource string) (*int64, error) {
	number, err := quantity.Number(s.value)
	switch {
	case err != nil:
		return nil, err
	case number.Sign() < 0:
		return nil, fmt.Errorf("%s is negative", s.value)
	case resource == "cpu":
		number.Mul(number, big.NewRat(1000, 1))
	}
	amount, fits := quantity.RoundUp(number)
	if !fits {
		amount = math.MaxInt64
	}
	return &amount, nil
}

// limit sets a limit, or removes it.
func (s *setting) limit(resource string, at **int64) error {
	show := func(n *int64) string {
		if n == nil {
			return none
		}
		return text.KueueQuantity(resource, *n)
	}
	var n *int64
	if s.value != none {
		var err error
		if n, err = s.kueueAmount(resource); err != nil {
			return err
		}
	}
	s.before, s.after = show(*at), show(n)
	if *at != nil && n != nil {
		shown := text.KueueQuantities(resource, **at, *n)
		s.before, s.after = shown[0], shown[1]
	}
	*at = n
	return nil
}

// ofKueue returns what Kueue has of a queue.
func ofKueue(q *apportionv1.Queue) (*apportionv1.KueueQueue, error) {
	if q.GetKueue() == nil {
		return nil, fmt.Errorf("queue %s is no ClusterQueue", q.GetName())
	}
	return q.GetKueue(), nil
}

// fairWeight sets the fair weight, which may be a fraction.
func (s *setting) fairWeight(q *apportionv1.Queue) error {
	own, err := ofKueue(q)
	if err != nil {
		return err
	}
	weight, err := quantity.Number(s.value)
	if err != nil || weight.Sign() < 0 {
		return fmt.Errorf("a number of at least 0 is expected, not %q", s.value)
	}
	was := 1.0
	if own.Weight != nil {
		was = own.GetWeight()
	}
	exact, _ := weight.Float64()
	own.Weight = &exact
	s.before, s.after = fmt.Sprint(was), fmt.Sprint(own.GetWeight())
	return nil
}

// cohort moves a queue to a cohort, or to none.
func (s *setting) cohort(q *apportionv1.Queue) error {
	own, err := ofKueue(q)
	if err != nil {
		return err
	}
	s.before, s.after = own.GetCohort(), s.value
	if s.before == "" {
		s.before = none
	}
	if own.Cohort = s.value; s.value == none {
		own.Cohort = ""
	}
	return nil
}

// stopPolicy stops a queue or lets it admit.
func (s *setting) stopPolicy(q *apportionv1.Queue) error {
	own, err := ofKueue(q)
	if err != nil {
		return err
	}
	policies := []string{"None", "Hold", "HoldAndDrain"}
	if !slices.Contains(policies, s.value) {
		return fmt.Errorf("one of None, Hold and HoldAndDrain is expected, not %q", s.value)
	}
	s.before, s.after = "None", s.value
	if own.GetStopped() {
		s.before = "stopped"
	}
	own.Stopped = s.value != "None"
	return nil
}
