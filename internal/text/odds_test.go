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

func TestOddsSayThatTheLoadChanges(t *testing.T) {
	a := &apportionv1.ForecastAnswer{Kind: apportionv1.ForecastKind_FORECAST_KIND_ODDS, Uid: "j", Runs: 20, P50: new(int64), P90: new(int64)}
	for want, d := range map[string]*apportionv1.ForecastDrift{
		"at the end of the history 1.9 times as many jobs arrive a day and 1.7 times as long do jobs run as at its begin. The chances are " +
			"those of the load as it was, so that the start may well be later.": {Arrivals: 1.94, Runtimes: 1.7},
		"0.5 times as long do jobs run as at its begin. The chances are those of the load as it was, so that the start may well be " +
			"earlier.": {Runtimes: 0.5},
		"The chances are those of the load as it was, not as it will be.": {Arrivals: 3, Runtimes: 0.5},
	} {
		a.Drift = d
		require.Contains(t, Odds(Names{}, a), want)
	}
	a.Drift = nil
	require.NotContains(t, Odds(Names{}, a), "load")
}
