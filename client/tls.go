package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

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
