package budget_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/budget"
)

func TestBudgetsAreHoursOfQuantities(t *testing.T) {
	budgets, err := budget.Read([]byte(`
budgets:
  - queue: vision
    kind: hard
    periods:
      - {begin: 2026-10-01, hours: {nvidia.com/gpu: 5000, cpu: "1500m", memory: 2Gi}}
      - {begin: "2026-12-31T06:00:00Z", hours: {nvidia.com/gpu: 0}}
  - {queue: language, kind: soft, carry: false, periods: [{begin: 2026-10-01, hours: {cpu: 1}}]}
`), ledger.Options{})
	require.NoError(t, err)
	require.Equal(t, []ledger.Budget{
		{Queue: "vision", Hard: true, Periods: []ledger.Period{
			{Begin: 1790812800, Amount: map[string]int64{"nvidia.com/gpu": 5000 * 3600, "cpu": 1500 * 3600, "memory": 2048 * 3600}},
			{Begin: 1798696800, Amount: map[string]int64{"nvidia.com/gpu": 0}},
		}},
		{Queue: "language", Free: true, Periods: []ledger.Period{{Begin: 1790812800, Amount: map[string]int64{"cpu": 3600000}}}},
	}, budgets)
	budgets, err = budget.Read(nil, ledger.Options{})
	require.NoError(t, err)
	require.Empty(t, budgets)
}

func TestEveryFaultOfAFileOfBudgetsIsNamed(t *testing.T) {
	_, err := budget.Read([]byte(`
budgets:
  - {kind: firm}
  - {queue: a, kind: soft, periods: [{begin: 2026-10-02, hours: {cpu: much}}, {begin: 2026-10-01, hours: {}}, {begin: soon, hours: {cpu: 1e40}}]}
  - {queue: a, kind: soft, periods: [{begin: 2026-10-02, hours: {cpu: -1}}]}
`), ledger.Options{})
	for _, fault := range []string{
		"budgets[0].queue: the budget names no queue", `budgets[0].kind: hard or soft is expected, not "firm"`, "budgets[0].periods: there is none",
		"budgets[1].periods[0].hours.cpu: ", "budgets[1].periods: they are not in order of begin", "budgets[1].periods[1].hours: there is none",
		`budgets[1].periods[2].begin: a date such as 2026-10-01`, "budgets[1].periods[2].hours.cpu: ", `budgets[2].queue: "a" has two budgets`,
		"budgets[2].periods[0].hours.cpu: ",
	} {
		require.ErrorContains(t, err, fault)
	}
	_, err = budget.Read([]byte("budget: []"), ledger.Options{})
	require.ErrorContains(t, err, "field budget not found")
}
