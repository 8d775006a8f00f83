package policytest

import (
	"math/big"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/policy/division"
)

// Signpost is where a child of a division is given a quantum: Odd / (2 Weight), among equals the first child.
type Signpost struct {
	Odd, Weight int64
	Child       int
}

// Before reports whether a signpost comes first.
func (s Signpost) Before(o Signpost) bool {
	l, r := new(big.Int).Mul(big.NewInt(s.Odd), big.NewInt(o.Weight)), new(big.Int).Mul(big.NewInt(o.Odd), big.NewInt(s.Weight))
	by := l.Cmp(r)
	return by < 0 || by == 0 && s.Child < o.Child
}

// RequireProven checks that a division's shares are within their bounds, add up, and that no quantum should be elsewhere.
func RequireProven(t require.TestingT, p *division.Problem) {
	given, most := int64(0), int64(0)
	var last, next *Signpost
	for i, share := range p.Share {
		start, ceiling := p.From(i), p.Ceiling[i]
		require.True(t, start <= share && share <= ceiling)
		given += share
		most += start
		if p.Weight[i] == 0 {
			require.Equal(t, start, share)
			continue
		}
		most += ceiling - start
		if a := (Signpost{2*(share-p.Zero(i)) - 1, p.Weight[i], i}); share > start && (last == nil || last.Before(a)) {
			last = &a
		}
		if a := (Signpost{2*(share-p.Zero(i)) + 1, p.Weight[i], i}); share < ceiling && (next == nil || a.Before(*next)) {
			next = &a
		}
	}
	starts := int64(0)
	for i := range p.Share {
		starts += p.From(i)
	}
	require.Equal(t, max(starts, min(p.Amount, most)), given)
	if last != nil && next != nil {
		require.True(t, last.Before(*next))
	}
}
