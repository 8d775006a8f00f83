package render

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChangesNameRowsAndTheirCells(t *testing.T) {
	show := func(rows [][]string, lines ...string) *Record {
		p := &Printer{Style: Style{Record: &Record{}}, Out: io.Discard}
		table := p.NewTable("QUEUE", ">WEIGHT", "RESOURCE", ">ALLOCATED", "BAR")
		for _, row := range rows {
			table.BarRow(4, func(int) string { return "###" }, row...)
		}
		table.Write(p.Out)
		for _, line := range lines {
			p.Text(Strong, line)
		}
		return p.Record
	}
	before := show([][]string{{"a (overused)", "1", "cpu*", "4", ""}, {"", "", "gpu", "1", ""}, {"b", "1", "cpu", "2", ""}}, "one sentence", "two")
	for name, c := range map[string]struct {
		now  *Record
		want string
	}{
		"nothing": {show([][]string{{"a (overused)", "1", "cpu*", "4", ""}, {"", "", "gpu", "1", ""}, {"b", "1", "cpu", "2", ""}}, "one sentence", "two"), ""},
		"a cell of a group": {
			show([][]string{{"a", "1", "cpu*", "4", ""}, {"", "", "gpu", "3", ""}, {"b", "1", "cpu", "2", ""}}, "one sentence", "two"),
			"~ a cpu  queue: a (overused) -> a\n~ a gpu  queue: a (overused) -> a; allocated: 1 -> 3\n",
		},
		"rows and a sentence": {
			show([][]string{{"a (overused)", "1", "cpu*", "4", ""}, {"", "", "gpu", "1", ""}, {"c", "1", "cpu", "2", ""}}, "one sentence", "three"),
			"- b  1  cpu  2\n+ c  1  cpu  2\n~ two -> three\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.Equal(t, c.want != "", c.now.Changes(before, Style{}, &out))
			require.Equal(t, c.want, out.String())
		})
	}
}

func TestARecordHoldsNoColours(t *testing.T) {
	s := Style{Color: true}
	require.Equal(t, "a b", plain(s.Paint(Bad, "a")+" "+s.Paint(Strong, "b")))
}
