package decode

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

func TestStatusesOfTheContractMeanWhatThoseOfTheEngineMean(t *testing.T) {
	for number := range apportionv1.TaskStatus_name {
		written := apportionv1.TaskStatus(number)
		read, known := StatusOf(written)
		require.True(t, known)
		require.Equal(t, read.Holds(), lookup.Holds(written), written)
		require.Equal(t, read.Granted(), lookup.Granted(written), written)
		require.Equal(t, read.Occupies(), lookup.Occupies(written), written)
	}
}
