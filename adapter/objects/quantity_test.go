package objects_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/internal/quantity"
)

// FuzzAmountsAreThoseOfKubernetes reads texts as Kubernetes' own reader does. Those without a digit before the unit, such as "Ki", which
// Kubernetes reads as 0, are refused.
func FuzzAmountsAreThoseOfKubernetes(f *testing.F) {
	for _, text := range []string{
		"", "0", "-0", "+1", "1.5", ".5", "1.", "1.5Gi", "100u", "1n", "3E", "3E2", "3e-2", "1e+3", "1e", "1 Gi", "0x10", "1/2", "1_0", "--1", "9.99Ki",
		"9223372036854775807", "93e17", "12345678901234567890123", "0.1234567891", "1.2.3", "1Kii", "1ki", "Ki", "+", ".", "1e30", "-5m", "8Ei",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number, err := quantity.Number(text)
		if err != nil && strings.Contains(err.Error(), "any real one") {
			return
		}
		theirs, refusal := resource.ParseQuantity(text)
		if unsigned := strings.TrimLeft(text, "+-."); unsigned == "" || unsigned[0] < '0' || unsigned[0] > '9' {
			require.Error(t, err, text)
			return
		}
		require.Equal(t, refusal == nil, err == nil, "%q: %v, %v", text, refusal, err)
		if err != nil {
			return
		}
		require.Equal(t, theirs.Sign(), number.Sign(), text)
		for dimension, read := range map[string]func() int64{"cpu": theirs.MilliValue, "memory": theirs.Value} {
			if amount, err := quantity.Parse(dimension, text); err == nil {
				require.Equal(t, float64(read()), amount, "%s %q", dimension, text)
			}
		}
	})
}

// TestAmountsAreWrittenAsKubernetesDoes compares whole amounts with Kubernetes' own canonical form.
func TestAmountsAreWrittenAsKubernetesDoes(t *testing.T) {
	amounts := rapid.Custom(func(t *rapid.T) int64 {
		factor := rapid.SampledFrom([]int64{1, 1000, 1024, 1e6, 1 << 20, 1e9, 1 << 30, 1e18, 1 << 60}).Draw(t, "factor")
		return rapid.Int64Range(-math.MaxInt64/factor, math.MaxInt64/factor).Draw(t, "number") / rapid.Int64Range(1, 1e6).Draw(t, "part") * factor
	})
	rapid.Check(t, func(t *rapid.T) {
		// Amounts of the contract are floats, which are whole up to 2^53.
		amount := amounts.Draw(t, "amount") % (1 << 53)
		require.Equal(t, resource.NewQuantity(amount, resource.BinarySI).String(), quantity.Format("memory", float64(amount)))
		require.Equal(t, resource.NewMilliQuantity(amount, resource.DecimalSI).String(), quantity.Format("cpu", float64(amount)))
	})
}
