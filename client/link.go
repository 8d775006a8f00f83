package client

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
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
