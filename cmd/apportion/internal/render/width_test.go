package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWideAndCombiningCharactersTakeTheColumnsOfATerminal(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "team-a": 6, "größe": 5, "\u8a9e\u8a9e\u8a9e": 6, "e\u0301e\u0301": 2, "👩💻": 4, "한국어": 6, "ｆｕｌｌ": 8, "█░▎│✗✓…": 7,
		colour + "31m\u8a9e" + colour + "0m": 2,
	} {
		require.Equal(t, want, width(text), text)
	}
}

func TestColumnsOfATableAreAlignedWhateverItsNamesAreWrittenIn(t *testing.T) {
	var out bytes.Buffer
	table := (&Printer{}).NewTable("QUEUE", ">CPU")
	for _, name := range []string{"plain", "\u8a9e\u8a9e", "e\u0301te\u0301", "👩💻", "a\u202eb"} {
		table.Row(name, "16")
	}
	table.Write(&out)
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		require.Equal(t, len("a\\u202eb  CPU"), width(line), line)
	}
}

func TestSentencesWithWideNamesAreBrokenToTheTerminal(t *testing.T) {
	for _, line := range wrap("queue "+strings.Repeat("\u8a9e", 20)+" is open, and queue "+strings.Repeat("\u8a9e", 20)+" too", 60) {
		require.LessOrEqual(t, width(line), 60, line)
	}
}
