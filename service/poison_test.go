package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/buffer"
)

// secret returns a question about a cluster whose texts all hold a word that no other cluster has, and whose answer contains them.
func secret(t *testing.T, word string, tasks int) *apportionv1.SimulateRequest {
	t.Helper()
	var all strings.Builder
	for i := range tasks {
		fmt.Fprintf(&all, `tasks { uid: "%s-%d" status: TASK_STATUS_PENDING } `, word, i)
	}
	return parse(t, &apportionv1.SimulateRequest{}, fmt.Sprintf(`
		input { snapshot {
			dimensions: "cpu" nodes { name: "%[1]s" allocatable { dimensions: 0 amounts: 8000 } } queues { name: "%[1]s" }
			jobs { uid: "%[1]s" queue: "%[1]s" groups { role: "%[1]s" request { dimensions: 0 amounts: 1000 } %[2]s } }
		} policy { tiers { plugins { proportion {} } } } }
		steps { inspect { nodes: true jobs: true tasks: true } }
		steps { shares {} }
		steps { allocatable { tasks { indices: 0 } } }`, word, all.String()))
}

// TestNoByteOfOneRequestIsSeenInAnother overwrites whatever memory is given back, and lets the race detector watch who still reads it.
func TestNoByteOfOneRequestIsSeenInAnother(t *testing.T) {
	buffer.Spoil = func(memory []byte) {
		for i := range memory {
			memory[i] = 0xdb
		}
	}
	defer func() { buffer.Spoil = nil }()
	t.Run("calls", func(t *testing.T) { askSecrets(t, 300) })
}

// TestMemoryThatIsGivenBackIsNotReadAgain ends the test program if it is.
func TestMemoryThatIsGivenBackIsNotReadAgain(t *testing.T) {
	clean, ok := buffer.Protect(32<<10 + 1)
	if !ok {
		t.Skip("this system cannot protect memory")
	}
	defer clean()
	// Messages above 32 KiB are put together in memory of the pool.
	t.Run("calls", func(t *testing.T) { askSecrets(t, 1500) })
}

// askSecrets asks about clusters of so many tasks and more on many calls and sessions at a time.
func askSecrets(t *testing.T, tasks int) {
	t.Helper()
	r := start(t, service.Options{Overload: admission.Options{Wait: time.Minute}})
	var callers sync.WaitGroup
	for caller := range 6 {
		word := strings.Repeat(string(rune('a'+caller)), 20+caller)
		ask := secret(t, word, tasks+60*caller)
		want, err := r.Simulate(t.Context(), ask)
		require.NoError(t, err)
		require.Equal(t, word+"-7", want.GetAnswers()[0].GetInspect().GetTasks()[7].GetUid())
		callers.Go(func() {
			for range 5 {
				got, err := r.Simulate(context.Background(), ask)
				if err != nil || !proto.Equal(want, got) {
					t.Errorf("%s was answered differently: %v", word, err)
					return
				}
			}
		})
		callers.Go(func() { converse(t, r, ask, want) })
		callers.Go(func() { uploadAndAsk(t, r, ask, want) })
	}
	callers.Wait()
}

// uploadAndAsk asks the same about uploaded snapshots, and about changes of them that set the same jobs again.
func uploadAndAsk(t *testing.T, r *replica, ask *apportionv1.SimulateRequest, want *apportionv1.SimulateResponse) {
	t.Helper()
	ask, snapshot := proto.CloneOf(ask), proto.CloneOf(ask.GetInput().GetSnapshot())
	base := ""
	for i := range 6 {
		snapshot.AsOf = int64(i + 1)
		var message proto.Message = snapshot
		if i%2 == 1 {
			message = &apportionv1.Change{AsOf: new(int64(i + 1)), Dimensions: snapshot.GetDimensions(), Jobs: snapshot.GetJobs()}
		}
		data, err := proto.Marshal(message)
		if err != nil {
			t.Error(err)
			return
		}
		head := &apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{
			Header: &apportionv1.UploadHeader{BaseDigest: base},
		}}
		held, err := upload(context.Background(), t, r, head, chunk(string(data), true))
		if base = ""; i%2 == 0 {
			base = held.GetDigest()
		}
		ask.Input.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: held.GetDigest()}
		var got *apportionv1.SimulateResponse
		if err == nil {
			got, err = r.Simulate(context.Background(), ask)
		}
		if err != nil || i%2 == 0 && !sameAnswers(want, got) || i%2 == 1 && len(got.GetAnswers()) != len(want.GetAnswers()) {
			t.Errorf("an uploaded snapshot was answered differently: %v", err)
			return
		}
	}
}

func sameAnswers(l, r *apportionv1.SimulateResponse) bool {
	return proto.Equal(&apportionv1.SimulateResponse{Answers: l.GetAnswers()}, &apportionv1.SimulateResponse{Answers: r.GetAnswers()})
}

// converse asks the same on sessions of their own.
func converse(t *testing.T, r *replica, ask *apportionv1.SimulateRequest, want *apportionv1.SimulateResponse) {
	t.Helper()
	for range 3 {
		stream, err := r.RunSession(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		err = stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{Input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: ask.GetInput().GetSnapshot()},
			Rule:   &apportionv1.Input_Policy{Policy: ask.GetInput().GetPolicy()},
		}}}})
		for range 3 {
			err = stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{
				Batch: &apportionv1.StepBatch{Steps: ask.GetSteps()},
			}})
		}
		if err == nil {
			_, err = stream.Recv()
		}
		for range 3 {
			var heard *apportionv1.RunSessionResponse
			if err == nil {
				heard, err = stream.Recv()
			}
			if err != nil || !proto.Equal(&apportionv1.SimulateResponse{Answers: want.GetAnswers()},
				&apportionv1.SimulateResponse{Answers: heard.GetAnswers().GetAnswers()}) {
				t.Errorf("a session was answered differently: %v", err)
				return
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		_, _ = stream.Recv()
	}
}
