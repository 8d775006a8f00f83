package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// TokenSource returns the bearer token. It is called for each call, so a token can change without a new Client.
type TokenSource func(context.Context) (string, error)

// Token returns a source of a constant token.
func Token(token string) TokenSource {
	return func(context.Context) (string, error) { return token, nil }
}

// TokenFile returns a source that reads the token from a file, again after some seconds: mounted secrets change in place.
func TokenFile(name string) TokenSource {
	const age = 10 * time.Second
	var mutex sync.Mutex
	var token string
	var read time.Time
	return func(context.Context) (string, error) {
		mutex.Lock()
		defer mutex.Unlock()
		if token != "" && time.Since(read) < age {
			return token, nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		token = ""
		found := strings.TrimSpace(string(data))
		if found == "" {
			return "", errors.New(name + ": the file contains no token")
		}
		if err := checkToken(found); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		token, read = found, time.Now()
		return token, nil
	}
}

// checkToken returns an error if a header cannot carry a token. gRPC would end the connection and make it again until the deadline.
func checkToken(token string) error {
	if i := strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
		return fmt.Errorf("a token is one line of letters, digits and signs without spaces, and character %d is none of these", i+1)
	}
	return nil
}

// WithToken sends a bearer token with each call. With WithPlaintext it is readable on the network.
func WithToken(source TokenSource) Option {
	return func(s *settings) { s.token = source }
}

// bearer passes a token to gRPC.
type bearer struct {
	source TokenSource
	secure bool
}

// GetRequestMetadata returns the headers of a call.
func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b.source(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity prevents gRPC from sending a token over an unencrypted connection unless WithPlaintext is set.
func (b bearer) RequireTransportSecurity() bool { return b.secure }

// tokenOptions show the token.
func (s *settings) tokenOptions() []grpc.DialOption {
	if s.token == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithPerRPCCredentials(bearer{s.token, s.credentials.Info().SecurityProtocol != "insecure"})}
}

// TLSFiles returns a TLS configuration from PEM files: the CA certificates to trust (empty: the system's roots), and the client certificate
// and key (empty: none). The client certificate is read again for each connection, so it can be renewed in place.
func TLSFiles(authority, certificate, key string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		pem, err := os.ReadFile(authority)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: contains no certificate", authority)
		}
	}
	if certificate == "" && key == "" {
		return config, nil
	}
	if certificate == "" || key == "" {
		return nil, errors.New("a certificate and its key must be given together")
	}
	if _, err := tls.LoadX509KeyPair(certificate, key); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		return &pair, err
	}
	return config, nil
}
