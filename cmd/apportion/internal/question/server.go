package question

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

// ServerFlags select the server, or this process.
type ServerFlags struct {
	Address          string
	tls              bool
	authority        string
	certificate, key string
	token            string
	timeout          time.Duration
}

// Register adds the flags.
func (f *ServerFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Address, "server", "", "use the server at this `ADDRESS`, such as localhost:7171; default: decide in this process")
	flags.BoolVar(&f.tls, "tls", false, "use TLS")
	flags.StringVar(&f.authority, "tls-ca", "",
		"`FILE` of the CA certificates for the server's certificate; default: the system's (implies --tls)")
	flags.StringVar(&f.certificate, "tls-certificate", "", "`FILE` of the client certificate (implies --tls)")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` of the private key of the client certificate")
	flags.StringVar(&f.token, "token-file", "", "`FILE` of the bearer token")
	cli.DurationVar(flags, &f.timeout, "timeout", 30*time.Second, "timeout of the command")
}

// options returns the options of the connection and of the caller's identity.
func (f *ServerFlags) options() ([]client.Option, error) {
	options := []client.Option{client.WithPlaintext()}
	if f.tls || f.authority != "" || f.certificate != "" || f.key != "" {
		config, err := client.TLSFiles(f.authority, f.certificate, f.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca, --tls-certificate, --tls-key: %w", err)
		}
		options = []client.Option{client.WithTLS(config)}
	}
	if f.token != "" {
		source := client.TokenFile(f.token)
		if _, err := source(context.Background()); err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		options = append(options, client.WithToken(source))
	}
	return options, nil
}

// checkAddress returns an error for an address that is written as a URL, which gRPC would take for a name without end.
func checkAddress(address string) error {
	if name, ok := strings.CutPrefix(address, "http://"); ok {
		return fmt.Errorf("--server: write %s, without http://", strings.TrimSuffix(name, "/"))
	}
	if name, ok := strings.CutPrefix(address, "https://"); ok {
		return fmt.Errorf("--server: write %s and --tls, without https://", strings.TrimSuffix(name, "/"))
	}
	return nil
}

// Decider returns a client of the server, or of this process. With a server, the context ends after the timeout.
func (f *ServerFlags) Decider(ctx context.Context) (*client.Client, context.Context, func(), error) {
	if f.Address == "" {
		return client.InProcess(), ctx, func() {}, nil
	}
	if err := checkAddress(f.Address); err != nil {
		return nil, nil, nil, err
	}
	options, err := f.options()
	if err != nil {
		return nil, nil, nil, err
	}
	decider, err := client.Dial(f.Address, options...)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("--server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	return decider, ctx, func() {
		cancel()
		if err := decider.Close(); err != nil {
			return
		}
	}, nil
}

// CompileOnce has all questions that this process answers about an input share one compiled snapshot. A server keeps none for a command.
func (f *ServerFlags) CompileOnce(ctx context.Context, decider *client.Client, in *Loaded) (err error) {
	if f.Address == "" {
		in.Upload, err = decider.Upload(ctx, in.Snapshot)
	}
	return err
}
