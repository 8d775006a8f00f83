package example_test

import (
	"compress/flate"
	"encoding/base64"
	"flag"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/cmd/offline/dump"
	"github.com/apportion/apportion/cmd/offline/example"
)

var update = flag.Bool("update", false, "set the marks in documents that are missing")

const root = "../../.."

// mark is the link of a document, which leads to the section about such links.
func mark(document string) string {
	to := "site.md"
	if filepath.Dir(document) != "docs" {
		to = "docs/" + to
	}
	return example.Mark + to + "#living-documents)"
}

func TestEachTranscriptThatThePageCanShowLinksToIt(t *testing.T) {
	links := 0
	for _, name := range example.Documents {
		file := filepath.Join(root, name)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		transcripts, err := example.Transcripts(string(text))
		require.NoError(t, err, name)
		lines := strings.Split(string(text), "\n")
		for _, of := range slices.Backward(transcripts) {
			link, err := of.Link(root)
			switch {
			case of.Marked && err != nil:
				t.Errorf("%s:%d: the page cannot show this: %v", name, of.Line, err)
			case of.Marked:
				require.Equal(t, mark(name), lines[of.MarkLine-1], name)
				require.True(t, strings.HasPrefix(link, "#/"), link)
				links++
			case err != nil:
				t.Logf("%s:%d: no link: %v", name, of.Line, err)
			case *update:
				end := of.Line
				for lines[end] != "```" {
					end++
				}
				lines = append(lines[:end+1], append([]string{"", mark(name)}, lines[end+1:]...)...)
			default:
				t.Errorf("%s:%d: the link to the page is missing: go test ./cmd/offline/example -update", name, of.Line)
			}
		}
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
		}
	}
	require.True(t, *update || links > 50, links)
}

func TestALinkAsksTheQuestionOfTheCommand(t *testing.T) {
	const research = "-f examples/clusters/research"
	for _, c := range []struct{ command, want string }{
		{"shares " + research, "#/cluster?from=sample%3Aresearch&policy=proportion"},
		{"shares vision --policy fair --resource gpu --explain " + research, "#/queue/vision?from=sample%3Aresearch&policy=fair&r=nvidia.com%2Fgpu"},
		{"explain grasp-train " + research, "#/job/robotics%2Fgrasp-train?from=sample%3Aresearch&policy=proportion"},
		{"decide reclaim grasp-train-worker-0 " + research, "#/job/robotics%2Fgrasp-train?from=sample%3Aresearch&policy=proportion"},
		{"diff proportion capacity " + research, "#/compare?from=sample%3Aresearch&policy=proportion&with=capacity"},
		{
			"whatif --set queue/vision.capability.gpu=32 --set queue/vision.weight=5 --add-nodes 2 --like gpu-a100-01 --finish scavenge/hyperopt " + research,
			"#/whatif?" + url.Values{
				"edit": {`["queue/vision.capability.nvidia.com/gpu=32","queue/vision.weight=5","node/gpu-a100-01.copies=2","job/scavenge/hyperopt.ended=true"]`},
				"from": {"sample:research"}, "policy": {"proportion"},
			}.Encode(),
		},
	} {
		got, err := example.Link(c.command, root)
		require.NoError(t, err, c.command)
		require.Equal(t, c.want, got)
	}
}

func TestALinkHoldsTheVeryFileOfTheCommand(t *testing.T) {
	const file = "testdata/pending/taint/dump.yaml"
	link, err := example.Link("explain ml/train -f "+file, root)
	require.NoError(t, err)
	_, query, _ := strings.Cut(link, "?")
	values, err := url.ParseQuery(query)
	require.NoError(t, err)
	packed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(values.Get("from"), "data:"))
	require.NoError(t, err)
	got, err := io.ReadAll(flate.NewReader(strings.NewReader(string(packed))))
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestWhatThePageCannotShowHasNoLink(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"", "there is no command"},
		{"explain ml/train -f examples/clusters/research", "ml/train"},
		{"shares -f examples/clusters/research --as-of 2026-03-02T12:00:00Z", "no counterpart of --as-of"},
		{"shares -f examples/clusters/none", "none"},
		{"shares", "reads no cluster"},
		{"shares -f examples/clusters/research --policy volcano-scheduler.conf", "no policy volcano-scheduler.conf"},
		{"whatif -f examples/clusters/research --set node/n.x=3", "a node has no such field"},
		{"audit -f examples/clusters/research", "no view of audit"},
		{"whatif -f examples/clusters/research --set queue/vision.state=3", `"3" is not open, closing or closed`},
	} {
		_, err := example.Link(c.command, root)
		require.ErrorContains(t, err, c.want, c.command)
	}
}

func TestAMarkThatFollowsNoTranscriptIsFound(t *testing.T) {
	_, err := example.Transcripts("text\n\n" + mark("docs/x.md"))
	require.ErrorContains(t, err, "line 3: no transcript")
	_, err = example.Transcripts("```console\n$ kubectl get pods\n$ apportion shares\n```\n" + mark("docs/x.md"))
	require.ErrorContains(t, err, "line 5: no transcript")
	list, err := example.Transcripts("```console\n$ apportion shares\nx\n```\n\n" + mark("docs/x.md"))
	require.NoError(t, err)
	require.Equal(t, []example.Transcript{{Line: 2, Command: "shares", Marked: true, MarkLine: 6}}, list)
}

func TestALinkAsksTheFirstQuestionThatThePageCanShowAboutAModel(t *testing.T) {
	transcripts, err := example.Transcripts("```cluster\nnode n1 cpu:4\nqueue a\njob ja queue=a\ntask a1..a2 pending cpu:1\n```\n\n" +
		"```console\n> policy priority | capacity(tree)   # two tiers\n> order tasks a1 a2\na1 a2\n> allocatable a1..a2 together\n```\n\n" +
		mark("docs/x.md"))
	require.NoError(t, err)
	require.Len(t, transcripts, 1)
	link, err := transcripts[0].Link(root)
	require.NoError(t, err)
	address, query, _ := strings.Cut(link, "?")
	require.Equal(t, "#/job/ja", address)
	values, err := url.ParseQuery(query)
	require.NoError(t, err)
	require.Equal(t, "given", values.Get("policy"))
	packed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(values.Get("from"), "data:"))
	require.NoError(t, err)
	text, err := io.ReadAll(flate.NewReader(strings.NewReader(string(packed))))
	require.NoError(t, err)
	found, err := dump.Read([]objects.Source{{Name: "example.yaml", Data: text}}, time.Time{}, func(int) {})
	require.NoError(t, err)
	require.Equal(t, "Policy of example.yaml", found.Title)
	require.Equal(t, "TIER_WALK_STRICT", found.Policy.GetTierWalk().String())
	require.NotNil(t, found.Policy.GetTiers()[0].GetPlugins()[0].GetPriority())
	require.True(t, found.Policy.GetTiers()[1].GetPlugins()[0].GetCapacity().GetHierarchical())
	require.Len(t, found.Snapshot.GetJobs()[0].GetGroups()[0].GetTasks(), 2)
}

func TestQuestionsAfterAChangeHaveNoLink(t *testing.T) {
	for _, c := range []struct{ cluster, questions, want string }{
		{"queue a\n", "> policy proportion\n> submit j queue=a 2 x cpu:1\n> shares\n", "no view of these questions"},
		{"queue a\n", "> policy binpack(cpu=5)\n> shares\n", "the page has no binpack(cpu=5)"},
		{"quoue a\n", "> policy proportion\n> shares\n", "no kind"},
		{"queue a\n", "> policy proportion\n> reclaim none from none\n", "no view of these questions"},
	} {
		transcripts, err := example.Transcripts("```cluster\n" + c.cluster + "```\n```console\n" + c.questions + "```\n")
		require.NoError(t, err)
		_, err = transcripts[0].Link(root)
		require.ErrorContains(t, err, c.want)
	}
}
