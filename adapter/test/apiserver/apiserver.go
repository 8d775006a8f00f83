// Package apiserver runs a real API server of Kubernetes with etcd for tests.
package apiserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Server is a real API server with its etcd. Its program is named by KUBE_APISERVER; etcd is found in PATH.
type Server struct {
	// Address is that of the API server, Etcd that of its etcd. Directory holds the logs.
	Address, Etcd, Directory string
	// Process and EtcdProcess are the processes that run.
	Process, EtcdProcess *exec.Cmd

	client                   *http.Client
	arguments, etcdArguments []string
	// whole is the test at whose end the processes end.
	whole *testing.T
}

// Token is that of an administrator.
const Token = "administrator"

// Port returns a port that is free.
func Port(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	_, p, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return p
}

// Begin starts a program, which ends with the test. Its log is a file of the directory, whose end the test shows if it fails.
func Begin(t *testing.T, directory, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(directory, filepath.Base(program)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	c := exec.CommandContext(context.Background(), program, arguments...) //nolint:gosec // The test names it.
	c.Stdout, c.Stderr, c.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = log.Close()
		if t.Failed() {
			const most = 4 << 10
			data, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%s", filepath.Base(program), data[max(0, len(data)-most):])
		}
	})
	return c
}

// Start starts etcd and the API server with further flags, and waits until it is ready.
func Start(t *testing.T, flags ...string) *Server {
	t.Helper()
	program := os.Getenv("KUBE_APISERVER")
	require.NotEmpty(t, program, "make test-cluster builds it")
	directory := t.TempDir()
	etcd, peer, secure := Port(t), Port(t), Port(t)
	etcdArguments := []string{
		"--data-dir", filepath.Join(directory, "etcd"), "--listen-client-urls", "http://127.0.0.1:" + etcd,
		"--advertise-client-urls", "http://127.0.0.1:" + etcd, "--listen-peer-urls", "http://127.0.0.1:" + peer, "--unsafe-no-fsync",
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	keyFile := filepath.Join(directory, "key.pem")
	encoded := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	require.NoError(t, os.WriteFile(keyFile, encoded, 0o600))
	tokens := filepath.Join(directory, "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte(Token+",admin,1,system:masters\n"), 0o600))
	s := &Server{Address: "https://127.0.0.1:" + secure, Directory: directory, Etcd: "http://127.0.0.1:" + etcd, arguments: append([]string{
		"--etcd-servers=http://127.0.0.1:" + etcd, "--service-account-issuer=https://x", "--service-account-key-file=" + keyFile,
		"--service-account-signing-key-file=" + keyFile, "--cert-dir=" + filepath.Join(directory, "certs"), "--secure-port=" + secure,
		"--bind-address=127.0.0.1", "--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24", "--delete-collection-workers=8",
		// Without controllers no service account is made, no node loses the taint of a new one, and no volume the finalizer of a used one.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection",
	}, flags...)}
	transport, err := rest.TransportFor(&rest.Config{
		Host: s.Address, BearerToken: Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	require.NoError(t, err)
	s.client = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	s.etcdArguments, s.whole = etcdArguments, t
	s.BeginEtcd()
	s.BeginServer(t)
	return s
}

// BeginEtcd starts etcd on the data that it left.
func (s *Server) BeginEtcd() {
	s.EtcdProcess = Begin(s.whole, s.Directory, "etcd", s.etcdArguments...)
}

// Kill ends a process of the server at once.
func Kill(t *testing.T, process *exec.Cmd) {
	t.Helper()
	require.NoError(t, process.Process.Kill())
	_ = process.Wait()
}

// BeginServer starts the API server, and waits until it is ready.
func (s *Server) BeginServer(t *testing.T) {
	t.Helper()
	s.Process = Begin(s.whole, s.Directory, os.Getenv("KUBE_APISERVER"), s.arguments...)
	require.Eventually(t, func() bool {
		code, _, err := s.Try(t.Context(), http.MethodGet, "/readyz", nil)
		return err == nil && code == http.StatusOK
	}, 2*time.Minute, 200*time.Millisecond)
}

// Try sends an object, and returns the status and the answer.
func (s *Server) Try(ctx context.Context, method, path string, body any) (int, []byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.Address+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	w, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = w.Body.Close() }()
	data, err = io.ReadAll(w.Body)
	return w.StatusCode, data, err
}

// Send requires that the API server takes an object.
func (s *Server) Send(t *testing.T, method, path string, body any) {
	t.Helper()
	code, data, err := s.Try(t.Context(), method, path, body)
	require.NoError(t, err)
	require.Less(t, code, 300, "%s %s: %s", method, path, data)
}

// Kubeconfig returns a file that names the server and an administrator.
func (s *Server) Kubeconfig(t *testing.T) string {
	t.Helper()
	return s.KubeconfigAs(t, "", "language")
}

// KubeconfigAs returns a file by which an administrator acts as a user, "" for himself, in a namespace.
func (s *Server) KubeconfigAs(t *testing.T, user, namespace string) string {
	t.Helper()
	return s.kubeconfig(t, &api.AuthInfo{Token: Token, Impersonate: user}, namespace)
}

// KubeconfigOf returns a file that names the server and the owner of a token.
func (s *Server) KubeconfigOf(t *testing.T, token string) string {
	t.Helper()
	return s.kubeconfig(t, &api.AuthInfo{Token: token}, "")
}

func (s *Server) kubeconfig(t *testing.T, user *api.AuthInfo, namespace string) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["k"] = &api.Cluster{Server: s.Address, InsecureSkipTLSVerify: true}
	config.AuthInfos["u"] = user
	config.Contexts["c"] = &api.Context{Cluster: "k", AuthInfo: "u", Namespace: namespace}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

// Apply makes the objects of YAML documents: manifests of rights.
func (s *Server) Apply(t *testing.T, documents []byte) {
	t.Helper()
	for decoder := yaml.NewDecoder(bytes.NewReader(documents)); ; {
		var object map[string]any
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := "/apis/" + fmt.Sprint(object["apiVersion"])
		if object["apiVersion"] == "v1" {
			path = "/api/v1"
		}
		if metadata, ok := object["metadata"].(map[string]any); ok && metadata["namespace"] != nil {
			path += "/namespaces/" + fmt.Sprint(metadata["namespace"])
		}
		s.Send(t, http.MethodPost, path+"/"+strings.ToLower(fmt.Sprint(object["kind"]))+"s", object)
	}
}
