package reference

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// written is a file of cases.
func written(t *testing.T, folder, name string, cases ...*Case) string {
	t.Helper()
	var text strings.Builder
	for _, c := range cases {
		line, err := json.Marshal(c)
		require.NoError(t, err)
		text.Write(line)
		text.WriteString("\n\n")
	}
	path := filepath.Join(folder, name)
	file, err := os.Create(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	if !strings.HasSuffix(name, ".gz") {
		_, err = file.WriteString(text.String())
		require.NoError(t, err)
		return path
	}
	zip := gzip.NewWriter(file)
	_, err = zip.Write([]byte(text.String()))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return path
}

// counted is a case of which only the total is compared.
func counted(t *testing.T, profile string, seed int64, cpu float64) *Case {
	t.Helper()
	c := smallCase(t, capacityConf, &Script{})
	c.Profile, c.Seed = profile, seed
	c.Expect = object{"total": object{"v": object{"cpu": cpu, "memory": 0.0, "pods": 9.0}}}
	return c
}

func TestCasesComeFromFilesAndFolders(t *testing.T) {
	folder := t.TempDir()
	written(t, folder, "b.jsonl.gz", counted(t, "two", 2, 4000))
	one := written(t, folder, "a.jsonl", counted(t, "one", 1, 4000), counted(t, "one", 3, 4001))
	written(t, folder, "README.md")
	run := Run{Paths: []string{folder}, Ways: []Way{InProcess()}, Only: "/total/"}
	results, err := run.Do(t.Context())
	require.NoError(t, err)
	text, tally := Report(results, run.Ways, 10)
	require.Equal(t, "reference: cases=3 answers=9 equal=8 different=1 unheld=0 unsupported=0", tally.String())
	require.False(t, tally.Good())
	require.Contains(t, text, "one 3 /total/v/cpu: want 4001, got 4000\n")
	require.True(t, strings.HasSuffix(text, "\n"+tally.String()+"\n"), "the sum is the last line")

	run.Paths, run.Label = []string{one}, "1"
	results, err = run.Do(t.Context())
	require.NoError(t, err)
	_, tally = Report(results, run.Ways, 10)
	require.Equal(t, "reference: cases=1 answers=3 equal=3 different=0 unheld=0 unsupported=0", tally.String())
	require.True(t, tally.Good())

	run.Paths, run.Label, run.Group = []string{folder}, "", "TWO"
	results, err = run.Do(t.Context())
	require.NoError(t, err)
	require.Len(t, results, 1)

	run.Group = "three"
	results, err = run.Do(t.Context())
	require.NoError(t, err)
	_, tally = Report(results, run.Ways, 10)
	require.False(t, tally.Good(), "nothing compared is nothing shown")
}

func TestFilesThatAreNoCasesAreErrors(t *testing.T) {
	folder := t.TempDir()
	unknown := counted(t, "one", 1, 4000)
	unknown.Schema = 2
	tests := map[string]string{
		filepath.Join(folder, "nowhere"):                        "no such file",
		t.TempDir():                                             "no file ends in .jsonl",
		written(t, folder, "schema.jsonl", unknown):             "schema.jsonl:1: schema 2 is not known",
		written(t, folder, "nothing.jsonl", &Case{Schema: 1}):   "nothing is expected",
		written(t, folder, "nozip.jsonl"):                       "",
		renamed(t, written(t, folder, "plain.jsonl", unknown)):  "gzip",
		renamed(t, written(t, folder, "plain2.jsonl", unknown)): "gzip",
	}
	for path, message := range tests {
		run := Run{Paths: []string{path}, Ways: []Way{InProcess()}}
		results, err := run.Do(t.Context())
		require.Empty(t, results)
		if message == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, message)
	}
}

// renamed is a file whose name claims that it is compressed.
func renamed(t *testing.T, path string) string {
	t.Helper()
	require.NoError(t, os.Rename(path, path+".gz"))
	return path + ".gz"
}

// failing is a way along which every case fails.
func failing(name string, code codes.Code) Way {
	return Way{Name: name, Evaluate: func(context.Context, *apportionv1.Input, []*apportionv1.Step) ([]*apportionv1.Answer, *apportionv1.Basis, error) {
		return nil, nil, status.Error(code, "out of order")
	}}
}

func TestAWayThatFailsMakesEveryAnswerDifferent(t *testing.T) {
	run := Run{Paths: []string{written(t, t.TempDir(), "a.jsonl", counted(t, "one", 1, 4000))}, Ways: []Way{InProcess(), failing("service", codes.Internal)}}
	run.Only = "/total/"
	results, err := run.Do(t.Context())
	require.NoError(t, err)
	text, tally := Report(results, run.Ways, 10)
	require.Equal(t, "reference: cases=1 answers=3 equal=0 different=3 unheld=0 unsupported=0", tally.String())
	require.Contains(t, text, "one 1: service: rpc error: code = Internal desc = out of order\n")
}

func TestAPluginThatIsNotThereIsCountedApart(t *testing.T) {
	run := Run{Paths: []string{written(t, t.TempDir(), "a.jsonl", counted(t, "one", 1, 4000))}, Ways: []Way{failing("process", codes.Unimplemented)}}
	results, err := run.Do(t.Context())
	require.NoError(t, err)
	text, tally := Report(results, run.Ways, 1)
	require.Equal(t, "reference: cases=1 answers=0 equal=0 different=0 unheld=0 unsupported=1", tally.String())
	require.False(t, tally.Good(), text)
}

func TestASessionThatDoesNotOpenIsAnAnswer(t *testing.T) {
	c := counted(t, "one", 1, 0)
	c.Expect = object{opening: "panic: index out of range"}
	result := c.Check(t.Context(), []Way{failing("process", codes.InvalidArgument)}, "")
	require.Equal(t, 1, result.Equal)
	require.Empty(t, result.Failures)
	result = c.Check(t.Context(), []Way{InProcess()}, "")
	require.Equal(t, []Difference{{"/openSession", refusedInput, []any{"ok"}}}, result.Differences)
	result = c.Check(t.Context(), []Way{failing("process", codes.Internal)}, "")
	require.Equal(t, 1, result.Answers)
	require.Equal(t, 0, result.Equal)
}

func TestManifestsThatCannotBeReadMakeEveryAnswerDifferent(t *testing.T) {
	c := counted(t, "one", 1, 4000)
	c.Manifests = append(c.Manifests, json.RawMessage(`{"kind": "Queue"}`))
	result := c.Check(t.Context(), []Way{InProcess()}, "")
	require.Equal(t, 3, result.Answers)
	require.Equal(t, 0, result.Equal)
	require.Len(t, result.Failures, 1)
	c = counted(t, "one", 1, 4000)
	c.Conf = "tiers: {"
	require.Len(t, c.Check(t.Context(), []Way{InProcess()}, "").Failures, 1)
}

func TestWaysHaveNames(t *testing.T) {
	for name, expected := range map[string]int{"": 2, "process": 1, "service": 1} {
		ways, stop, err := Ways(name)
		require.NoError(t, err)
		require.Len(t, ways, expected)
		c := counted(t, "one", 1, 4000)
		result := c.Check(t.Context(), ways, "/total/")
		require.Equal(t, 3, result.Equal)
		require.NoError(t, stop())
	}
	_, _, err := Ways("carrier pigeon")
	require.ErrorContains(t, err, "carrier pigeon")
}
