package docs_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	anchor   = regexp.MustCompile(`(?:name|id)="([^"]+)"`)
	fenced   = regexp.MustCompile("(?s)\n *```.*?\n *```")
	inline   = regexp.MustCompile("`[^`\n]*`")
	unlinked = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the fragments of a document's headings as GitHub forms them, and those that it names itself.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		title := link.ReplaceAllString(strings.ReplaceAll(m[1], "[", ""), "")
		found[strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")] = true
	}
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// root is the folder of the repository.
const root = ".."

// tracked returns the files of the repository that match a pattern of git.
func tracked(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", pattern).Output()
	if err != nil {
		t.Skip("the files of the repository cannot be listed:", err)
	}
	return strings.Fields(string(list))
}

func TestLinksBetweenDocumentsLeadSomewhere(t *testing.T) {
	files, links, known := tracked(t, "*.md"), 0, map[string]map[string]bool{}
	require.NotEmpty(t, files)
	for _, file := range files {
		if file == "cmd/apportion/internal/config/intro.md" {
			continue // It is the beginning of docs/configuration.md.
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		text := inline.ReplaceAllString(fenced.ReplaceAllString(string(data), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(m[1])
			if err != nil || target.Scheme != "" || target.Host != "" {
				continue
			}
			links++
			at := filepath.Join(root, file)
			if target.Path != "" {
				at = filepath.Join(filepath.Dir(at), target.Path)
			}
			info, err := os.Stat(at)
			if err != nil {
				t.Errorf("%s: %s does not exist", file, m[1])
				continue
			}
			if target.Fragment == "" || info.IsDir() || filepath.Ext(at) != ".md" {
				continue
			}
			if known[at] == nil {
				there, err := os.ReadFile(at)
				require.NoError(t, err)
				known[at] = anchors(string(there))
			}
			if !known[at][target.Fragment] {
				t.Errorf("%s: %s: the document has no such heading", file, m[1])
			}
		}
	}
	t.Logf("%d links in %d documents", links, len(files))
}
