package adopt

import (
	"bytes"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
)

// morning is a cluster of two machines with 4 GPUs each. Vision uses 4 of its quota of 6, speech none of its quota of 2.
func morning() *Cluster {
	return &Cluster{
		Nodes: []Node{{"n0", 4}, {"n1", 4}},
		Teams: []Team{{"vision", 6}, {"speech", 2}},
		Jobs: []*Job{
			{Name: "segment", Team: "vision", Pods: 4, Least: 2, Nodes: []int{0, 0, 0, 0}},
			{Name: "transcribe", Team: "speech", Pods: 4, Least: 2},
			{Name: "detect", Team: "vision", Pods: 4, Least: 4},
		},
	}
}

func TestTheAnswersAreComparedWithTheSchedulersOwn(t *testing.T) {
	var log bytes.Buffer
	different, err := Compare(t.Context(), client.InProcess(), morning(), slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	require.Equal(t, 1, different, log.String())
	require.Contains(t, log.String(), "job=transcribe own=false apportion=true", "half of the cluster is idle, and no other queue comes first")
}

func TestACycleStartsWholeJobsAndTellsWhyOthersWait(t *testing.T) {
	c := morning()
	waits, err := Cycle(t.Context(), client.InProcess(), c)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, c.Jobs[1].Nodes, "as many as it deserves")
	require.False(t, c.Jobs[2].Runs())
	require.Equal(t, map[string]string{
		"detect": "the cluster admits 5.6 of nvidia.com/gpu to waiting jobs, overcommitment included: 2 promised, 4 more asked (overcommit)",
	}, waits)
}

func TestAJobThatFindsTooLittleRoomIsNotStartedByHalf(t *testing.T) {
	c := morning()
	c.Nodes[1].GPUs = 1
	waits, err := Cycle(t.Context(), client.InProcess(), c)
	require.NoError(t, err)
	require.False(t, c.Jobs[1].Runs())
	require.NotEmpty(t, waits["transcribe"])
}

func TestWhoHasMoreThanItsShareGivesWay(t *testing.T) {
	c := morning()
	c.Jobs[2].Nodes = []int{1, 1, 1, 1}
	victims, spared, err := Evict(t.Context(), client.InProcess(), c, "transcribe-0")
	require.NoError(t, err)
	require.Equal(t, []string{"segment-0", "segment-1"}, victims)
	require.Equal(t, "its job has 4 tasks ready and must keep 4 (gang)", spared["detect-0"])
}

func TestAMirrorAnswersAsTheWholeCluster(t *testing.T) {
	c, decide := morning(), client.InProcess()
	m, err := Follow(decide, c)
	require.NoError(t, err)
	c.Jobs[1].Nodes = []int{1, 1}
	followed, err := Started(t.Context(), decide, m, c, c.Jobs[1])
	require.NoError(t, err)
	names := []string{}
	for _, admission := range followed.Jobs {
		names = append(names, admission.Job)
	}
	require.Contains(t, names, "detect")
}

func TestTheOptionsAreValid(t *testing.T) {
	c, err := Dial("localhost:1", client.WithPlaintext())
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// Every block of Go in the document is in this package, except for its indentation.
func TestTheDocumentShowsThisCode(t *testing.T) {
	document, err := os.ReadFile("../../docs/adding-to-a-scheduler.md")
	require.NoError(t, err)
	var code strings.Builder
	for _, name := range []string{"cluster.go", "describe.go", "compare.go", "cycle.go", "mirror.go"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		code.WriteString(flat(string(data)))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(document), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		require.Contains(t, code.String(), flat(block[1]))
	}
}

// flat is text without the spaces before its lines.
func flat(text string) string { return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "") }
