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
		0: "0s", time.Second: "1s", time.Minute: "1m", time.Hour: "1h", 36 * time.Hour: "36h", 48 * time.Hour: "2d", 168 * time.Hour: "7d", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 10 * time.Hour: "10h", 1500 * time.Millisecond: "1.5s",
		30 * time.Millisecond: "30ms", -time.Hour: "-1h", -50 * time.Hour: "-2d2h", 268*time.Hour + time.Second: "11d4h0m1s", 20 * time.Second: "20s",
	} {
		require.Equal(t, want, duration.Format(d))
	}
}

func TestFormatIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "duration"))
		read, err := duration.Parse(duration.Format(d))
		require.NoError(t, err)
		require.Equal(t, d, read)
	})
}

// The page's test has the same cases: ui/test/duration.test.ts.
func TestRoughIsAsPreciseAsItMatters(t *testing.T) {
	for seconds, want := range map[int64]string{
		0: "0s", 59: "59s", 60: "1m", 89: "1m", 90: "2m", 3599: "1h", 3600: "1h", 5999: "1h40m", 172_769: "47h59m", 172_799: "2d", 172_800: "2d", 1_000_000: "11d14h",
		-90: "-2m", math.MaxInt64: "106751d23h", math.MinInt64: "-106751d23h",
	} {
		require.Equal(t, want, duration.Seconds(seconds))
	}
	require.Equal(t, "1s", duration.Rough(1499*time.Millisecond))
}

func TestDaysAreReadWhereverHoursAre(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"7d": 168 * time.Hour, "1.5d": 36 * time.Hour, "11d4h": 268 * time.Hour, "-2d2h": -50 * time.Hour, "+1d": 24 * time.Hour, "0d": 0,
		"2d1h30m5s": 49*time.Hour + 30*time.Minute + 5*time.Second, "168h": 168 * time.Hour, "0": 0, "106751d23h47m16.854775807s": math.MaxInt64, "-106751d23h47m16.854775808s": math.MinInt64, "2d0s": 48 * time.Hour, "-2d0s": -48 * time.Hour,
		"-0d5h": -5 * time.Hour,
	} {
		got, err := duration.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "d", "-d", "7", "1h2d", "2d-1h", "2d+1h", "1d1d", "2d3", "1w", "106752d", "106751d24h", "-106752d", "-106751d24h", "106751d23h47m16.854775808s", "d5h", "1dd", "NaNd", "1e3d", "--1d"} {
		_, err := duration.Parse(text)
		require.Error(t, err, text)
	}
}
