package hdrf_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/hdrf"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// world draws a cluster whose amounts add up exactly.
func world(t *rapid.T) *policy.View {
	c := policytest.Cluster{Total: policytest.Amounts{"cpu": 16, "memory": 8}}
	if rapid.Bool().Draw(t, "gpus") {
		c.Total["gpu"] = rapid.SampledFrom([]float64{0, 4, 16}).Draw(t, "gpu")
	}
	depth := rapid.IntRange(1, 4).Draw(t, "depth")
	for i := range rapid.IntRange(1, 6).Draw(t, "queues") {
		parts, weights := "root", "1"
		for range rapid.IntRange(0, depth).Draw(t, "parts") {
			parts += "/" + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "part")
			weights += "/" + rapid.SampledFrom([]string{"1", "2", "0.5", "x"}).Draw(t, "weight")
		}
		q := queue(strconv.Itoa(i), parts, weights)
		if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
			q.Hierarchy = nil
		}
		c.Queues = append(c.Queues, q)
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "jobs") {
		j := policytest.Job{Name: strconv.Itoa(i), Queue: strconv.Itoa(rapid.IntRange(0, len(c.Queues)-1).Draw(t, "queue"))}
		for range rapid.IntRange(0, 4).Draw(t, "tasks") {
			request := policytest.Amounts{"cpu": float64(rapid.IntRange(0, 4).Draw(t, "cpu")), "memory": float64(rapid.IntRange(0, 2).Draw(t, "memory"))}
			if rapid.Bool().Draw(t, "asks for gpus") {
				request["gpu"] = float64(rapid.IntRange(0, 3).Draw(t, "gpu"))
			}
			j.Tasks = append(j.Tasks, policytest.Tasks{
				Request: request, Status: rapid.SampledFrom([]model.Status{model.Running, model.Pending}).Draw(t, "status"),
			})
		}
		c.Jobs = append(c.Jobs, j)
	}
	return c.View(t)
}

func holdings(v *policy.View) (byJob map[model.JobID][]float64, used []float64) {
	byJob, used = map[model.JobID][]float64{}, make([]float64, v.Dims.Len())
	for _, j := range v.Present() {
		byJob[j] = v.Account(j).Allocated.V
		for d, x := range byJob[j] {
			used[d] += x
		}
	}
	return byJob, used
}

func requireTwin(t *rapid.T, v *policy.View, s *hdrf.State) {
	byJob, used := holdings(v)
	root := newTwin(v, byJob, used)
	nodes := s.Nodes()
	twins := make([]*twin, len(nodes))
	for i, n := range nodes {
		twins[i] = root
		if i > 0 {
			name := n.Name
			if n.Job != model.None {
				name = "job " + name
			}
			twins[i] = twins[n.Parent].children[name]
		}
		require.NotNil(t, twins[i], "%d %s", i, n.Name)
		require.Equal(t, []any{twins[i].name, twins[i].weight, twins[i].saturated}, []any{n.Name, n.Weight, n.Saturated})
		requireClose(t, twins[i].share, n.Share)
		for d, x := range twins[i].held {
			requireClose(t, x, n.Allocated.V[d])
		}
	}
	for l := range v.Queues {
		for r := range v.Queues {
			if root.has(v.Queues[l].Hierarchy) && root.has(v.Queues[r].Hierarchy) {
				l, r := model.QueueID(l), model.QueueID(r)
				require.Equal(t, root.compare(pathOf(v, l), pathOf(v, r)), s.CompareQueues(l, r))
			}
		}
	}
}

func pathOf(v *policy.View, q model.QueueID) string {
	if h := v.Queues[q].Hierarchy; h != nil {
		return h.Path
	}
	return ""
}

func (n *twin) has(h *model.Hierarchy) bool {
	if h == nil {
		return true
	}
	for _, part := range strings.Split(h.Path, "/")[1:] {
		if n = n.children[part]; n == nil {
			return false
		}
	}
	return true
}

func requireClose(t *rapid.T, want, got float64) {
	require.LessOrEqual(t, math.Abs(want-got), 1e-12*math.Abs(want), "want %v, got %v", want, got)
}

func TestTheTreeIsThatOfItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := world(t)
		s := open(t, v)
		requireTwin(t, v, s)
		if v.Tasks.Len() == 0 {
			return
		}
		before := image(s)
		mark := v.Journal.Mark()
		for range rapid.IntRange(0, 8).Draw(t, "events") {
			task := model.TaskID(rapid.IntRange(0, v.Tasks.Len()-1).Draw(t, "task"))
			policytest.Toggle(v, s, task)
			if rapid.Bool().Draw(t, "look") {
				requireTwin(t, v, s)
			}
		}
		require.Equal(t, image(open(t, v)), image(s), "as if opened now")
		v.Journal.Rollback(mark)
		require.Equal(t, before, image(s), "every bit is back")
		requireTwin(t, v, s)
	})
}

func TestVictimsAreThoseOfTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := world(t)
		var running, all []model.TaskID
		for task := range v.Tasks.All() {
			all = append(all, task)
			if v.Tasks.At(task).Status == model.Running {
				running = append(running, task)
			}
		}
		if len(running) == 0 {
			return
		}
		s := open(t, v)
		before := image(s)
		byJob, _ := holdings(v)
		for range 3 {
			claimant := rapid.SampledFrom(all).Draw(t, "claimant")
			candidates := rapid.Permutation(running).Draw(t, "candidates")
			victims, vote := s.Reclaimable(claimant, candidates, nil, nil)
			require.Equal(t, policy.Permit, vote)
			require.Equal(t, reclaimable(v, byJob, claimant, candidates), victims)
			require.Equal(t, before, image(s), "the question changed nothing")
			task := rapid.SampledFrom(running).Draw(t, "event")
			s.Deallocate(task)
			s.Allocate(task)
		}
	})
}

// image is the tree with every row copied.
func image(s *hdrf.State) []policy.TreeNode {
	nodes := s.Nodes()
	for i := range nodes {
		nodes[i].Request, nodes[i].Allocated = nodes[i].Request.Clone(), nodes[i].Allocated.Clone()
	}
	return nodes
}
