package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
)

// badQuestions are requests that, beside their input, ask nothing or something that cannot be answered.
var badQuestions = map[string][]string{
	"EvaluateShares": {``, `shares { queues { indices: 99 } fields: 77 }`, `shares { jobs { names: "none" } }`},
	"CheckEnqueue":   {``, `enqueue { mode: 9 }`, `enqueue { jobs { indices: 99 } }`},
	"Explain":        {``, `explain { jobs { names: "none" } }`, `explain { jobs {} groups_only: true }`},
	"Plan":           {``, `plan {}`, `plan { job { names: "none" } means: 9 }`},
	"Forecast":       {``, `forecast {}`, `forecast { job { names: "none" } runs: 5000 }`},
	"Remedies":       {``, `remedies {}`, `remedies { job { names: "none" } kinds: 99 }`},
	"Simulate":       {``, `steps {}`, `steps { allocatable {} } steps { preemptive { tasks { indices: 99 } } } steps { reclaim {} } steps { preempt { claimant { indices: [0, 1] } } } steps { nodes { tasks { names: "none" } } }`, `steps { rollback { mark: 3 } } steps { event { change { jobs {} } } } steps { event { change { remove_jobs: "none" } } }`},
}

func TestBadRequestsFailInProcessAsTheyDoAtTheService(t *testing.T) {
	s, err := service.New(service.Options{})
	require.NoError(t, err)
	c := client.InProcess()
	direct := s.Direct()
	badRequests(t, c, &method.EvaluateShares, direct.EvaluateShares)
	badRequests(t, c, &method.CheckEnqueue, direct.CheckEnqueue)
	badRequests(t, c, &method.Explain, direct.Explain)
	badRequests(t, c, &method.Plan, direct.Plan)
	badRequests(t, c, &method.Remedies, direct.Remedies)
	badRequests(t, c, &method.Forecast, direct.Forecast)
	badRequests(t, c, &method.Simulate, direct.Simulate)
}

// someEvents are a task that is evicted, and a queue that is added.
func someEvents(task, queue string) []*apportionv1.Event {
	return []*apportionv1.Event{
		event.Evict(&apportionv1.Selector{Names: []string{task}}, apportionv1.TaskStatus_TASK_STATUS_PENDING).GetEvent(),
		event.Change(&apportionv1.Change{Queues: []*apportionv1.Queue{{Name: queue}}, Dimensions: []string{"tpu"}}).GetEvent(),
	}
}

// badRequests compares what a method answers in process with what the service answers.
func badRequests[Q interface {
	method.Request
	proto.Message
}, A proto.Message](t *testing.T, c *client.Client, m *method.Method[Q, A], call func(context.Context, Q) (A, error)) {
	t.Helper()
	snapshot := &apportionv1.Input_Snapshot{Snapshot: twoTeams(t)}
	policy := &apportionv1.Input_Policy{Policy: proportional(t)}
	unknown := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{{}}}}}
	broken := &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{Jobs: []*apportionv1.Job{{Groups: []*apportionv1.TaskGroup{{
		Request: &apportionv1.Resource{Dimensions: []uint32{9}},
	}}}}}}
	require.NotEmpty(t, badQuestions[m.Name])
	for name, input := range map[string]*apportionv1.Input{
		"no input":         nil,
		"empty input":      {},
		"no policy":        {Source: snapshot},
		"no snapshot":      {Rule: policy},
		"unknown policy":   {Source: snapshot, Rule: &apportionv1.Input_PolicyName{PolicyName: "none"}},
		"empty name":       {Source: snapshot, Rule: &apportionv1.Input_PolicyName{}},
		"malformed policy": {Source: snapshot, Rule: &apportionv1.Input_Policy{Policy: unknown}},
		"bad snapshot":     {Source: broken, Rule: policy},
		"good input":       {Source: snapshot, Rule: policy, Texts: true},
		"events":           {Source: snapshot, Rule: policy, Events: someEvents("web/shop-0", "new")},
		"no such events":   {Source: snapshot, Rule: policy, Events: append(someEvents("web/shop-0", "new"), someEvents("none", "")...)},
	} {
		for _, question := range badQuestions[m.Name] {
			var none Q
			request, _ := none.ProtoReflect().New().Interface().(Q)
			require.NoError(t, prototext.Unmarshal([]byte(question), request))
			if input != nil {
				at := request.ProtoReflect().Descriptor().Fields().ByName("input")
				request.ProtoReflect().Mutable(at)
				proto.Merge(request.GetInput(), input)
			}
			want, atService := call(t.Context(), request)
			got, inProcess := client.Answer(t.Context(), c, m, request)
			require.True(t, proto.Equal(status.Convert(atService).Proto(), status.Convert(inProcess).Proto()),
				"%s, %s, %q\nservice: %v\nin process: %v", m.Name, name, question, atService, inProcess)
			require.Equal(t, atService == nil, inProcess == nil)
			if atService == nil {
				require.True(t, proto.Equal(want, got), "%s, %s, %q\nservice: %v\nin process: %v", m.Name, name, question, want, got)
			}
		}
	}
}
