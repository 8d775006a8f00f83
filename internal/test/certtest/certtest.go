// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var serial atomic.Int64

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Leaf is a certificate with its key.
type Leaf struct {
	// Certificate and Key in PEM.
	Certificate, Key []byte
}

// Option changes a certificate before it is signed.
type Option func(*x509.Certificate)

// Expired makes it one of yesterday.
func Expired(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
}

// Until sets its end.
func Until(end time.Time) Option { return func(c *x509.Certificate) { c.NotAfter = end } }

// For sets the permitted uses of a certificate.
func For(usage x509.ExtKeyUsage) Option {
	return func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{usage} }
}

// Named gives it DNS names.
func Named(names ...string) Option { return func(c *x509.Certificate) { c.DNSNames = names } }

// Identified gives it URIs, such as SPIFFE IDs.
func Identified(t *testing.T, ids ...string) Option {
	t.Helper()
	var uris []*url.URL
	for _, id := range ids {
		u, err := url.Parse(id)
		require.NoError(t, err)
		uris = append(uris, u)
	}
	return func(c *x509.Certificate) { c.URIs = uris }
}

// New returns an authority.
func New(t *testing.T, options ...Option) *Authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial.Add(1)), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	for _, o := range options {
		o(template)
	}
	a := &Authority{}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	require.NoError(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return a
}

// PEM is the authority's own certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Issue signs a certificate for servers and clients, named localhost unless an option says otherwise.
func (a *Authority) Issue(t *testing.T, options ...Option) Leaf {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial.Add(1)), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for _, o := range options {
		o(template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return Leaf{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// Pair is the leaf as crypto/tls has it.
func (l Leaf) Pair(t *testing.T) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(l.Certificate, l.Key)
	require.NoError(t, err)
	return pair
}

// Write replaces a file, as a whole.
func Write(t *testing.T, name string, data []byte) string {
	t.Helper()
	next := name + ".next"
	require.NoError(t, os.WriteFile(next, data, 0o600))
	require.NoError(t, os.Rename(next, name))
	return name
}

// Files writes a server's certificate and key, and the authority of clients, into a directory.
func Files(t *testing.T, directory string, server Leaf, clients *Authority) (certificate, key, clientCA string) {
	t.Helper()
	return Write(t, filepath.Join(directory, "tls.crt"), server.Certificate),
		Write(t, filepath.Join(directory, "tls.key"), server.Key),
		Write(t, filepath.Join(directory, "ca.crt"), clients.PEM())
}
