package service_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/grpc/test/bufconn"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
)

// counted counts the bytes that a server takes from its connections.
type counted struct {
	net.Listener

	read *atomic.Int64
}

func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countedConn{conn, l.read}, err
}

type countedConn struct {
	net.Conn

	read *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// listen serves over TCP and returns the address.
//
//nolint:gocritic // Once a test.
func listen(t *testing.T, options service.Options) (*service.Server, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, _ := serveOn(t, options, listener)
	return server, listener.Addr().String()
}

// serveOn serves until the test ends, and returns the count of what was read.
//
//nolint:gocritic // Once a test.
func serveOn(t *testing.T, options service.Options, listener net.Listener) (*service.Server, *atomic.Int64) {
	t.Helper()
	server, err := service.New(options)
	require.NoError(t, err)
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	read := &atomic.Int64{}
	go func() { served <- server.Serve(ctx, counted{listener, read}) }()
	t.Cleanup(func() {
		end()
		require.NoError(t, <-served)
	})
	return server, read
}

func connect(t *testing.T, address string, options ...grpc.DialOption) apportionv1.DecisionServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return apportionv1.NewDecisionServiceClient(conn)
}

// connectTo connects to a listener in memory.
func connectTo(t *testing.T, listener *bufconn.Listener) apportionv1.DecisionServiceClient {
	t.Helper()
	return connect(t, "passthrough:memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
}

// TestWhatIsReceivedAtATimeIsBounded has 40 callers send a MiB each to a server that is busy: 8 MiB are theirs, of which one identity has
// a half, and each of the others sends its window and waits.
func TestWhatIsReceivedAtATimeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, message, window = 40, 1 << 20, 96 << 10
		held, release := make(chan struct{}, 1), make(chan struct{})
		listener := bufconn.Listen(1 << 20)
		server, read := serveOn(t, service.Options{
			Observers: []service.Observer{holding{held, release}},
			Overload:  admission.Options{Running: 1, Wait: 2 * time.Second, Receiving: 8 * message},
			Drain:     setting.Drain{Time: time.Millisecond}, Limit: setting.Limit{MessageBytes: 2 * message},
		}, listener)
		busy := connectTo(t, listener)
		var all sync.WaitGroup
		all.Go(func() { _, _ = busy.Simulate(t.Context(), emptyRequest()) })
		<-held
		in := inputOf(t)
		in.GetSnapshot().Cluster = strings.Repeat("c", message)
		var answered, refused atomic.Int64
		for range callers {
			client := connectTo(t, listener)
			all.Go(func() {
				_, err := client.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
				if err == nil {
					answered.Add(1)
					return
				}
				refused.Add(1)
				require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
			})
		}
		// Once all goroutines wait, everything that may be sent was sent.
		synctest.Wait()
		booked := gauge(t, server, "apportion_message_bytes")
		require.Greater(t, booked, 3.0*message, "as much is booked as one identity may have")
		require.LessOrEqual(t, booked, 4.0*message)
		require.Greater(t, read.Load(), int64(3*message+(callers-3)*window), "each of the others sent its window")
		require.Less(t, read.Load(), int64(3*message+callers*(window+1<<10)), "bytes that the server took from its connections")
		close(release)
		all.Wait()
		require.Positive(t, answered.Load())
		require.EqualValues(t, callers, answered.Load()+refused.Load())
		synctest.Wait()
		require.Zero(t, gauge(t, server, "apportion_message_bytes"))
	})
}

// gauge returns the value of a gauge or counter without labels.
func gauge(t *testing.T, server *service.Server, name string) float64 {
	t.Helper()
	families, err := server.Registry().Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			metric := family.GetMetric()[0]
			return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	require.Fail(t, "no metric "+name)
	return 0
}

// TestOneIdentitysMessagesLeaveRoomForThoseOfAnother lets one identity send as much as it may, without completing any message.
func TestOneIdentitysMessagesLeaveRoomForThoseOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 20)
		server, _ := serveOn(t, service.Options{
			Overload: admission.Options{Receiving: 4 << 20, Wait: 50 * time.Millisecond},
			Drain:    setting.Drain{Time: time.Millisecond}, Limit: setting.Limit{MessageBytes: 2 << 20},
			Tap: []tap.ServerInHandle{func(ctx context.Context, call *tap.Info) (context.Context, error) {
				return service.WithIdentity(ctx, call.Header.Get("who")[0]), nil
			}},
		}, listener)
		client := connectTo(t, listener)
		as := func(who string) context.Context { return metadata.AppendToOutgoingContext(t.Context(), "who", who) }
		for range 20 {
			conn, err := listener.DialContext(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, conn.Close()) })
			// A message of a MiB, of which two bytes come.
			begin(t, conn, "/apportion.v1.DecisionService/EvaluateShares", map[string]string{"who": "greedy"}, []byte{0, 0, 16, 0, 0, 10, 10})
		}
		synctest.Wait()
		require.Equal(t, 2.0*(1<<20), gauge(t, server, "apportion_message_bytes"))
		in := inputOf(t)
		in.GetSnapshot().Cluster = strings.Repeat("c", 600<<10)
		_, err := client.EvaluateShares(as("greedy"), &apportionv1.EvaluateSharesRequest{Input: in})
		fields, _ := requireFault(t, err, codes.ResourceExhausted, "OVERLOADED")
		require.Equal(t, "overload.receiving", fields["limit"])
		_, err = client.EvaluateShares(as("modest"), &apportionv1.EvaluateSharesRequest{Input: in})
		require.NoError(t, err)
	})
}

func TestACompressedMessageIsReadAsAnyOther(t *testing.T) {
	r := start(t, service.Options{})
	in := inputOf(t)
	in.GetSnapshot().Cluster = strings.Repeat("0", 3<<20)
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in}, grpc.UseCompressor(gzip.Name))
	require.NoError(t, err)
	require.Zero(t, gauge(t, r.server, "apportion_message_bytes"))
	require.Equal(t, 1.0, metric(t, r, "grpc_server_call_rcvd_total_compressed_message_size_bytes",
		"grpc_method", "apportion.v1.DecisionService/EvaluateShares", "grpc_status", "OK"))
}

func TestHealthTakesNoLargeMessages(t *testing.T) {
	r := start(t, service.Options{})
	_, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: strings.Repeat("x", 100<<10)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}
