package client_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
)

// plainly asks through gRPC alone, as a client in another language does.
func plainly(t *testing.T, config string, replicas ...*replica) apportionv1.DecisionServiceClient {
	t.Helper()
	names := manual.NewBuilderWithScheme("plain")
	names.InitialState(addresses(replicas...))
	conn, err := grpc.NewClient("plain:///", grpc.WithResolvers(names), grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return apportionv1.NewDecisionServiceClient(conn)
}

// An answer that is under way at a replica that is lost comes from a survivor, even if that one is busy and refuses the call at first.
func TestCallsThatASurvivorRefusesAreAskedAgain(t *testing.T) {
	request := &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: twoTeams(t)}, Rule: &apportionv1.Input_Policy{Policy: proportional(t)},
	}}
	type asking func(t *testing.T, replicas ...*replica) func(context.Context) error
	for name, dial := range map[string]asking{
		"gRPC and the service config": func(t *testing.T, replicas ...*replica) func(context.Context) error {
			t.Helper()
			c := plainly(t, client.ServiceConfig(), replicas...)
			return func(ctx context.Context) error {
				_, err := c.EvaluateShares(ctx, request)
				return err
			}
		},
		"the Go client": func(t *testing.T, replicas ...*replica) func(context.Context) error {
			t.Helper()
			c := dialAll(t, replicas)
			in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
			return func(ctx context.Context) error {
				_, err := c.Shares(ctx, in, client.SharesQuestion{})
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			busy, lost := newBlocking(), newBlocking()
			refusal := &refusal{first: func() { close(busy.leave) }}
			survivor := startReplica(t, service.Options{
				Observers: []service.Observer{busy}, Overload: admission.Options{Running: 1, Reserve: 1, Wait: 20 * time.Millisecond},
				Logger: slog.New(refusal),
			})
			first := startReplica(t, service.Options{Observers: []service.Observer{lost}})
			both, beside := dial(t, first, survivor), dial(t, survivor)
			require.Eventually(t, func() bool {
				require.NoError(t, both(t.Context()))
				return busy.seen.Load() > 0 && lost.seen.Load() > 0
			}, 20*time.Second, time.Millisecond, "both replicas answer")
			busy.armed.Store(true)
			lost.armed.Store(true)
			var calls sync.WaitGroup
			calls.Go(func() {
				if err := beside(t.Context()); err != nil {
					t.Error("the call that keeps the survivor busy:", err)
				}
			})
			<-busy.entered
			// Round robin: some of these calls wait at the lost replica, the others at the busy one.
			for range 4 {
				calls.Go(func() {
					if err := both(t.Context()); err != nil {
						t.Error("a call of a lost replica, or of a busy one:", err)
					}
				})
			}
			<-lost.entered
			require.NoError(t, first.Close())
			first.reset()
			close(lost.leave)
			calls.Wait()
			require.Positive(t, refusal.seen.Load())
		})
	}
}

// blocking is an observer that keeps a call at its work once it is armed.
type blocking struct {
	seen           atomic.Int32
	armed          atomic.Bool
	entered, leave chan struct{}
}

func newBlocking() *blocking {
	return &blocking{entered: make(chan struct{}, 16), leave: make(chan struct{})}
}

// Wants is true for every call.
func (b *blocking) Wants(context.Context, string, string) bool { return true }

// Observe is called while the call has its turn, and for calls that were refused.
func (b *blocking) Observe(_ context.Context, d *service.Decision) {
	b.seen.Add(1)
	if b.armed.Load() && d.Err == nil {
		b.entered <- struct{}{}
		<-b.leave
	}
}

// refusal is a log handler that is called before a refusal is sent.
type refusal struct {
	slog.Handler

	seen  atomic.Int32
	first func()
}

// Enabled is true for warnings, of which a refusal is one.
func (r *refusal) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelWarn }

// Handle counts refusals.
func (r *refusal) Handle(_ context.Context, record slog.Record) error { //nolint:gocritic // The interface has it so.
	record.Attrs(func(a slog.Attr) bool {
		if a.Value.String() == codes.ResourceExhausted.String() && r.seen.Add(1) == 1 {
			r.first()
		}
		return true
	})
	return nil
}

func TestACallThatExceedsALimitIsNotAskedAgain(t *testing.T) {
	var asked atomic.Int32
	r := startReplica(t, service.Options{Limit: setting.Limit{AnswerBytes: 1 << 10}, Unary: []grpc.UnaryServerInterceptor{func(
		ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
	) (any, error) {
		asked.Add(1)
		return handle(ctx, request)
	}}})
	snapshot := twoTeams(t)
	for len(snapshot.GetQueues()) < 200 {
		snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{Name: "more-" + string(rune('a'+len(snapshot.GetQueues())))})
	}
	_, err := plainly(t, client.ServiceConfig(), r).EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: proportional(t)},
	}})
	require.Equal(t, codes.OutOfRange, status.Code(err), err)
	require.Equal(t, int32(1), asked.Load())
}

func TestTheDocumentedServiceConfigIsTheOneShipped(t *testing.T) {
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```json\n(.*?loadBalancingConfig.*?)```").FindSubmatch(page)
	require.NotNil(t, block)
	require.JSONEq(t, client.ServiceConfig(), string(block[1]))
	var config struct {
		HealthCheckConfig struct {
			ServiceName string `json:"serviceName"`
		} `json:"healthCheckConfig"`
	}
	require.NoError(t, json.Unmarshal([]byte(client.ServiceConfig()), &config))
	require.Equal(t, apportionv1.DecisionService_ServiceDesc.ServiceName, config.HealthCheckConfig.ServiceName)
}
