package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/cmd/apportion/internal/config"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/certtest"
	"github.com/apportion/apportion/internal/watch"
	"github.com/apportion/apportion/service/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// diary is a log that tests read while it is written.
type diary struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.text.String()
}

// place is a directory with a configuration, and the server that runs on it.
type place struct {
	*Daemon

	t    *testing.T
	dir  string
	log  *diary
	stop func() error
}

// at makes a place whose configuration is the given text with ports, times and the admin's address added.
func at(t *testing.T, text string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), log: &diary{}}
	p.configure(text)
	return p
}

const common = `
listen: ["localhost:0"]
admin: {listen: "localhost:0"}
drain: {delay: 0s, time: 2s}
log: {level: debug}
`

func (p *place) write(name, text string) {
	p.t.Helper()
	certtest.Write(p.t, filepath.Join(p.dir, name), []byte(text))
}

func (p *place) configure(text string) { p.write("apportion.yaml", common+text) }

func (p *place) open(environment ...string) error {
	sources := config.Sources{File: filepath.Join(p.dir, "apportion.yaml"), Environment: environment}
	settings, err := config.Read(sources)
	if err != nil {
		return err
	}
	p.Daemon, err = Open(p.t.Context(), settings, Options{Sources: sources, Version: "v0.0.0", Output: p.log})
	return err
}

// start opens the server and runs it until the test ends.
func (p *place) start(environment ...string) {
	p.t.Helper()
	require.NoError(p.t, p.open(environment...))
	p.run()
}

// run runs a server that is open until the test ends.
func (p *place) run() {
	p.t.Helper()
	require.NoError(p.t, p.Listen(p.t.Context()))
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx) }()
	p.stop = sync.OnceValue(func() error {
		end()
		return <-served
	})
	p.t.Cleanup(func() { require.NoError(p.t, p.stop()) })
	require.Eventually(p.t, p.server.Ready, 5*time.Second, time.Millisecond)
}

func (p *place) dial(config *tls.Config) *grpc.ClientConn {
	p.t.Helper()
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	address := addressOf(p.listeners[0])
	if !strings.HasPrefix(address, "unix:") {
		address = "passthrough:" + address
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask asks by a named policy about a cluster, and returns the policy's digest.
func ask(ctx context.Context, conn *grpc.ClientConn, policy, cluster string) (string, error) {
	response, err := apportionv1.NewDecisionServiceClient(conn).EvaluateShares(ctx, &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: &apportionv1.Snapshot{Cluster: cluster}},
		Rule:   &apportionv1.Input_PolicyName{PolicyName: policy},
	}})
	return response.GetBasis().GetPolicyDigest(), err
}

func (p *place) get(path string) (int, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+addressOf(p.admin)+path, nil)
	require.NoError(p.t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(p.t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	require.NoError(p.t, response.Body.Close())
	return response.StatusCode, string(body)
}

// metric returns the value of a metric without labels, or with those written.
func (p *place) metric(name string) string {
	_, text := p.get("/metrics")
	for line := range strings.SplitSeq(text, "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return value
		}
	}
	return ""
}

func (p *place) eventually(what func() bool, text ...any) {
	p.t.Helper()
	require.Eventually(p.t, what, 10*time.Second, 10*time.Millisecond, text...)
}

const (
	proportion = "tiers: [{plugins: [{proportion: {}}]}]\n"
	capacity   = "tiers: [{plugins: [{capacity: {}}]}]\n"
)

func TestPoliciesAreTakenOverWhenTheirFilesChangeAllOrNothing(t *testing.T) {
	p := at(t, "policies: {a: a.yaml, b: volcano-scheduler.conf}\n")
	p.write("a.yaml", proportion)
	p.write("volcano-scheduler.conf", "tiers:\n- plugins:\n  - name: capacity\nactions: enqueue, allocate, backfill, preempt, reclaim\n")
	p.start()
	conn, ctx := p.dial(nil), t.Context()
	first, err := ask(ctx, conn, "a", "")
	require.NoError(t, err)
	volcano, err := ask(ctx, conn, "b", "")
	require.NoError(t, err)
	digestOf := func(name string) string {
		digest, err := ask(ctx, conn, name, "")
		require.NoError(t, err)
		return digest
	}
	require.Equal(t, "1", p.metric("apportion_config_last_reload_successful"))

	p.write("a.yaml", capacity)
	p.eventually(func() bool { return digestOf("a") != first })
	second := digestOf("a")
	require.Equal(t, "1", p.metric(`apportion_config_reloads_total{result="success"}`))

	// One is faulty, the other good: neither is taken over.
	p.write("volcano-scheduler.conf", "tiers:\n- plugins:\n  - name: proportion\nactions: enqueue, allocate, backfill, preempt, reclaim\n")
	p.write("a.yaml", "tiers: [{plugins: [{capacity: {}}, {gnag: {}}]}]\n")
	p.eventually(func() bool { return p.metric("apportion_config_last_reload_successful") == "0" })
	require.Equal(t, second, digestOf("a"))
	require.Equal(t, volcano, digestOf("b"))
	require.NotEqual(t, "0", p.metric(`apportion_config_reloads_total{result="failure"}`))
	require.Contains(t, p.log.String(), `a.yaml:1`)

	// The repaired file is loaded together with the others.
	p.write("a.yaml", proportion)
	p.eventually(func() bool { return p.metric("apportion_config_last_reload_successful") == "1" })
	require.Equal(t, first, digestOf("a"))
	require.NotEqual(t, volcano, digestOf("b"))

	// The configuration itself may name others.
	p.write("c.yaml", capacity)
	p.configure("policies: {c: c.yaml}\n")
	p.eventually(func() bool { _, err := ask(ctx, conn, "c", ""); return err == nil })
	_, err = ask(ctx, conn, "a", "")
	require.Equal(t, codes.NotFound, status.Code(err))
	p.write("c.yaml", proportion)
	p.eventually(func() bool { return digestOf("c") == first }, "the files that are watched are the new ones")
}

func TestSIGHUPReadsFilesAgainWhereNobodyWatches(t *testing.T) {
	p := at(t, "policies: {a: a.yaml}\nreload: {watch: false}\n")
	p.write("a.yaml", proportion)
	require.NoError(t, p.open())
	watched := false
	p.watchFiles = func(context.Context, watch.Options, func() []string, func()) { watched = true }
	p.run()
	conn := p.dial(nil)
	first, err := ask(t.Context(), conn, "a", "")
	require.NoError(t, err)
	p.write("a.yaml", capacity)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	p.eventually(func() bool { digest, err := ask(t.Context(), conn, "a", ""); return err == nil && digest != first })
	// A watch that had begun would have ended by now.
	require.NoError(t, p.stop())
	require.False(t, watched)
	require.Equal(t, 1, strings.Count(p.log.String(), "the configuration was applied"))
}

func TestIdentitiesAreTakenOverButNeverToLetEverybodyIn(t *testing.T) {
	first, second := identity.NewToken(), identity.NewToken()
	identities := func(token, clusters string) string {
		return "policies: {a: preset:proportion}\nidentities: [{name: s, clusters: [" + clusters + "], tokens: ['" + identity.HashOf(token).String() + "']}]\n"
	}
	p := at(t, identities(first, "prod-*"))
	p.start()
	conn := p.dial(nil)
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	_, err := ask(as(first), conn, "a", "prod-1")
	require.NoError(t, err)
	_, err = ask(as(first), conn, "a", "test")
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = ask(t.Context(), conn, "a", "prod-1")
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	require.Equal(t, "1", p.metric(`apportion_calls_refused_total{code="Unauthenticated",method="/apportion.v1.DecisionService/EvaluateShares"}`))
	require.Contains(t, p.log.String(), "identity=s")

	p.configure(identities(second, "test"))
	p.eventually(func() bool { _, err := ask(as(second), conn, "a", "test"); return err == nil })
	_, err = ask(as(first), conn, "a", "prod-1")
	require.Equal(t, codes.Unauthenticated, status.Code(err))

	for _, text := range []string{"", "identities: []\n"} {
		p.configure(text)
		p.eventually(func() bool { return p.metric("apportion_config_last_reload_successful") == "0" })
		_, err = ask(t.Context(), conn, "a", "test")
		require.Equal(t, codes.Unauthenticated, status.Code(err))
		p.configure(identities(second, "test"))
		p.eventually(func() bool { return p.metric("apportion_config_last_reload_successful") == "1" })
	}
	require.NotContains(t, p.log.String(), identity.HashOf(first).String())
	require.NotContains(t, p.log.String(), first)
}

func TestSessionsWhoseAccessIsTakenAwayEndWithTheReload(t *testing.T) {
	authority, token := certtest.New(t), identity.NewToken()
	configured := func(tokens, clusters string) string {
		return "policies: {a: preset:proportion}\ntls: {certificate: tls.crt, key: tls.key, client_ca: ca.crt, client_certificate: optional}\n" +
			"identities: [{name: scheduler, dns: [localhost]}, {name: dashboard, clusters: [" + clusters + "], tokens: [" + tokens + "]}]\n"
	}
	hash := "'" + identity.HashOf(token).String() + "'"
	p := at(t, configured(hash, "'*'"))
	old := certtest.New(t)
	certtest.Files(t, p.dir, authority.Issue(t), old)
	p.start()
	client := func(certificates ...tls.Certificate) *grpc.ClientConn {
		return p.dial(&tls.Config{RootCAs: authority.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS13, Certificates: certificates})
	}
	known := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	byCertificate := converse(t.Context(), t, client(old.Issue(t).Pair(t)), "prod")
	production := converse(known, t, client(), "prod")
	staging := converse(known, t, client(), "test")
	reloads := p.metric(`apportion_config_reloads_total{result="success"}`)
	ends := func(session grpc.ServerStreamingClient[apportionv1.RunSessionResponse], code codes.Code) {
		t.Helper()
		ended := make(chan error, 1)
		go func() {
			_, err := session.Recv()
			ended <- err
		}()
		p.eventually(func() bool { return p.metric(`apportion_config_reloads_total{result="success"}`) != reloads })
		reloads = p.metric(`apportion_config_reloads_total{result="success"}`)
		require.Equal(t, code, status.Code(<-ended))
	}
	p.configure(configured(hash, "test"))
	ends(production, codes.PermissionDenied)
	p.configure(configured("'"+identity.HashOf(identity.NewToken()).String()+"'", "test"))
	ends(staging, codes.Unauthenticated)
	p.write("ca.crt", string(certtest.New(t).PEM()))
	ends(byCertificate, codes.Unauthenticated)
}

func TestASettingThatOnlyAStartTakesOverIsToldAndLeft(t *testing.T) {
	p := at(t, "deadline: {call: 10s}\n")
	p.start()
	p.configure("deadline: {call: 20s}\n")
	p.eventually(func() bool {
		return strings.Contains(p.log.String(), `"changed settings take effect only after a restart" settings=deadline.call`)
	})
	require.Equal(t, "1", p.metric("apportion_config_last_reload_successful"))
}

func TestAVariableKeepsStandingAboveTheFileWhenThatChanges(t *testing.T) {
	p := at(t, "policies: {a: preset:proportion}\n")
	p.start("APPORTION_POLICIES=b=preset:proportion")
	p.configure("policies: {d: preset:proportion}\n")
	p.eventually(func() bool { return p.metric(`apportion_config_reloads_total{result="success"}`) != "0" })
	conn := p.dial(nil)
	_, err := ask(t.Context(), conn, "b", "")
	require.NoError(t, err)
	_, err = ask(t.Context(), conn, "d", "")
	require.Equal(t, codes.NotFound, status.Code(err))
}

const mutual = `
policies: {a: preset:proportion}
tls: {certificate: tls.crt, key: tls.key, client_ca: ca.crt}
identities: [{name: s, dns: [localhost]}]
`

func TestTLSIsRotatedByItsFilesUnderLoadWithoutADroppedCall(t *testing.T) {
	server, clients := certtest.New(t), certtest.New(t)
	p := at(t, mutual)
	end := time.Now().Add(10 * time.Hour).Truncate(time.Second)
	certtest.Files(t, p.dir, server.Issue(t, certtest.Until(end)), clients)
	p.start()
	notAfter := func() string { return p.metric("apportion_tls_certificate_not_after_timestamp_seconds") }
	before := notAfter()
	client := func() *tls.Config {
		return &tls.Config{RootCAs: server.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{clients.Issue(t).Pair(t)}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calls, faults atomic.Int64
	var load sync.WaitGroup
	for range 3 {
		load.Go(func() {
			for ctx.Err() == nil {
				conn := p.dial(client())
				for range 20 {
					if _, err := ask(context.WithoutCancel(ctx), conn, "a", ""); err != nil {
						t.Log(err)
						faults.Add(1)
					}
					calls.Add(1)
				}
				_ = conn.Close()
			}
		})
	}
	for i := range 3 {
		end = end.Add(time.Hour)
		leaf := server.Issue(t, certtest.Until(end))
		// The files are written one after the other, as many tools do.
		p.write("tls.crt", string(leaf.Certificate))
		p.write("tls.key", string(leaf.Key))
		p.write("ca.crt", string(certtest.New(t).PEM())+string(clients.PEM()))
		p.eventually(func() bool { return notAfter() != before }, "rotation %d", i)
		before = notAfter()
	}
	require.NotEqual(t, "0", p.metric("apportion_tls_reloads_total"))

	// A faulty certificate is reported, and changes nothing.
	errors := p.metric("apportion_tls_reload_errors_total")
	p.write("tls.crt", "nonsense")
	p.eventually(func() bool { return p.metric("apportion_tls_reload_errors_total") != errors })
	require.Equal(t, before, notAfter())
	target := calls.Load() + 100
	p.eventually(func() bool { return calls.Load() > target })
	cancel()
	load.Wait()
	require.Zero(t, faults.Load(), "of %d calls", calls.Load())
}

func TestAMistakeRefusesToStartWithEveryFaultNamed(t *testing.T) {
	authority := certtest.New(t)
	leaf := authority.Issue(t)
	for name, c := range map[string]struct {
		text  string
		spoil func(p *place)
		says  []string
	}{
		"a policy that is not there":    {"policies: {a: nowhere.yaml, b: nowhere.conf}\n", nil, []string{`policy "a": open`, `policy "b": open`, "nowhere.yaml"}},
		"a preset that is not there":    {"policies: {a: preset:nonsense}\n", nil, []string{`no preset "nonsense"`}},
		"a policy that is none":         {"policies: {a: a.yaml}\n", func(p *place) { p.write("a.yaml", "tears: []\n") }, []string{"a.yaml:1", "tears"}},
		"a Volcano policy that is none": {"policies: {a: a.conf}\n", func(p *place) { p.write("a.conf", "tiers: 7\n") }, []string{"a.conf:1"}},
		"a policy that cannot decide":   {"policies: {a: a.yaml}\n", func(p *place) { p.write("a.yaml", "tiers: [{plugins: [{}]}]\n") }, []string{`policy "a"`}},
		"no certificate":                {mutual, func(p *place) { require.NoError(t, os.Remove(filepath.Join(p.dir, "tls.crt"))) }, []string{"tls.crt: no such file"}},
		"an expired certificate": {mutual, func(p *place) {
			expired := authority.Issue(t, certtest.Expired)
			p.write("tls.crt", string(expired.Certificate))
			p.write("tls.key", string(expired.Key))
		}, []string{"has expired"}},
		"a key of another":         {mutual, func(p *place) { p.write("tls.key", string(authority.Issue(t).Key)) }, []string{"private key does not match"}},
		"a client CA that is none": {mutual, func(p *place) { p.write("ca.crt", string(leaf.Certificate)) }, []string{"certificate 1 is not a CA certificate"}},
		"a token that is no hash":  {"identities: [{name: a, tokens: [letmein]}]\n", nil, []string{"identities[0].tokens[0]: expected the hash of a token"}},
		"budgets that are none": {
			"ledger: {file: used.ledger, budgets: budgets.yaml}\nfollow: {enabled: true}\n",
			func(p *place) { p.write("budgets.yaml", "budgets: [{queue: q, kind: sudden}]\n") },
			[]string{"budgets.yaml: budgets[0].kind: hard or soft is expected", "budgets[0].periods: there is none"},
		},
		"users of the extender, missing": {"policies: {a: preset:proportion}\nextender: {listen: 'localhost:0', schedulers: {/a: a}, users: nowhere}\n", nil, []string{"nowhere: no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, c.text)
			certtest.Files(t, p.dir, leaf, authority)
			if c.spoil != nil {
				c.spoil(p)
			}
			err := p.open()
			require.Error(t, err)
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
			require.NotContains(t, err.Error(), "letmein")
			settings, err := config.Read(config.Sources{File: filepath.Join(p.dir, "apportion.yaml")})
			if err == nil {
				_, err = Check(settings)
			}
			require.Error(t, err, "what cannot start is not valid")
		})
	}
}

func TestTheAdminListenerTellsWhetherTheServerIsReady(t *testing.T) {
	p := at(t, "drain: {}\n")
	p.write("apportion.yaml", strings.Replace(common, "delay: 0s", "delay: 1s", 1))
	p.start()
	code, _ := p.get("/readyz")
	require.Equal(t, http.StatusOK, code)
	code, _ = p.get("/healthz")
	require.Equal(t, http.StatusOK, code)
	code, _ = p.get("/debug/pprof/")
	require.Equal(t, http.StatusNotFound, code)
	ended := make(chan error, 1)
	go func() { ended <- p.stop() }()
	p.eventually(func() bool { code, _ := p.get("/readyz"); return code == http.StatusServiceUnavailable })
	require.NoError(t, <-ended)
}

func TestAUnixSocketIsServedAndOneLeftBehindIsReplaced(t *testing.T) {
	directory, err := os.MkdirTemp("", "socket") //nolint:usetesting // The name of a socket must be short.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(directory)) })
	socket := filepath.Join(directory, "a.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())

	p := at(t, "policies: {a: preset:proportion}\n")
	p.start("APPORTION_LISTEN=unix:" + socket)
	_, err = ask(t.Context(), p.dial(nil), "a", "")
	require.NoError(t, err)

	other := at(t, "")
	require.NoError(t, other.open("APPORTION_LISTEN=unix:"+socket))
	require.ErrorContains(t, other.Listen(t.Context()), "address already in use", "the address is in use")
	require.NoError(t, p.stop())
	require.NoFileExists(t, socket)

	require.NoError(t, os.WriteFile(socket, []byte("a file"), 0o600))
	another := at(t, "")
	require.NoError(t, another.open("APPORTION_LISTEN=unix:"+socket))
	require.Error(t, another.Listen(t.Context()))
	require.FileExists(t, socket)
}

func TestConnectionsBeyondTheMaximumWait(t *testing.T) {
	p := at(t, "policies: {a: preset:proportion}\nconnection: {maximum: 1}\n")
	p.start()
	first := p.dial(nil)
	_, err := ask(t.Context(), first, "a", "")
	require.NoError(t, err)
	second := p.dial(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = ask(ctx, second, "a", "")
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.NoError(t, first.Close())
	p.eventually(func() bool { _, err := ask(t.Context(), second, "a", ""); return err == nil })
}

func TestListenersThatCannotBeOpenedCloseTheOthers(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer taken.Close()
	p := at(t, "")
	require.NoError(t, p.open("APPORTION_ADMIN_LISTEN="+taken.Addr().String()))
	require.ErrorContains(t, p.Listen(t.Context()), "admin.listen: listen tcp")
	require.Empty(t, p.listeners)
}
