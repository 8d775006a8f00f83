package render_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/internal/visible"
)

// TestAShellReadsPrintedWordsAsTheyAre lets a shell run commands whose words are anything but the byte 0, and compares what arrives.
func TestAShellReadsPrintedWordsAsTheyAre(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	word := rapid.Map(rapid.OneOf(
		rapid.String(),
		rapid.StringOfN(rapid.SampledFrom([]rune("a .'\"$`\\%\n\t\x1b\u202e=*?!#&;|<>(){}[]~-")), 0, 12, -1),
	), func(s string) string { return strings.ReplaceAll(s, "\x00", "") })
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 1, 5).Draw(t, "words")
		line := render.Quoted(append([]string{"printf", `%s\000`}, words...))
		require.Equal(t, line, visible.Text(line), "what is printed is shown as it is")
		out, err := exec.CommandContext(t.Context(), shell, "-c", line).Output()
		require.NoError(t, err, line)
		require.Equal(t, strings.Join(words, "\x00")+"\x00", string(out), line)
	})
}
