package spelling

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheMostSimilarNameIsSuggested(t *testing.T) {
	known := []string{"delay", "time", "weight", "wait"}
	for name, want := range map[string]string{
		"dealy": "delay", "delays": "delay", "wieght": "weight", "tme": "time", "wat": "wait", "capability": "", "x": "", "": "",
	} {
		require.Equal(t, want, Similar(name, slices.Values(known)), name)
	}
	require.Equal(t, `; did you mean "time"?`, Suggestion("itme", slices.Values(known)))
	require.Empty(t, Suggestion("capability", slices.Values(known)))
	require.Equal(t, `; did you mean "time"? There are a, b`, Then(Suggestion("itme", slices.Values(known)), "there are a, b"))
	require.Equal(t, "; there are a, b", Then("", "there are a, b"))
}

// plainDistance is the definition of distance.
func plainDistance(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	i, j := len(a)-1, len(b)-1
	cost := 1
	if a[i] == b[j] {
		cost = 0
	}
	least := min(plainDistance(a[:i], b)+1, plainDistance(a, b[:j])+1, plainDistance(a[:i], b[:j])+cost)
	if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
		least = min(least, plainDistance(a[:i-1], b[:j-1])+1)
	}
	return least
}

func TestTheDistanceIsThatOfItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		require.Equal(t, plainDistance(a, b), distance(a, b, 6))
	})
}
