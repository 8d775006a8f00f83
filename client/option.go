package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	experimental "google.golang.org/grpc/experimental/opentelemetry"
	"google.golang.org/grpc/stats/opentelemetry"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Option configures how a service is called, and the fallback if it fails.
type Option func(*settings)

type settings struct {
	credentials credentials.TransportCredentials
	token       TokenSource
	options     []grpc.DialOption
	deadlines   map[Kind]time.Duration
	fallbacks   map[Kind]Fallback
	policies    map[string]*apportionv1.Policy
	attempts    int
	logBytes    int
	logger      *slog.Logger
	meter       metric.MeterProvider
	tracer      trace.TracerProvider
	propagator  propagation.TextMapPropagator
}

// defaultAttempts is the default maximum number of attempts for a question.
const defaultAttempts = 5

func newSettings(opts []Option) settings {
	s := settings{
		credentials: credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}),
		deadlines:   map[Kind]time.Duration{}, fallbacks: map[Kind]Fallback{}, policies: map[string]*apportionv1.Policy{},
		attempts: defaultAttempts, logBytes: defaultLogBytes, logger: slog.Default(),
	}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// WithPlaintext disables TLS, for use within a trusted network or behind a proxy that adds it.
func WithPlaintext() Option {
	return func(s *settings) { s.credentials = insecure.NewCredentials() }
}

// WithTLS sets the TLS configuration; TLSFiles creates one from files.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) { s.credentials = credentials.NewTLS(config) }
}

// WithDialOptions adds gRPC options: interceptors, per-call credentials, a different service config.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) { s.options = append(s.options, options...) }
}

// WithDeadline limits the duration of questions of the given kinds, including all attempts; without kinds: of every kind. The context of a
// call can only shorten it. Without this option, a call whose context has no deadline gets a deadline of 30 seconds, an upload of two
// minutes.
func WithDeadline(d time.Duration, kinds ...Kind) Option {
	return func(s *settings) {
		for _, kind := range orAll(kinds) {
			s.deadlines[kind] = d
		}
	}
}

// WithAttempts sets the maximum number of attempts for a question when a retry may help: the replica was lost, or returned a retry delay.
// The default is 5; 1 disables retries. Once the first hundred attempts are used up, a client retries no more than a fifth of all its
// questions, so that retries do not multiply the load on a server that is down or overloaded.
func WithAttempts(n int) Option {
	return func(s *settings) { s.attempts = max(n, 1) }
}

// WithSessionLog sets how many bytes of steps a session keeps in order to continue on another replica; the default is 4 MiB. Only steps
// that changed something are kept, and a rollback drops what it undid. With 0 a session ends with its replica.
func WithSessionLog(bytes int) Option {
	return func(s *settings) { s.logBytes = bytes }
}

// WithPolicy adds a named policy for decisions in process. Clients with FallbackEngine should add the policies of the service.
func WithPolicy(name string, policy *apportionv1.Policy) Option {
	return func(s *settings) { s.policies[name] = policy }
}

// WithLogger sets the logger for fallbacks (warning), sessions that move (info) and failed attempts (debug). The default is slog's.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) { s.logger = logger }
}

// Kind is a kind of question, for options that treat kinds differently.
type Kind string

// The kinds of questions: the unary calls, uploading, opening a session, and a batch of steps on one.
const (
	KindShares      Kind = "shares"
	KindEnqueue     Kind = "enqueue"
	KindAllocatable Kind = "allocatable"
	KindVictims     Kind = "victims"
	KindNodes       Kind = "nodes"
	KindExplain     Kind = "explain"
	KindPlan        Kind = "plan"
	KindRemedies    Kind = "remedies"
	KindForecast    Kind = "forecast"
	KindSimulate    Kind = "simulate"
	KindUpload      Kind = "upload"
	KindSession     Kind = "session"
	KindBatch       Kind = "batch"
)

// Kinds returns all kinds of questions.
func Kinds() []Kind {
	return []Kind{
		KindShares, KindEnqueue, KindAllocatable, KindVictims, KindNodes, KindExplain, KindPlan, KindRemedies, KindForecast, KindSimulate,
		KindUpload, KindSession, KindBatch,
	}
}

func orAll(kinds []Kind) []Kind {
	if len(kinds) == 0 {
		return Kinds()
	}
	return slices.Clone(kinds)
}

// Fallback answers a question when the service is unreachable, too slow, too busy, or fails. There is no fallback for an invalid question
// or a caller without access. Without a fallback the error is returned.
type Fallback string

const (
	// FailClosed answers no: no job enters its queue, no task may use more, no task is evicted, no node fits. For KindEnqueue,
	// KindAllocatable, KindVictims and KindNodes.
	FailClosed Fallback = "closed"
	// FailOpen answers yes: every job enters its queue, every task may use more (but nothing from others). For KindEnqueue and
	// KindAllocatable; it does not evict or place tasks.
	FailOpen Fallback = "open"
	// FallbackEngine decides in process with the engine of this library, by the policy of the question, or the policy of WithPolicy with
	// its name. For all kinds except KindUpload and KindBatch. A session continues in process if its engine and policy are the same.
	FallbackEngine Fallback = "engine"
)

// WithFallback sets the fallback for questions of the given kinds; without kinds: for every kind that the fallback supports. Each use is
// logged, counted and recorded in the answer.
func WithFallback(fallback Fallback, kinds ...Kind) Option {
	return func(s *settings) {
		for _, kind := range orAll(kinds) {
			if len(kinds) > 0 || fallback.check(kind) == nil {
				s.fallbacks[kind] = fallback
			}
		}
	}
}

// check returns an error if a fallback cannot answer questions of a kind.
func (f Fallback) check(kind Kind) error {
	var kinds []Kind
	switch f {
	case "":
		return nil
	case FailClosed:
		kinds = []Kind{KindEnqueue, KindAllocatable, KindVictims, KindNodes}
	case FailOpen:
		kinds = []Kind{KindEnqueue, KindAllocatable}
	case FallbackEngine:
		kinds = []Kind{
			KindShares, KindEnqueue, KindAllocatable, KindVictims, KindNodes, KindExplain, KindPlan, KindRemedies, KindForecast,
			KindSimulate, KindSession,
		}
	default:
		return fmt.Errorf("there is no fallback %q", f)
	}
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("fallback %s cannot answer questions of kind %s; it can of %v", f, kind, kinds)
	}
	return nil
}

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

// WithMeter enables metrics: gRPC's own client metrics (grpc.client.attempt.duration and others), and the counters
// apportion.client.retries, apportion.client.fallbacks and apportion.client.session.moves.
func WithMeter(provider metric.MeterProvider) Option {
	return func(s *settings) { s.meter = provider }
}

// WithTracer creates a span for each call and propagates its context; without a propagator, as W3C Trace Context.
func WithTracer(provider trace.TracerProvider, propagator propagation.TextMapPropagator) Option {
	return func(s *settings) {
		s.tracer, s.propagator = provider, propagator
		if propagator == nil {
			s.propagator = propagation.TraceContext{}
		}
	}
}

// instruments are gRPC's own metrics and traces.
func (s *settings) instruments() []grpc.DialOption {
	if s.meter == nil && s.tracer == nil {
		return nil
	}
	options := opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: s.meter}}
	if s.tracer != nil {
		options.TraceOptions = experimental.TraceOptions{TracerProvider: s.tracer, TextMapPropagator: s.propagator}
	}
	return []grpc.DialOption{opentelemetry.DialOption(options)}
}

// counters count retries, fallbacks and moved sessions.
type counters struct {
	retries, fallbacks, moves metric.Int64Counter
}

func newCounters(provider metric.MeterProvider) counters {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	meter := provider.Meter("github.com/apportion/apportion/client")
	counter := func(name, description string) metric.Int64Counter {
		made, err := meter.Int64Counter(name, metric.WithDescription(description))
		if err != nil {
			return noop.Int64Counter{}
		}
		return made
	}
	return counters{
		retries:   counter("apportion.client.retries", "Questions that were asked again, by kind."),
		fallbacks: counter("apportion.client.fallbacks", "Questions that a fallback answered, by kind and fallback."),
		moves:     counter("apportion.client.session.moves", "Sessions that went on at another replica."),
	}
}

func count(ctx context.Context, counter metric.Int64Counter, attributes ...attribute.KeyValue) {
	counter.Add(context.WithoutCancel(ctx), 1, metric.WithAttributes(attributes...))
}
