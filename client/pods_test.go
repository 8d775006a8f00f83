package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// apart is a cluster of two nodes, one of which has a pod that keeps web/shop-0 away.
func apart() *client.Snapshot {
	return client.NewSnapshot().
		Pods(&apportionv1.PodRules{
			Topologies: []*apportionv1.Topology{{Key: "kubernetes.io/hostname", Node: true}},
			Classes: []*apportionv1.PodClass{{
				Selections: []uint32{7}, AntiAffinities: []*apportionv1.PodAntiAffinity{{Selection: 7, Topology: 0}},
			}},
		}).
		Node(client.Node{Name: "n0", Allocatable: client.Resources{"cpu": "8"}, OtherPods: []uint32{1}}).
		Node(client.Node{Name: "n1", Allocatable: client.Resources{"cpu": "8"}}).
		Queue(client.Queue{Name: "web"}).
		Job(client.Job{Name: "shop", Namespace: "web", Queue: "web", Groups: []client.Group{{
			PodClass: 1, Request: client.Resources{"cpu": "1"}, Tasks: []client.Task{{Name: "shop-0"}},
		}}})
}

func TestAMirrorSendsTheRulesOnOtherPods(t *testing.T) {
	s, err := apart().Build()
	require.NoError(t, err)
	m := client.NewMirror(nil)
	require.NoError(t, m.Replace(s))
	data, _ := m.State().Encode()
	got := &apportionv1.Snapshot{}
	require.NoError(t, proto.Unmarshal(data, got))
	require.True(t, proto.Equal(s.GetPods(), got.GetPods()))
	require.Equal(t, []uint32{1}, got.GetNodes()[0].GetOtherPods())
	require.Equal(t, uint32(1), got.GetJobs()[0].GetGroups()[0].GetPodClass())
	compiled, err := decode.CompileBytes(data)
	require.NoError(t, err)
	require.True(t, proto.Equal(s.GetPods(), decode.SnapshotOf(compiled).GetPods()))
}
