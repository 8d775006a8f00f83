package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// paced runs a pace of 500 ms, whose versions take some time, and returns when each began, and how long changes waited.
func paced(t *testing.T, takes, lasts time.Duration, fails int, changes func(p *pace)) (began, waited []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start, p := time.Now(), newPace(500*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		go changes(p)
		p.run(ctx, time.Minute, func(context.Context) bool {
			began = append(began, time.Since(start))
			time.Sleep(takes)
			fails--
			return fails < 0
		}, func(d time.Duration) { waited = append(waited, d) })
	})
	return began, waited
}

const ms = time.Millisecond

func TestAChangeAfterAPauseMakesAVersionAtOnce(t *testing.T) {
	began, waited := paced(t, 10*ms, 30*time.Second, 0, func(p *pace) {
		p.note()
		time.Sleep(10 * time.Second)
		p.note()
	})
	require.Equal(t, []time.Duration{0, 10 * time.Second}, began)
	require.Equal(t, []time.Duration{10 * ms, 10 * ms}, waited)
}

func TestThousandsOfChangesMakeOneVersionInEachInterval(t *testing.T) {
	began, waited := paced(t, 10*ms, 10*time.Second, 0, func(p *pace) {
		for range 10_000 {
			p.note()
			time.Sleep(ms)
		}
	})
	require.Len(t, began, 20)
	for i := range began[1:] {
		require.GreaterOrEqual(t, began[i+1]-began[i], 500*ms)
	}
	for _, d := range waited {
		require.LessOrEqual(t, d, 530*ms)
	}
	require.Greater(t, len(waited), 9_000)
}

func TestVersionsThatTakeLongTakeAQuarterOfTheTime(t *testing.T) {
	began, _ := paced(t, time.Second, 18*time.Second, 0, func(p *pace) {
		for range 175 {
			p.note()
			time.Sleep(100 * ms)
		}
	})
	require.Equal(t, []time.Duration{0, 4 * time.Second, 8 * time.Second, 12 * time.Second, 16 * time.Second}, began)
}

func TestAVersionThatFailsIsMadeAgainAndItsChangesStayLate(t *testing.T) {
	began, waited := paced(t, 0, 10*time.Second, 2, func(p *pace) { p.note() })
	require.Equal(t, []time.Duration{0, 500 * ms, 1000 * ms}, began)
	require.Equal(t, []time.Duration{1000 * ms}, waited)
}

func TestAVersionIsMadeEveryMinuteWithoutChanges(t *testing.T) {
	began, waited := paced(t, 0, 150*time.Second, 0, func(*pace) {})
	require.Len(t, began, 2)
	require.Empty(t, waited)
}

func TestAFloodOfChangesTakesNoMoreMemoryThanItsFirst(t *testing.T) {
	p := newPace(time.Second)
	for range 3 * maxArrivals {
		p.note()
	}
	first, behind := p.since()
	require.True(t, behind)
	require.Len(t, p.take(), maxArrivals)
	p.note()
	require.Len(t, p.take(), maxArrivals, "a version that failed")
	again, _ := p.since()
	require.Equal(t, first, again)
	p.note()
	p.made()
	_, behind = p.since()
	require.True(t, behind)
}
