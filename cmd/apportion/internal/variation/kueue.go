package variation

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/quantity"
)

// clusterQueue are the fields of a ClusterQueue. RESOURCE is RESOURCE@FLAVOR if several flavors have the resource.
var clusterQueue = fields{
	"weight":     queueField((*setting).fairWeight),
	"cohort":     queueField((*setting).cohort),
	"stopPolicy": queueField((*setting).stopPolicy),
	"nominal.": quotaField(func(s *setting, q *apportionv1.Quota, at uint32) error {
		if s.value == none {
			return errors.New("a nominal quota is needed: 0 is the least")
		}
		return s.limit(&q.Nominal, at)
	}),
	"borrowingLimit.": quotaField(func(s *setting, q *apportionv1.Quota, at uint32) error { return s.limit(&q.BorrowingLimit, at) }),
	"lendingLimit.":   quotaField(func(s *setting, q *apportionv1.Quota, at uint32) error { return s.limit(&q.LendingLimit, at) }),
}

// quotaField applies a change to the quota of a dimension of a ClusterQueue.
func quotaField(apply func(*setting, *apportionv1.Quota, uint32) error) func(*setting) error {
	return queueField(func(s *setting, q *apportionv1.Queue) error {
		resource, flavor, flavored := strings.Cut(s.resource, "@")
		var found *apportionv1.Quota
		var there []string
		matching, at := 0, uint32(0)
		for _, o := range q.GetKueue().GetQuotas() {
			for _, d := range o.GetNominal().GetDimensions() {
				name := s.edit.names[d]
				there = append(there, name+"@"+o.GetNodeSet())
				meant := name == resource || strings.HasSuffix(name, "/"+resource)
				if meant && (!flavored || o.GetNodeSet() == flavor) {
					matching++
					found, at = o, d
				}
			}
		}
		switch {
		case len(there) == 0:
			return fmt.Errorf("queue %s has no quota of Kueue", q.GetName())
		case matching == 0:
			return fmt.Errorf("the queue has no quota of %s; it has %s", s.resource, lookup.Some(there))
		case matching > 1:
			return fmt.Errorf("several flavors have %s: name one of %s", resource, lookup.Some(there))
		}
		s.resource = resource
		if flavored {
			s.resource += "@" + flavor
		}
		return apply(s, found, at)
	})
}

// kueueAmount reads an amount of whole units of Kueue, rounded up.
func (s *setting) kueueAmount(resource string) (float64, error) {
	number, err := quantity.Number(s.value)
	switch {
	case err != nil:
		return 0, err
	case number.Sign() < 0:
		return 0, fmt.Errorf("%s is negative", s.value)
	case resource == "cpu":
		number.Mul(number, big.NewRat(1000, 1))
	}
	amount, fits := quantity.RoundUp(number)
	if !fits {
		return math.Inf(1), nil
	}
	wire := wirekueue.Wire(resource, kueue.Amount(amount))
	if back, exact := wirekueue.Amount(resource, wire); !exact || int64(back) != amount {
		return 0, fmt.Errorf("%s is too large to be judged exactly", s.value)
	}
	return wire, nil
}

// limit sets an amount of a dimension, or removes it.
func (s *setting) limit(of **apportionv1.Resource, d uint32) error {
	resource, amount := s.edit.names[d], math.NaN()
	if s.value != none {
		var err error
		if amount, err = s.kueueAmount(resource); err != nil {
			return err
		}
	}
	if *of == nil {
		*of = &apportionv1.Resource{}
	}
	r := *of
	at := slices.Index(r.GetDimensions(), d)
	s.before, s.after = none, none
	switch {
	case at < 0 && s.value != none:
		s.after = quantity.Short(resource, amount)
		r.Dimensions, r.Amounts = append(r.Dimensions, d), append(r.Amounts, amount)
	case at >= 0 && s.value == none:
		s.before = quantity.Short(resource, r.GetAmounts()[at])
		r.Dimensions, r.Amounts = slices.Delete(r.Dimensions, at, at+1), slices.Delete(r.Amounts, at, at+1)
	case at >= 0:
		shown := quantity.Alike(resource, r.GetAmounts()[at], amount)
		s.before, s.after, r.Amounts[at] = shown[0], shown[1], amount
	}
	return nil
}

// ofKueue returns what Kueue has of a queue.
func ofKueue(q *apportionv1.Queue) (*apportionv1.KueueQueue, error) {
	if q.GetKueue() == nil || q.GetKueue().GetCohort() {
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
	if _, err := ofKueue(q); err != nil {
		return err
	}
	s.before, s.after = cmp.Or(q.GetParent(), none), s.value
	if q.Parent = s.value; s.value == none {
		q.Parent = ""
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
