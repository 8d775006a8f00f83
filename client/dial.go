package client

import (
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	_ "google.golang.org/grpc/balancer/ringhash" // Registers the balancer that keeps the calls of a mirror together.
	_ "google.golang.org/grpc/health"            // Registers the health check that the service config asks for.
	"google.golang.org/grpc/keepalive"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

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
