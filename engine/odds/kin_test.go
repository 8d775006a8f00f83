package odds

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// kinOf are samples of equal size, with that of all of them. The median of each is longer than that of the one before by a factor.
func kinOf(seed uint64, samples, jobs int, factor float64) []Kin {
	s, median := streamOf(seed, 0, 0), 600.0
	var all []Observed
	lists := make([][]Observed, samples)
	for i := range lists {
		for range jobs {
			o := Observed{Began: -1_000_000, Seconds: int64(median * (0.1 + s.weight())), Ended: true}
			lists[i], all = append(lists[i], o), append(all, o)
		}
		median *= factor
	}
	like, kin := NewSample(all), []Kin(nil)
	for _, list := range lists {
		kin = append(kin, Kin{NewSample(list), like})
	}
	return kin
}

func TestTheMoreAlikeSamplesAreTheMoreIsDrawnFromAllOfThem(t *testing.T) {
	for story, test := range map[string]struct {
		kin   []Kin
		trust int
	}{
		"all runtimes are of one kind":        {kinOf(1, 12, 14, 1), 100},
		"medians differ by a tenth":           {kinOf(1, 12, 14, 1.1), 30},
		"each sample is longer by half":       {kinOf(1, 12, 14, 1.5), 3},
		"each sample is of another magnitude": {kinOf(1, 8, 30, 64), 1},
		"a sample is alone":                   {kinOf(1, 1, 14, 1), usualTrust},
		"there is none":                       {nil, usualTrust},
		"no job has ended":                    {[]Kin{{NewSample([]Observed{{Seconds: 5}}), NewSample([]Observed{{Seconds: 5}})}}, usualTrust},
		"a sample of one job says nothing":    {kinOf(3, 2, 1, 1), usualTrust},
	} {
		t.Run(story, func(t *testing.T) {
			require.Equal(t, test.trust, Trust(test.kin))
		})
	}
}

// TestALikelihoodIsThatOfTheDirichletMultinomialDistribution compares with its closed form.
func TestALikelihoodIsThatOfTheDirichletMultinomialDistribution(t *testing.T) {
	gamma := func(x float64) float64 {
		y, _ := math.Lgamma(x)
		return y
	}
	rapid.Check(t, func(t *rapid.T) {
		trust := rapid.Float64Range(0.5, 200).Draw(t, "trust")
		var some, all octaves
		low, high := rapid.IntRange(0, 10).Draw(t, "low"), rapid.IntRange(11, 30).Draw(t, "high")
		others := 0.0
		for o := low; o <= high; o++ {
			some[o] = rapid.IntRange(0, 9).Draw(t, "some")
			// The lowest and the highest octave have jobs, so that they are the range.
			rest := rapid.IntRange(1, 9).Draw(t, "rest")
			all[o], others = some[o]+rest, others+float64(rest)+0.5
		}
		want, n := 0.0, 0.0
		for o := low; o <= high; o++ {
			part := trust * (float64(all[o]-some[o]) + 0.5) / others
			want += gamma(part+float64(some[o])) - gamma(part)
			n += float64(some[o])
		}
		want += gamma(trust) - gamma(trust+n)
		l := likelihood{part: 1}
		l.draws(&some, &all, trust)
		require.InDelta(t, want, math.Log(l.part)+float64(l.power)*math.Ln2, 1e-7*max(1, -want))
	})
}
