package render_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

func TestBarsShowWhatIsUsedOfABound(t *testing.T) {
	ascii := render.Style{ASCII: true}
	for _, test := range []struct {
		name        string
		used, bound float64
		bar         string
	}{
		{"nothing used", 0, 8, ".......................|   0%"},
		{"half", 4, 8, "############...........|  50%"},
		{"all", 8, 8, "#######################| 100%"},
		{"twice as much", 16, 8, "############|########### 200%"},
		{"far too much", 8000, 8, "#|###################### 100000%"},
		{"a little too much", 8.01, 8, "######################|# 100%"},
		{"nothing deserved, something used", 3, 0, "|####################### none deserved"},
		{"nothing deserved, nothing used", 0, 0, ""},
		{"no bound", 5, math.Inf(1), ".......................| no bound"},
	} {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.bar, ascii.Bar(test.used, test.bound, 24)) })
	}
	require.Equal(t, "█████████████▊░░░░░░░░░│  60%", render.Style{}.Bar(16, 80.0/3, 24))
}

func TestABarIsShorterWhereTheTextBehindItIsLong(t *testing.T) {
	for _, columns := range []int{40, 60, 120} {
		style := render.Style{ASCII: true, Width: columns}
		var out strings.Builder
		table := style.NewTable("QUEUE", "ALLOCATED OF DESERVED")
		table.BarRow(1, func(bar int) string { return style.Bar(3, 0, bar) }, "a", "")
		table.BarRow(1, func(bar int) string { return style.Bar(8000, 8, bar) }, "b", "")
		table.Write(&out)
		require.Contains(t, out.String(), " none deserved")
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), columns, line)
		}
	}
}

func TestATableHasOneUnitForEachResource(t *testing.T) {
	const mi, gi = 1 << 20, 1 << 30
	var out strings.Builder
	table := render.Style{}.NewTable("QUEUE", ">HOLDS", ">WAS", "ALSO")
	table.Row("a", table.Amount("memory", 512*mi), table.Amount("memory", 3*gi)+" -> "+table.Amount("memory", 3*gi+1), table.Amount("cpu", 500))
	table.Row("b\xfe0\xfe", table.Amount("memory", 2000*gi), "-", "\xfe99\xfe")
	table.Write(&out)
	require.Equal(t, `QUEUE    HOLDS                       WAS  ALSO
a        0.5Gi  3221225472 -> 3221225473  0.5
b0.5Gi  2000Gi                         -  99
`, out.String())
}

func TestBarsAreOfOneWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		used, bound := rapid.Float64Range(0, 1e9).Draw(t, "used"), rapid.Float64Range(1e-3, 1e9).Draw(t, "bound")
		style := render.Style{ASCII: rapid.Bool().Draw(t, "ascii")}
		columns := rapid.IntRange(8, 48).Draw(t, "columns")
		bar, _, _ := strings.Cut(style.Bar(used, bound, columns), " ")
		require.Equal(t, columns, utf8.RuneCountInString(bar), bar)
		require.Equal(t, 16, utf8.RuneCountInString(style.Gauge(used, bound, 16)))
	})
}

func TestTablesAlignColoursAndBreakTheLastColumn(t *testing.T) {
	style := render.Style{Color: true}
	table := style.NewTable("NAME", ">N", "WHY").Wrap(9)
	table.Row(style.Paint(render.Bad, "é"), "7", "because of this and that")
	table.Row("longer", "12")
	var out strings.Builder
	table.Write(&out)
	plain := strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[0m", "").Replace(out.String())
	require.Equal(t, "NAME     N  WHY\né        7  because\n            of this\n            and that\nlonger  12\n", plain)
}

func TestATreeOfAnyShapeIsShownOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "queues")
		names := []string{"root"}
		for i := range n {
			names = append(names, string(rune('a'+i)))
		}
		snapshot := &apportionv1.Snapshot{}
		answer := &apportionv1.PluginShares{Plugin: "capacity"}
		for i, name := range names {
			parent := rapid.SampledFrom(append([]string{"", "missing"}, names...)).Draw(t, "parent")
			snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{Name: name, Parent: parent})
			answer.Queues = append(answer.Queues, &apportionv1.QueueShare{Queue: uint32(i), Participating: true})
		}
		var out strings.Builder
		p := &render.Printer{
			Style: render.Style{ASCII: true}, Out: &out, Snapshot: lookup.Of(snapshot),
			Names: text.Names{Dimensions: []string{"cpu"}, Queues: names}, Resources: []string{"cpu"},
		}
		p.Tree(&apportionv1.SharesAnswer{Plugins: []*apportionv1.PluginShares{answer}}, nil)
		require.Equal(t, n+1, strings.Count(out.String(), "cpu"), out.String())
	})
}
