package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/policy"
)

func TestAReservationNamesItsJobToThoseAloneWhoSeeIt(t *testing.T) {
	reason := policy.Reason{Code: policy.Reserved, Queue: 1, Detail: "secret/gang", Dimension: -1}
	for name, c := range map[string]struct {
		audience *Audience
		want     string
	}{
		"everybody sees all":       {nil, "secret/gang"},
		"the owner of its queue":   {&Audience{owns: []bool{false, true}}, "secret/gang"},
		"an owner of another one":  {&Audience{owns: []bool{true, false}}, ""},
		"an owner of no queue yet": {&Audience{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := encoder{audience: c.audience, left: 1 << 20}
			require.Equal(t, c.want, e.reason(&reason).GetDetail())
		})
	}
}
