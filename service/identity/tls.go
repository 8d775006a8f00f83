package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// TLSOptions configure the TLS files, and the authentication of clients.
type TLSOptions struct {
	// Certificate and Key are files in PEM: the server's chain, its own certificate first, and its private key.
	Certificate, Key string
	// ClientCA is a PEM file of the CA certificates for client certificates. "": no client certificates.
	ClientCA string
	// ClientOptional admits clients without a certificate; a certificate that is sent must still be valid.
	ClientOptional bool
	// MinVersion is the minimum version of TLS. 0: 1.3.
	MinVersion uint16
}

// Authority contains the TLS certificates as last read. It is safe for concurrent use.
type Authority struct {
	options TLSOptions
	loading sync.Mutex
	current atomic.Pointer[material]
}

// material contains the contents of the files at one time.
type material struct {
	sum    [sha256.Size]byte
	config *tls.Config
	leaf   *x509.Certificate
}

// LoadTLS reads the files, and rejects unusable ones: a certificate that has expired or is not for servers, a key that does not match, a
// certificate that is not a CA.
func LoadTLS(options TLSOptions) (*Authority, error) {
	a := &Authority{options: options}
	if _, err := a.Reload(); err != nil {
		return nil, err
	}
	return a, nil
}

// Reload reads the files again, for new connections; established ones continue. If the files are invalid, nothing changes.
func (a *Authority) Reload() (changed bool, err error) {
	a.loading.Lock()
	defer a.loading.Unlock()
	next, err := a.options.load(time.Now())
	if err != nil {
		return false, err
	}
	if last := a.current.Load(); last != nil && last.sum == next.sum {
		return false, nil
	}
	a.current.Store(next)
	return true, nil
}

// Files lists the files.
func (a *Authority) Files() []string {
	files := []string{a.options.Certificate, a.options.Key}
	if a.options.ClientCA != "" {
		files = append(files, a.options.ClientCA)
	}
	return files
}

// NotAfter returns the time when the current certificate expires.
func (a *Authority) NotAfter() time.Time { return a.current.Load().leaf.NotAfter }

// Config returns a configuration that uses the current certificates at each handshake.
func (a *Authority) Config() *tls.Config {
	return &tls.Config{
		MinVersion: a.options.minVersion(),
		NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return a.current.Load().config, nil
		},
	}
}

func (o *TLSOptions) minVersion() uint16 {
	if o.MinVersion == 0 {
		return tls.VersionTLS13
	}
	return o.MinVersion
}

func (o *TLSOptions) load(now time.Time) (*material, error) {
	certificate, err := os.ReadFile(o.Certificate)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(o.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		// The error names the kind of block or key that is wrong, and nothing of the key itself.
		return nil, fmt.Errorf("%s with %s: %w", o.Certificate, o.Key, err)
	}
	if err := checkServer(pair.Leaf, now); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Certificate, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   o.minVersion(),
		NextProtos:   []string{"h2"},
		// A ticket would let a client in whose authority is no longer trusted. Connections live long, so that tickets would save little.
		SessionTicketsDisabled: true,
	}
	var authorities []byte
	if o.ClientCA != "" {
		if authorities, err = os.ReadFile(o.ClientCA); err != nil {
			return nil, err
		}
		if config.ClientCAs, err = readAuthorities(authorities, now); err != nil {
			return nil, fmt.Errorf("%s: %w", o.ClientCA, err)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		if o.ClientOptional {
			config.ClientAuth = tls.VerifyClientCertIfGiven
		}
	}
	return &material{
		sum: sha256.Sum256(bytes.Join([][]byte{certificate, key, authorities}, []byte{0})), config: config, leaf: pair.Leaf,
	}, nil
}

func checkServer(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate has expired at %s", leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.Format(time.RFC3339))
	case len(leaf.ExtKeyUsage) > 0 && !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) &&
		!slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny):
		return errors.New("the certificate is not for servers")
	case len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.URIs) == 0:
		return errors.New("the certificate has no subject alternative names")
	}
	return nil
}

// readAuthorities reads certificates that sign others, of which one at least must be valid now, and nothing else.
func readAuthorities(data []byte, now time.Time) (*x509.CertPool, error) {
	pool, valid := x509.NewCertPool(), 0
	for number := 1; len(bytes.TrimSpace(data)) > 0; number++ {
		block, rest := pem.Decode(data)
		if block == nil {
			return nil, errors.New("it contains data that is not PEM")
		}
		data = rest
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("it contains a block that is not a certificate")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", number, err)
		}
		if !certificate.BasicConstraintsValid || !certificate.IsCA {
			return nil, fmt.Errorf("certificate %d is not a CA certificate", number)
		}
		if !now.After(certificate.NotAfter) && !now.Before(certificate.NotBefore) {
			valid++
		}
		pool.AddCert(certificate)
	}
	if valid == 0 {
		return nil, errors.New("it contains no certificate that is valid now")
	}
	return pool, nil
}

// verify reports whether a client's chain is still good: it was when the connection came, but authorities are taken away and time passes.
func (m *material) verify(chain []*x509.Certificate, now time.Time) error {
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: m.config.ClientCAs, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}
