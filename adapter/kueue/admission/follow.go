package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// group is the API group of Kueue.
const group = "kueue.x-k8s.io"

// The kinds of which more is kept than the policy reads.
const workloadKind, checkKind = "Workload", "AdmissionCheck"

// kinds are the kinds of Kueue that are followed, by their resources. Cohort is newer than the others, and may be absent.
var kinds = func() map[string]string {
	lists := map[string]string{}
	for _, kind := range kueue.Kinds() {
		if kind.Group != "" {
			lists[kind.List] = kind.Kind
		}
	}
	return lists
}()

// cluster is what is known of Kueue's objects.
type cluster struct {
	log     *slog.Logger
	objects *kueue.Objects
	// changed has a value when something has changed.
	changed chan struct{}

	mutex sync.Mutex
	// changes counts the objects that were set or removed.
	changes uint64
	// missing are the kinds that were not read yet.
	missing map[string]bool
	// held are the objects by kind and NAMESPACE/NAME.
	held map[string]map[string]*objects.Object
	// workloads are by NAMESPACE/NAME.
	workloads map[string]*workload
	// checks are the AdmissionChecks of this controller by name.
	checks map[string]*checkObject
}

func newCluster(log *slog.Logger) *cluster {
	return &cluster{
		log: log, objects: kueue.NewObjects(), changed: make(chan struct{}, 1), missing: map[string]bool{},
		held: map[string]map[string]*objects.Object{}, workloads: map[string]*workload{}, checks: map[string]*checkObject{},
	}
}

// workload is what the controller keeps of a Workload.
type workload struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		Checks     []state `json:"admissionChecks"`
		Conditions []struct {
			Type string `json:"type"`
		} `json:"conditions"`
		RequeueState struct {
			RequeueAt *metav1.Time `json:"requeueAt"`
		} `json:"requeueState"`
	} `json:"status"`
}

// state is the state of an AdmissionCheck of a Workload.
type state struct {
	Name       string      `json:"name"`
	State      string      `json:"state"`
	Message    string      `json:"message"`
	Since      metav1.Time `json:"lastTransitionTime"`
	After      int         `json:"requeueAfterSeconds"`
	RetryCount int         `json:"retryCount"`
}

// checkObject is an AdmissionCheck.
type checkObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		ControllerName string `json:"controllerName"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// wake lets the loop decide again.
func (c *cluster) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// complete reports whether all kinds were read.
func (c *cluster) complete() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.missing) == 0
}

// put sets an object. It ignores a Workload that is older than the one that is known: what this controller wrote counts at once.
func (c *cluster) put(kind, version string, u *unstructured.Unstructured) {
	data, err := u.MarshalJSON()
	if err != nil {
		c.log.Warn("an object is left out", "kind", kind, "name", u.GetName(), "error", err)
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch kind {
	case workloadKind:
		w := &workload{}
		if err := json.Unmarshal(data, w); err != nil {
			c.log.Warn("a Workload is left out", "name", u.GetName(), "error", err)
			return
		}
		known := c.workloads[keyOf(u)]
		if known != nil && known.Metadata.UID == w.Metadata.UID && older(w.Metadata.ResourceVersion, known.Metadata.ResourceVersion) {
			return
		}
		c.workloads[keyOf(u)] = w
	case checkKind:
		check := &checkObject{}
		if err := json.Unmarshal(data, check); err != nil {
			c.log.Warn("an AdmissionCheck is left out", "name", u.GetName(), "error", err)
			return
		}
		delete(c.checks, u.GetName())
		if check.Spec.ControllerName == ControllerName {
			c.checks[u.GetName()] = check
		}
	}
	object, err := c.objects.Read(objects.Kind{Name: kind, Version: version}, data)
	if err != nil {
		c.log.Warn("an object is left out", "kind", kind, "name", u.GetName(), "error", err)
		return
	}
	if c.held[kind] == nil {
		c.held[kind] = map[string]*objects.Object{}
	}
	c.held[kind][keyOf(u)] = object
	c.objects.Put(object)
	c.changes++
	c.wake()
}

func keyOf(u *unstructured.Unstructured) string { return u.GetNamespace() + "/" + u.GetName() }

// older reports whether a resource version is before another one; versions that are not numbers are not compared.
func older(version, than string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(than, 10, 64)
	return errA == nil && errB == nil && a < b
}

func (c *cluster) remove(kind, key string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	object := c.held[kind][key]
	if object == nil {
		return
	}
	delete(c.held[kind], key)
	c.objects.Remove(object)
	c.changes++
	switch kind {
	case workloadKind:
		delete(c.workloads, key)
	case checkKind:
		delete(c.checks, object.Name)
	}
	c.wake()
}

// replace makes these the objects of a kind: those that are not among them have gone while they were not watched.
func (c *cluster) replace(kind, version string, list []any) {
	now := map[string]bool{}
	for _, object := range list {
		if u, ok := object.(*unstructured.Unstructured); ok {
			now[keyOf(u)] = true
			c.put(kind, version, u)
		}
	}
	c.mutex.Lock()
	var gone []string
	for key := range c.held[kind] {
		if !now[key] {
			gone = append(gone, key)
		}
	}
	delete(c.missing, kind)
	c.mutex.Unlock()
	for _, key := range gone {
		c.remove(kind, key)
	}
	c.wake()
}

// moment is the cluster at one time.
type moment struct {
	snapshot *apportionv1.Snapshot
	// workloads and checks are what is kept of the Workloads and AdmissionChecks.
	workloads map[string]*workload
	checks    map[string]*checkObject
	// changes is that of the cluster.
	changes uint64
	// until is when Kueue may give quota to a Workload again that waits for a time; zero: to none.
	until time.Time
}

// at returns the cluster at a time.
func (c *cluster) at(now time.Time) *moment {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	m := &moment{
		snapshot: c.objects.Cluster(now).Snapshot, workloads: maps.Clone(c.workloads), checks: maps.Clone(c.checks), changes: c.changes,
	}
	for _, w := range m.workloads {
		if again := w.Status.RequeueState.RequeueAt; again != nil && again.After(now) {
			m.until = earlier(m.until, again.Time)
		}
	}
	return m
}

// earlier returns the earlier one of two times, where zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// same reports whether nothing was set or removed since a moment.
func (c *cluster) same(m *moment) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.changes == m.changes
}

// kindStore takes what a reflector reads of a kind.
type kindStore struct {
	*cluster

	kind, version string
}

// Add sets an object.
func (s kindStore) Add(object any) error {
	if u, ok := object.(*unstructured.Unstructured); ok && !s.knows(u) {
		s.put(s.kind, s.version, u)
	}
	return nil
}

// knows reports whether a Workload is known in the version that was read: the answer to a write has it before the watch.
func (s kindStore) knows(u *unstructured.Unstructured) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	known := s.workloads[keyOf(u)]
	return s.kind == workloadKind && known != nil && known.Metadata.UID == u.GetUID() && u.GetResourceVersion() != "" &&
		known.Metadata.ResourceVersion == u.GetResourceVersion()
}

// Update sets an object.
func (s kindStore) Update(object any) error { return s.Add(object) }

// Delete removes an object.
func (s kindStore) Delete(object any) error {
	if u, ok := object.(*unstructured.Unstructured); ok {
		s.remove(s.kind, keyOf(u))
	}
	return nil
}

// Replace makes these the objects of the kind.
func (s kindStore) Replace(list []any, _ string) error {
	s.replace(s.kind, s.version, list)
	return nil
}

// Resync does nothing: no derived state can be lost.
func (s kindStore) Resync() error { return nil }

// served returns the newest version of Kueue's API that is served, and which of kinds it has.
func served(from discovery.DiscoveryInterface) (version string, resources []string, err error) {
	for _, version := range []string{"v1beta2", "v1beta1"} {
		list, err := from.ServerResourcesForGroupVersion(group + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		for i := range list.APIResources {
			if _, followed := kinds[list.APIResources[i].Name]; followed {
				resources = append(resources, list.APIResources[i].Name)
			}
		}
		return version, resources, nil
	}
	return "", nil, fmt.Errorf("the cluster has no API group %s: is Kueue installed?", group)
}

// follow keeps the cluster as the API server says, until ctx ends.
func (c *cluster) follow(ctx context.Context, from dynamic.Interface, version string, resources []string) {
	lists := map[string]schema.GroupVersionResource{"Namespace": {Version: "v1", Resource: "namespaces"}}
	for _, resource := range resources {
		lists[kinds[resource]] = schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	c.mutex.Lock()
	for kind := range lists {
		c.missing[kind] = true
	}
	c.mutex.Unlock()
	var following sync.WaitGroup
	for kind, of := range lists {
		objects := from.Resource(of)
		list := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return objects.Watch(ctx, o)
			},
		}
		reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(list, from), &unstructured.Unstructured{},
			kindStore{c, kind, of.GroupVersion().String()}, cache.ReflectorOptions{Name: of.Resource, TypeDescription: of.String()})
		following.Go(func() { reflector.RunWithContext(ctx) })
	}
	following.Wait()
}
