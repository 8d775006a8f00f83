package identity_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/certtest"
	"github.com/apportion/apportion/service/identity"
)

// session is an open session.
type session struct {
	t *testing.T
	apportionv1.DecisionService_RunSessionClient
}

func openSession(ctx context.Context, t *testing.T, conn *grpc.ClientConn, cluster string) session {
	t.Helper()
	stream, err := apportionv1.NewDecisionServiceClient(conn).RunSession(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{
		Input: request(cluster).GetInput(),
	}}}))
	_, err = stream.Recv()
	require.NoError(t, err)
	return session{t, stream}
}

// goesOn requires that the session answers.
func (s session) goesOn() {
	s.t.Helper()
	require.NoError(s.t, s.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: &apportionv1.StepBatch{}}}))
	_, err := s.Recv()
	require.NoError(s.t, err)
}

// ends requires that the session ends by itself.
func (s session) ends(code codes.Code) {
	s.t.Helper()
	_, err := s.Recv()
	requireRefused(s.t, err, code)
}

func TestSessionsEndWhenTheirAccessIsTakenAway(t *testing.T) {
	first, second, other := identity.NewToken(), identity.NewToken(), identity.NewToken()
	with := func(name string, tokens ...string) identity.Identity {
		id := all(identity.Identity{Name: name})
		for _, token := range tokens {
			id.Tokens = append(id.Tokens, identity.HashOf(token))
		}
		return id
	}
	for name, c := range map[string]struct {
		before, after identity.Identity
		ends          codes.Code
	}{
		"a token":               {with("a", first, second), with("a", second), codes.Unauthenticated},
		"another token":         {with("a", first, second), with("a", first), codes.OK},
		"an identity":           {with("a", first), with("b", second), codes.Unauthenticated},
		"a token that moves":    {with("a", first), with("b", first), codes.Unauthenticated},
		"the method":            {with("a", first), identity.Identity{Name: "a", Tokens: with("", first).Tokens, Methods: []string{"Simulate"}, Clusters: []string{"*"}}, codes.PermissionDenied},
		"other methods":         {with("a", first), identity.Identity{Name: "a", Tokens: with("", first).Tokens, Methods: []string{"RunSession"}, Clusters: []string{"*"}}, codes.OK},
		"the cluster":           {with("a", first), identity.Identity{Name: "a", Tokens: with("", first).Tokens, Methods: []string{"*"}, Clusters: []string{"test"}}, codes.PermissionDenied},
		"other clusters":        {with("a", first), identity.Identity{Name: "a", Tokens: with("", first).Tokens, Methods: []string{"*"}, Clusters: []string{"prod-*"}}, codes.OK},
		"nothing":               {with("a", first), with("a", first), codes.OK},
		"nothing, but a new id": {with("a", first), with("a", first, second), codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil, c.before, with("other", other))
			conn := s.dial(t, nil)
			mine := openSession(withToken(t.Context(), first), t, conn, "prod-1")
			beside := openSession(withToken(t.Context(), other), t, conn, "prod-1")
			upload, err := apportionv1.NewSnapshotServiceClient(conn).UploadSnapshot(withToken(t.Context(), first))
			require.NoError(t, err)
			mine.goesOn()
			require.NoError(t, s.gate.Admit([]identity.Identity{c.after, with("other", other)}))
			if c.ends == codes.OK {
				mine.goesOn()
				mine.goesOn()
			} else {
				mine.ends(c.ends)
			}
			if c.ends == codes.Unauthenticated {
				requireRefused(t, upload.RecvMsg(&apportionv1.UploadSnapshotResponse{}), c.ends)
			}
			beside.goesOn()
		})
	}
	t.Run("of all callers, when identities are configured", func(t *testing.T) {
		s := serve(t, nil)
		mine := openSession(withToken(t.Context(), first), t, s.dial(t, nil), "")
		require.NoError(t, s.gate.Admit([]identity.Identity{with("a", first)}))
		mine.ends(codes.Unauthenticated)
	})
}

func TestASnapshotOfAClusterThatWasTakenAwayMeanwhileIsRefused(t *testing.T) {
	token := identity.NewToken()
	s := serve(t, nil, all(identity.Identity{Name: "a", Tokens: []identity.Hash{identity.HashOf(token)}}))
	stream, err := apportionv1.NewDecisionServiceClient(s.dial(t, nil)).RunSession(withToken(t.Context(), token))
	require.NoError(t, err)
	require.NoError(t, s.gate.Admit([]identity.Identity{
		{Name: "a", Tokens: []identity.Hash{identity.HashOf(token)}, Methods: []string{"*"}, Clusters: []string{"test"}},
	}))
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{
		Input: request("prod-1").GetInput(),
	}}}))
	_, err = stream.Recv()
	requireRefused(t, err, codes.PermissionDenied)
}

func TestSessionsEndWithTheAuthorityOrTheCertificateTheyRestOn(t *testing.T) {
	server, old, next := certtest.New(t), certtest.New(t), certtest.New(t)
	certificate, key, clientCA := certtest.Files(t, t.TempDir(), server.Issue(t), old)
	authority, err := identity.LoadTLS(identity.TLSOptions{Certificate: certificate, Key: key, ClientCA: clientCA})
	require.NoError(t, err)
	s := serve(t, authority, anyone)
	certtest.Write(t, clientCA, append(old.PEM(), next.PEM()...))
	_, err = authority.Reload()
	require.NoError(t, err)
	s.gate.Review()
	of := func(a *certtest.Authority) session {
		return openSession(t.Context(), t, s.dial(t, trusting(t, server, func() *certtest.Authority { return a })), "")
	}
	first, second := of(old), of(next)
	certtest.Write(t, clientCA, next.PEM())
	_, err = authority.Reload()
	require.NoError(t, err)
	s.gate.Review()
	first.ends(codes.Unauthenticated)
	second.goesOn()

	soon := time.Now().Add(2 * time.Second).Truncate(time.Second)
	pair := next.Issue(t, certtest.Until(soon)).Pair(t)
	expires := openSession(t.Context(), t, s.dial(t, &tls.Config{
		RootCAs: server.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
	}), "")
	expires.ends(codes.Unauthenticated)
	require.False(t, time.Now().Before(soon))
	second.goesOn()
}
