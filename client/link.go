package client

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// watchedPrefix begins the names of the balancers that watch; the rest is the name of the balancer of gRPC that chooses.
const watchedPrefix = "apportion_"

// watchedBalancers are the balancers of the service configs.
var watchedBalancers = []string{"round_robin", "ring_hash_experimental"}

func init() { //nolint:gochecknoinits // gRPC knows balancers by registration alone.
	for _, name := range watchedBalancers {
		balancer.Register(watchedBuilder{balancer.Get(name)})
	}
}

// watchedBuilder builds a balancer of gRPC whose connections are watched.
type watchedBuilder struct{ balancer.Builder }

// Name returns the name in the service config.
func (b watchedBuilder) Name() string { return watchedPrefix + b.Builder.Name() }

// Build returns the balancer of gRPC alone if the connection has other credentials than those of the client.
func (b watchedBuilder) Build(cc balancer.ClientConn, options balancer.BuildOptions) balancer.Balancer {
	credentials, ok := options.DialCreds.(watchedCredentials)
	if !ok {
		return b.Builder.Build(cc, options)
	}
	channel := &watchedChannel{ClientConn: cc, silent: credentials.watch}
	channel.open, channel.end = context.WithCancel(context.Background())
	return &watchedBalancer{b.Builder.Build(channel, options), channel}
}

// ParseConfig reads the settings of the balancer of gRPC.
func (b watchedBuilder) ParseConfig(config json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	if parser, ok := b.Builder.(balancer.ConfigParser); ok {
		return parser.ParseConfig(config)
	}
	return nil, nil //nolint:nilnil // The balancer has no settings.
}

type watchedBalancer struct {
	balancer.Balancer

	channel *watchedChannel
}

// UpdateClientConnState counts the replicas.
func (b *watchedBalancer) UpdateClientConnState(state balancer.ClientConnState) error {
	b.channel.replicas.Store(int64(len(state.ResolverState.Endpoints)))
	return b.Balancer.UpdateClientConnState(state)
}

// Close ends the watches.
func (b *watchedBalancer) Close() {
	b.channel.end()
	b.Balancer.Close()
}

// watchedChannel makes the links of a balancer.
type watchedChannel struct {
	balancer.ClientConn

	// open ends with the balancer.
	open     context.Context //nolint:containedctx // The watches of the links live as long as the balancer.
	end      context.CancelFunc
	silent   *silentWatch
	replicas atomic.Int64
}

// link is the connection to one replica, made again after each loss.
type link struct {
	balancer.SubConn

	silent  *silentWatch
	address string
	// others reports whether there are other replicas. Calls to the only replica are sent even while it is silent: a new connection would
	// reach the same.
	others func() bool
	conn   atomic.Pointer[watchedConn]
	// calls is the number of calls under way; began has an element if one has begun since the watch looked.
	calls atomic.Int64
	began chan struct{}
	ended func(balancer.DoneInfo)
}

// NewSubConn makes a link, which is watched while it is ready.
func (c *watchedChannel) NewSubConn(addresses []resolver.Address, options balancer.NewSubConnOptions) (balancer.SubConn, error) {
	l := &link{silent: c.silent, others: func() bool { return c.replicas.Load() > 1 }, began: make(chan struct{}, 1)}
	l.ended = func(balancer.DoneInfo) { l.calls.Add(-1) }
	// The balancers of gRPC make one link for each address. Its handshakes find the link by the attribute.
	addresses = slices.Clone(addresses)
	for i, address := range addresses {
		l.address = address.Addr
		addresses[i].Attributes = address.Attributes.WithValue(linkKey{}, l)
	}
	listener, stop := options.StateListener, func() {}
	options.StateListener = func(state balancer.SubConnState) {
		stop()
		stop = func() {}
		if state.ConnectivityState == connectivity.Ready {
			stop = l.watched(c.open)
		}
		listener(state)
	}
	var err error
	//nolint:staticcheck // SA1019: its deprecation is about several addresses of one SubConn.
	l.SubConn, err = c.ClientConn.NewSubConn(addresses, options)
	return l, err
}

// watched starts a watch.
func (l *link) watched(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	built, release := l.GetOrBuildProducer(callsOn{})
	if replica, ok := built.(grpc.ClientConnInterface); ok {
		go l.watch(ctx, healthv1.NewHealthClient(replica))
	}
	return func() {
		cancel()
		release()
	}
}

// linkKey is the key of a link among the attributes of its address.
type linkKey struct{}

// callsOn builds the interface for calls on a link, whatever the balancer would choose.
type callsOn struct{}

// Build returns the interface as gRPC gives it.
func (callsOn) Build(replica any) (balancer.Producer, func()) { return replica, func() {} }

// UpdateState counts the calls of the links that a picker chooses.
func (c *watchedChannel) UpdateState(state balancer.State) {
	state.Picker = watchedPicker{state.Picker}
	c.ClientConn.UpdateState(state)
}

type watchedPicker struct{ balancer.Picker }

// Pick counts the call until it ends.
func (p watchedPicker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	result, err := p.Picker.Pick(info)
	l, ok := result.SubConn.(*link)
	if err != nil || !ok {
		return result, err
	}
	l.calls.Add(1)
	select {
	case l.began <- struct{}{}:
	default:
	}
	result.SubConn = l.SubConn
	// The balancers of the service configs do not ask for the end of calls.
	result.Done = l.ended
	return result, nil
}

// A process that is stopped and a link that is cut keep their connections open, and calls wait there. The pings of gRPC find that after
// more than ten seconds, the least that grpc-go allows. A Client of several replicas asks one that sends nothing while calls wait for its
// health, and closes the connection if nothing comes. gRPC then ends its calls with UNAVAILABLE and sends later ones to the other replicas,
// and the client repeats calls and moves sessions as after the loss of a replica. A replica that is merely slow answers about its health,
// so that no question is asked twice because its answer takes long.
const (
	// silence is the time without data while calls wait after which a replica is asked for its health, and proof the time that it has to
	// send anything.
	silence = 500 * time.Millisecond
	proof   = 750 * time.Millisecond
	// avoidance is the time for which no connection to a silent replica is made, so that calls do not wait for it.
	avoidance = 2 * time.Second
)

// errSilent is the error of connecting to a replica that was silent.
var errSilent = errors.New("the replica sent nothing that is an answer, and is avoided for some seconds")

// silentWatch finds the silent replicas of a client. gRPC passes it, as its credentials, to the balancers and to every handshake.
type silentWatch struct {
	logger *slog.Logger
	mutex  sync.Mutex
	// avoided contains the addresses of silent replicas with the time at which each may be tried again.
	avoided map[string]time.Time
}

func newSilentWatch(logger *slog.Logger) *silentWatch {
	return &silentWatch{logger: logger, avoided: map[string]time.Time{}}
}

func (w *silentWatch) avoid(address string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.avoided[address] = time.Now().Add(avoidance)
}

func (w *silentWatch) avoids(address string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	until, found := w.avoided[address]
	if found && !time.Now().Before(until) {
		delete(w.avoided, address)
		return false
	}
	return found
}

// watchedCredentials watch the connections that they make.
type watchedCredentials struct {
	credentials.TransportCredentials

	watch *silentWatch
}

// ClientHandshake refuses a replica that is avoided, and bounds the frames of all.
func (c watchedCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	l, _ := credentials.ClientHandshakeInfoFromContext(ctx).Attributes.Value(linkKey{}).(*link)
	if l != nil && c.watch.avoids(l.address) {
		return nil, nil, errSilent
	}
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	bound := &boundConn{Conn: conn, flood: flood{since: time.Now(), now: time.Now}}
	if l == nil {
		return bound, info, nil
	}
	bound.avoid = func() { c.watch.avoid(l.address) }
	watched := &watchedConn{Conn: bound, raw: raw}
	l.conn.Store(watched)
	return watched, info, nil
}

// Clone returns a copy with the same watch.
func (c watchedCredentials) Clone() credentials.TransportCredentials {
	return watchedCredentials{c.TransportCredentials.Clone(), c.watch}
}

// watchedConn notes when something was received and sent.
type watchedConn struct {
	net.Conn

	// raw is the connection without TLS.
	raw net.Conn
	// received and sent are times in nanoseconds since start; sending counts writes under way.
	received, sent, sending atomic.Int64
}

// start is the origin of the times of connections, which are monotonic.
var start = time.Now()

func (c *watchedConn) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	if n > 0 {
		c.received.Store(int64(time.Since(start)))
	}
	return n, err
}

func (c *watchedConn) Write(data []byte) (int, error) {
	c.sent.Store(int64(time.Since(start)))
	c.sending.Add(1)
	defer c.sending.Add(-1)
	return c.Conn.Write(data)
}

// silentSince reports whether nothing has come since a time.
func (c *watchedConn) silentSince(t time.Time) bool { return c.received.Load() < int64(t.Sub(start)) }

// askedSince reports whether something was sent after a time, or could not be sent because the peer takes nothing.
func (c *watchedConn) askedSince(t time.Time) bool {
	return c.sending.Load() > 0 || c.sent.Load() >= int64(t.Sub(start))
}

// watch closes the connection of a link when its replica is silent, and returns then or when ctx ends.
func (l *link) watch(ctx context.Context, replica healthv1.HealthClient) {
	for {
		select {
		case <-l.began:
		case <-ctx.Done():
			return
		}
		for l.calls.Load() > 0 {
			since := time.Now()
			if !sleep(ctx, silence) {
				return
			}
			conn := l.conn.Load()
			if conn == nil || l.calls.Load() == 0 || !conn.silentSince(since) || !l.others() || !silent(ctx, conn, replica) {
				continue
			}
			l.silent.logger.LogAttrs(ctx, slog.LevelInfo, "a replica is silent; its calls go to others", slog.String("address", l.address))
			l.silent.avoid(l.address)
			// Closing the connection of TLS would first send to a peer that takes nothing.
			_ = conn.raw.Close()
			return
		}
	}
}

// silent asks a replica for its health, and reports whether it sends nothing at all. Any answer proves that it works, also a refusal.
func silent(ctx context.Context, conn *watchedConn, replica healthv1.HealthClient) bool {
	asked := time.Now()
	waiting, cancel := context.WithTimeout(ctx, proof)
	defer cancel()
	_, err := replica.Check(waiting, &healthv1.HealthCheckRequest{Service: apportionv1.DecisionService_ServiceDesc.ServiceName})
	if status.Code(err) != codes.DeadlineExceeded || !conn.silentSince(asked) {
		return false
	}
	// After a pause of this process its timers come before what the replica has sent meanwhile; and a source of tokens may have kept back
	// the question.
	return time.Since(asked) < 2*proof && conn.askedSince(asked)
}

// watchedConfig returns a service config with the balancers that watch in place of those of gRPC.
func watchedConfig(config string) string {
	for _, name := range watchedBalancers {
		config = strings.ReplaceAll(config, `"`+name+`"`, `"`+watchedPrefix+name+`"`)
	}
	return config
}
