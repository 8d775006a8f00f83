package duration_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/internal/duration"
)

func TestFormatLeavesOutUnitsThatAreZero(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", time.Hour: "1h", 168 * time.Hour: "168h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 10 * time.Hour: "10h", 1500 * time.Millisecond: "1.5s",
		30 * time.Millisecond: "30ms", -time.Hour: "-1h", 20 * time.Second: "20s",
	} {
		require.Equal(t, want, duration.Format(d))
	}
}

func TestFormatIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "duration"))
		read, err := time.ParseDuration(duration.Format(d))
		require.NoError(t, err)
		require.Equal(t, d, read)
	})
}

// The page's test has the same cases: ui/test/duration.test.ts.
func TestRoughIsAsPreciseAsItMatters(t *testing.T) {
	for seconds, want := range map[int64]string{
		0: "0s", 59: "59s", 60: "1m", 89: "1m", 90: "2m", 3599: "1h", 3600: "1h", 5999: "1h40m", 172_769: "47h59m", 172_799: "48h", 172_800: "48h", 1_000_000: "278h",
		-90: "-2m", math.MaxInt64: "2562047h", math.MinInt64: "-2562047h",
	} {
		require.Equal(t, want, duration.Seconds(seconds))
	}
	require.Equal(t, "1s", duration.Rough(1499*time.Millisecond))
}
