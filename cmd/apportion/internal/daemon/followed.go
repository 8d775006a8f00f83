package daemon

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

const (
	// followedName is the name of the policy of the scheduler in the followed cluster, unless the settings have a policy of this name.
	followedName = "volcano"
	// kueueSystem is the system, the preset, and the name of the policy, of a followed cluster with Kueue.
	kueueSystem = "kueue"
	// followedInterval is the interval at which the ConfigMap is read. A request for one small object costs an API server less than a watch
	// that it keeps.
	followedInterval = time.Minute
	// awayInterval is the interval while the API server cannot be reached, which the follower reports.
	awayInterval = 2 * time.Second
)

// followed is the policy of the scheduler in the followed cluster.
type followed struct {
	// name is followedName, or kueueSystem.
	name string
	// policy is the file that Volcano's installers ship until the ConfigMap was read, and nil if no cluster is followed. Daemon.reloading
	// guards it.
	policy *apportionv1.Policy
	// fault is the last logged reason why the ConfigMap could not be used.
	fault string
	// tried is true once the ConfigMap was asked for.
	tried atomic.Bool
}

// followPolicy keeps the policy up to date until ctx ends.
func (d *Daemon) followPolicy(ctx context.Context) {
	for {
		wait := d.readFollowed(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// readFollowed reads and applies the policy, and returns the time until it is read again.
func (d *Daemon) readFollowed(ctx context.Context) time.Duration {
	read, err := d.held(ctx)
	if ctx.Err() != nil || errors.Is(err, cluster.ErrUnavailable) {
		return awayInterval
	}
	if d.followed.fault = d.logFault(ctx, err); err == nil {
		d.useFollowed(ctx, read)
	}
	d.followed.tried.Store(true)
	return followedInterval
}

// useFollowed applies the policy that was read: the file that Volcano's installers ship if there is no ConfigMap, and the one from before
// if the ConfigMap cannot be used.
func (d *Daemon) useFollowed(ctx context.Context, read *policy.Policy) {
	if read == nil {
		read = policy.Installed()
	}
	next, from := read.Message, read.Origin()
	d.reloading.Lock()
	defer d.reloading.Unlock()
	if proto.Equal(d.followed.policy, next) {
		return
	}
	d.followed.policy = next
	if _, own := d.settings.Policies[followedName]; own {
		return
	}
	policies := maps.Clone(*d.policies.Load())
	policies[followedName] = next
	if err := d.server.SetPolicies(policies); err != nil {
		d.logFault(ctx, err)
		return
	}
	d.policies.Store(&policies)
	d.log.InfoContext(ctx, "the policy of the followed cluster was applied", "policy", followedName, "from", from)
	for _, w := range read.Warnings {
		d.log.WarnContext(ctx, "a policy has warnings", "policy", followedName, "path", w.GetPath(), "text", w.GetMessage())
	}
}

// held returns the policy in the ConfigMap, nil if there is no ConfigMap.
func (d *Daemon) held(ctx context.Context) (*policy.Policy, error) {
	objects, err := d.follower.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	held, err := schedulerconf.InCluster(objects)
	if err != nil || held == nil {
		return nil, err
	}
	message, warnings, err := held.Read()
	if err == nil {
		_, err = decode.Policy(message)
	}
	return &policy.Policy{Message: message, Warnings: warnings, Configuration: &held.Source, Object: held.Object}, err
}

// logFault logs a fault unless it was logged last, and returns its text, empty for none.
func (d *Daemon) logFault(ctx context.Context, fault error) string {
	if fault == nil {
		return ""
	}
	if text := fault.Error(); text != d.followed.fault {
		d.log.WarnContext(ctx, "the policy of the followed cluster cannot be read", "policy", followedName, "error", text)
	}
	return fault.Error()
}

// addFollowed adds the policy of the followed cluster to those of the settings. Daemon.reloading is locked.
func (d *Daemon) addFollowed(policies map[string]*apportionv1.Policy) {
	if _, configured := policies[d.followed.name]; !configured && d.followed.policy != nil {
		policies[d.followed.name] = d.followed.policy
	}
}
