package service_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/tap"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
)

// resetCalls begins calls and resets each at once, until the server closes the connection. It returns how many it wrote.
func resetCalls(t *testing.T, address, method string, most int) int {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	framer := begin(t, conn, method, nil, nil)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, conn)
	}()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range most {
		id := uint32(2*i + 3)
		block.Reset()
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: "POST"},
			{Name: ":scheme", Value: "http"},
			{Name: ":path", Value: method},
			{Name: ":authority", Value: "localhost"},
			{Name: "content-type", Value: "application/grpc"},
			{Name: "te", Value: "trailers"},
		} {
			require.NoError(t, encoder.WriteField(f))
		}
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
		if err == nil {
			err = framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		if err != nil {
			return i
		}
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the connection stays open")
	}
	return most
}

func TestAConnectionWhoseCallsAreResetIsClosed(t *testing.T) {
	for _, method := range []string{
		apportionv1.DecisionService_Simulate_FullMethodName, apportionv1.DecisionService_RunSession_FullMethodName,
		healthv1.Health_Check_FullMethodName, healthv1.Health_Watch_FullMethodName, "/no/such",
	} {
		t.Run(method, func(t *testing.T) {
			server, address := listen(t, service.Options{
				Connection: setting.Connection{Resets: 10, Streams: 50}, Drain: setting.Drain{Time: time.Second},
			})
			client := connect(t, address)
			resetCalls(t, address, method, 20_000)
			require.EqualValues(t, 1, gauge(t, server, "apportion_connections_reset_total"))
			_, err := client.Simulate(t.Context(), emptyRequest())
			require.NoError(t, err, "other connections go on")
		})
	}
}

func TestAConnectionWhoseCallsAreAnsweredStays(t *testing.T) {
	r := start(t, service.Options{
		Connection: setting.Connection{Resets: 1, Streams: 10},
		Tap:        []tap.ServerInHandle{byHeader},
	})
	health := healthv1.NewHealthClient(r.conn)
	for range 60 {
		_, err := r.Simulate(t.Context(), emptyRequest())
		require.NoError(t, err)
		_, err = r.Simulate(t.Context(), &apportionv1.SimulateRequest{})
		require.Error(t, err, "an error is an answer")
		_, err = health.Check(t.Context(), &healthv1.HealthCheckRequest{})
		require.NoError(t, err)
	}
	require.Zero(t, gauge(t, r.server, "apportion_connections_reset_total"))
}

func TestAClientThatResetsSessionsWhichOweItNothingStaysConnected(t *testing.T) {
	r := start(t, service.Options{Connection: setting.Connection{Resets: 1, Streams: 10}})
	for range 60 {
		ctx, reset := context.WithCancel(t.Context())
		stream, err := r.RunSession(ctx)
		require.NoError(t, err)
		c := &talk{t, stream}
		require.NotNil(t, c.open(t))
		c.say(t, `batch { steps { inspect {} } }`)
		c.hear()
		reset()
	}
	require.Zero(t, gauge(t, r.server, "apportion_connections_reset_total"))
}

func TestHealthWatchesAreBoundInAllAndForEachCaller(t *testing.T) {
	server, address := listen(t, service.Options{Connection: setting.Connection{Watches: 10}, Drain: setting.Drain{Time: time.Millisecond}})
	from := func(ip string) func() error {
		conn, err := grpc.NewClient("passthrough:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext(ctx, "tcp", address)
			}))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		return func() error {
			stream, err := healthv1.NewHealthClient(conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
			require.NoError(t, err)
			_, err = stream.Recv()
			return err
		}
	}
	greedy, modest := from("127.0.0.1"), from("127.0.0.2")
	for range 5 {
		require.NoError(t, greedy())
	}
	require.NoError(t, modest())
	for range 20 {
		fields, _ := requireFault(t, greedy(), codes.ResourceExhausted, "OVERLOADED")
		require.Equal(t, "connection.watches", fields["limit"])
	}
	for range 4 {
		require.NoError(t, modest(), "a half is left to others")
	}
	require.Error(t, modest())
	require.EqualValues(t, 10, gauge(t, server, "apportion_health_watches"))
	_, err := healthv1.NewHealthClient(reader(t, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})).Check(t.Context(), &healthv1.HealthCheckRequest{})
	require.NoError(t, err, "a check is answered all the same")
}

// begin opens an HTTP/2 connection and a call on it, as no client of gRPC would, and sends bytes of its messages.
func begin(
	t *testing.T, conn net.Conn, method string, headers map[string]string, sent []byte, settings ...http2.Setting,
) *http2.Framer {
	t.Helper()
	_, err := conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	framer := http2.NewFramer(conn, conn)
	require.NoError(t, framer.WriteSettings(settings...))
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	field := func(name, value string) {
		require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: name, Value: value}))
	}
	field(":method", "POST")
	field(":scheme", "http")
	field(":path", method)
	field(":authority", "localhost")
	field("content-type", "application/grpc")
	field("te", "trailers")
	for name, value := range headers {
		field(name, value)
	}
	require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}))
	if len(sent) > 0 {
		require.NoError(t, framer.WriteData(1, false, sent))
	}
	return framer
}

// holding is an observer that keeps a simulation and everything that it has booked until it is released.
type holding struct{ held, release chan struct{} }

func (holding) Wants(_ context.Context, method, _ string) bool { return method == "Simulate" }

func (h holding) Observe(context.Context, *service.Decision) {
	h.held <- struct{}{}
	<-h.release
}
