package daemon

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service/identity"
)

// crowd opens idle connections from an address of this machine, and returns them.
func crowd(t *testing.T, n int, from, to string) []net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	var all []net.Conn
	for range n {
		conn, err := d.DialContext(t.Context(), "tcp", to)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		all = append(all, conn)
	}
	return all
}

// dialFrom is a client at an address of this machine.
func (p *place) dialFrom(from string) *grpc.ClientConn {
	p.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := grpc.NewClient("passthrough:"+addressOf(p.listeners[0]), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// converse opens a session on an empty snapshot of a cluster, by policy a.
func converse(ctx context.Context, t *testing.T, conn *grpc.ClientConn, cluster string) apportionv1.DecisionService_RunSessionClient {
	t.Helper()
	session, err := apportionv1.NewDecisionServiceClient(conn).RunSession(ctx)
	require.NoError(t, err)
	require.NoError(t, session.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{
		Input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{Cluster: cluster}},
			Rule:   &apportionv1.Input_PolicyName{PolicyName: "a"},
		},
	}}}))
	_, err = session.Recv()
	require.NoError(t, err)
	return session
}

// listening are the addresses of the three listeners that share the connections.
const listening = `
listen: ["127.0.0.1:0"]
admin: {listen: "127.0.0.1:0"}
http: {listen: "127.0.0.1:0"}
extender: {listen: "127.0.0.1:0", schedulers: {/volcano: a}}
drain: {delay: 0s, time: 2s}
log: {level: debug}
policies: {a: preset:proportion}
`

func TestIdleConnectionsLockNobodyOut(t *testing.T) {
	token := identity.NewToken()
	p := at(t, "")
	p.write("apportion.yaml", listening+`
connection: {maximum: 300, address_maximum: 100}
tls: {plaintext: true}
identities: [{name: s, tokens: ['`+identity.HashOf(token).String()+`']}]
`)
	p.start()
	known := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	session := converse(known, t, p.dialFrom("127.0.0.1"), "")

	// One address: at most its part, no matter how many it opens.
	crowd(t, 500, "127.0.0.9", addressOf(p.listeners[0]))
	p.eventually(func() bool { return p.metric(`apportion_connections_closed_total{reason="unused"}`) == "400" })
	require.Equal(t, "101", p.metric("apportion_connections"))
	_, err := ask(known, p.dialFrom("127.0.0.9"), "a", "")
	require.NoError(t, err, "a client at that address calls, and so uses its connection")
	// Several addresses, on all listeners.
	for i, to := range []string{addressOf(p.listeners[0]), addressOf(p.http), addressOf(p.extender.listener)} {
		crowd(t, 100, "127.0.0."+string(rune('3'+i)), to)
	}
	p.eventually(func() bool { return p.metric("apportion_connections") == "300" })
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		_, err = ask(known, p.dialFrom(from), "a", "")
		require.NoError(t, err, from)
	}
	require.Equal(t, "300", p.metric("apportion_connections"))
	code, _ := p.get("/readyz")
	require.Equal(t, http.StatusOK, code, "a new connection has room")

	// The session is in use, and was opened before all others.
	require.NoError(t, session.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &apportionv1.StepBatch{Id: 7}}}))
	answered, err := session.Recv()
	require.NoError(t, err)
	require.Equal(t, uint64(7), answered.GetAnswers().GetId())
	require.NoError(t, session.CloseSend())
}

func TestAServerWhoseConnectionsAreAllInUseIsNotReady(t *testing.T) {
	p := at(t, "")
	p.write("apportion.yaml", listening+"connection: {maximum: 2, address_maximum: 2}\n")
	p.start()
	ready := func(want int) {
		t.Helper()
		p.eventually(func() bool { code, _ := p.get("/readyz"); return code == want })
	}
	var conns []*grpc.ClientConn
	for range 2 {
		ready(http.StatusOK)
		conn := p.dialFrom("127.0.0.1")
		converse(t.Context(), t, conn, "")
		conns = append(conns, conn)
		t.Cleanup(func() { _ = conn.Close() })
	}
	ready(http.StatusServiceUnavailable)
	answered := make(chan error, 1)
	waiting := p.dialFrom("127.0.0.2")
	go func() { _, err := ask(t.Context(), waiting, "a", ""); answered <- err }()
	ready(http.StatusServiceUnavailable)
	require.NoError(t, conns[0].Close())
	require.NoError(t, <-answered)
}

func TestRequestsOverHTTPAreUseOfTheirConnections(t *testing.T) {
	p := at(t, "")
	p.write("apportion.yaml", listening+"connection: {maximum: 3, address_maximum: 3}\n")
	p.start()
	for _, c := range []struct{ to, path, body string }{
		{addressOf(p.http), "/apportion.v1.DecisionService/EvaluateShares", `{"input":{"snapshot":{},"policyName":"a"}}`},
		{addressOf(p.extender.listener), "/volcano/onSessionClose", `{}`},
	} {
		client := &http.Client{Transport: &http.Transport{}}
		t.Cleanup(client.CloseIdleConnections)
		post := func() {
			t.Helper()
			response, err := client.Post("http://"+c.to+c.path, "application/json", nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		}
		post()
		crowd(t, 20, "127.0.0.1", addressOf(p.listeners[0]))
		p.eventually(func() bool { return p.metric("apportion_connections") == "3" })
		post()
	}
	require.Equal(t, "0", p.metric(`apportion_connections_closed_total{reason="idle"}`))
}
