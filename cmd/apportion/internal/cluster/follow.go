package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/service"
)

// FollowOptions of a Follower.
type FollowOptions struct {
	// Name by which requests name the snapshot.
	Name string
	// Label is the name of the cluster in the snapshot.
	Label string
	// Kubeconfig and Context select the cluster. Empty: the cluster of this pod, or else the cluster of the user's kubeconfig.
	Kubeconfig, Context string
	// Kueue follows Kueue's objects in place of Volcano's.
	Kueue bool
	// Schedulers lists the schedulers whose pods are considered. Empty: Volcano.
	Schedulers []string
	// Interval is the shortest time from one version of the snapshot to the next.
	Interval time.Duration
	// Limits are those of the server. What exceeds them is left out.
	Limits decode.Limits
	// Memory of what queues used. nil: snapshots state none.
	Memory *Memory
	// History of causes and shares. nil: none is kept.
	History *History
	Logger  *slog.Logger
}

// Follower keeps a snapshot of a cluster up to date by watches. client-go's reflectors list, watch, resume and list again.
type Follower struct {
	options FollowOptions
	client  *rest.RESTClient
	objects store
	pace    *pace
	metrics *metrics
	kept    *service.Kept
	states  []*kindState
	// resources are the lists that are followed.
	resources map[string]objects.Resource
	clock     clock

	mutex sync.Mutex
	// away contains the kinds whose last request did not reach the API server.
	away map[string]bool
	// faults contains the last logged reasons why objects were left out or no version could be built.
	faults string
	// stuck is true if the newest state could not be made a version.
	stuck atomic.Bool
}

// refresh is the interval of versions without changes, whose clock determines when cooldowns end.
const refresh = time.Minute

// NewFollower returns a follower of a cluster and registers its snapshot with a server.
func NewFollower(server *service.Server, o FollowOptions) (*Follower, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	f := &Follower{options: o, pace: newPace(o.Interval), away: map[string]bool{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dating{next, &f.clock} })
	if f.client, err = clientOf(config); err != nil {
		return nil, err
	}
	missing := groupVersion + "): is Volcano"
	f.resources, f.objects = followed, storeOf(&o)
	if o.Kueue {
		f.resources, missing = kueueResources, kueueGroup+"): is Kueue"
	}
	f.metrics = newMetrics(f)
	for name, r := range f.resources {
		f.states = append(f.states, &kindState{
			resource: name, kind: r.Newest(), needed: r.Needed, judges: r.Judges != "", objects: f.objects, pace: f.pace,
			metrics: f.metrics, reportFault: f.tell, missing: missing,
		})
	}
	slices.SortFunc(f.states, func(a, b *kindState) int { return slices.Compare([]byte(a.resource), []byte(b.resource)) })
	f.kept = server.Keep(o.Name, o.Label, f.view)
	return f, nil
}

// Run follows the cluster until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	var following sync.WaitGroup
	for _, state := range f.states {
		list := f.resources[state.resource]
		from := &source{
			client: f.client, paths: pathsOf(&list), kind: state.kind, objects: f.objects, state: state, pageTime: pageTime,
			most: maxObjects,
		}
		reflector := cache.NewReflectorWithOptions(&cache.ListWatch{ListWithContextFunc: from.List, WatchFuncWithContext: from.Watch},
			&item{}, state, cache.ReflectorOptions{Name: state.resource})
		reflector.WatchListPageSize = chunkSize
		following.Go(func() { reflector.RunWithContext(ctx) })
	}
	if f.options.History != nil {
		ahead := func() time.Duration { return f.clock.ahead(time.Now()) }
		following.Go(func() { f.options.History.Record(ctx, f.kept, f.options.Memory, ahead, f.options.Logger) })
	}
	f.pace.run(ctx, refresh, f.put, func(waited time.Duration) { f.metrics.lag.Observe(waited.Seconds()) })
	following.Wait()
	if m := f.options.Memory; m != nil {
		m.storing.Wait()
		f.store(context.WithoutCancel(ctx), time.Now(), true)
	}
}

// Ready reports whether a snapshot exists, or the API server has answered for every kind and no snapshot is possible.
func (f *Follower) Ready() bool {
	for _, state := range f.states {
		if tried, _ := state.answered(); !tried {
			return false
		}
	}
	return f.kept.Bytes() > 0 || !f.enough()
}

// enough reports whether all required kinds were read, and the API server has answered for every other kind.
func (f *Follower) enough() bool {
	for _, state := range f.states {
		if tried, read := state.answered(); !tried || state.needed && !read {
			return false
		}
	}
	return true
}

// put builds a version of the snapshot. It returns false if none is possible.
func (f *Follower) put(ctx context.Context) bool {
	if !f.enough() {
		return false
	}
	began := time.Now()
	view := &apportionv1.SnapshotView{}
	for _, state := range f.states {
		// Read before the objects, so that the objects contain at least these changes.
		kind := state.view()
		kind.Count = uint32(f.objects.Count(state.kind))
		f.metrics.objects.WithLabelValues(state.resource).Set(float64(kind.GetCount()))
		f.metrics.read.WithLabelValues(state.resource).Set(number(kind.GetRead()))
		view.Kinds = append(view.Kinds, kind)
	}
	err := f.identify(ctx)
	if err == nil {
		err = f.make(ctx, view)
	}
	f.metrics.making.Observe(time.Since(began).Seconds())
	f.stuck.Store(err != nil)
	if err != nil && ctx.Err() == nil {
		f.metrics.refused.Inc()
		f.tellFaults(ctx, "version", err.Error())
	}
	return err == nil
}

// number returns 1 for true, 0 for false.
func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// make builds the snapshot of the objects, and gives it to the server.
func (f *Follower) make(ctx context.Context, view *apportionv1.SnapshotView) error {
	now := time.Now()
	m, err := f.objects.version(now, f.kept.Most(), f.unread(), f.filling(ctx, now))
	if err != nil {
		return err
	}
	f.leftOut(m, view)
	if err := f.kept.Put(ctx, m.data, view); err != nil {
		return err
	}
	fault := ""
	if n := m.total(); n > 0 {
		fault = fmt.Sprintf("%s left out, such as %s", text.Are(n, "object"), m.first)
	}
	f.tellFaults(ctx, "object", fault)
	return nil
}

// unread are the kinds that the API server refuses to list, and why, without which most answers are not known.
func (f *Follower) unread() map[string]string {
	kinds := map[string]string{}
	for _, state := range f.states {
		if why := state.lacks(); why != "" && f.resources[state.resource].Decides {
			kinds[state.kind.Name] = why
		}
	}
	return kinds
}

// storeOf returns the empty store of what is followed.
func storeOf(o *FollowOptions) store {
	if o.Kueue {
		return &kueueStore{kueue.NewObjects(kueue.WithClusterLabel(o.Label), kueue.WithLimits(o.Limits)), o.Limits}
	}
	options := []volcano.Option{volcano.WithLimits(o.Limits), volcano.WithClusterLabel(o.Label)}
	if o.Memory != nil {
		options = append(options, volcano.WithStarts())
	}
	return &volcanoStore{volcano.NewObjects(options...), o.Schedulers}
}

// leftOut counts the objects that a version lacks, and names the first of them.
func (f *Follower) leftOut(m *made, view *apportionv1.SnapshotView) {
	const named = 10
	for _, kind := range view.GetKinds() {
		kind.LeftOutCount = m.leftOut[f.resources[kind.GetResource()].Kind]
		f.metrics.leftOut.WithLabelValues(kind.GetResource()).Set(float64(kind.GetLeftOutCount()))
	}
	for _, l := range m.snapshot.GetLeftOuts() {
		if l.GetCause() == apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID && len(view.GetLeftOuts()) < named {
			view.LeftOuts = append(view.LeftOuts, l)
		}
	}
}

// tellFaults logs once why an object is left out, or why no version can be built.
func (f *Follower) tellFaults(ctx context.Context, of, fault string) {
	f.mutex.Lock()
	before := f.faults
	f.faults = fault
	f.mutex.Unlock()
	if fault != before && fault != "" {
		f.options.Logger.WarnContext(ctx, "the snapshot of the followed cluster is inconsistent", "of", of, "error", fault)
	}
}

// tell logs that a kind can be read, or no longer. It logs once for all kinds that the API server is away, and once that it is back.
func (f *Follower) tell(resource, fault string, away bool) {
	f.mutex.Lock()
	before, was := len(f.away), f.away[resource]
	if away {
		f.away[resource] = true
	} else {
		delete(f.away, resource)
	}
	after := len(f.away)
	f.mutex.Unlock()
	switch {
	case away && before == 0:
		f.options.Logger.Warn("the cluster cannot be followed now", "error", fault)
	case away:
	case fault != "":
		f.options.Logger.Warn("cannot follow a kind of objects", "resource", resource, "error", fault)
	case was && after > 0:
	case was:
		f.options.Logger.Info("the cluster is followed again")
	default:
		f.options.Logger.Info("following", "resource", resource)
	}
}

// seen returns the time until which the state of the cluster is known. While a kind is not watched, it is the last response about it.
func (f *Follower) seen(now time.Time) time.Time {
	until := now
	for _, state := range f.states {
		_, read := state.answered()
		if at, standing, _ := state.current(now); !standing && read && at.Before(until) {
			until = at
		}
	}
	return until
}

// view completes the view of the newest version.
func (f *Follower) view(view *apportionv1.SnapshotView) {
	now := time.Now()
	until := now
	if since, behind := f.pace.since(); behind {
		until = since
	}
	faults := map[string]string{}
	view.Complete = !f.stuck.Load()
	for _, state := range f.states {
		_, read := state.answered()
		at, standing, fault := state.current(now)
		if !standing {
			view.Complete = view.GetComplete() && state.judges && !read
			if read && at.Before(until) {
				until = at
			}
		}
		faults[state.resource] = fault
	}
	if len(view.GetKinds()) == 0 {
		for _, state := range f.states {
			view.Kinds = append(view.Kinds, state.view())
		}
	}
	for _, kind := range view.GetKinds() {
		kind.Fault = faults[kind.GetResource()]
		view.Complete = view.GetComplete() && (kind.GetRead() || f.resources[kind.GetResource()].Judges != "")
	}
	view.AsOf = until.UnixNano()
}

// current returns the view of the newest version.
func (f *Follower) current() *apportionv1.SnapshotView {
	view := &apportionv1.SnapshotView{}
	f.view(view)
	return view
}

func (f *Follower) age() time.Duration {
	if f.kept.Bytes() == 0 {
		return -time.Second
	}
	return max(time.Since(time.Unix(0, f.current().GetAsOf())), 0)
}

func (f *Follower) complete() bool { return f.kept.Bytes() > 0 && f.current().GetComplete() }
