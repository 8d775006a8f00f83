package client_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/test/certtest"
	"github.com/apportion/apportion/service"
)

func TestBothSidesShowCertificates(t *testing.T) {
	authority := certtest.New(t)
	secured := grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{authority.Issue(t).Pair(t)},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool(),
	}))
	r := startReplica(t, service.Options{Transport: []grpc.ServerOption{secured}})
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	leaf := authority.Issue(t)
	ca, certificate, key := write("ca.crt", authority.PEM()), write("tls.crt", leaf.Certificate), write("tls.key", leaf.Key)
	in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
	ask := func(authority, certificate, key string) error {
		config, err := client.TLSFiles(authority, certificate, key)
		require.NoError(t, err)
		c, err := client.Dial(r.address, client.WithTLS(config), client.WithAttempts(1))
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		_, err = c.Shares(t.Context(), in, client.SharesQuestion{})
		return err
	}
	require.NoError(t, ask(ca, certificate, key))
	require.Error(t, ask(ca, "", ""), "the server wants to know who asks")
	require.Error(t, ask("", certificate, key), "the client does not know the server's authority")

	for _, wrong := range [][3]string{
		{"nowhere", "", ""}, {key, "", ""}, {"", certificate, ""}, {"", "", key}, {"", certificate, "nowhere"},
	} {
		_, err := client.TLSFiles(wrong[0], wrong[1], wrong[2])
		require.Error(t, err, wrong)
	}
}

func TestATokenOfAFileIsWhatTheFileHolds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	source := client.TokenFile(name)
	_, err := source(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(name, []byte("\n"), 0o600))
	_, err = source(t.Context())
	require.ErrorContains(t, err, "the file contains no token")
	require.NoError(t, os.WriteFile(name, []byte("one\ntwo\n"), 0o600))
	_, err = source(t.Context())
	require.EqualError(t, err, name+": a token is one line of letters, digits and signs without spaces, and character 4 is none of these")
	require.NoError(t, os.WriteFile(name, []byte("sesame\n"), 0o600))
	token, err := source(t.Context())
	require.NoError(t, err)
	require.Equal(t, "sesame", token)
	token, err = client.Token("open")(t.Context())
	require.NoError(t, err)
	require.Equal(t, "open", token)
}
