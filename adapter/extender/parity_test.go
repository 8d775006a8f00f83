package extender

import (
	"bufio"
	"bytes"
	"cmp"
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

	"github.com/apportion/apportion/adapter/extender/extendertest"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/raced"
)

// Stride is the distance of the recorded cases that are tried: all of them, and fewer under the race detector, which does not change answers.
func Stride() int {
	if raced.On {
		return 12
	}
	return 1
}

// eachCase calls visit with every recorded case of testdata/reference.
func eachCase(t *testing.T, visit func(t *testing.T, line []byte)) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/reference/*.jsonl.gz")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), func(t *testing.T) {
			packed, err := os.Open(file)
			require.NoError(t, err)
			defer packed.Close()
			plain, err := gzip.NewReader(packed)
			require.NoError(t, err)
			lines := bufio.NewReader(plain)
			for i := 0; ; i++ {
				line, err := lines.ReadBytes('\n')
				if len(line) > 0 && i%Stride() == 0 {
					visit(t, line)
				}
				if err == io.EOF {
					return
				}
				require.NoError(t, err)
			}
		})
	}
}

var recorded = time.Date(2026, time.January, 2, 3, 10, 0, 0, time.UTC)

// TestAPushSufficesForTheSnapshot shows that a push is as good as the manifests: the models are the same, so every answer is.
func TestAPushSufficesForTheSnapshot(t *testing.T) {
	raced.Skip(t)
	cases := 0
	eachCase(t, func(t *testing.T, line []byte) {
		t.Helper()
		var c struct {
			Manifests []json.RawMessage `json:"manifests"`
			Seed      int               `json:"seed"`
			Name      string            `json:"name"`
		}
		require.NoError(t, json.Unmarshal(line, &c))
		cluster, err := extendertest.Read(c.Manifests, recorded)
		require.NoError(t, err)
		body, err := cluster.Push()
		require.NoError(t, err)
		requireSameModel(t, cluster.Snapshot, body, "seed %d %s", c.Seed, c.Name)
		cases++
	})
	require.GreaterOrEqual(t, cases, 827/Stride())
}

// TestRecordedPushesAreWhatTheirManifestsSay shows that what stock Volcano sent is read as its manifests are.
func TestRecordedPushesAreWhatTheirManifestsSay(t *testing.T) {
	for _, file := range []string{"proportion-1024", "capacity-hierarchical-1013", "mixed-tiers-1025"} {
		packed, err := os.ReadFile("testdata/" + file + ".json.gz")
		require.NoError(t, err)
		plain, err := gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
		var r struct {
			Manifests []json.RawMessage `json:"manifests"`
			Exchanges []struct {
				Request struct {
					Body json.RawMessage `json:"body"`
				} `json:"request"`
			} `json:"exchanges"`
		}
		require.NoError(t, json.NewDecoder(plain).Decode(&r))
		cluster, err := extendertest.Read(r.Manifests, recorded)
		require.NoError(t, err)
		requireSameModel(t, cluster.Snapshot, r.Exchanges[0].Request.Body, file)
	}
}

// requireSameModel requires that a push makes the model that a snapshot makes, once both list everything in the same order.
func requireSameModel(t *testing.T, snapshot *apportionv1.Snapshot, body []byte, about ...any) {
	t.Helper()
	inOrderOfPush(snapshot)
	forgetPlacement(snapshot)
	forgetUnused(snapshot)
	want, err := decode.Compile(snapshot)
	require.NoError(t, err, about...)
	read, err := readPush(bytes.NewReader(body))
	require.NoError(t, err, about...)
	got, err := read.build(recorded.UnixNano())
	require.NoError(t, err, about...)
	require.Equal(t, contents(want), contents(got), about...)
}

// contents returns all data of a model: requests by value in place of their numbers, and no group's, which its tasks' tell.
func contents(m *model.Model) []any {
	tasks, requests := m.Tasks.Copied(), make([]resource.Row, m.Tasks.Len())
	for i := range tasks {
		requests[i], tasks[i].Request = m.Requests[tasks[i].Request], 0
	}
	groups := m.Groups.Copied()
	for i := range groups {
		groups[i].Request = 0
	}
	return []any{
		m.Dims, m.AsOf, m.Nodes, m.Queues, m.Jobs.Copied(), groups, m.Counts.Copied(), tasks, requests, m.Details.Copied(), m.Total, m.Accounts.Copied(), m.NodeOrder, m.QueueOrder,
		m.JobOrder,
	}
}

// inOrderOfPush sorts a snapshot as Go's encoder sorts a push: everything by name, tasks by uid, roles that have a minimum first.
func inOrderOfPush(s *apportionv1.Snapshot) {
	names := make([]string, len(s.Nodes))
	for i, n := range s.Nodes {
		names[i] = n.Name
	}
	slices.SortFunc(s.Nodes, func(a, b *apportionv1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Queues, func(a, b *apportionv1.Queue) int { return cmp.Compare(a.Name, b.Name) })
	id := func(j *apportionv1.Job) string { return j.Namespace + "/" + j.Name }
	slices.SortFunc(s.Jobs, func(a, b *apportionv1.Job) int { return cmp.Compare(id(a), id(b)) })
	position := make(map[string]uint32)
	for i, n := range s.Nodes {
		position[n.Name] = uint32(i)
	}
	for _, j := range s.Jobs {
		for _, g := range j.Groups {
			slices.SortFunc(g.Tasks, func(a, b *apportionv1.Task) int { return cmp.Compare(a.Uid, b.Uid) })
			for _, t := range g.Tasks {
				if t.Node != nil {
					at := position[names[*t.Node]]
					t.Node = &at
				}
			}
		}
		slices.SortStableFunc(j.Groups, func(a, b *apportionv1.TaskGroup) int {
			switch {
			case a.MinAvailable != nil && b.MinAvailable != nil:
				return cmp.Compare(a.Role, b.Role)
			case a.MinAvailable != nil:
				return -1
			case b.MinAvailable != nil:
				return 1
			}
			return cmp.Compare(a.Tasks[0].Uid, b.Tasks[0].Uid)
		})
	}
}

// forgetPlacement drops which nodes a pod may use, what was reported about it, and what whole sessions alone read: Volcano's own predicates
// decide the first, nothing that is asked here depends on the others, and none of it is read of a push.
func forgetPlacement(s *apportionv1.Snapshot) {
	s.NodeSets = nil
	for _, n := range s.Nodes {
		n.Unschedulable, n.RevocableZone = nil, ""
	}
	for _, j := range s.Jobs {
		j.Condition, j.Detail = "", nil
		for _, g := range j.Groups {
			g.NodeSet, g.UnjudgedConstraints, g.Unstated = "", nil, nil
			for _, t := range g.Tasks {
				if d := t.GetDetail(); d != nil {
					d.NodeSet, d.UnjudgedConstraints, d.Condition = "", nil, ""
					d.NominatedNode, d.NeverPreempts, d.RevocableZone, d.Unlabelled, d.Unstated = "", false, "", false, nil
				}
			}
		}
	}
}

// forgetUnused drops dimensions that only jobs named which were left out.
func forgetUnused(s *apportionv1.Snapshot) {
	var all []*apportionv1.Resource
	for _, n := range s.Nodes {
		all = append(all, n.Allocatable, n.UsedByOthers)
	}
	for _, q := range s.Queues {
		all = append(all, q.Capability, q.Guarantee, q.Deserved)
	}
	for _, j := range s.Jobs {
		all = append(all, j.MinResources)
		for _, g := range j.Groups {
			all = append(all, g.Request)
			for _, t := range g.Tasks {
				all = append(all, t.GetDetail().GetRequest())
			}
		}
	}
	used := make([]bool, len(s.Dimensions))
	for _, r := range all {
		for _, d := range r.GetDimensions() {
			used[d] = true
		}
	}
	number := make([]uint32, len(s.Dimensions))
	var left []string
	for d, name := range s.Dimensions {
		number[d] = uint32(len(left))
		if used[d] {
			left = append(left, name)
		}
	}
	s.Dimensions = left
	for _, r := range all {
		for i, d := range r.GetDimensions() {
			r.Dimensions[i] = number[d]
		}
	}
}
