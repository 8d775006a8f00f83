// Package servicetest starts servers for tests, joined to their client by memory, and makes small requests.
package servicetest

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/service"
)

// Replica is a server and a client of it.
type Replica struct {
	Calls

	Server *service.Server
	Conn   *grpc.ClientConn

	stop func()
}

// Calls are the calls of all services.
type Calls struct {
	apportionv1.DecisionServiceClient
	apportionv1.SnapshotServiceClient
	apportionv1alpha1.InsightServiceClient
}

// Over returns the calls over a connection.
func Over(connection grpc.ClientConnInterface) Calls {
	return Calls{
		apportionv1.NewDecisionServiceClient(connection), apportionv1.NewSnapshotServiceClient(connection),
		apportionv1alpha1.NewInsightServiceClient(connection),
	}
}

// Whole is a snapshot as it was downloaded.
type Whole struct {
	View     *apportionv1.SnapshotView
	Snapshot *apportionv1.Snapshot
	Data     []byte
	Chunks   int
}

// Download downloads the snapshot that a request names.
func (c Calls) Download(ctx context.Context, request *apportionv1.DownloadSnapshotRequest) (*Whole, error) {
	stream, err := c.DownloadSnapshot(ctx, request)
	if err != nil {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	got := &Whole{View: first.GetHeader().GetView(), Snapshot: &apportionv1.Snapshot{}}
	for last := false; !last; got.Chunks++ {
		response, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		got.Data, last = append(got.Data, response.GetChunk().GetData()...), response.GetChunk().GetLast()
	}
	return got, proto.Unmarshal(got.Data, got.Snapshot)
}

// Named downloads the newest version of the snapshot of a name.
func (c Calls) Named(ctx context.Context, name string) (*Whole, error) {
	return c.Download(ctx, &apportionv1.DownloadSnapshotRequest{Source: &apportionv1.DownloadSnapshotRequest_Name{Name: name}})
}

// Start starts a replica that ends with the test.
func Start(tb testing.TB, options service.Options) *Replica { //nolint:gocritic // Once a test.
	tb.Helper()
	s, err := service.New(options)
	require.NoError(tb, err)
	r := &Replica{Server: s}
	listener := bufconn.Listen(1 << 20)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.Server.Serve(ctx, listener) }()
	r.Conn, err = grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	require.NoError(tb, err)
	r.Calls = Over(r.Conn)
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		require.NoError(tb, r.Conn.Close())
		end()
		require.NoError(tb, <-served)
	}
	tb.Cleanup(r.stop)
	return r
}

// Stop ends the replica before the test does.
func (r *Replica) Stop() { r.stop() }

// Snapshot is a small cluster with objects of every kind.
func Snapshot(seed uint64) *apportionv1.Snapshot {
	shape := generate.Standard()
	shape.Queues, shape.Jobs, shape.Tasks, shape.Nodes, shape.Seed, shape.UIDs = 6, 24, 120, 8, seed, true
	return generate.Snapshot(shape)
}

// Proportion and Capacity are policies of one plugin that divides, beside gang.
func Proportion() *apportionv1.Policy {
	return of(&apportionv1.Plugin{Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}})
}

// Capacity is a policy that reads deserved as it is written.
func Capacity() *apportionv1.Policy {
	return of(&apportionv1.Plugin{Plugin: &apportionv1.Plugin_Capacity{Capacity: &apportionv1.Capacity{}}})
}

// Nested is a policy of hierarchies, with most plugins that the other policies do not use.
func Nested() *apportionv1.Policy {
	p := of(&apportionv1.Plugin{Plugin: &apportionv1.Plugin_Capacity{Capacity: &apportionv1.Capacity{Hierarchical: true}}})
	p.Tiers[1].Plugins = append(p.Tiers[1].Plugins,
		&apportionv1.Plugin{Plugin: &apportionv1.Plugin_HierarchicalDrf{HierarchicalDrf: &apportionv1.HierarchicalDrf{}}},
		&apportionv1.Plugin{Plugin: &apportionv1.Plugin_Cooldown{Cooldown: &apportionv1.Cooldown{}}},
		&apportionv1.Plugin{Plugin: &apportionv1.Plugin_Binpack{Binpack: &apportionv1.Binpack{}}},
		&apportionv1.Plugin{Plugin: &apportionv1.Plugin_NodeGroup{NodeGroup: &apportionv1.NodeGroup{}}})
	return p
}

func of(divides *apportionv1.Plugin) *apportionv1.Policy {
	return &apportionv1.Policy{Tiers: []*apportionv1.Tier{
		{Plugins: []*apportionv1.Plugin{
			{Plugin: &apportionv1.Plugin_Priority{Priority: &apportionv1.Priority{}}},
			{Plugin: &apportionv1.Plugin_Gang{Gang: &apportionv1.Gang{}}},
			{Plugin: &apportionv1.Plugin_Conformance{Conformance: &apportionv1.Conformance{}}},
		}},
		{Plugins: []*apportionv1.Plugin{divides, {Plugin: &apportionv1.Plugin_Overcommit{Overcommit: &apportionv1.Overcommit{}}}}},
	}}
}

// Inline is an input that holds both a snapshot and a policy.
func Inline(snapshot *apportionv1.Snapshot, policy *apportionv1.Policy) *apportionv1.Input {
	return &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: policy},
	}
}

// Named is an input that names the policy.
func Named(snapshot *apportionv1.Snapshot, policy string) *apportionv1.Input {
	return &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_PolicyName{PolicyName: policy},
	}
}

// Upload sends a snapshot to be held, and returns its digest.
func (r *Replica) Upload(tb testing.TB, snapshot *apportionv1.Snapshot) string {
	tb.Helper()
	return r.upload(tb, &apportionv1.UploadHeader{}, snapshot)
}

// UploadChange sends a change of a held snapshot, and returns the digest of the result, which is held.
func (r *Replica) UploadChange(tb testing.TB, base string, change *apportionv1.Change) string {
	tb.Helper()
	return r.upload(tb, &apportionv1.UploadHeader{BaseDigest: base}, change)
}

func (r *Replica) upload(tb testing.TB, header *apportionv1.UploadHeader, message proto.Message) string {
	tb.Helper()
	data, err := proto.Marshal(message)
	require.NoError(tb, err)
	stream, err := r.UploadSnapshot(tb.Context())
	require.NoError(tb, err)
	require.NoError(tb, stream.Send(&apportionv1.UploadSnapshotRequest{
		Message: &apportionv1.UploadSnapshotRequest_Header{Header: header},
	}))
	require.NoError(tb, stream.Send(&apportionv1.UploadSnapshotRequest{
		Message: &apportionv1.UploadSnapshotRequest_Chunk{Chunk: &apportionv1.SnapshotChunk{Data: data, Last: true}},
	}))
	response, err := stream.CloseAndRecv()
	require.NoError(tb, err)
	return response.GetDigest()
}

// Converse opens a session on a held snapshot and sends it batches of steps, one after the other.
func (r *Replica) Converse(tb testing.TB, digest, policy string, batches ...[]*apportionv1.Step) [][]*apportionv1.Answer {
	tb.Helper()
	stream, err := r.RunSession(tb.Context())
	require.NoError(tb, err)
	open := &apportionv1.OpenSession{Input: &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest},
		Rule:   &apportionv1.Input_PolicyName{PolicyName: policy},
		Texts:  true,
	}}
	require.NoError(tb, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: open}}))
	opened, err := stream.Recv()
	require.NoError(tb, err)
	require.NotNil(tb, opened.GetOpened())
	var out [][]*apportionv1.Answer
	for i, steps := range batches {
		require.NoError(tb, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{
			Batch: &apportionv1.StepBatch{Id: uint64(i), Steps: steps},
		}}))
		answered, err := stream.Recv()
		require.NoError(tb, err)
		out = append(out, answered.GetAnswers().GetAnswers())
	}
	require.NoError(tb, stream.CloseSend())
	_, err = stream.Recv()
	require.Error(tb, err)
	return out
}

// Steps ask and change something of every kind that a small cluster has an answer to.
func Steps() []*apportionv1.Step {
	task, several := &apportionv1.Selector{Indices: []uint32{0}}, &apportionv1.Selector{Indices: []uint32{0, 1, 2, 3}}
	queues := &apportionv1.OrderStep_Queues{Queues: &apportionv1.Selector{}}
	return []*apportionv1.Step{
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Jobs: &apportionv1.Selector{}}}},
		{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{}}},
		{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{}}},
		{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: several}}},
		{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{Tasks: task}}},
		{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: task}}},
		{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{Claimant: task}}},
		{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Subject: queues}}},
		{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: task}}},
		{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{}}},
		{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: 99}}},
	}
}

// Changes are steps of every kind that changes a small cluster.
func Changes() []*apportionv1.Step {
	task, job := &apportionv1.Selector{Indices: []uint32{0}}, &apportionv1.Job{Uid: "added", Queue: "queue-00005", MinAvailable: 1}
	running := apportionv1.TaskStatus_TASK_STATUS_RUNNING
	return []*apportionv1.Step{
		{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		event.SetStatus(task, running),
		event.Place(task, &apportionv1.Selector{Indices: []uint32{0}}),
		event.Evict(task, running),
		event.Change(&apportionv1.Change{Jobs: []*apportionv1.Job{job}}),
		event.Admit(&apportionv1.Selector{Indices: []uint32{0}}),
		event.Change(&apportionv1.Change{RemoveJobs: []string{"added"}}),
		{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}},
	}
}
