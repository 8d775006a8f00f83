package extender_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/extender/delegation"
	"github.com/apportion/apportion/adapter/objects"
)

func delegate(tb testing.TB, conf string) (*delegation.Forms, error) {
	tb.Helper()
	forms, _, err := delegation.New(objects.Source{Name: "conf", Data: []byte(conf)},
		delegation.Options{URL: "http://127.0.0.1:7173/volcano", Timeout: time.Second})
	return forms, err
}

// TestTheDelegatingFormLeavesRecordedDecisionsAsTheyWere plays what stock Volcano sent to a bridge whose policy is the original, and to one
// that stands for the plugins which are left in the delegating form. The former makes the delegated decisions as Volcano's plugins did. The
// latter abstains from them, so that Volcano's walk decides, and makes the other decisions as before.
func TestTheDelegatingFormLeavesRecordedDecisionsAsTheyWere(t *testing.T) {
	for file, verbs := range map[string][]string{
		"proportion-1024.json.gz":            {"queueOverused", "jobEnqueueable", "reclaimable"},
		"capacity-hierarchical-1013.json.gz": {"jobEnqueueable", "reclaimable"},
		"mixed-tiers-1025.json.gz":           {"queueOverused", "jobEnqueueable", "reclaimable", "preemptable"},
		"mixed-tiers-1025-beside.json.gz":    {"queueOverused", "jobEnqueueable", "reclaimable", "preemptable"},
	} {
		t.Run(file, func(t *testing.T) {
			r := readRecording(t, file)
			forms, err := delegate(t, r.NativeConf)
			require.NoError(t, err)
			require.Equal(t, verbs, forms.Delegated)
			require.Empty(t, forms.Kept)
			original, left := newBridge(t, r.NativeConf), newBridge(t, string(forms.Delegating))
			seen := map[bool]int{}
			for i := range r.Exchanges {
				e := &r.Exchanges[i]
				decided, rest := original.asked(e.Verb, e.sent(t)), left.asked(e.Verb, e.sent(t))
				if e.Call.Own == nil {
					continue
				}
				var want any
				require.NoError(t, json.Unmarshal(e.Call.Own, &want))
				delegated := slices.Contains(verbs, e.Verb)
				seen[delegated]++
				if !delegated {
					require.Equal(t, want, rest.session(t, e.Verb), "exchange %d, %s", i, e.Verb)
					continue
				}
				require.Equal(t, want, decided.session(t, e.Verb), "exchange %d, %s", i, e.Verb)
				require.False(t, rest.Overused, "exchange %d, %s", i, e.Verb)
				require.Empty(t, strings.Trim(string(rest.Status), "0"), "exchange %d, %s", i, e.Verb)
			}
			require.Positive(t, seen[true])
		})
	}
}

func TestEveryRecordedConfigurationCanBeDelegatedWhole(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "reference", "*.jsonl.gz"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, file := range files {
		packed, err := os.Open(file)
		require.NoError(t, err)
		plain, err := gzip.NewReader(packed)
		require.NoError(t, err)
		for lines := bufio.NewReaderSize(plain, 1<<20); ; {
			line, err := lines.ReadBytes('\n')
			var c struct {
				Conf string `json:"conf"`
			}
			if len(line) > 0 {
				require.NoError(t, json.Unmarshal(line, &c))
			}
			if c.Conf != "" && !seen[c.Conf] {
				seen[c.Conf] = true
				forms, failed := delegate(t, c.Conf)
				if failed != nil {
					require.ErrorContains(t, failed, "no plugin takes part", c.Conf)
				} else {
					require.Empty(t, forms.Kept, c.Conf)
				}
			}
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
		}
		require.NoError(t, packed.Close())
	}
	require.Greater(t, len(seen), 12)
	t.Log(len(seen), "configurations")
}
