package quantity_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/quantity"
)

func TestParseReadsEachDimensionInItsUnit(t *testing.T) {
	for _, test := range []struct {
		name, dimension, text string
		amount                float64
	}{
		{"cores are thousands of milli-cores", "cpu", "2", 2000},
		{"milli-cores are as written", "cpu", "500m", 500},
		{"less than a milli-core rounds up", "cpu", "100u", 1},
		{"binary units of memory", "memory", "4Gi", 4 << 30},
		{"decimal units of memory", "memory", "1G", 1e9},
		{"a fraction of a byte rounds up", "memory", "1500m", 2},
		{"pods are whole", "pods", "110", 110},
		{"a GPU is a thousand", "nvidia.com/gpu", "8", 8000},
		{"zero is zero", "cpu", "0", 0},
		{"exponents", "memory", "1e3", 1000},
		{"no limit", "cpu", "unlimited", math.Inf(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			amount, err := quantity.Parse(test.dimension, test.text)
			require.NoError(t, err)
			require.Equal(t, test.amount, amount)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "NaN", "Inf", "abc", "-1", "-1m", "1 Gi", "0x10", "9223372036854776", "1e16", "1e18", "8Ei", "1e30"} {
		t.Run(text, func(t *testing.T) {
			_, err := quantity.Parse("cpu", text)
			require.ErrorContains(t, err, `"`+text+`"`)
		})
	}
	for _, text := range []string{"1e999999999", "1E-99999999999999999999", strings.Repeat("1", 101)} {
		_, err := quantity.Parse("cpu", text)
		require.ErrorContains(t, err, "than any real one", text)
	}
}

func TestParseTakesWhatFitsInto64Bits(t *testing.T) {
	for dimension, largest := range map[string]string{"cpu": "9223372036854775807m", "memory": "9223372036854775807", "pods": "9223372036854775807"} {
		amount, err := quantity.Parse(dimension, largest)
		require.NoError(t, err, dimension)
		require.Equal(t, float64(math.MaxInt64), amount, dimension)
	}
	_, err := quantity.Parse("memory", "93e17")
	require.Error(t, err)
}

func TestFormatIsKubernetesNotation(t *testing.T) {
	for _, test := range []struct {
		dimension     string
		amount        float64
		format, short string
	}{
		{"cpu", 0, "0", "0"},
		{"cpu", 500, "500m", "0.5"},
		{"nvidia.com/gpu", 1, "1m", "0.001"},
		{"cpu", 2500, "2500m", "2.5"},
		{"cpu", 64000, "64", "64"},
		{"cpu", 8000.0 / 3, "2.667", "2.67"},
		{"cpu", 0.25, "0", "0"},
		{"cpu", -1500, "-1500m", "-1.5"},
		{"memory", 10 << 30, "10Gi", "10Gi"},
		{"memory", 10<<30 + 1, "10737418241", "10Gi"},
		{"memory", 32 << 30 / 3.0, "11453246123", "10.67Gi"},
		{"memory", 1536 << 30, "1536Gi", "1536Gi"},
		{"memory", 1000, "1k", "1000"},
		{"ephemeral-storage", 1800 << 30 * 1000, "1800Gi", "1800Gi"},
		{"hugepages-2Mi", 64 << 20 * 1000, "64Mi", "64Mi"},
		{"pods", 110, "110", "110"},
		{"pods", 36.5, "36.5", "36.5"},
		{"nvidia.com/gpu", 8000, "8", "8"},
		{"cpu", math.Inf(1), "unlimited", "unlimited"},
		{"memory", 1e30, "1e+30", "867361737988.4Ei"},
	} {
		t.Run(test.dimension+" "+test.format, func(t *testing.T) {
			require.Equal(t, test.format, quantity.Format(test.dimension, test.amount))
			require.Equal(t, test.short, quantity.Short(test.dimension, test.amount))
		})
	}
}

func TestAmountsThatAreReadTogetherHaveOneUnit(t *testing.T) {
	const mi, gi = 1 << 20, 1 << 30
	for _, test := range []struct {
		name, dimension string
		amounts         []float64
		alike, exact    []string
	}{
		{"parts of a core are no thousandths", "cpu", []float64{500, 4000, 1}, []string{"0.5", "4", "0.001"}, []string{"0.5", "4", "0.001"}},
		{"exact amounts keep three decimals", "cpu", []float64{2505}, []string{"2.5"}, []string{"2.505"}},
		{"the larger unit where two decimals are enough", "memory", []float64{768 * mi, 16 * gi}, []string{"0.75Gi", "16Gi"}, []string{"0.75Gi", "16Gi"}},
		{"else the smaller one", "memory", []float64{mi, 16 * gi}, []string{"1Mi", "16384Mi"}, []string{"1Mi", "16384Mi"}},
		{"their own unit", "memory", []float64{768 * mi, 512 * mi, 0}, []string{"768Mi", "512Mi", "0"}, []string{"768Mi", "512Mi", "0"}},
		{"bytes where nothing else is exact", "memory", []float64{16*gi + 1}, []string{"16Gi"}, []string{"17179869185"}},
		{"no limit has no unit", "memory", []float64{math.Inf(1), 3 * gi}, []string{"unlimited", "3Gi"}, []string{"unlimited", "3Gi"}},
		{"thousandths of bytes", "ephemeral-storage", []float64{512 * mi * 1000, 2 * gi * 1000}, []string{"0.5Gi", "2Gi"}, []string{"0.5Gi", "2Gi"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.alike, quantity.Alike(test.dimension, test.amounts...))
			unit := quantity.UnitOf(test.dimension, test.amounts...).Exactly(test.amounts...)
			for i, amount := range test.amounts {
				require.Equal(t, test.exact[i], unit.Format(amount))
				back, err := quantity.Parse(test.dimension, unit.Format(amount))
				require.NoError(t, err)
				require.Equal(t, amount, back)
			}
		})
	}
}

func TestTheUnitOfATableIsReadable(t *testing.T) {
	const mi, gi = 1 << 20, 1 << 30
	for _, test := range []struct {
		name    string
		amounts []float64
		shown   []string
	}{
		{"the largest unit that two decimals are enough for", []float64{512 * mi, 16 * gi, 0}, []string{"0.5Gi", "16Gi", "0"}},
		{"with that in the middle where none is", []float64{7*gi + 1, 9 * gi, 1 << 45, 3 * gi}, []string{"7Gi", "9Gi", "32768Gi", "3Gi"}},
		{"which shows others as less", []float64{100*gi + 1, 3}, []string{"100Gi", "<0.01Gi"}},
		{"nor numbers of more than six digits", []float64{1 << 60, mi, -mi}, []string{"1024Pi", "<0.01Pi", ">-0.01Pi"}},
		{"what is no number has no unit", []float64{math.Inf(1), math.NaN(), 3 * gi}, []string{"unlimited", "NaN", "3Gi"}},
		{"nothing", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			unit := quantity.UnitOfTable("memory", test.amounts...)
			for i, amount := range test.amounts {
				require.Equal(t, test.shown[i], unit.Format(amount))
			}
		})
	}
	require.Equal(t, "0.001", quantity.UnitOfTable("cpu", 1, 1<<40).Format(1))
}

func TestFormatIsReadAgain(t *testing.T) {
	for _, dimension := range []string{"cpu", "memory", "pods", "nvidia.com/gpu"} {
		for _, amount := range []float64{0, 1, 2, 999, 1000, 1001, 1 << 20, 3 << 30, 1e15, 1e18 - 1e6} {
			back, err := quantity.Parse(dimension, quantity.Format(dimension, amount))
			require.NoError(t, err)
			require.Equal(t, amount, back, "%s %v", dimension, amount)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, text := range []string{"500m", "4Gi", "8", "1.5"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = quantity.Parse("memory", text)
			}
		})
	}
}
