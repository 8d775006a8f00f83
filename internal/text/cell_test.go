package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/text"
)

func TestACellIsNoFormula(t *testing.T) {
	for of, want := range map[string]string{
		"":      "",
		"queue": "queue", "a=b": "a=b", "'quoted'": "'quoted'", "5": "5", "-5": "-5", "+1e3": "+1e3",
		"=HYPERLINK(\"x\")": "'=HYPERLINK(\"x\")", "+cmd": "'+cmd", "-": "'-", "@SUM(A1)": "'@SUM(A1)", "\tx": "'\tx", "\r=1": "'\r=1",
		"'=1": "''=1", "''-x": "'''-x",
	} {
		require.Equal(t, want, text.Cell(of))
	}
}

func FuzzACellIsReadAsItWasWritten(f *testing.F) {
	for _, seed := range []string{"=1", "'=1", "-5", "'-5", "a", "''+x", "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, of string) {
		require.Equal(t, of, text.FromCell(text.Cell(of)))
	})
}
