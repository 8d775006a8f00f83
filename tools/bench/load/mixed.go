package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/adapter/extender/extendertest"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
	"github.com/apportion/apportion/tools/bench/internal/peer"
)

// mixture asks a server that follows a cluster all that it can be asked, by every way that leads to it.
type mixture struct {
	directory, configuration string
	server                   *replica.Replica
	// http and extender are addresses; operator and team are tokens. The caller with the token team owns some queues.
	http, extender, operator, team string
	teamHash, operatorHash, api    string

	mutex   sync.Mutex
	tallies map[string]*tallyOf
}

// tallyOf counts the calls of one kind. Fault is the error of the last one that was not answered.
type tallyOf struct {
	answered, asked int
	fault           error
}

// note counts a call of a kind.
func (m *mixture) note(kind string, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	t := m.tallies[kind]
	if t == nil {
		t = &tallyOf{}
		m.tallies[kind] = t
	}
	t.asked++
	if err == nil {
		t.answered++
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.fault = err
	}
}

// sum adds up all calls, and names the kinds that were never answered, each with its last error.
func (m *mixture) sum() (answered, asked int, silent []string) {
	for _, kind := range slices.Sorted(maps.Keys(m.tallies)) {
		t := m.tallies[kind]
		answered, asked = answered+t.answered, asked+t.asked
		if t.answered == 0 {
			silent = append(silent, fmt.Sprintf("%s (%v)", kind, t.fault))
		}
	}
	return answered, asked, silent
}

// configure writes the configuration of a server that follows a cluster and does everything that a configuration can ask for.
func (m *mixture) configure(ctx context.Context, binary, api string) (err error) {
	m.api, m.configuration = filepath.Join(m.directory, "kubeconfig"), filepath.Join(m.directory, "apportion.yaml")
	if err := kubeconfig(m.api, api); err != nil {
		return err
	}
	if m.operator, m.operatorHash, err = madeToken(ctx, binary); err != nil {
		return err
	}
	if m.team, m.teamHash, err = madeToken(ctx, binary); err != nil {
		return err
	}
	if m.http, err = replica.Free(ctx); err != nil {
		return err
	}
	if m.extender, err = replica.Free(ctx); err != nil {
		return err
	}
	return m.write("language")
}

// write writes the configuration, with the queue that the team owns.
func (m *mixture) write(owned string) error {
	text := fmt.Sprintf(`policies: {house: "preset:proportion", fair: "preset:fair"}
identities:
  - {name: operator, tokens: [%q]}
  - {name: team, tokens: [%q], queues: [%q]}
http: {listen: %q, ui: true}
extender: {listen: %q, schedulers: {/volcano: house}}
follow: {enabled: true, kubeconfig: %q, interval: 100ms}
metrics: {queues: 20}
ledger: {file: %q, cluster: attacked, epoch: 1s, half_life: 10s, retain: 1h, interval: 100ms}
history: {file: %q, interval: 100ms}
decision_log: {sink: file, file: %q, file_bytes: 1MiB, keep: 1, store: %q}
limit: {snapshot_bytes: 64MiB, session_idle: 5s}
`, m.operatorHash, m.teamHash, owned, m.http, m.extender, m.api,
		filepath.Join(m.directory, "ledger"), filepath.Join(m.directory, "history"),
		filepath.Join(m.directory, "decisions"), filepath.Join(m.directory, "store"))
	// The server may read it at any time, so it is replaced whole.
	next := m.configuration + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, m.configuration)
}

// snapshotName is the name of the followed cluster's snapshot, house the name of a policy.
const (
	snapshotName = "cluster"
	house        = "house"
)

// ask lets callers of every kind call until the time is over.
func (m *mixture) ask(ctx context.Context, lasts time.Duration) error {
	operator, err := m.dial(m.operator)
	if err != nil {
		return err
	}
	defer operator.Close() //nolint:errcheck // It ends with the process.
	team, err := m.dial(m.team)
	if err != nil {
		return err
	}
	defer team.Close() //nolint:errcheck // As above.
	dialed := func(token string) (*client.Client, error) {
		return client.Dial(m.server.Address, client.WithPlaintext(), client.WithToken(client.Token(token)))
	}
	asked, err := dialed(m.operator)
	if err != nil {
		return err
	}
	defer asked.Close() //nolint:errcheck // As above.
	snapshot := generate.Snapshot(fixture.Small())
	policy, err := fixture.Policy("default")
	if err != nil {
		return err
	}
	inputs := []*apportionv1.Input{
		{Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: policy}, Texts: true},
		{Source: &apportionv1.Input_SnapshotName{SnapshotName: snapshotName}, Rule: &apportionv1.Input_PolicyName{PolicyName: house}},
		{Source: &apportionv1.Input_SnapshotName{SnapshotName: snapshotName}, Rule: &apportionv1.Input_PolicyName{PolicyName: "fair"}},
	}
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return err
	}
	digest, err := peer.Upload(m.as(ctx, m.operator), operator, data)
	if err != nil {
		return err
	}
	held := &apportionv1.Input{Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: inputs[0].GetRule()}
	changed := proto.CloneOf(held)
	changed.Events = []*apportionv1.Event{{Event: &apportionv1.Event_Change{Change: generate.Change(proto.CloneOf(snapshot), 3, 1)}}}
	inputs = append(inputs, held, changed)

	ctx, stop := context.WithTimeout(ctx, lasts)
	defer stop()
	var all sync.WaitGroup
	repeat := func(callers int, pause time.Duration, do func(ctx context.Context, random *rand.Rand)) {
		for i := range callers {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 1)) //nolint:gosec // G404: a mixture, no secrets.
				for ctx.Err() == nil {
					do(ctx, random)
					time.Sleep(pause)
				}
			})
		}
	}
	pick := func(random *rand.Rand) *apportionv1.Input { return inputs[random.IntN(len(inputs))] }
	repeat(3, 0, func(ctx context.Context, random *rand.Rand) {
		m.unary(ctx, operator, m.operator, pick(random), random)
	})
	repeat(1, 0, func(ctx context.Context, random *rand.Rand) {
		m.unary(ctx, team, m.team, inputs[1], random)
	})
	repeat(2, 0, func(ctx context.Context, random *rand.Rand) { m.batch(ctx, operator, pick(random), random) })
	repeat(2, 0, func(ctx context.Context, random *rand.Rand) { m.session(ctx, operator, pick(random), random) })
	repeat(2, 5*time.Millisecond, func(ctx context.Context, random *rand.Rand) { m.kept(ctx, operator, random) })
	repeat(1, 5*time.Millisecond, func(ctx context.Context, random *rand.Rand) { m.overHTTP(ctx, random) })
	repeat(1, 50*time.Millisecond, func(ctx context.Context, _ *rand.Rand) { m.scheduler(ctx) })
	repeat(1, 100*time.Millisecond, func(ctx context.Context, _ *rand.Rand) {
		_, err := m.server.Metric(ctx, "apportion_connections")
		m.note("metrics", err)
	})
	repeat(1, 2*time.Second, func(_ context.Context, random *rand.Rand) {
		m.note("reload", m.write([]string{"language", "vision", "*"}[random.IntN(3)]))
	})
	m.mirror(asked, snapshot, policy, repeat)
	all.Wait()
	return nil
}

func (m *mixture) dial(token string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+m.server.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)), grpc.WithUserAgent(token[:4]))
}

func (m *mixture) as(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// unary calls one method of the contract. One call in ten ends early.
func (m *mixture) unary(ctx context.Context, conn *grpc.ClientConn, token string, in *apportionv1.Input, random *rand.Rand) {
	calls := slices.DeleteFunc(method.Calls(), func(call protoreflect.MethodDescriptor) bool { return !method.IsUnary(call) })
	asked := calls[random.IntN(len(calls))]
	name := string(asked.Name())
	request, response, err := messagesOf(name)
	if err == nil {
		fill(request.ProtoReflect(), in, random)
		if random.IntN(10) == 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, time.Duration(random.IntN(20))*time.Millisecond)
			defer stop()
		}
		err = conn.Invoke(m.as(ctx, token), method.PathOf(asked), request, response)
	}
	if token == m.team {
		name = "restricted question"
	}
	m.note(name, err)
}

// noteAnswers counts the answer to each step.
func (m *mixture) noteAnswers(asked []*apportionv1.Step, answers []*apportionv1.Answer, err error) {
	for i, step := range asked {
		fault := err
		if fault == nil && i >= len(answers) {
			fault = io.ErrUnexpectedEOF
		} else if fault == nil && answers[i].GetError() != nil {
			fault = fmt.Errorf("%s", answers[i].GetError().GetMessage())
		}
		m.note("step "+stepName(step), fault)
	}
}

// batch asks a step of each kind in one call.
func (m *mixture) batch(ctx context.Context, conn *grpc.ClientConn, in *apportionv1.Input, random *rand.Rand) {
	request := &apportionv1.SimulateRequest{Input: in, Steps: steps(random)}
	response, err := apportionv1.NewDecisionServiceClient(conn).Simulate(m.as(ctx, m.operator), request)
	m.noteAnswers(request.GetSteps(), response.GetAnswers(), err)
}

// session opens a session and asks a few steps one by one. One of four is left without being closed in order.
func (m *mixture) session(ctx context.Context, conn *grpc.ClientConn, in *apportionv1.Input, random *rand.Rand) {
	ctx, stop := context.WithCancel(m.as(ctx, m.operator))
	defer stop()
	stream, err := apportionv1.NewDecisionServiceClient(conn).RunSession(ctx)
	if err == nil {
		open := &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{Input: in}}
		err = stream.Send(&apportionv1.RunSessionRequest{Message: open})
	}
	if err == nil {
		_, err = stream.Recv()
	}
	m.note("open session", err)
	if err != nil {
		return
	}
	all := steps(random)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for n, step := range all {
		batch := &apportionv1.StepBatch{Id: uint64(n + 1), Steps: []*apportionv1.Step{step}}
		if stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: batch}}) != nil {
			return
		}
		response, err := stream.Recv()
		if err != nil {
			return
		}
		m.noteAnswers(batch.GetSteps(), response.GetAnswers().GetAnswers(), nil)
	}
	if random.IntN(4) > 0 {
		m.note("close session", stream.CloseSend())
	}
}

// kept takes the newest version of the followed cluster, changes it, and asks about the result.
func (m *mixture) kept(ctx context.Context, conn *grpc.ClientConn, random *rand.Rand) {
	ctx = m.as(ctx, m.operator)
	digest, err := peer.Download(ctx, conn, snapshotName)
	m.note("take a kept version", err)
	if err != nil {
		return
	}
	change := aChange(random)
	if random.IntN(2) == 0 {
		change.Queues = nil
	}
	data, err := proto.Marshal(change)
	if err != nil {
		return
	}
	digest, err = peer.UploadChange(ctx, conn, digest, data)
	m.note("upload a change", err)
	if err != nil {
		return
	}
	_, err = apportionv1.NewDecisionServiceClient(conn).EvaluateShares(ctx, &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_PolicyName{PolicyName: "fair"},
	}})
	m.note("ask about a change", err)
}

// overHTTP asks over HTTP in JSON, and reads the page.
func (m *mixture) overHTTP(ctx context.Context, random *rand.Rand) {
	methods := []string{"Explain", "EvaluateShares", "Plan", "Remedies"}
	name := methods[random.IntN(len(methods))]
	request, _, err := messagesOf(name)
	if err != nil {
		return
	}
	in := &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotName{SnapshotName: snapshotName}, Rule: &apportionv1.Input_PolicyName{PolicyName: house},
	}
	fill(request.ProtoReflect(), in, random)
	data, err := protojson.Marshal(request)
	if err != nil {
		return
	}
	token := []string{m.operator, m.team}[random.IntN(2)]
	m.note("HTTP", m.post(ctx, "http://"+m.http+"/apportion.v1.DecisionService/"+name, token, data))
}

// scheduler sends what Volcano's extender plugin sends.
func (m *mixture) scheduler(ctx context.Context) {
	shape := extendertest.Shape{Pods: 100, Lean: true}
	url := "http://" + m.extender + "/volcano"
	err := m.post(ctx, url+"/onSessionOpen", "", extendertest.Push(shape))
	m.note("extender session", err)
	if err == nil {
		m.note("extender question", m.post(ctx, url+"/jobReady", "", extendertest.Job(shape)))
	}
}

func (m *mixture) post(ctx context.Context, url, token string, data []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // It is read to its end.
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}
	return nil
}

// mirror changes a mirror, while others ask about its states.
func (m *mixture) mirror(
	asked *client.Client, snapshot *apportionv1.Snapshot, policy *apportionv1.Policy,
	repeat func(int, time.Duration, func(context.Context, *rand.Rand)),
) {
	mirror, mine := client.NewMirror(asked), proto.CloneOf(snapshot)
	m.note("mirror", mirror.Replace(mine))
	repeat(1, 20*time.Millisecond, func(_ context.Context, random *rand.Rand) {
		generate.Change(mine, 3, random.Uint64())
		m.note("change of the mirror", mirror.Replace(mine))
	})
	repeat(2, 10*time.Millisecond, func(ctx context.Context, _ *rand.Rand) {
		_, err := asked.Shares(ctx, client.Input{State: mirror.State(), Policy: policy}, client.SharesQuestion{})
		m.note("question about the mirror", err)
	})
}
