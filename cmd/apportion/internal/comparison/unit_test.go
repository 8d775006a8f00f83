package comparison

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheAmountsOfAResourceAreInOneUnit in all rows of a table, with as many decimals as a row needs to show that something differs.
func TestTheAmountsOfAResourceAreInOneUnit(t *testing.T) {
	const gi = 1 << 30
	queue := func(memory, cpu float64) *Queue {
		return &Queue{Deserved: map[string]float64{"memory": memory, "cpu": cpu}, Guarantee: map[string]float64{"memory": 512 * gi}}
	}
	outcome := func(a, b, c *Queue) *Outcome { return &Outcome{Queues: map[string]*Queue{"a": a, "b": b, "c": c}} }
	was := outcome(queue(10128*gi, 4000), queue(11264*gi, 500), queue(20*1024*gi, 1))
	is := outcome(queue(11534*gi, 4500), queue(100*gi, 500), queue(20*1024*gi+(1<<20), 2))
	var rows [][3]string
	for _, e := range InUnits(Effects(was, is, func(string) bool { return true })) {
		rows = append(rows, [3]string{e.Queue + " " + e.Resource, e.Was + " to " + e.Is, e.Why})
	}
	require.Equal(t, [][3]string{
		{"b memory", "11Ti to 0.1Ti", "guarantee 0.5Ti"},
		{"b memory", "11Ti to 0.1Ti", ""},
		{"a cpu", "4 to 4.5", ""},
		{"a memory", "9.89Ti to 11.26Ti", ""},
		{"c cpu", "0.001 to 0.002", ""},
		{"c memory", "20971520Mi to 20971521Mi", ""},
	}, rows)
	require.Empty(t, InUnits(nil))
	plain := []Effect{{Kind: Overused, Was: "no", Is: "yes", Why: "guarantee"}}
	require.Equal(t, plain, InUnits(plain), "words stay as they are")
}
