package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/internal/test/certtest"
)

func TestAServerIsAskedWithATokenOrACertificate(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return certtest.Write(t, filepath.Join(dir, name), []byte(text)) }
	authority := certtest.New(t)
	certtest.Files(t, dir, authority.Issue(t), authority)
	mine := authority.Issue(t, certtest.Named("ops.example.org"))
	certificate, key := file("me.crt", string(mine.Certificate)), file("me.key", string(mine.Key))

	var made bytes.Buffer
	require.Equal(t, cli.ExitYes, run(t.Context(), []string{"config", "token"}, nil, &made, io.Discard))
	words := strings.Fields(made.String())
	require.Len(t, words, 4)
	token, wrong := file("token", words[1]), file("wrong", "guess")
	settings := file("apportion.yaml", `
listen: ["127.0.0.1:0"]
drain: {delay: 0s}
tls: {certificate: tls.crt, key: tls.key, client_ca: ca.crt, client_certificate: optional}
policies: {house: preset:proportion}
identities:
- {name: operator, dns: [ops.example.org]}
- {name: dashboard, tokens: ["`+words[3]+`"], methods: [CheckEnqueue]}
`)
	var out, problems bytes.Buffer
	require.Equal(t, cli.ExitYes, run(t.Context(), []string{"config", "validate", "--config", settings}, nil, &out, &problems), problems.String())
	require.Equal(t, "the configuration is valid\n", out.String())

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log, ended := &lockedBuffer{}, make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--config", settings}, strings.NewReader(""), io.Discard, log)
	}()
	address := log.find(t, `msg=serving address=(\S+)`)

	ask := func(want int, says string, flags ...string) {
		t.Helper()
		var problems bytes.Buffer
		args := append([]string{"shares", "-f", filepath.Join("testdata", "cluster.yaml"), "--server", address, "--policy-name", "house"}, flags...)
		require.Equal(t, want, run(t.Context(), args, nil, io.Discard, &problems), problems.String())
		require.Contains(t, problems.String(), says)
	}
	trusting := []string{"--tls-ca", filepath.Join(dir, "ca.crt")}
	ask(cli.ExitYes, "", append(trusting, "--tls-certificate", certificate, "--tls-key", key)...)
	ask(cli.ExitService, "the client presented neither a certificate nor a bearer token (Unauthenticated)", trusting...)
	ask(cli.ExitService, "the bearer token is not known (Unauthenticated)", append(trusting, "--token-file", wrong)...)
	ask(cli.ExitService, `identity "dashboard" may not call EvaluateShares (PermissionDenied)`, append(trusting, "--token-file", token)...)
	ask(cli.ExitUsage, "--tls-certificate, --tls-key", append(trusting, "--tls-certificate", certificate)...)
	ask(cli.ExitService, "if it uses TLS, set --tls or --tls-ca (Unavailable)", "--timeout", "2s")
	ask(cli.ExitUsage, "--server: write localhost:7171, without http://", "--server", "http://localhost:7171/")
	ask(cli.ExitUsage, "--server: write localhost:7171 and --tls, without https://", "--server", "https://localhost:7171")
	ask(cli.ExitUsage, "--token-file: "+file("lines", "one\ntwo\n")+": a token is one line", append(trusting, "--token-file", filepath.Join(dir, "lines"))...)
	var answer bytes.Buffer
	args := append([]string{"decide", "enqueue", "-f", filepath.Join("testdata", "cluster.yaml"), "--server", address, "--token-file", token}, trusting...)
	require.NotEqual(t, cli.ExitService, run(t.Context(), args, nil, &answer, &problems), problems.String())
	stop()
	require.Equal(t, cli.ExitYes, <-ended)

	require.NoError(t, os.Remove(filepath.Join(dir, "tls.key")))
	problems.Reset()
	require.Equal(t, cli.ExitUsage, run(t.Context(), []string{"config", "validate", "--config", settings}, nil, io.Discard, &problems))
	require.Contains(t, problems.String(), "tls.key: no such file")
}
