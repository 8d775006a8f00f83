package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
)

var update = flag.Bool("update", false, "write the reports in testdata again")

// sample is a report of two runs; names may be hostile.
func sample(names ...string) *Report {
	start := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)
	r := &Report{
		Trace:    Trace{Jobs: 12, Start: &start, First: 100, Last: 86_500, Notes: []string{"week.csv: 3 jobs are left out that never ran"}},
		Resource: "nvidia.com/gpu", Every: 300, EntitledBy: "capacity",
	}
	for i, name := range names {
		factor := float64(i + 1)
		waits := rehearsal.Waits{Mean: 600 * factor, Median: 30, P95: 7200, Longest: 200_000}
		r.Runs = append(r.Runs, &rehearsal.Result{
			Name: name, Jobs: 12, Finished: 11, Unfinished: 1, Rounds: 40, End: 90_000, Waits: waits,
			Use:       []rehearsal.Use{{Resource: "nvidia.com/gpu", Arriving: .5, All: .4, Hours: 100 * factor, Lost: 3.25}},
			Evictions: rehearsal.Evictions{Total: 5, Reclaimed: 3, Preempted: 1, WithGang: 1}, Kept: .75, Short: 12, Fairness: .9,
			Queues: []rehearsal.Queue{
				{Name: "vision", Jobs: 8, Waits: waits, Hours: 70, Lost: 3, Kept: .5, Short: 12, ByWeight: .75, Share: .7},
				{Name: "a<script>alert(1)</script>", Jobs: 4, Waits: waits, Hours: 30, Kept: 1, ByWeight: .25, Share: .3},
			},
			Classes: []rehearsal.Class{{Name: "up to 1", To: 1, Jobs: 4, Waits: waits}, {Name: "2 to 8", From: 1, To: 8, Jobs: 8, Waits: waits}},
			Series: rehearsal.Series{Start: 100, Step: 30_000, Fairness: []float64{1, .5 * factor, 1}, Queues: []rehearsal.QueueSeries{
				{Name: "vision", Used: []float64{0, 8, 4}, Entitled: []float64{4, 4, 4}},
				{Name: "a<script>alert(1)</script>", Used: []float64{1, 2, 3}, Entitled: []float64{3, 2, 1}},
			}},
			Shares: rehearsal.Shares{Start: 21_600, Step: 21_600, HalfLife: 604_800, Queues: []rehearsal.QueueShare{
				{Name: "vision", ByWeight: .75, Share: []float64{.6, .7, .8, .7}},
				{Name: "a<script>alert(1)</script>", ByWeight: .25, Share: []float64{.4, .3, .2, .3}},
			}},
		})
	}
	return r
}

func golden(t *testing.T, name string, now []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, now, 0o600))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(now), "run the test with -update if this is meant")
}

func pageOf(t *testing.T, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, r.WriteHTML(&out))
	return out.Bytes()
}

func TestTheReportsAreThoseKept(t *testing.T) {
	r := sample("proportion", "fair")
	golden(t, "report.html", pageOf(t, r))
	var table bytes.Buffer
	r.Print(&render.Printer{Out: &table})
	golden(t, "report.txt", table.Bytes())
	data, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	golden(t, "report.json", append(data, '\n'))
	var drawn bytes.Buffer
	require.NoError(t, r.WriteShares(&drawn))
	golden(t, "shares.svg", drawn.Bytes())
	require.NoError(t, xml.Unmarshal(drawn.Bytes(), new(struct{})))
}

func TestThePageLoadsNothingAndRunsNothing(t *testing.T) {
	raw := pageOf(t, sample(`"><img src=x onerror=alert(1)>`, "</style><script>alert(2)</script>"))
	tokens := html.NewTokenizer(bytes.NewReader(raw))
	headings := 0
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			require.ErrorIs(t, tokens.Err(), io.EOF)
			break
		}
		token := tokens.Token()
		require.NotContains(t, []string{"script", "img", "link", "iframe", "object", "form", "a"}, token.Data, "no such element")
		if kind == html.StartTagToken && token.Data == "h2" {
			headings++
		}
		for _, a := range token.Attr {
			require.False(t, strings.HasPrefix(a.Key, "on"), "no handler: %s", token)
			require.NotContains(t, []string{"src", "href", "style"}, a.Key, "nothing is loaded, and no style is inline")
		}
	}
	require.Equal(t, 6+3+2*2, headings, "six tables, three plots, and two for each run")
	require.True(t, bytes.Contains(raw, []byte("default-src 'none'; style-src 'sha256-")), "a content security policy")
}

func TestPlotsAreWellFormedAndHaveTitles(t *testing.T) {
	raw := string(pageOf(t, sample("proportion", "fair")))
	plots := 0
	for rest := raw; ; plots++ {
		_, after, found := strings.Cut(rest, `<svg class="plot"`)
		if !found {
			break
		}
		body, next, closed := strings.Cut(after, "</svg>")
		require.True(t, closed)
		decoder := xml.NewDecoder(strings.NewReader(`<svg ` + body + "</svg>"))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, body)
		}
		require.Contains(t, body, "<title id=")
		require.NotContains(t, body, "NaN")
		require.NotContains(t, body, "Inf")
		rest = next
	}
	require.Equal(t, 7, plots)
}

func TestTablesFitEightyColumns(t *testing.T) {
	var out bytes.Buffer
	r := sample("proportion", "fair")
	for _, run := range r.Runs {
		run.Queues[1].Name = "language"
	}
	r.Print(&render.Printer{Out: &out, Style: render.Style{Width: 80}})
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 80, line)
	}
}

func TestSpansAreShort(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 59.4: "59s", 60: "1m", 5999: "1h40m", 6000: "1h40m", 172_799: "2d", 172_800: "2d", 1e6: "11d14h",
	} {
		require.Equal(t, want, Span(seconds))
	}
}

func TestScalesAreRoundAndReachTheLargest(t *testing.T) {
	require.Equal(t, []float64{0, 1}, nice(0, 4))
	require.Equal(t, []float64{0, .25, .5, .75, 1}, nice(1, 4))
	require.Equal(t, []float64{0, 10, 20, 30}, nice(27, 4))
	require.Equal(t, []float64{0, 20, 40, 60, 80}, nice(80, 4))
}
