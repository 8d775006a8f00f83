package daemon_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/cmd/apportion/internal/daemon"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service/identity"
	"github.com/apportion/apportion/service/servicetest"
)

const token = "apportion_of-this-test"

// certify writes a certificate of localhost and its key.
func certify(t *testing.T, directory string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write := func(name, kind string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
	}
	write("tls.crt", "CERTIFICATE", der)
	write("tls.key", "PRIVATE KEY", private)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return pool
}

// everything is a configuration in which all parts with metrics are on.
func everything(t *testing.T) (settings *config.Effective, sources config.Sources, roots *x509.CertPool) {
	t.Helper()
	directory := t.TempDir()
	roots = certify(t, directory)
	file := filepath.Join(directory, "apportion.yaml")
	text := `
listen: ["unix:` + directory + `/grpc"]
admin: {listen: "unix:` + directory + `/admin"}
http: {listen: "unix:` + directory + `/http"}
tls: {certificate: tls.crt, key: tls.key}
policies: {cluster: "preset:proportion", candidate: "preset:capacity"}
identities: [{name: test, tokens: ["` + identity.HashOf(token).String() + `"]}]
extender: {listen: "unix:` + directory + `/extender", schedulers: {/volcano: cluster}}
metrics: {queues: 10}
decision_log: {sink: file, file: decisions.jsonl, store: store}
shadow: {policy: candidate, of: cluster, one_in: 1}
follow: {enabled: true, kubeconfig: kubeconfig}
ledger: {file: usage.ledger}
drain: {delay: 0s}
`
	require.NoError(t, os.WriteFile(filepath.Join(directory, "kubeconfig"), []byte(`
clusters: [{name: a, cluster: {server: "`+emptyCluster(t)+`"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`), 0o600))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	sources = config.Sources{File: file}
	settings, err := config.Read(sources)
	require.NoError(t, err)
	return settings, sources, roots
}

// emptyCluster is the address of an API server without objects, which cannot send lists as watches.
func emptyCluster(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.FormValue("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
		case r.FormValue("watch") != "":
			_, _ = io.WriteString(w, `{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, `{"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}`)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// overUnix is a client of HTTP on a socket.
func overUnix(path string, roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:     dialer(path),
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13},
	}}
}

// exported serves a few calls with everything on, and returns what Prometheus would fetch.
func exported(t *testing.T) string {
	t.Helper()
	settings, sources, roots := everything(t)
	d, err := daemon.Open(t.Context(), settings, daemon.Options{Sources: sources, Version: "v0.0.0-test", Output: io.Discard})
	require.NoError(t, err)
	require.NoError(t, d.Listen(t.Context()))
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx) }()
	defer func() {
		end()
		require.NoError(t, <-served)
	}()

	conn, err := grpc.NewClient(settings.Listen[0], grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13,
	})))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	r := apportionv1.NewDecisionServiceClient(conn)
	request := &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), "cluster")}
	_, err = r.EvaluateShares(t.Context(), request)
	require.Error(t, err, "a caller without a token is refused")
	known := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	for range 3 {
		_, err = r.EvaluateShares(known, request)
		require.NoError(t, err)
	}

	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://localhost/apportion.v1.DecisionService/Simulate",
		strings.NewReader(`{"input":{"snapshot":{},"policyName":"cluster"}}`))
	require.NoError(t, err)
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Authorization", "Bearer "+token)
	response, err := overUnix(strings.TrimPrefix(settings.HTTP.Listen, "unix:"), roots).Do(post)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "over the TLS of gRPC, by the same token")
	require.NoError(t, response.Body.Close())

	volcano := overUnix(strings.TrimPrefix(settings.Extender.Listen, "unix:"), nil)
	for _, asked := range [][2]string{
		{"onSessionOpen", `{"Jobs":{"ns/j":{"UID":"ns/j","Name":"j","Namespace":"ns","Queue":"q","Tasks":{"t":{"UID":"t","Status":1}}}},` +
			`"Queues":{"q":{"Name":"q","Weight":1,"Queue":{}}}}`},
		{"queueOverused", `{"queue":{"Name":"q"}}`},
		{"queueOverused", `{"queue":{"Name":"unknown"}}`},
		{"allocate", `{"task":{"UID":"t","Status":2}}`},
	} {
		response, err := volcano.Post("http://volcano/volcano/"+asked[0], "application/json", strings.NewReader(asked[1]))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.NoError(t, response.Body.Close())
	}
	volcano.CloseIdleConnections()

	var text string
	require.Eventually(t, func() bool {
		text = fetch(t, strings.TrimPrefix(settings.Admin.Listen, "unix:"))
		return strings.Contains(text, `apportion_shadow_decisions_total{`) && strings.Contains(text, `apportion_follow_events_total{`) &&
			strings.Contains(text, `apportion_follow_complete 1`) && !strings.Contains(text, `apportion_ledger_age_seconds -1`)
	}, 10*time.Second, 10*time.Millisecond)
	return text
}

func fetch(t *testing.T, socket string) string {
	t.Helper()
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://admin/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := overUnix(socket, nil).Do(get)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(data)
}

// families are the names and types of metrics, except those of Go and of the process, which are Prometheus' own.
func families(text string) map[string]string {
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile("^(go|process)_").MatchString(m[1]) {
			out[m[1]] = m[2]
		}
	}
	return out
}

// documented are the names and types in docs/metrics.md.
func documented(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/metrics.md")
	require.NoError(t, err)
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\|.*\\| (STABLE|EXPERIMENTAL) \\|").FindAllStringSubmatch(string(page), -1) {
		require.NotContains(t, out, m[1], "listed twice")
		out[m[1]] = m[2]
	}
	return out
}

// TestWhatIsExportedIsWhatIsWritten holds the server, its documentation, its dashboard and its alerts against each other.
func TestWhatIsExportedIsWhatIsWritten(t *testing.T) {
	text := exported(t)
	is := families(text)
	require.Equal(t, documented(t), is, "docs/metrics.md lists what the server exports")

	for name := range is {
		require.Regexp(t, `^(apportion|grpc_server)_[a-z_]+$`, name)
		require.NotRegexp(t, `_(ms|milliseconds|mb|count)$`, name, "base units, and no suffix of Prometheus' own")
		require.Equal(t, is[name] == "counter", strings.HasSuffix(name, "_total"), name)
	}

	t.Run("the alerts ask for metrics that there are", func(t *testing.T) {
		data, err := os.ReadFile("../../../../deploy/prometheus/alerts.yaml")
		require.NoError(t, err)
		var rules struct {
			Groups []struct {
				Rules []struct {
					Alert       string
					Expr        string
					For         string
					Annotations map[string]string
				}
			}
		}
		require.NoError(t, yaml.NewDecoder(bytes.NewReader(data)).Decode(&rules))
		count := 0
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				count++
				requireKnown(t, text, is, r.Alert, r.Expr)
				require.NotEmpty(t, r.Annotations["summary"], r.Alert)
				require.NotEmpty(t, r.Annotations["description"], r.Alert)
			}
		}
		require.GreaterOrEqual(t, count, 8)
	})

	t.Run("the dashboard asks for metrics that there are", func(t *testing.T) {
		data, err := os.ReadFile("../../../../deploy/grafana/apportion.json")
		require.NoError(t, err)
		var board struct {
			Title  string `json:"title"`
			UID    string `json:"uid"`
			Panels []struct {
				Title   string `json:"title"`
				Targets []struct {
					Expr string `json:"expr"`
				} `json:"targets"`
			} `json:"panels"`
		}
		require.NoError(t, json.Unmarshal(data, &board))
		require.NotEmpty(t, board.UID)
		asked := 0
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				asked++
				requireKnown(t, text, is, p.Title, target.Expr)
			}
		}
		require.GreaterOrEqual(t, asked, 15)
	})
}

var (
	metricName = regexp.MustCompile(`\b(?:apportion|grpc_server|process|go)_[a-z_]+`)
	selector   = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
)

// requireKnown requires that every metric of an expression is exported, with the labels that are asked for.
func requireKnown(t *testing.T, text string, families map[string]string, where, expression string) {
	t.Helper()
	names := metricName.FindAllString(expression, -1)
	require.NotEmpty(t, names, "%s: %s", where, expression)
	for _, name := range names {
		if strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "go_") {
			require.Contains(t, text, "\n"+name, where)
			continue
		}
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if trimmed, ok := strings.CutSuffix(name, suffix); ok && families[trimmed] == "histogram" {
				base = trimmed
			}
		}
		require.Contains(t, families, base, "%s: %s", where, expression)
	}
	for _, s := range selector.FindAllStringSubmatch(expression, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			if slices.Contains([]string{"job", "instance", "namespace"}, m[1]) {
				continue
			}
			require.Regexp(t, `(?m)^`+s[1]+`\{[^}]*\b`+m[1]+`=`, text, "%s: label %s of %s", where, m[1], s[1])
		}
	}
}
