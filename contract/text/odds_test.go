package text

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestRunsOfWhichNoneGotFarSayNothingOfTheStart(t *testing.T) {
	a := &apportionv1.ForecastAnswer{Kind: apportionv1.ForecastKind_FORECAST_KIND_ODDS, Runs: 20, CutShort: 20, Horizon: 30 * 24 * 3600}
	require.Equal(t, "When #0 starts is not known, because 20 runs ended at a bound on work before it did. "+
		"Ask for fewer runs, or with a shorter history.", Odds(Names{}, a))
	a.Runs, a.CutShort = 1, 1
	require.Equal(t, "When #0 starts is not known, because 1 run ended at a bound on work before it did. "+
		"Ask with a shorter history.", Odds(Names{}, a))
	a.Runs = 20
	require.Contains(t, Odds(Names{}, a), "does not start within 30d in any of 20 runs. The chance to start within an hour is 0 %. "+
		"1 run ended at a bound on work and counts as not started.")
}
