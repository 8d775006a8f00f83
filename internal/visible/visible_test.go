package visible_test

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/internal/visible"
)

func TestWhatAReaderWouldNotSeeIsWrittenOut(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"team-a/train.x, größe": "team-a/train.x, größe",
		"œuvre ✗ ░":             "œuvre ✗ ░",
		`it's "a\b"`:            `it's "a\b"`,
		"a\x1b[31mb":            `a\x1b[31mb`,
		"a\nb\tc\rd":            `a\nb\tc\rd`,
		"a\u202eb\u200bc":       `a\u202eb\u200bc`,
		"a\u2028b\u0085c\x7f":   `a\u2028b\u0085c\x7f`,
		"\xff\xc3":              `\xff\xc3`,
		"�":                     "�",
	} {
		require.Equal(t, want, visible.Text(text))
	}
	require.Equal(t, "a\nb\\x1b", visible.Lines("a\nb\x1b"))
}

func TestNothingInvisibleIsLeftAndTheRestIsUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		shown := visible.Text(text)
		require.True(t, utf8.ValidString(shown))
		for _, r := range shown {
			require.True(t, unicode.IsPrint(r), "%q", shown)
		}
		require.Equal(t, shown, visible.Text(shown), "once is enough")
	})
}
