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

// Option sets how a service is reached, and what happens if it is not.
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

// WithPlaintext does without TLS, as within a trusted network or behind a proxy that adds it.
func WithPlaintext() Option {
	return func(s *settings) { s.credentials = insecure.NewCredentials() }
}

// WithTLS sets the TLS configuration; TLSFiles makes one of files.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) { s.credentials = credentials.NewTLS(config) }
}

// WithDialOptions adds options of gRPC: interceptors, per-call credentials, another service config.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) { s.options = append(s.options, options...) }
}

// WithDeadline bounds how long questions of the given kinds may take, all attempts together; without kinds: of every kind. The context of
// a call can only shorten it. Where this option does not say, a call of a service whose context has no deadline gets one of 30
// seconds, an upload of two minutes.
func WithDeadline(d time.Duration, kinds ...Kind) Option {
	return func(s *settings) {
		for _, kind := range orAll(kinds) {
			s.deadlines[kind] = d
		}
	}
}

// WithAttempts sets how often a question is asked at most where asking again may help: the replica was lost, or said when to come again.
// The default is 5; with 1 nothing is asked twice. Over all questions of a client no more than a fifth of them is asked again, once the
// first hundred attempts are used up: who is down or overloaded must not be asked five times as much.
func WithAttempts(n int) Option {
	return func(s *settings) { s.attempts = max(n, 1) }
}

// WithSessionLog sets how many bytes of steps a session keeps in order to go on at another replica; the default is 4 MiB. Only steps that
// changed something are kept, and a rollback forgets what it undid. With 0 a session ends with its replica.
func WithSessionLog(bytes int) Option {
	return func(s *settings) { s.logBytes = bytes }
}

// WithPolicy gives a policy a name, for deciding in process. Who falls back on the engine gives it the policies that the service knows.
func WithPolicy(name string, policy *apportionv1.Policy) Option {
	return func(s *settings) { s.policies[name] = policy }
}

// WithLogger is told of fallbacks (warning), sessions that move (info) and attempts that failed (debug). The default is slog's.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) { s.logger = logger }
}

const (
	// maxMessage is the size of requests and answers that a client allows; the service has limits of its own.
	maxMessage = 1 << 30
	// A connection on which nothing comes for ping is asked whether it still stands, and given up after pong.
	ping = 30 * time.Second
	pong = 10 * time.Second
	// A replica that was lost is tried again after reconnect first, and every reconnectMost in the end.
	reconnect     = 100 * time.Millisecond
	reconnectMost = 5 * time.Second
	// connectTime bounds one attempt to connect, TLS included.
	connectTime = 5 * time.Second
)

// Dial prepares to ask the service at a target such as "dns:///apportion:7171", over TLS with the system's roots unless an option says
// otherwise. Connecting happens with the first call. Calls take turns among all addresses of the target that say they serve; those about a
// Mirror stay with one of them, over a connection of their own, for as long as it serves.
func Dial(target string, opts ...Option) (*Client, error) {
	c := &Client{settings: newSettings(opts), budget: budget{tokens: budgetMost}}
	for _, kind := range Kinds() {
		if err := c.fallbacks[kind].check(kind); err != nil {
			return nil, err
		}
	}
	for _, config := range []string{serviceConfig, mirrorServiceConfig} {
		connection, err := grpc.NewClient(target, c.dialOptions(config)...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.connections = append(c.connections, connection)
	}
	c.engine = local{policies: c.policies}
	c.remote = apportionv1.NewApportionServiceClient(c.connections[0])
	c.mirrored = apportionv1.NewApportionServiceClient(c.connections[1])
	c.calls = c.remote
	c.counters = newCounters(c.meter)
	return c, nil
}

func (s *settings) dialOptions(config string) []grpc.DialOption {
	options := append(s.tokenOptions(),
		grpc.WithTransportCredentials(s.credentials),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithDefaultServiceConfig(config),
		// The client asks again itself: gRPC forgets a message that is larger than its buffer, and cannot send it anew.
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
	KindSimulate    Kind = "simulate"
	KindUpload      Kind = "upload"
	KindSession     Kind = "session"
	KindBatch       Kind = "batch"
)

// Kinds are all kinds of questions.
func Kinds() []Kind {
	return []Kind{
		KindShares, KindEnqueue, KindAllocatable, KindVictims, KindNodes, KindExplain, KindPlan, KindSimulate, KindUpload,
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

// within returns the context of one question.
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
