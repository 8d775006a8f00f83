package identity_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/grpc/test/bufconn"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/test/certtest"
	contract "github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server behind a gate, and what is needed to call it.
type site struct {
	gate    *identity.Gate
	server  *service.Server
	address string
	// read counts the bytes that came, decoded the messages, opened and closed the connections; seen is the last caller.
	read, decoded, opened, closed atomic.Int64
	seen                          atomic.Pointer[identity.Caller]
}

type countingListener struct {
	net.Listener

	site *site
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.site.opened.Add(1)
	}
	return &countingConn{Conn: conn, site: l.site}, err
}

type countingConn struct {
	net.Conn

	site *site
	once sync.Once
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.site.read.Add(int64(n))
	return n, err
}

func (c *countingConn) Close() error {
	c.once.Do(func() { c.site.closed.Add(1) })
	return c.Conn.Close()
}

// serve starts a site that ends with the test.
func serve(t *testing.T, authority *identity.Authority, identities ...identity.Identity) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	return serveOn(t, listener, authority, identities...)
}

// serveOn starts a site on a listener.
func serveOn(t *testing.T, listener net.Listener, authority *identity.Authority, identities ...identity.Identity) *site {
	t.Helper()
	s := &site{gate: identity.NewGate(authority)}
	require.NoError(t, s.gate.Admit(identities))
	see := func(ctx context.Context) { s.seen.Store(identity.Of(ctx)) }
	var err error
	s.server, err = service.New(service.Options{
		Permit: func(ctx context.Context, cluster string) error {
			if cluster == "" {
				return nil
			}
			return identity.MayName(ctx, cluster)
		},
		Tap:       []tap.ServerInHandle{s.gate.Tap},
		Transport: s.gate.ServerOptions(),
		Drain:     setting.Drain{Time: time.Second},
		// Interceptors of unary calls are asked once the message is decoded.
		Unary: []grpc.UnaryServerInterceptor{func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, do grpc.UnaryHandler) (any, error) {
			s.decoded.Add(1)
			see(ctx)
			return do(ctx, r)
		}},
	})
	require.NoError(t, err)
	s.address = listener.Addr().String()
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(ctx, countingListener{listener, s}) }()
	t.Cleanup(func() {
		end()
		require.NoError(t, <-served)
	})
	return s
}

// dial connects with the given credentials; nil: none.
func (s *site) dial(t *testing.T, config *tls.Config, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	transport := insecure.NewCredentials()
	if config != nil {
		config.ServerName = "localhost"
		transport = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient("passthrough:"+s.address, append(options, grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func request(cluster string) *apportionv1.EvaluateSharesRequest {
	return &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{Cluster: cluster}},
		Rule:   &apportionv1.Input_Policy{Policy: &apportionv1.Policy{}},
	}}
}

func call(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := apportionv1.NewDecisionServiceClient(conn).EvaluateShares(ctx, request(""))
	return err
}

func withToken(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func requireRefused(t *testing.T, err error, code codes.Code) {
	t.Helper()
	st := status.Convert(err)
	require.Equal(t, code, st.Code(), st.Message())
	require.Len(t, st.Details(), 1)
	info, ok := st.Details()[0].(*errdetails.ErrorInfo)
	require.True(t, ok)
	require.Equal(t, "apportion.dev", info.GetDomain())
	require.Equal(t, strings.ToUpper(map[codes.Code]string{
		codes.Unauthenticated: "unauthenticated", codes.PermissionDenied: "permission_denied",
	}[code]), info.GetReason())
}

func all(id identity.Identity) identity.Identity {
	id.Methods, id.Clusters = []string{"*"}, []string{"*"}
	return id
}

func TestWithoutIdentitiesEverybodyMayCall(t *testing.T) {
	s := serve(t, nil)
	require.NoError(t, call(t.Context(), s.dial(t, nil)))
	require.Empty(t, s.seen.Load().Name)
}

func TestATokenOpensTheGateForItsIdentityAlone(t *testing.T) {
	mine, yours := identity.NewToken(), identity.NewToken()
	s := serve(t, nil,
		all(identity.Identity{Name: "mine", Tokens: []identity.Hash{identity.HashOf("older"), identity.HashOf(mine)}}),
		all(identity.Identity{Name: "yours", Tokens: []identity.Hash{identity.HashOf(yours)}}))
	conn := s.dial(t, nil)
	ctx := t.Context()

	require.NoError(t, call(withToken(ctx, mine), conn))
	require.Equal(t, "mine", s.seen.Load().Name)
	require.NoError(t, call(withToken(ctx, yours), conn))
	require.Equal(t, "yours", s.seen.Load().Name)
	require.NoError(t, call(metadata.AppendToOutgoingContext(ctx, "authorization", "bEARER  "+mine), conn))

	for name, ctx := range map[string]context.Context{
		"no token":         ctx,
		"another token":    withToken(ctx, identity.NewToken()),
		"the hash":         withToken(ctx, identity.HashOf(mine).String()),
		"an empty token":   withToken(ctx, ""),
		"a space":          withToken(ctx, " "),
		"another scheme":   metadata.AppendToOutgoingContext(ctx, "authorization", "Basic "+mine),
		"no scheme":        metadata.AppendToOutgoingContext(ctx, "authorization", mine),
		"two tokens":       withToken(withToken(ctx, mine), mine),
		"one byte missing": withToken(ctx, mine[:len(mine)-1]),
	} {
		t.Run(name, func(t *testing.T) { requireRefused(t, call(ctx, conn), codes.Unauthenticated) })
	}
}

func TestHealthNeedsNoIdentityButReflectionDoes(t *testing.T) {
	token := identity.NewToken()
	s := serve(t, nil, all(identity.Identity{Name: "mine", Tokens: []identity.Hash{identity.HashOf(token)}}))
	conn := s.dial(t, nil)
	health, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, health.GetStatus())

	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := conn.NewStream(t.Context(), desc, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
	require.NoError(t, err)
	requireRefused(t, stream.RecvMsg(&healthv1.HealthCheckResponse{}), codes.Unauthenticated)
}

func TestARefusedRequestOf15MBIsNeitherReceivedNorDecoded(t *testing.T) {
	token := identity.NewToken()
	s := serve(t, nil, all(identity.Identity{Name: "mine", Tokens: []identity.Hash{identity.HashOf(token)}}))
	conn := s.dial(t, nil)
	large := request(strings.Repeat("x", 15<<20))

	_, err := apportionv1.NewDecisionServiceClient(conn).EvaluateShares(t.Context(), large)
	requireRefused(t, err, codes.Unauthenticated)
	require.Zero(t, s.decoded.Load(), "messages decoded")
	require.Less(t, s.read.Load(), int64(1<<20), "bytes taken from the connection")

	_, err = apportionv1.NewDecisionServiceClient(conn).EvaluateShares(withToken(t.Context(), token), large)
	require.NoError(t, err)
	require.EqualValues(t, 1, s.decoded.Load())
	require.Greater(t, s.read.Load(), int64(15<<20))
}

func TestEachIdentityMayCallItsMethodsAndNameItsClusters(t *testing.T) {
	authority := certtest.New(t)
	certificate, key, clientCA := certtest.Files(t, t.TempDir(), authority.Issue(t), authority)
	tlsMaterial, err := identity.LoadTLS(identity.TLSOptions{Certificate: certificate, Key: key, ClientCA: clientCA, ClientOptional: true})
	require.NoError(t, err)
	token := identity.NewToken()
	s := serve(t, tlsMaterial,
		identity.Identity{
			Name: "scheduler", SPIFFE: []string{"spiffe://example.org/ns/kai/*"},
			Methods: []string{"EvaluateShares", "RunSession"}, Clusters: []string{"prod-*"}, Snapshots: []string{"team-*"},
		},
		all(identity.Identity{Name: "operator", DNS: []string{"*.ops.example.org"}}),
		identity.Identity{Name: "dashboard", Tokens: []identity.Hash{identity.HashOf(token)}, Methods: []string{"Simulate"}, Clusters: []string{"", "test"}},
		identity.Identity{Name: "nobody", DNS: []string{"nothing.example.org"}},
	)
	show := func(options ...certtest.Option) *grpc.ClientConn {
		pair := authority.Issue(t, options...).Pair(t)
		return s.dial(t, &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	}
	callers := []struct {
		name string
		conn *grpc.ClientConn
		ctx  context.Context //nolint:containedctx // A row of a table lives as long as its test.
		// authorizeName lists the methods; other answers of the gate are refusals with code.
		authorizeName []string
		code          codes.Code
		clusters      []string
	}{
		{"scheduler", show(certtest.Identified(t, "spiffe://example.org/ns/kai/sa/scheduler")), t.Context(), []string{"EvaluateShares", "RunSession"}, codes.PermissionDenied, []string{"prod-1", "prod-"}},
		{"operator", show(certtest.Named("a.ops.example.org")), t.Context(), identity.Methods(), codes.OK, []string{"", "test", "prod-1", "prod-"}},
		{"dashboard", show(certtest.Named("stranger.example.org")), withToken(t.Context(), token), []string{"Simulate"}, codes.PermissionDenied, []string{"", "test"}},
		{"nobody", show(certtest.Named("nothing.example.org")), t.Context(), nil, codes.PermissionDenied, nil},
		{"a certificate of other names", show(certtest.Named("ops.example.org", "a.b.ops.example.org")), t.Context(), nil, codes.PermissionDenied, nil},
		{"two workloads in one", show(certtest.Identified(t, "spiffe://example.org/ns/kai/a", "spiffe://example.org/ns/kai/b")), t.Context(), nil, codes.PermissionDenied, nil},
		{"a path that climbs", show(certtest.Identified(t, "spiffe://example.org/ns/kai/../other")), t.Context(), nil, codes.PermissionDenied, nil},
		{"no certificate", s.dial(t, &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS13}), t.Context(), nil, codes.Unauthenticated, nil},
		{"a good certificate and a bad token", show(certtest.Named("a.ops.example.org")), withToken(t.Context(), "guess"), nil, codes.Unauthenticated, nil},
	}
	for _, c := range callers {
		allowed := map[string]bool{}
		for _, method := range c.authorizeName {
			allowed[method] = true
		}
		for _, method := range identity.Methods() {
			t.Run(c.name+"/"+method, func(t *testing.T) {
				err := ask(c.ctx, c.conn, method)
				if allowed[method] {
					require.NotContains(t, []codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.Unavailable}, status.Code(err), err)
					return
				}
				requireRefused(t, err, c.code)
			})
		}
		if len(c.clusters) > 0 && allowed["EvaluateShares"] {
			require.NoError(t, call(c.ctx, c.conn))
			caller := s.seen.Load()
			require.Equal(t, c.name, caller.Name)
			for _, cluster := range []string{"", "test", "prod-1", "prod-", "prod", "test2"} {
				err := caller.MayName(cluster)
				require.Equal(t, c.name == "operator" || slices.Contains(c.clusters, cluster), err == nil, "%s names %q: %v", c.name, cluster, err)
			}
			require.Equal(t, c.name == "scheduler", caller.MayAsk("team-a") == nil)
			require.Error(t, caller.MayAsk("other"))
		}
	}
}

// ask calls any method with nothing in the request.
func ask(ctx context.Context, conn *grpc.ClientConn, method string) error {
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, desc, contract.PathOf(contract.Named(method)))
	if err != nil {
		return err
	}
	_ = stream.SendMsg(&apportionv1.EvaluateSharesRequest{})
	_ = stream.CloseSend()
	return stream.RecvMsg(&apportionv1.EvaluateSharesResponse{})
}

func TestIdentitiesAreReplacedForCallsFromThenOnOnOldConnectionsToo(t *testing.T) {
	first, second := identity.NewToken(), identity.NewToken()
	holder := func(token string) identity.Identity {
		return all(identity.Identity{Name: "mine", Tokens: []identity.Hash{identity.HashOf(token)}})
	}
	s := serve(t, nil, holder(first))
	conn := s.dial(t, nil)
	require.NoError(t, call(withToken(t.Context(), first), conn))
	require.NoError(t, s.gate.Admit([]identity.Identity{holder(first), {Name: "next", Tokens: []identity.Hash{identity.HashOf(second)}, Methods: []string{"*"}}}))
	require.NoError(t, call(withToken(t.Context(), second), conn))
	require.NoError(t, s.gate.Admit([]identity.Identity{holder(second)}))
	requireRefused(t, call(withToken(t.Context(), first), conn), codes.Unauthenticated)
	require.Error(t, s.gate.Admit([]identity.Identity{holder(first), holder(second)}), "one name twice")
	require.NoError(t, call(withToken(t.Context(), second), conn), "faulty identities change nothing")
}

func TestAConnectionEndsAfterManyRefusalsUnlessCallsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, listener := identity.NewToken(), bufconn.Listen(1<<20)
		s := serveOn(t, listener, nil, all(identity.Identity{Name: "mine", Tokens: []identity.Hash{identity.HashOf(token)}}))
		conn := s.dial(t, nil, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		good := withToken(t.Context(), token)
		ctx, cancel := context.WithCancel(good)
		session, err := apportionv1.NewDecisionServiceClient(conn).RunSession(ctx)
		require.NoError(t, err)
		require.NoError(t, call(good, conn))

		// A deadline in a hundred years costs no more than a near one.
		far, stop := context.WithTimeout(t.Context(), 100*365*24*time.Hour)
		defer stop()
		for range 250 {
			requireRefused(t, call(far, conn), codes.Unauthenticated)
		}
		time.Sleep(time.Minute)
		require.NoError(t, session.Context().Err())
		require.Zero(t, s.closed.Load(), "a call is under way")
		cancel()
		time.Sleep(time.Second)
		require.EqualValues(t, 1, s.closed.Load())
		require.NoError(t, call(good, conn))
		require.EqualValues(t, 2, s.opened.Load(), "a new connection was made")
	})
}
