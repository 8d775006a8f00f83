package text

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestWhatIsReservedOfANodeIsPutIntoWords(t *testing.T) {
	names := Names{Dimensions: []string{"cpu", "nvidia.com/gpu"}}
	const three, five = 1772463600e9, 1772470800e9
	for want, c := range map[string]struct {
		holder string
		kept   *apportionv1.NodeReservation
	}{
		"the whole node for maintenance from 2026-03-02 15:00:00 UTC to 2026-03-02 17:00:00 UTC": {
			"", &apportionv1.NodeReservation{StartUnixNano: three, EndUnixNano: five, Reason: "maintenance"},
		},
		"4 nvidia.com/gpu for language/pretrain-7b from 2026-03-02 15:00:00 UTC on": {
			"language/pretrain-7b",
			&apportionv1.NodeReservation{StartUnixNano: three, Request: &apportionv1.Resource{Dimensions: []uint32{1}, Amounts: []float64{4000}}},
		},
		"the whole node for ns/j (demo) until 2026-03-02 17:00:00 UTC": {
			"ns/j", &apportionv1.NodeReservation{EndUnixNano: five, Reason: "demo"},
		},
		"the whole node": {"", &apportionv1.NodeReservation{}},
	} {
		require.Equal(t, want, Reserved(names, c.holder, c.kept))
	}
}
