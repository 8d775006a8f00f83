package policy

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSizesOfTypesAreThoseOfGo(t *testing.T) {
	for of, size := range map[reflect.Type]int{
		reflect.TypeFor[int32]():     int32Size,
		reflect.TypeFor[podClass]():  podClassSize,
		reflect.TypeFor[podFilter](): podFilterSize,
		reflect.TypeFor[podSpread](): podSpreadSize,
		reflect.TypeFor[podTable]():  podTableSize,
		reflect.TypeFor[tallyKey]():  tallyKeySize,
		reflect.TypeFor[tally]():     tallySize,
	} {
		require.Equal(t, int(of.Size()), size, of)
	}
}
