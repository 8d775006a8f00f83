package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/wire/method"
)

const checkedIn = "../../../testdata/conformance"

func TestTheServiceAnswersAsTheVectorsSay(t *testing.T) {
	require.NoError(t, run(t.Context(), io.Discard, checkedIn, true))
}

func TestEveryMethodAndEveryKindOfStepHasAVector(t *testing.T) {
	for _, call := range method.Calls() {
		if call.Name() == "GetServerInfo" {
			continue // What a server is follows from the server, not from the request.
		}
		found, err := filepath.Glob(filepath.Join(checkedIn, string(call.Name()), "*", "1.request.binpb"))
		require.NoError(t, err)
		require.NotEmpty(t, found, call.Name())
	}
	steps, err := readRequests(filepath.Join(checkedIn, "Simulate", "every-kind-of-step"))
	require.NoError(t, err)
	asked := map[string]bool{}
	list := steps[0].ProtoReflect().Get(steps[0].ProtoReflect().Descriptor().Fields().ByName("steps")).List()
	for i := range list.Len() {
		step := list.Get(i).Message()
		if kind := step.WhichOneof(step.Descriptor().Oneofs().ByName("step")); kind != nil {
			asked[string(kind.Name())] = true
		}
	}
	kinds := list.NewElement().Message().Descriptor().Fields()
	for i := range kinds.Len() {
		require.Contains(t, asked, string(kinds.Get(i).Name()))
	}
}

// copied returns a folder with one vector, and the vector's own folder.
func copied(t *testing.T, vector string) (folder, path string) {
	t.Helper()
	folder = t.TempDir()
	path = filepath.Join(folder, vector)
	require.NoError(t, os.CopyFS(path, os.DirFS(filepath.Join(checkedIn, vector))))
	policy, err := os.ReadFile(filepath.Join(checkedIn, "fair.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "fair.json"), policy, 0o600))
	return folder, path
}

func TestAChangedRequestMakesItsVectorStale(t *testing.T) {
	folder, path := copied(t, "CheckEnqueue/votes")
	require.NoError(t, run(t.Context(), io.Discard, folder, true))
	require.NoError(t, os.WriteFile(filepath.Join(path, "1.request.json"), []byte(`{}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(path, "9.note"), nil, 0o600))

	err := run(t.Context(), io.Discard, folder, true)
	require.ErrorContains(t, err, "make conformance")
	for _, name := range []string{"1.request.binpb", "2.response.json", "2.status.json", "9.note"} {
		require.ErrorContains(t, err, name)
	}

	require.NoError(t, run(t.Context(), io.Discard, folder, false))
	require.NoError(t, run(t.Context(), io.Discard, folder, true))
	require.NoFileExists(t, filepath.Join(path, "2.response.json"))
}

func TestAFolderThatHoldsNoVectorsIsRefused(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), io.Discard, t.TempDir(), true), "no vectors")
}

func TestAVectorOfNoMethodIsRefused(t *testing.T) {
	folder, path := copied(t, "CheckEnqueue/votes")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "Decide"), 0o700))
	require.NoError(t, os.Rename(path, filepath.Join(folder, "Decide", "votes")))
	require.ErrorContains(t, run(t.Context(), io.Discard, folder, true), "no method Decide")
}

func TestRequestsComeInOrderOfTheirNumbers(t *testing.T) {
	folder, path := copied(t, "RunSession/two-batches")
	first, err := readRequests(path)
	require.NoError(t, err)
	require.Len(t, first, 3)
	require.NoError(t, os.Rename(filepath.Join(path, "5.request.json"), filepath.Join(path, "10.request.json")))
	require.NoError(t, os.Remove(filepath.Join(path, "5.request.binpb")))
	require.NoError(t, run(t.Context(), io.Discard, folder, false))
	require.FileExists(t, filepath.Join(path, "6.response.json"))
	require.NoError(t, run(t.Context(), io.Discard, folder, true))
}

// later serves a later version until the test ends, and returns its address.
func later(t *testing.T) string {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	address := make(chan string, 1)
	served := make(chan error, 1)
	go func() {
		served <- serveNewer(ctx, writer(func(line string) { address <- line }), "127.0.0.1:0", checkedIn)
	}()
	t.Cleanup(func() {
		end()
		require.NoError(t, <-served)
	})
	_, at, ok := strings.Cut(strings.TrimSpace(<-address), "address=")
	require.True(t, ok)
	return at
}

func TestALaterVersionOnABadDay(t *testing.T) {
	connection, err := grpc.NewClient(later(t), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	require.NoError(t, err)
	defer func() { require.NoError(t, connection.Close()) }()
	stub := apportionv1.NewDecisionServiceClient(connection)
	requests, err := readRequests(filepath.Join(checkedIn, "RunSession", "two-batches"))
	require.NoError(t, err)
	say := func(session apportionv1.DecisionService_RunSessionClient, i int) {
		message, ok := requests[i].(*apportionv1.RunSessionRequest)
		require.True(t, ok)
		require.NoError(t, session.Send(message))
	}
	session, err := stub.RunSession(t.Context())
	require.NoError(t, err)
	_, err = session.Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "every other call comes too early")
	require.Len(t, status.Convert(err).Details(), 2, "a reason, and when to come again")

	session, err = stub.RunSession(t.Context())
	require.NoError(t, err)
	say(session, 0)
	opened, err := session.Recv()
	require.NoError(t, err)
	require.NotEmpty(t, opened.GetOpened().GetBasis().ProtoReflect().GetUnknown())
	for n := range lastAnswer {
		say(session, 1)
		response, err := session.Recv()
		require.NoError(t, err)
		if n == lastAnswer-1 {
			require.NotNil(t, response.GetGoingAway())
			response, err = session.Recv()
			require.NoError(t, err)
		}
		require.NotEmpty(t, response.GetAnswers().GetAnswers()[0].ProtoReflect().GetUnknown())
	}
	say(session, 1)
	_, err = session.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), "who was sent away and stays is not answered")
}

// What the examples do in other languages, package client does.
func TestOurOwnClientBearsALaterVersionOnABadDay(t *testing.T) {
	decide, err := client.Dial(later(t), client.WithPlaintext())
	require.NoError(t, err)
	defer func() { require.NoError(t, decide.Close()) }()
	snapshot, err := client.NewSnapshot().Queue(client.Queue{Name: "research", Weight: 1}).
		Job(client.Job{UID: "large", Queue: "research", MinAvailable: 1, MinResources: client.Resources{"cpu": "1"}}).Build()
	require.NoError(t, err)
	in := client.Input{Snapshot: snapshot, PolicyName: "fair"}
	for range 2 {
		_, err = decide.Shares(t.Context(), in, client.SharesQuestion{})
		require.NoError(t, err)
	}
	admissions, err := decide.Enqueue(t.Context(), in, client.EnqueueQuestion{})
	require.NoError(t, err)
	refused := admissions.Jobs[0]
	require.EqualValues(t, unknownVote, refused.Vote)
	require.False(t, refused.Permitted, "a vote that is not known is a refusal")
	session, err := decide.OpenSession(t.Context(), in)
	require.NoError(t, err)
	for n := range 2 * lastAnswer {
		answers, err := session.Do(t.Context(), &apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}})
		require.NoError(t, err)
		require.EqualValues(t, n, answers[0].GetMark().GetMark(), "the state has come along")
	}
	for _, name := range []string{"one", "two", "three"} {
		_, err := session.Do(t.Context(), event.Change(&apportionv1.Change{Queues: []*apportionv1.Queue{{Name: name}}}))
		require.NoError(t, err)
	}
	answers, err := session.Do(t.Context(), &apportionv1.Step{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Queues: true}}})
	require.NoError(t, err)
	require.Len(t, answers[0].GetInspect().GetQueues(), 4, "research, and three that were added")
	require.NoError(t, session.Close())
}

// writer hands on what is written.
type writer func(string)

func (w writer) Write(data []byte) (int, error) {
	w(string(data))
	return len(data), nil
}
