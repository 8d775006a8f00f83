package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestAForecastSaysThatNoRoomIsKeptUntilThen(t *testing.T) {
	e := &apportionv1.Explanation{Name: "lab/notebook", WaitingTasks: 1, Forecast: &apportionv1.Forecast{
		Outcome: apportionv1.ForecastOutcome_FORECAST_OUTCOME_AT, Time: 1772474400e9,
	}}
	require.Equal(t, "lab/notebook could start by 2026-03-02 18:00:00 UTC if nothing else changes.", strings.Join(strings.Fields(Forecast(Names{}, e)), " "))
	e.Forecast.Unkept = true
	require.Equal(t, "lab/notebook could start at 2026-03-02 18:00:00 UTC at the earliest if nothing else changes. The time is that of a plan of all jobs "+
		"before it. No room is kept for it until then: jobs that come later may start first.", strings.Join(strings.Fields(Forecast(Names{}, e)), " "))
}
