// Package service is the gRPC edge: it turns requests into sessions of package wire, and errors into statuses, keeps limits, and starts and
// stops the server. It contains no decisions.
//
//	server, err := service.New(service.Options{Policies: policies})
//	err = server.Serve(ctx, listener)
//
// A unary call passes these files: admit (headers), handler, message (bytes), decode (request), intercept, unary, open (session on the
// snapshot), response (encoding). Package admission decides when its work may begin and how much memory it may hold.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/connection"
)

// Server answers the calls of the contract, and serves them on listeners from readiness to the last call. It is safe for concurrent use.
type Server struct {
	options Options
	log     *slog.Logger
	rules   atomic.Pointer[map[string]rule]

	metrics *metrics
	calls   *calls

	unary  []grpc.UnaryServerInterceptor
	health *health.Server
	// methods holds the full names of all methods that are served.
	methods map[string]bool

	admission *admission.Controller
	inbox     *inbox
	outbox    *outbox
	receiving *admission.Budget
	sessions  admission.Counts
	// watches counts the streams of health and reflection.
	watches       admission.Counts
	sessionMemory *sessionMemory
	// late ends the calls whose messages do not come within MessageTime, answering those that are not answered within CallTime.
	late, answering overdue
	digests         policyDigests
	// connections are what listeners accept.
	connections *connection.Bounds
	// numbered counts the sessions that observers received.
	numbered  atomic.Uint64
	cache     *cache
	compiling singleflight.Group
	// kept holds a map[string]*Kept by name, which is replaced while keptMutex is held.
	kept      atomic.Value
	keptMutex sync.Mutex
	// ledgers holds a *remembered by name.
	ledgers sync.Map

	draining  chan struct{}
	drainOnce sync.Once
	drainEnd  time.Time
}

// rule is a policy to decide by.
type rule struct {
	policy *apportionv1.Policy
	digest string
}

// SetPolicies replaces all named policies at once, or none if any is invalid. The presets keep their names, unless a policy has the name of
// one. Running calls and sessions keep their policies.
func (s *Server) SetPolicies(policies map[string]*apportionv1.Policy) error {
	rules := make(map[string]rule, len(policies))
	var faults []error
	for name := range catalogue.Presets() {
		preset, _ := catalogue.Preset(name)
		rules[name] = rule{preset, decode.PolicyDigest(preset)}
	}
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		p := policies[name]
		if _, err := decode.Policy(p); err != nil {
			faults = append(faults, fmt.Errorf("policy %q: %w", name, err))
		}
		rules[name] = rule{p, decode.PolicyDigest(p)}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	s.rules.Store(&rules)
	return nil
}

// Registry returns the metrics.
func (s *Server) Registry() *prometheus.Registry { return s.options.Registry }

// Ready reports whether the server accepts calls, as its health does.
func (s *Server) Ready() bool {
	response, err := s.health.Check(context.Background(), &healthv1.HealthCheckRequest{})
	return err == nil && response.GetStatus() == healthv1.HealthCheckResponse_SERVING
}

func (s *Server) setHealth(status healthv1.HealthCheckResponse_ServingStatus) {
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(apportionv1.ApportionService_ServiceDesc.ServiceName, status)
}
