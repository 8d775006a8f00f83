//go:build cluster

package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/test/kubescheduler"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// found is what Apportion answers about a pod: the nodes on which it fits, why not on the others, and the constraints that were not evaluated.
type found struct {
	feasible []string
	why      map[string]string
	unjudged []apportionv1.PlacementConstraint
}

// read reads the live cluster, and returns the answer for each pod.
func (s *apiServer) found(t *testing.T, answers []kubescheduler.Answer) map[string]found {
	t.Helper()
	read, err := s.flags(t).Read(t.Context())
	require.NoError(t, err)
	require.Empty(t, read.Unread)
	c, err := volcano.ReadManifests(read.Sources)
	require.NoError(t, err)
	// The order of the answers is that of the tasks asked for, which are named by namespace and name.
	unjudged, uids := map[string][]apportionv1.PlacementConstraint{}, map[string]string{}
	for _, j := range c.Snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, task := range g.GetTasks() {
				name := j.GetNamespace() + "/" + task.GetName()
				unjudged[name] = append(unjudged[name], g.GetUnjudgedConstraints()...)
				unjudged[name] = append(unjudged[name], task.GetDetail().GetUnjudgedConstraints()...)
				uids[name] = task.GetUid()
			}
		}
	}
	var tasks []string
	for _, a := range answers {
		require.NotEmpty(t, uids[a.Pod()], a.Pod())
		tasks = append(tasks, uids[a.Pod()])
	}
	scores, err := client.InProcess().ScoreNodes(t.Context(), client.Input{Snapshot: c.Snapshot, Policy: client.VolcanoDefault()},
		client.NodesQuestion{Tasks: tasks, Explain: true})
	require.NoError(t, err)
	all := map[string]found{}
	for i, task := range scores.Tasks {
		f := found{feasible: []string{}, why: map[string]string{}, unjudged: unjudged[answers[i].Pod()]}
		for _, n := range task.Nodes {
			if n.Fits {
				f.feasible = append(f.feasible, n.Node)
			} else {
				f.why[n.Node] = n.Why
			}
		}
		all[answers[i].Pod()] = f
	}
	return all
}

// TestRealAPIServerWithKubernetesSchedulerAgreesOnFreshClusters compares the nodes on which a waiting pod fits with those that pass the
// scheduler's filters, in KUBESCHEDULER_FRESH random clusters (20 by default) whose seeds begin with KUBESCHEDULER_SEED or the current time.
// A pod that tolerates the taint of a cordon may use a cordoned node, as with the scheduler.
func TestRealAPIServerWithKubernetesSchedulerAgreesOnFreshClusters(t *testing.T) {
	first := number(t, "KUBESCHEDULER_SEED", int(time.Now().Unix()))
	s := startServer(t)
	s.prepare(t)
	compared, all := 0, 0
	for i := range number(t, "KUBESCHEDULER_FRESH", 20) {
		t.Run(fmt.Sprint("seed ", first+i), func(t *testing.T) {
			defer s.clear(t)
			c := s.schedule(t, uint64(first+i))
			found := s.found(t, c.Pods)
			for _, a := range c.Pods {
				all++
				f := found[a.Pod()]
				said := fmt.Sprintf("%s: the scheduler says %v %s, Apportion %v", a.Pod(), a.Reasons, a.Rejected, f.why)
				if len(f.unjudged) > 0 || a.Reasons[kubescheduler.RefusedByOthers] > 0 {
					// What is not evaluated can only leave out nodes.
					require.Subset(t, f.feasible, a.Feasible, said)
					continue
				}
				compared++
				require.Equal(t, a.Feasible, f.feasible, said)
			}
		})
	}
	t.Logf("%d of %d pods have the same nodes; the others have constraints that are not evaluated, and at least the scheduler's nodes", compared, all)
}
