package render

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestViewsNameKindsOfAnswers(t *testing.T) {
	kinds := (&apportionv1.Answer{}).ProtoReflect().Descriptor().Oneofs().ByName("answer").Fields()
	for name := range views {
		require.NotNil(t, kinds.ByName(name), "the contract has no answer %s", name)
	}
}

func TestAnAnswerOfAKindWithoutAViewIsShownByItsFields(t *testing.T) {
	view := views["jobs"]
	delete(views, "jobs")
	defer func() { views["jobs"] = view }()
	answer := &apportionv1.Answer{Answer: &apportionv1.Answer_Jobs{Jobs: &apportionv1.JobsAnswer{
		Jobs: []*apportionv1.JobStanding{{Job: 1, Ready: &apportionv1.Verdict{Vote: apportionv1.Vote_VOTE_PERMIT}, ReadyTasks: 2}},
	}}}
	var out bytes.Buffer
	(&Printer{Out: &out}).Answer(nil, answer)
	require.Equal(t, `jobs:
  - job: 1
    ready:
      vote: VOTE_PERMIT
    readyTasks: 2
`, out.String())
}

// bareCount is a number in a format before a plural noun, which is wrong for 1.
var bareCount = regexp.MustCompile(`%[dv] ([a-z]+ )*(tasks|jobs|nodes|queues|pods|objects|warnings|problems|steps|levels|changes|roles|shapes)\b`)

// TestNoSentenceWritesANumberBeforeAPluralNoun looks at the sentences of the text, the reader and the command line: text.Count chooses the
// form of the noun, except after a part, as in `%d of %d tasks`, or where the number is a bound.
func TestNoSentenceWritesANumberBeforeAPluralNoun(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	files, wrong := 0, []string(nil)
	for _, folder := range []string{"internal/text", "adapter/volcano", "cmd/apportion"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			data, err := os.ReadFile(path)
			for line := range strings.Lines(string(data)) {
				found := bareCount.FindString(line)
				bound := strings.Contains(line, "more than "+found) || strings.Contains(line, "from 1 to "+found) || strings.Contains(line, "perTask")
				if found != "" && !bound {
					wrong = append(wrong, path+": "+strings.TrimSpace(line))
				}
			}
			return err
		}))
	}
	require.Greater(t, files, 50)
	require.Empty(t, wrong)
}
