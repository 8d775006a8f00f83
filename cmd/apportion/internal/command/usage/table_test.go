package usage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
)

func TestHoursAreOfTheUnitsThatPeopleUse(t *testing.T) {
	for dimension, unit := range map[string]int64{
		"cpu": 1000, "memory": 1 << 30, "nvidia.com/gpu": 1000, "pods": 1, "ephemeral-storage": 1000 << 30, "hugepages-2Mi": 1000 << 30,
	} {
		r := &apportionv1alpha1.GetUsageResponse{Dimensions: []string{dimension}, Quanta: []uint64{1}}
		require.InDelta(t, 2, hoursIn(r, 0, 2*3600*unit), 1e-9, dimension)
	}
}

func TestNoCellOfACSVIsAFormula(t *testing.T) {
	var out strings.Builder
	require.NoError(t, writeUsage(&out, []used{{Begin: "2026-03-01", Queue: "=1+1", Owner: "@team", Resource: "cpu", Hours: -5, QuantumSeconds: -5}}))
	require.Equal(t, "begin,end,queue,owner,resource,hours,quantum_seconds\n2026-03-01,,'=1+1,'@team,cpu,-5.0000,-5\n", out.String())
}
