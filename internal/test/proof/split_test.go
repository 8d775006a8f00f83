package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/raced"
)

// want is a queue of a cluster with one dimension.
type want struct{ weight, guarantee, demand int }

// shared divides an amount among queues by fair.
func shared(t *testing.T, base apportionv1.FairBase, amount int, queues ...want) []uint64 {
	t.Helper()
	resource := func(x int) map[string]any { return map[string]any{"dimensions": []int{0}, "amounts": []int{x}} }
	var list, jobs []any
	for i, q := range queues {
		name := fmt.Sprint("q", i)
		list = append(list, map[string]any{"name": name, "weight": q.weight, "guarantee": resource(q.guarantee)})
		tasks := make([]map[string]any, q.demand)
		for k := range tasks {
			tasks[k] = map[string]any{"uid": fmt.Sprint(name, "-", k)}
		}
		jobs = append(jobs, map[string]any{"uid": name, "queue": name, "groups": []any{map[string]any{"request": resource(1), "tasks": tasks}}})
	}
	data, err := json.Marshal(map[string]any{
		"dimensions": []string{"cpu"}, "queues": list, "jobs": jobs,
		"nodes": []any{map[string]any{"name": "n", "allocatable": resource(amount)}},
	})
	require.NoError(t, err)
	snapshot := &apportionv1.Snapshot{}
	require.NoError(t, protojson.Unmarshal(data, snapshot))
	c, err := certify(snapshot, fairAlone(&apportionv1.Fair{Base: base}))
	require.NoError(t, err)
	var shares []uint64
	for _, p := range c.Divisions[0].Children {
		shares = append(shares, p.Share)
	}
	return shares
}

// TestSplittingAQueueGainsOneUnitUnlessOnePartTakesItsGuarantee has the examples of proof/Examples.v. The first part of docs/fair.md's
// statement is theorem t4_split; the second is why it has a condition.
func TestSplittingAQueueGainsOneUnitUnlessOnePartTakesItsGuarantee(t *testing.T) {
	none, guarantee := apportionv1.FairBase_FAIR_BASE_NONE, apportionv1.FairBase_FAIR_BASE_GUARANTEE
	require.Equal(t, []uint64{1, 1}, shared(t, none, 2, want{5, 0, 2}, want{2, 0, 2}))
	require.Equal(t, []uint64{1, 0, 1}, shared(t, none, 2, want{2, 0, 1}, want{2, 0, 2}, want{3, 0, 1}))

	require.Equal(t, []uint64{15, 15}, shared(t, none, 30, want{2, 15, 60}, want{2, 0, 30}))
	require.Equal(t, []uint64{15, 10, 5}, shared(t, none, 30, want{1, 15, 30}, want{2, 0, 30}, want{1, 0, 30}))

	require.Equal(t, []uint64{23, 7}, shared(t, guarantee, 30, want{2, 15, 60}, want{2, 0, 30}))
	parts := shared(t, guarantee, 30, want{1, 15, 30}, want{2, 0, 30}, want{1, 0, 30})
	require.LessOrEqual(t, parts[0]+parts[2], uint64(24))
}

// TestEveryKindOfMutantIsWritten also sees that the certificates as they are recorded are accepted, and that each kind has mutants that are
// not, but for weights that all grow alike.
func TestEveryKindOfMutantIsWritten(t *testing.T) {
	raced.Skip(t)
	t.Chdir("../../..")
	folder := t.TempDir()
	var out bytes.Buffer
	require.NoError(t, run(&out, folder, 3000, 7))
	for _, m := range mutations {
		require.Contains(t, out.String(), m.kind+"\n")
	}
	for line := range strings.Lines(out.String()) {
		recorded := strings.Contains(line, "case\n") || strings.Contains(line, "vector\n") || strings.Contains(line, "all weights")
		if strings.HasSuffix(line, "  the case\n") {
			recorded = false
		}
		require.Equal(t, recorded, strings.Contains(line, "      0 refused"), line)
	}
	lines := -1
	for _, name := range []string{"numbers", "certificates.jsonl", "go"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		if lines < 0 {
			lines = bytes.Count(data, []byte("\n"))
		}
		require.Equal(t, lines, bytes.Count(data, []byte("\n")), name)
	}
	require.Greater(t, lines, 4000)
	require.Error(t, run(&out, "", 1, 1))
}
