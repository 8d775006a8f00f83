package service_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	contract "github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

// foreign is part of every name and text that belongs to a queue other than the caller's.
const foreign = "xFOREIGNx"

// shared is a cluster in which the caller owns queue team and what is below it.
func shared(seed uint64) *apportionv1.Snapshot {
	s := servicetest.Snapshot(seed)
	names := map[string]string{}
	for i, q := range s.GetQueues() {
		name := []string{"team/a", "team/b"}[i%2]
		if i > 1 {
			name = foreign + q.GetName()
		}
		names[q.GetName()] = name
		q.Name, q.Parent = name, []string{"team", "team", "root", "org", foreign + "division"}[min(i, 4)]
		q.FairShareHierarchy = nil
	}
	for _, inner := range [][2]string{{"root", ""}, {"org", "root"}, {"team", "org"}, {foreign + "division", "org"}} {
		s.Queues = append(s.Queues, &apportionv1.Queue{Name: inner[0], Parent: inner[1]})
	}
	for i, job := range s.GetJobs() {
		job.Queue = names[job.GetQueue()]
		if strings.HasPrefix(job.GetQueue(), "team") {
			job.Condition = "not yet"
			continue
		}
		job.Uid, job.Name, job.Namespace = fmt.Sprint(foreign, i), foreign+job.GetName(), foreign+job.GetNamespace()
		job.Condition = foreign
		for _, group := range job.GetGroups() {
			group.Role = foreign + group.GetRole()
			for _, task := range group.GetTasks() {
				task.Uid, task.Name = foreign+task.GetUid(), foreign+task.GetName()
				if task.GetDetail() != nil {
					task.Detail.PriorityClass, task.Detail.Condition = foreign, foreign
				}
			}
		}
	}
	owner := []*apportionv1.OwnerUsage{{Owner: foreign, Usage: &apportionv1.Usage{Dimensions: []uint32{0}, QuantumSeconds: []int64{1 << 20}}}}
	s.Memory = &apportionv1.Memory{
		EpochSeconds: 3600, HalfLifeEpochs: 28, Epoch: s.GetAsOf() / 3_600_000_000_000,
		Offered: &apportionv1.Usage{Dimensions: []uint32{0}, QuantumSeconds: []int64{1 << 30}},
	}
	for _, q := range s.GetQueues() {
		if !strings.HasPrefix(q.GetName(), "team") {
			q.Owners, q.Usage = owner, owner[0].GetUsage()
		}
	}
	addKueue(s)
	s.LeftOuts = []*apportionv1.LeftOut{
		{Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNKNOWN_QUEUE, Namespace: foreign, Name: foreign, Queue: foreign + "queue-0000"},
		{Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_MISSING_JOB, Namespace: foreign, Name: foreign, Job: foreign},
	}
	for _, job := range s.GetJobs() {
		if uid, others := strings.CutPrefix(job.GetUid(), foreign); others {
			// The caller named an invalid pod like a job of others.
			s.LeftOuts = append(s.LeftOuts, &apportionv1.LeftOut{
				Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNKNOWN_QUEUE, Namespace: "team", Name: uid, Queue: "team/a", Kind: "Pod",
				Detail: "it has no requests",
			})
			job.Uid = uid
		}
	}
	return s
}

// addKueue makes inner queues cohorts, and gives the others quota, of which every job of others borrows, so that they are the victims of
// the caller's jobs.
func addKueue(s *apportionv1.Snapshot) {
	const flavor, set = "default", "main"
	cpu := func(amount float64) *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{amount}}
	}
	s.NodeSets = append(s.NodeSets, &apportionv1.NodeSet{Name: flavor, Flavor: &apportionv1.KueueFlavor{}})
	inner := map[string]bool{}
	for _, q := range s.GetQueues() {
		inner[q.GetParent()] = true
	}
	mine := int64(0)
	for _, job := range s.GetJobs() {
		if strings.HasPrefix(job.GetQueue(), "team") {
			mine++
		}
	}
	for _, q := range s.GetQueues() {
		if inner[q.GetName()] {
			q.Kueue = &apportionv1.KueueQueue{Cohort: true}
			continue
		}
		nominal := int64(0)
		if strings.HasPrefix(q.GetName(), "team/") {
			nominal = 1000 * (int64(len(s.GetJobs())) - mine)
		}
		q.Kueue = &apportionv1.KueueQueue{
			Preemption:  &apportionv1.KueuePreemption{ReclaimWithinCohort: apportionv1.KueueChoice_KUEUE_CHOICE_ANY},
			Quotas:      []*apportionv1.Quota{{NodeSet: flavor, Nominal: cpu(float64(nominal))}},
			LocalQueues: []*apportionv1.KueueLocalQueue{{Owner: foreign + "/" + foreign}},
		}
	}
	for _, job := range s.GetJobs() {
		own := &apportionv1.KueuePodSet{Name: set, Count: 1, Request: cpu(1000)}
		job.Kueue = &apportionv1.KueueWorkload{PodSets: []*apportionv1.KueuePodSet{own}}
		if !strings.HasPrefix(job.GetQueue(), "team") {
			job.Kueue.ReserveTime, job.Kueue.Admitted = new(int64(1)), true
			own.Uses = []*apportionv1.FlavorUse{{NodeSet: flavor, Used: cpu(2000)}}
		}
	}
}

// ownTeam is a caller that owns queue team.
func ownTeam(context.Context) func(string) bool {
	return func(queue string) bool { return queue == "team" }
}

func audiencePolicies() map[string]*apportionv1.Policy {
	fair := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Priority{Priority: &apportionv1.Priority{}}},
		{Plugin: &apportionv1.Plugin_Gang{Gang: &apportionv1.Gang{}}},
		{Plugin: &apportionv1.Plugin_Fair{Fair: &apportionv1.Fair{}}},
	}}}}
	return map[string]*apportionv1.Policy{
		"proportion": servicetest.Proportion(), "capacity": servicetest.Capacity(), "nested": servicetest.Nested(), "fair": fair,
		"kueue": {Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{{Plugin: &apportionv1.Plugin_Kueue{Kueue: &apportionv1.Kueue{}}}}}}},
	}
}

// holdingFor starts a server that holds a snapshot for a caller, and keeps it as cluster, and returns its digest.
func holdingFor(t *testing.T, snapshot *apportionv1.Snapshot, own func(context.Context) func(string) bool) (*servicetest.Replica, string) {
	t.Helper()
	r := servicetest.Start(t, service.Options{Policies: audiencePolicies(), Own: own})
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	digest, err := r.Server.Hold(t.Context(), data)
	require.NoError(t, err)
	view := &apportionv1.SnapshotView{LeftOuts: snapshot.GetLeftOuts()}
	require.NoError(t, r.Server.Keep("cluster", "", asOfAnHourAgo).Put(t.Context(), data, view))
	return r, digest
}

func heldInput(digest, policy string) *apportionv1.Input {
	return &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: policy}, Texts: true,
	}
}

// questions are steps of every kind, about everything and about each thing alone, by index and by name.
func questions(s *apportionv1.Snapshot) []*apportionv1.Step {
	steps := append(servicetest.Steps(), servicetest.Changes()...)
	add := func(step *apportionv1.Step) { steps = append(steps, step) }
	explain := func(q *apportionv1.ExplainStep) { add(&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: q}}) }
	shares := func(q *apportionv1.SharesStep) { add(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: q}}) }
	inspect := func(q *apportionv1.InspectStep) { add(&apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: q}}) }
	explain(nil)
	explain(&apportionv1.ExplainStep{GroupsOnly: true})
	explain(&apportionv1.ExplainStep{Filter: &apportionv1.PendingFilter{Checks: []apportionv1.CheckKind{apportionv1.CheckKind_CHECK_KIND_SHARE}}})
	shares(nil)
	shares(&apportionv1.SharesStep{Explain: &apportionv1.Explain{}})
	shares(&apportionv1.SharesStep{Tree: true, Jobs: &apportionv1.Selector{}})
	inspect(&apportionv1.InspectStep{Nodes: true, Jobs: true, Tasks: true, Queues: true})
	for i, job := range s.GetJobs() {
		for _, jobs := range []*apportionv1.Selector{{Indices: []uint32{uint32(i)}}, {Names: []string{job.GetUid()}}} {
			explain(&apportionv1.ExplainStep{Jobs: jobs})
			shares(&apportionv1.SharesStep{Jobs: jobs})
			inspect(&apportionv1.InspectStep{Jobs: true, Tasks: true, Of: jobs})
			add(&apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{Job: jobs}}})
			add(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{
				Subject: &apportionv1.OrderStep_Jobs{Jobs: jobs}, Pairs: true,
			}}})
		}
	}
	for i := range s.GetQueues() {
		explain(&apportionv1.ExplainStep{Filter: &apportionv1.PendingFilter{Queues: &apportionv1.Selector{Indices: []uint32{uint32(i)}}}})
		shares(&apportionv1.SharesStep{Queues: &apportionv1.Selector{Indices: []uint32{uint32(i)}}})
		shares(&apportionv1.SharesStep{Queues: &apportionv1.Selector{Names: []string{s.GetQueues()[i].GetName()}}})
	}
	for _, l := range s.GetLeftOuts() {
		explain(&apportionv1.ExplainStep{Jobs: &apportionv1.Selector{Names: []string{l.GetName()}}})
		explain(&apportionv1.ExplainStep{Jobs: &apportionv1.Selector{Names: []string{l.GetNamespace() + "/" + l.GetName()}}})
	}
	return steps
}

// hides requires that no byte of a message, and no word of an error, belongs to others.
func hides(t *testing.T, m proto.Message, err error) {
	t.Helper()
	if err != nil {
		text := status.Convert(err).Proto().String()
		require.NotContains(t, text, foreign)
		return
	}
	data, err := proto.Marshal(m)
	require.NoError(t, err)
	require.NotContains(t, string(data), foreign)
}

func TestNoNameOfOthersReachesACallerThatOwnsSomeQueues(t *testing.T) {
	for policy := range audiencePolicies() {
		t.Run(policy, func(t *testing.T) {
			for seed := range uint64(4) {
				snapshot := shared(seed)
				r, digest := holdingFor(t, snapshot, ownTeam)
				steps, answered := questions(snapshot), 0
				for _, step := range steps {
					got, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: heldInput(digest, policy), Steps: []*apportionv1.Step{step}})
					hides(t, got, err)
					if err == nil && got.GetAnswers()[0].GetError() == nil {
						answered++
					}
				}
				require.Greater(t, answered, 10, "own questions are answered")
				got, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: heldInput(digest, policy), Steps: steps})
				hides(t, got, err)
				in := heldInput(digest, policy)
				askEveryMethod(t, r, in)
				in.Source = &apportionv1.Input_SnapshotName{SnapshotName: "cluster"}
				askEveryMethod(t, r, in)
				got, err = r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: in, Steps: steps})
				hides(t, got, err)
				require.True(t, got.GetBasis().GetRestricted())
				require.Equal(t, "cluster", got.GetBasis().GetView().GetName())
			}
		})
	}
}

// askEveryMethod calls every method with a request about an input, or about the snapshot kept as cluster.
func askEveryMethod(t *testing.T, r *servicetest.Replica, in *apportionv1.Input) {
	t.Helper()
	ctx := t.Context()
	for _, call := range contract.Calls() {
		if call.IsStreamingClient() {
			continue
		}
		request := newMessage(t, call.Input())
		if f := call.Input().Fields().ByName("input"); f != nil {
			request.Set(f, protoreflect.ValueOfMessage(in.ProtoReflect()))
		}
		if f := call.Input().Fields().ByName("name"); f != nil {
			request.Set(f, protoreflect.ValueOfString("cluster"))
		}
		response := newMessage(t, call.Output()).Interface()
		stream, err := r.Conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, contract.PathOf(call))
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(request.Interface()))
		require.NoError(t, stream.CloseSend())
		hides(t, response, stream.RecvMsg(response))
	}
	stream, err := r.RunSession(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{
		Open: &apportionv1.OpenSession{Input: in},
	}}))
	_, err = stream.Recv()
	require.Equal(t, codes.PermissionDenied, status.Code(err))
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) protoreflect.Message {
	t.Helper()
	kind, err := service.MessageOf(d.FullName())
	require.NoError(t, err)
	return kind.New()
}

func TestACallerThatOwnsSomeQueuesSeesTheseAsEveryoneDoes(t *testing.T) {
	snapshot := shared(1)
	r, digest := holdingFor(t, snapshot, ownTeam)
	all, _ := holdingFor(t, snapshot, nil)
	for policy := range audiencePolicies() {
		in := heldInput(digest, policy)
		mine, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
		require.NoError(t, err)
		whole, err := all.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
		require.NoError(t, err)
		require.True(t, mine.GetBasis().GetRestricted())
		require.False(t, whole.GetBasis().GetRestricted())
		for i, plugin := range whole.GetShares().GetPlugins() {
			requireTotals(t, policy, plugin, mine.GetShares().GetPlugins()[i])
		}
		own, err := r.Explain(t.Context(), &apportionv1.ExplainRequest{Input: in})
		require.NoError(t, err)
		everyone, err := all.Explain(t.Context(), &apportionv1.ExplainRequest{Input: in})
		require.NoError(t, err)
		n := 0
		for _, e := range everyone.GetExplain().GetJobs() {
			if strings.Contains(e.GetName(), foreign) {
				continue
			}
			same := own.GetExplain().GetJobs()[n]
			require.Equal(t, []any{e.GetName(), e.GetVerdict(), e.GetBlocking()}, []any{same.GetName(), same.GetVerdict(), same.GetBlocking()})
			n++
		}
		require.Len(t, own.GetExplain().GetJobs(), n)
		require.EqualValues(t, len(everyone.GetExplain().GetJobs())-n, own.GetExplain().GetOtherJobs())
		_, err = all.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: in, Steps: servicetest.Steps()})
		require.NoError(t, err)
	}
}

// requireTotals compares what a caller sees of a plugin with the whole: its own queues are the same, and what others have adds up.
func requireTotals(t *testing.T, policy string, whole, mine *apportionv1.PluginShares) {
	t.Helper()
	sum := func(r *apportionv1.Resource) float64 {
		total := 0.0
		for _, x := range r.GetAmounts() {
			total += x
		}
		return total
	}
	tops, seen := 0.0, 0.0
	top := func(parent bool, r *apportionv1.Resource) float64 {
		if parent {
			return 0
		}
		return sum(r)
	}
	for _, q := range whole.GetQueues() {
		tops += top(len(q.GetAncestors()) > 0, q.GetAllocated())
		k := slices.IndexFunc(mine.GetQueues(), func(o *apportionv1.QueueShare) bool { return o.GetQueue() == q.GetQueue() })
		if strings.Contains(q.GetName(), foreign) {
			require.Negative(t, k)
			continue
		}
		q.Children = mine.GetQueues()[k].GetChildren()
		if !strings.HasPrefix(q.GetName(), "team") {
			q.Kueue = nil
		}
		require.True(t, proto.Equal(q, mine.GetQueues()[k]), policy)
		seen += top(len(q.GetAncestors()) > 0, q.GetAllocated())
	}
	for _, o := range mine.GetOthers() {
		seen += top(o.Parent != nil, o.GetAllocated())
	}
	require.InEpsilon(t, 1+tops, 1+seen, 1e-9, policy)
}

func TestACallerThatOwnsSomeQueuesLearnsItsQuotaOfKueueAndHowManyJobsOfOthersItWouldEvict(t *testing.T) {
	r, digest := holdingFor(t, shared(1), ownTeam)
	in := heldInput(digest, "kueue")
	shares, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
	require.NoError(t, err)
	accounts := map[string]bool{}
	for _, q := range shares.GetShares().GetPlugins()[0].GetQueues() {
		accounts[q.GetName()] = len(q.GetKueue().GetAccounts()) > 0
	}
	require.Equal(t, map[string]bool{"team/a": true, "team/b": true, "team": true, "org": false, "root": false}, accounts)
	explained, err := r.Explain(t.Context(), &apportionv1.ExplainRequest{Input: in})
	require.NoError(t, err)
	require.NotEmpty(t, explained.GetExplain().GetJobs())
	for _, e := range explained.GetExplain().GetJobs() {
		require.Equal(t, apportionv1.KueueMode_KUEUE_MODE_PREEMPT, e.GetKueue().GetMode())
		require.Empty(t, e.GetKueue().GetVictims(), "all are jobs of others")
		require.Contains(t, e.GetText(), "It would evict 1 job: a job of another queue (to reclaim quota in the cohort).")
	}
}

func TestSizesOfSnapshotsThatACallerMayNotAskAboutAreNotTold(t *testing.T) {
	denied := &decode.Fault{Code: codes.PermissionDenied, Reason: apportionv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED}
	o := service.Options{Policies: audiencePolicies(), PermitSnapshot: func(context.Context, string) error { return denied }}
	o.Overload.Memory = 1 << 20
	r := servicetest.Start(t, o)
	in := &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotName{SnapshotName: "cluster"}, Rule: &apportionv1.Input_PolicyName{PolicyName: "fair"},
	}
	keep(t, r.Server.Keep("cluster", "", asOfAnHourAgo), shared(1))
	_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: in, Steps: slices.Repeat(questions(shared(1)), 50)})
	requireFault(t, err, codes.PermissionDenied, "PERMISSION_DENIED")
}

func TestWhatACallerThatOwnsSomeQueuesMayNotAskSaysWhere(t *testing.T) {
	snapshot := shared(1)
	r, digest := holdingFor(t, snapshot, ownTeam)
	in := heldInput(digest, "proportion")
	other := uint32(slices.IndexFunc(snapshot.GetJobs(), func(j *apportionv1.Job) bool { return strings.Contains(j.GetQueue(), foreign) }))
	for name, c := range map[string]struct {
		step *apportionv1.Step
		want string
	}{
		"a job by index": {
			&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Jobs: &apportionv1.Selector{Indices: []uint32{other}}}}},
			"steps[0].explain.jobs.indices[0]: the caller may see only its own queues",
		},
		"a job that does not exist": {
			&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Jobs: &apportionv1.Selector{Names: []string{"?"}}}}},
			"steps[0].explain.jobs.names[0]: the caller may see only its own queues",
		},
		"a filter by a queue that does not exist": {
			&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Filter: &apportionv1.PendingFilter{
				Queues: &apportionv1.Selector{Names: []string{"?"}},
			}}}},
			"steps[0].explain.filter.queues.names[0]: the caller may see only its own queues",
		},
		"a plan": {
			&apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{}}},
			"the caller may see only its own queues",
		},
		"victims": {
			&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{}}},
			"the caller may see only its own queues",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: in, Steps: []*apportionv1.Step{c.step}})
			require.NoError(t, err)
			st := got.GetAnswers()[0].GetError()
			require.Equal(t, int32(codes.PermissionDenied), st.GetCode())
			require.Equal(t, c.want, st.GetMessage())
		})
	}
	own := uint32(slices.IndexFunc(snapshot.GetJobs(), func(j *apportionv1.Job) bool { return !strings.Contains(j.GetQueue(), foreign) }))
	contradiction := &apportionv1.ExplainStep{Jobs: &apportionv1.Selector{Indices: []uint32{own}}, GroupsOnly: true}
	_, err := r.Explain(t.Context(), &apportionv1.ExplainRequest{Input: in, Explain: contradiction})
	requireFault(t, err, codes.InvalidArgument, "INVALID_STEP")
	changed := heldInput(digest, "proportion")
	changed.Events = []*apportionv1.Event{event.Change(&apportionv1.Change{RemoveQueues: []string{foreign}}).GetEvent()}
	_, err = r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: changed})
	requireFault(t, err, codes.PermissionDenied, "PERMISSION_DENIED")
	stream, err := r.UploadSnapshot(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{
		Header: &apportionv1.UploadHeader{BaseDigest: digest},
	}}))
	if err := stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Chunk{
		Chunk: &apportionv1.SnapshotChunk{Last: true},
	}}); err != nil {
		require.ErrorIs(t, err, io.EOF)
	}
	_, err = stream.CloseAndRecv()
	requireFault(t, err, codes.PermissionDenied, "PERMISSION_DENIED")
}

func TestSnapshotsThatACallerSentAreItsOwn(t *testing.T) {
	r := servicetest.Start(t, service.Options{Policies: audiencePolicies(), Own: ownTeam})
	snapshot := shared(1)
	digest := r.Upload(t, snapshot)
	for _, in := range []*apportionv1.Input{heldInput(digest, "fair"), servicetest.Named(snapshot, "fair")} {
		got, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
		require.NoError(t, err)
		require.False(t, got.GetBasis().GetRestricted())
		require.Contains(t, protojson.Format(got), foreign)
	}
}

// TestEveryTextThatACallerThatOwnsSomeQueuesMayReadIsListedHere fills every field of an answer: what redact leaves is this list. A new field
// is not sent until it is in the list of package service, and its texts are here.
func TestEveryTextThatACallerThatOwnsSomeQueuesMayReadIsListedHere(t *testing.T) {
	snapshot := shared(1)
	snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{Name: filling})
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	m, err := new(decode.Decoder).CompileWithin(data, decode.Guard{})
	require.NoError(t, err)
	left := map[string]bool{}
	for i := range (&apportionv1.Answer{}).ProtoReflect().Descriptor().Oneofs().Get(0).Fields().Len() {
		answer := &apportionv1.Answer{}
		f := answer.ProtoReflect().Descriptor().Oneofs().Get(0).Fields().Get(i)
		if f.Name() == "error" {
			continue
		}
		fill(answer.ProtoReflect().Mutable(f).Message(), 0)
		service.Redact(m, func(string) bool { return true }, answer)
		texts(answer.ProtoReflect(), left)
	}
	basis := &apportionv1.Basis{}
	fill(basis.ProtoReflect(), 0)
	service.Redact(m, func(string) bool { return true }, basis)
	texts(basis.ProtoReflect(), left)
	list := make([]string, 0, len(left))
	for name := range left {
		list = append(list, strings.TrimPrefix(name, "apportion.v1."))
	}
	slices.Sort(list)
	require.Equal(t, strings.Fields(`
		Basis.dimensions Basis.engine_version Basis.policy_digest Basis.snapshot_digest
		Cause.detail Cause.holder Cause.plugin Cause.text
		ExplainAnswer.text Explanation.conditions Explanation.name Explanation.text Explanation.uid FairShareHierarchy.path FairShareHierarchy.weights
		Finding.text
		InspectedJob.name InspectedJob.namespace InspectedJob.uid InspectedNode.group InspectedNode.name
		InspectedTask.name InspectedTask.role InspectedTask.uid JobShare.uid
		KueueAccount.flavor KueueAccount.resource KueueAssignedFlavor.flavor KueueAssignedFlavor.resource KueueLack.detail
		KueueLack.flavor KueueLack.resource KueueNomination.text KueuePodSetAssignment.name KueueShare.parent KueueShare.resource KueueVictim.name
		LeftOut.detail LeftOut.job LeftOut.kind LeftOut.name LeftOut.namespace LeftOut.queue LeftOut.scheduler LeftOutExplanation.text
		NodeGroupLimit.group NodeGroupTerms.preferred_groups NodeGroupTerms.required_groups NodeReservation.holder
		NodeReservation.reason NodeUnschedulable.detail OwnerUsage.owner
		PendingGroup.text PendingKind.text PluginShares.plugin
		Queue.name Queue.parent QueueShare.name QueueStanding.name
		SnapshotView.digest SnapshotView.name ViewedKind.fault ViewedKind.resource ViewedKind.resource_version`), list)
}

// filling is the text that fill writes, and the name of a queue of the caller.
const filling = "text"

// fill sets every field of a message, messages below it included.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Message() != nil && depth > 6 || f.IsMap() {
			continue
		}
		if f.IsList() {
			list := m.Mutable(f).List()
			if f.Message() != nil {
				fill(list.AppendMutable().Message(), depth+1)
			} else {
				list.Append(filled(f))
			}
			continue
		}
		if f.Message() != nil {
			fill(m.Mutable(f).Message(), depth+1)
			continue
		}
		m.Set(f, filled(f))
	}
}

func filled(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(filling)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(filling))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	}
	numbers := map[protoreflect.Kind]any{
		protoreflect.Uint32Kind: uint32(0), protoreflect.Uint64Kind: uint64(0), protoreflect.Int32Kind: int32(0),
		protoreflect.Int64Kind: int64(0), protoreflect.DoubleKind: 0.0,
	}
	return protoreflect.ValueOf(numbers[f.Kind()])
}

// texts collects the names of the fields that hold texts.
func texts(m protoreflect.Message, into map[string]bool) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		text := f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind
		switch {
		case text:
			into[string(f.FullName())] = true
		case f.Message() != nil && f.IsList():
			for i := range v.List().Len() {
				texts(v.List().Get(i).Message(), into)
			}
		case f.Message() != nil:
			texts(v.Message(), into)
		}
		return true
	})
}
