package identity_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/internal/test/certtest"
	"github.com/apportion/apportion/service/identity"
)

var anyone = all(identity.Identity{Name: "anyone", DNS: []string{"localhost"}, SPIFFE: []string{"spiffe://example.org/*"}})

// trusting is a client that trusts an authority and shows certificates of another, made anew for each handshake.
func trusting(t *testing.T, server *certtest.Authority, clients func() *certtest.Authority) *tls.Config {
	t.Helper()
	return &tls.Config{
		RootCAs: server.Pool(), MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair := clients().Issue(t).Pair(t)
			return &pair, nil
		},
	}
}

func TestCertificateKeyAndAuthorityAreReplacedUnderLoadWithoutADroppedCall(t *testing.T) {
	server, old, next := certtest.New(t), certtest.New(t), certtest.New(t)
	directory := t.TempDir()
	certificate, key, clientCA := certtest.Files(t, directory, server.Issue(t), old)
	authority, err := identity.LoadTLS(identity.TLSOptions{Certificate: certificate, Key: key, ClientCA: clientCA})
	require.NoError(t, err)
	s := serve(t, authority, anyone)

	var current atomic.Pointer[certtest.Authority]
	current.Store(old)
	ctx, stop := context.WithCancel(t.Context())
	var calls, ofOld atomic.Int64
	var load sync.WaitGroup
	faults := make(chan error, 16)
	for range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				// A connection for each few calls, so that handshakes fall into every phase.
				ofOld.Add(1)
				signer := current.Load()
				if signer != old {
					ofOld.Add(-1)
				}
				conn := s.dial(t, trusting(t, server, func() *certtest.Authority { return signer }))
				for range 20 {
					if err := call(context.WithoutCancel(ctx), conn); err != nil {
						select {
						case faults <- err:
						default:
						}
					}
					calls.Add(1)
				}
				_ = conn.Close()
				if signer == old {
					ofOld.Add(-1)
				}
			}
		})
	}
	// What an operator does: trust both authorities, let the clients change over, then trust the new one alone.
	more := func() {
		target := calls.Load() + 150
		require.Eventually(t, func() bool { return calls.Load() > target }, 30*time.Second, time.Millisecond)
	}
	reload := func() {
		changed, err := authority.Reload()
		require.NoError(t, err)
		require.True(t, changed)
		more()
	}
	more()
	certtest.Write(t, clientCA, append(old.PEM(), next.PEM()...))
	reload()
	for range 5 {
		leaf := server.Issue(t)
		certtest.Write(t, certificate, leaf.Certificate)
		certtest.Write(t, key, leaf.Key)
		reload()
	}
	current.Store(next)
	require.Eventually(t, func() bool { return ofOld.Load() == 0 }, 30*time.Second, time.Millisecond)
	certtest.Write(t, clientCA, next.PEM())
	reload()
	stop()
	load.Wait()
	close(faults)
	for err := range faults {
		require.NoError(t, err)
	}
	require.Greater(t, calls.Load(), int64(1000))
}

func TestAnAuthorityThatIsTakenAwayShutsItsClientsOutOfOldConnectionsToo(t *testing.T) {
	server, old, next := certtest.New(t), certtest.New(t), certtest.New(t)
	certificate, key, clientCA := certtest.Files(t, t.TempDir(), server.Issue(t), old)
	authority, err := identity.LoadTLS(identity.TLSOptions{Certificate: certificate, Key: key, ClientCA: clientCA})
	require.NoError(t, err)
	s := serve(t, authority, anyone)
	conn := s.dial(t, trusting(t, server, func() *certtest.Authority { return old }))
	require.NoError(t, call(t.Context(), conn))

	certtest.Write(t, clientCA, next.PEM())
	_, err = authority.Reload()
	require.NoError(t, err)
	requireRefused(t, call(t.Context(), conn), codes.Unauthenticated)
	err = call(t.Context(), s.dial(t, trusting(t, server, func() *certtest.Authority { return old })))
	require.Equal(t, codes.Unavailable, status.Code(err), "the handshake fails: %v", err)
	require.NoError(t, call(t.Context(), s.dial(t, trusting(t, server, func() *certtest.Authority { return next }))))
}

func TestACertificateThatExpiresShutsItsConnectionOut(t *testing.T) {
	server := certtest.New(t)
	certificate, key, clientCA := certtest.Files(t, t.TempDir(), server.Issue(t), server)
	authority, err := identity.LoadTLS(identity.TLSOptions{Certificate: certificate, Key: key, ClientCA: clientCA})
	require.NoError(t, err)
	s := serve(t, authority, anyone)
	soon := time.Now().Add(2 * time.Second).Truncate(time.Second)
	pair := server.Issue(t, certtest.Until(soon)).Pair(t)
	conn := s.dial(t, &tls.Config{RootCAs: server.Pool(), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	require.NoError(t, call(t.Context(), conn))
	time.Sleep(time.Until(soon) + 20*time.Millisecond)
	requireRefused(t, call(t.Context(), conn), codes.Unauthenticated)
}

func TestOnlyVersionsThatWereChosenAreSpoken(t *testing.T) {
	server := certtest.New(t)
	certificate, key, _ := certtest.Files(t, t.TempDir(), server.Issue(t), server)
	for name, c := range map[string]struct {
		server, client uint16
		works          bool
	}{
		"1.3 by default":            {0, tls.VersionTLS13, true},
		"1.2 is refused by default": {0, tls.VersionTLS12, false},
		"1.2 by choice":             {tls.VersionTLS12, tls.VersionTLS12, true},
		"1.3 where 1.2 is chosen":   {tls.VersionTLS12, tls.VersionTLS13, true},
	} {
		t.Run(name, func(t *testing.T) {
			authority, err := identity.LoadTLS(identity.TLSOptions{Certificate: certificate, Key: key, MinVersion: c.server})
			require.NoError(t, err)
			s := serve(t, authority)
			err = call(t.Context(), s.dial(t, &tls.Config{RootCAs: server.Pool(), MinVersion: tls.VersionTLS12, MaxVersion: c.client}))
			require.Equal(t, c.works, err == nil, err)
		})
	}
}

func TestClientsThatSpeakNoTLSAreNotHeard(t *testing.T) {
	server := certtest.New(t)
	certificate, key, _ := certtest.Files(t, t.TempDir(), server.Issue(t), server)
	authority, err := identity.LoadTLS(identity.TLSOptions{Certificate: certificate, Key: key})
	require.NoError(t, err)
	s := serve(t, authority)
	require.Equal(t, codes.Unavailable, status.Code(call(t.Context(), s.dial(t, nil))))
}

func TestFaultyFilesAreRefusedAtTheStartAndLeaveARunningServerAsItWas(t *testing.T) {
	authority, other := certtest.New(t), certtest.New(t)
	good := authority.Issue(t)
	stories := map[string]struct {
		spoil func(certificate, key, clientCA string)
		text  string
	}{
		"no certificate file": {func(c, _, _ string) { require.NoError(t, os.Remove(c)) }, "no such file"},
		"no key file":         {func(_, k, _ string) { require.NoError(t, os.Remove(k)) }, "no such file"},
		"no authority file":   {func(_, _, a string) { require.NoError(t, os.Remove(a)) }, "no such file"},
		"an empty certificate": {
			func(c, _, _ string) { certtest.Write(t, c, nil) }, "failed to find any PEM data",
		},
		"a key of another certificate": {
			func(_, k, _ string) { certtest.Write(t, k, other.Issue(t).Key) }, "private key does not match public key",
		},
		"certificate and key exchanged": {func(c, k, _ string) { certtest.Write(t, c, good.Key); certtest.Write(t, k, good.Certificate) }, "may have been switched"},
		"an expired certificate": {
			func(c, k, _ string) {
				leaf := authority.Issue(t, certtest.Expired)
				certtest.Write(t, c, leaf.Certificate)
				certtest.Write(t, k, leaf.Key)
			}, "has expired",
		},
		"a certificate of tomorrow": {
			func(c, k, _ string) {
				leaf := authority.Issue(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
				certtest.Write(t, c, leaf.Certificate)
				certtest.Write(t, k, leaf.Key)
			}, "not valid before",
		},
		"a certificate for clients": {
			func(c, k, _ string) {
				leaf := authority.Issue(t, certtest.For(x509.ExtKeyUsageClientAuth))
				certtest.Write(t, c, leaf.Certificate)
				certtest.Write(t, k, leaf.Key)
			}, "not for servers",
		},
		"a certificate without names": {
			func(c, k, _ string) {
				leaf := authority.Issue(t, func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, nil })
				certtest.Write(t, c, leaf.Certificate)
				certtest.Write(t, k, leaf.Key)
			}, "has no subject alternative names",
		},
		"an empty authority":    {func(_, _, a string) { certtest.Write(t, a, nil) }, "it contains no certificate that is valid"},
		"a leaf as authority":   {func(_, _, a string) { certtest.Write(t, a, good.Certificate) }, "is not a CA certificate"},
		"a key in the bundle":   {func(_, _, a string) { certtest.Write(t, a, append(authority.PEM(), good.Key...)) }, "not a certificate"},
		"words in the bundle":   {func(_, _, a string) { certtest.Write(t, a, append(authority.PEM(), "words"...)) }, "not PEM"},
		"an expired authority":  {func(_, _, a string) { certtest.Write(t, a, certtest.New(t, certtest.Expired).PEM()) }, "it contains no certificate that is valid"},
		"half of a certificate": {func(_, _, a string) { certtest.Write(t, a, authority.PEM()[:200]) }, "not PEM"},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			certificate, key, clientCA := certtest.Files(t, t.TempDir(), good, authority)
			options := identity.TLSOptions{Certificate: certificate, Key: key, ClientCA: clientCA}
			running, err := identity.LoadTLS(options)
			require.NoError(t, err)
			until := running.NotAfter()

			story.spoil(certificate, key, clientCA)
			_, err = identity.LoadTLS(options)
			require.ErrorContains(t, err, story.text)
			changed, err := running.Reload()
			require.ErrorContains(t, err, story.text)
			require.False(t, changed)
			require.Equal(t, until, running.NotAfter())
			s := serve(t, running, anyone)
			require.NoError(t, call(t.Context(), s.dial(t, trusting(t, authority, func() *certtest.Authority { return authority }))))
		})
	}
}

func TestAReloadOfTheSameFilesChangesNothing(t *testing.T) {
	authority := certtest.New(t)
	certificate, key, _ := certtest.Files(t, t.TempDir(), authority.Issue(t), authority)
	running, err := identity.LoadTLS(identity.TLSOptions{Certificate: certificate, Key: key})
	require.NoError(t, err)
	changed, err := running.Reload()
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, []string{certificate, key}, running.Files())
	_, err = identity.LoadTLS(identity.TLSOptions{Certificate: filepath.Join(t.TempDir(), "none"), Key: key})
	require.ErrorIs(t, err, os.ErrNotExist)
}
