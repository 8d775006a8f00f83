package client

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	_ "google.golang.org/grpc/balancer/ringhash" // Registers the balancer that keeps the calls of a mirror together.
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health" // Registers the health check that the service config asks for.
	"google.golang.org/grpc/keepalive"

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

const (
	// maxMessage is the size of requests and answers that a client allows; the service has limits of its own.
	maxMessage = 1 << 30
	// A connection without data for the time ping is pinged, and closed if no answer arrives within pong. Earlier servers accept a ping
	// every 10 seconds.
	ping = 11 * time.Second
	pong = 5 * time.Second
	// The client connects to a lost replica again after reconnect, and then at growing intervals up to reconnectMost.
	reconnect     = 100 * time.Millisecond
	reconnectMost = 5 * time.Second
	// connectTime bounds one attempt to connect, TLS included.
	connectTime = 2 * time.Second
)

// Dial returns a client of the service at a target such as "dns:///apportion:7171", over TLS with the system's roots unless an option
// changes this. It connects with the first call. Calls are balanced (round robin) over all healthy addresses of the target; calls about a
// Mirror stay with one of them, over a separate connection, as long as it serves. A replica that sends nothing for a second or two while
// calls wait, not even about its health, is treated as lost if the target has others.
func Dial(target string, opts ...Option) (*Client, error) {
	c := &Client{settings: newSettings(opts), budget: budget{tokens: budgetMost}}
	for _, kind := range Kinds() {
		if err := c.fallbacks[kind].check(kind); err != nil {
			return nil, err
		}
	}
	watch := newSilentWatch(c.logger)
	for _, config := range []string{serviceConfig, mirrorServiceConfig} {
		connection, err := grpc.NewClient(target, c.dialOptions(watchedConfig(config), watch)...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.connections = append(c.connections, connection)
	}
	c.engine = local{policies: c.policies}
	c.remote = apportionv1.NewApportionServiceClient(c.connections[0])
	c.mirrored = apportionv1.NewApportionServiceClient(c.connections[1])
	c.counters = newCounters(c.meter)
	return c, nil
}

func (s *settings) dialOptions(config string, watch *silentWatch) []grpc.DialOption {
	options := append(s.tokenOptions(),
		grpc.WithTransportCredentials(watchedCredentials{s.credentials, watch}),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(Codec()), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithDefaultServiceConfig(config),
		// The client retries calls itself, because gRPC cannot send a message again that is larger than its buffer.
		grpc.WithDisableRetry(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: ping, Timeout: pong}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnect, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectMost},
			MinConnectTimeout: connectTime,
		}))
	options = append(options, s.instruments()...)
	return append(options, s.options...)
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
	KindSimulate    Kind = "simulate"
	KindUpload      Kind = "upload"
	KindSession     Kind = "session"
	KindBatch       Kind = "batch"
)

// Kinds returns all kinds of questions.
func Kinds() []Kind {
	return []Kind{
		KindShares, KindEnqueue, KindAllocatable, KindVictims, KindNodes, KindExplain, KindPlan, KindRemedies, KindSimulate, KindUpload,
		KindSession, KindBatch,
	}
}

func orAll(kinds []Kind) []Kind {
	if len(kinds) == 0 {
		return Kinds()
	}
	return slices.Clone(kinds)
}

const (
	defaultDeadline       = 30 * time.Second
	defaultUploadDeadline = 2 * time.Minute
)

// within returns the context of one question, with its deadline.
func (c *Client) within(ctx context.Context, kind Kind) (context.Context, context.CancelFunc) {
	if d, ok := c.deadlines[kind]; ok {
		return context.WithTimeout(ctx, d)
	}
	if _, limited := ctx.Deadline(); limited || c.remote == nil {
		return ctx, func() {}
	}
	if kind == KindUpload {
		return context.WithTimeout(ctx, defaultUploadDeadline)
	}
	return context.WithTimeout(ctx, defaultDeadline)
}
