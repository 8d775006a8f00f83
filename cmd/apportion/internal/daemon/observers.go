package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/apportion/apportion/cmd/apportion/internal/config"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/decisionlog"
	"github.com/apportion/apportion/service/shadow"
	"github.com/apportion/apportion/service/telemetry"
)

// observing contains the observers of decisions that the settings enable.
type observing struct {
	observers []service.Observer
	log       *decisionlog.Log
	shadow    *shadow.Shadow
}

// newObservers starts the observers that the settings enable.
func (d *Daemon) newObservers(ctx context.Context, loaded *loaded) (*observing, error) {
	b, c := &observing{}, &d.settings.Config
	if c.Metrics.Queues > 0 {
		queues := telemetry.NewQueues(telemetry.QueueOptions{Maximum: c.Metrics.Queues})
		d.telemetry.Registry.MustRegister(queues)
		b.observers = append(b.observers, queues)
	}
	log, err := d.newDecisionLog(ctx)
	if err != nil {
		return nil, fmt.Errorf("decision_log: %w", err)
	}
	if log != nil {
		b.log = log
		b.observers = append(b.observers, log)
		d.telemetry.Registry.MustRegister(log.Collectors()...)
	}
	if s := &c.Shadow; s.Policy != "" {
		b.shadow, err = shadow.New(shadow.Options{ //nolint:contextcheck // What it decides later is part of no call.
			Policy: loaded.policies[s.Policy], Settings: *s, Logger: d.log,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("shadow: %w", err), b.close(ctx))
		}
		b.observers = append(b.observers, b.shadow)
		d.telemetry.Registry.MustRegister(b.shadow.Collectors()...)
	}
	return b, nil
}

// newDecisionLog returns nil if it is not configured.
func (d *Daemon) newDecisionLog(ctx context.Context) (*decisionlog.Log, error) {
	c := &d.settings.DecisionLog
	if err := checkMask(c.Mask); err != nil {
		return nil, err
	}
	o, err := decisionlog.Options{Settings: *c, Logger: d.log}, error(nil)
	switch c.Sink {
	case "file":
		o.Sink, err = decisionlog.NewFileSink(*c)
	case "stdout":
		o.Sink = decisionlog.NewStreamSink(os.Stdout)
	case "otlp":
		o.Sink, err = decisionlog.NewOTLPSink(ctx, d.options.Version)
	default:
		return nil, nil //nolint:nilnil // No log is one of the two right answers.
	}
	if err != nil {
		return nil, err
	}
	if c.Store != "" {
		if o.Store, err = decisionlog.OpenStore(c.Store, int64(c.StoreBytes)); err != nil {
			return nil, errors.Join(err, o.Sink.Close())
		}
	}
	return decisionlog.New(o), nil
}

// checkMask returns an error for names that no field has, so that a misspelt name does not leave a field unmasked.
func checkMask(names []string) error {
	known := decisionlog.Maskable()
	for _, name := range names {
		if !known[name] {
			return fmt.Errorf("mask: no text field has the name %s", strconv.Quote(name))
		}
	}
	return nil
}

// use updates the shadow's policy. If no policy has its name any longer, the old one stays until a restart.
func (b *observing) use(c *config.Config, loaded *loaded) error {
	policy, ok := loaded.policies[c.Shadow.Policy]
	if b.shadow == nil || !ok {
		return nil
	}
	return b.shadow.Use(policy)
}

// close writes the remaining entries.
func (b *observing) close(ctx context.Context) error {
	var faults []error
	if b.shadow != nil {
		faults = append(faults, withName("shadow", b.shadow.Close(ctx)))
	}
	if b.log != nil {
		faults = append(faults, withName("decision_log", b.log.Close(ctx)))
	}
	return errors.Join(faults...)
}

// withName returns an error with the name of the part that did not end in time, or nil.
func withName(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: not all work was completed before the end: %w", what, err)
}
