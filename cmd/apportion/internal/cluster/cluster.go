// Package cluster reads the objects of a live cluster from its API server.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/internal/text"
)

// Flags select the cluster and the user, as kubectl's flags of these names do.
type Flags struct {
	// On is true if the cluster is read.
	On bool
	// Configuration is true if the ConfigMap of Volcano's scheduler is read too.
	Configuration bool

	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	flag      *pflag.Flag
	// chunk is the number of objects in one page; 0: all.
	chunk int
}

// Register adds the flags.
func (f *Flags) Register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.On, "cluster", false, "use the live cluster of the kubeconfig, instead of manifests")
	f.flag = flags.Lookup("cluster")
	flags.IntVar(&f.chunk, "chunk-size", chunkSize, "number of objects per request to the API server; 0: all at once")
	f.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&f.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use for CLI requests.")
	all := clientcmd.RecommendedConfigOverrideFlags("")
	clientcmd.BindOverrideFlags(&f.overrides, flags, clientcmd.ConfigOverrideFlags{
		CurrentContext: all.CurrentContext, Timeout: all.Timeout, AuthOverrideFlags: clientcmd.AuthOverrideFlags{
			Impersonate: all.AuthOverrideFlags.Impersonate, ImpersonateGroups: all.AuthOverrideFlags.ImpersonateGroups,
			ImpersonateUID: all.AuthOverrideFlags.ImpersonateUID,
		},
	})
}

// Named reports whether the user asked for the cluster. It is read by default in kubectl's plugin.
func (f *Flags) Named() bool { return f.On && f.flag.Changed }

// chunkSize is kubectl's.
const chunkSize = 500

// Cluster contains the objects of a cluster.
type Cluster struct {
	Sources []objects.Source
	// Unread contains a sentence for each list that could not be read. The answers lack its objects.
	Unread []string
	// Missing are the kinds that the user may not list, and why, without which most answers are not known.
	Missing map[string]string
	// Volcano and Kueue say whose kinds the cluster has.
	Volcano, Kueue bool
}

// Read lists the objects that decisions depend on, page by page and all kinds concurrently. Kinds that the user may not list are left out
// and reported; for Volcano's own kinds this is an error. As with kubectl, the lists are from slightly different moments.
func (f *Flags) Read(ctx context.Context) (*Cluster, error) {
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	namespace, _, err := f.loader().Namespace()
	if err != nil {
		return nil, err
	}
	r := &reader{client: client, namespace: namespace, chunk: f.chunk}
	found := r.discover(ctx)
	work, ctx := errgroup.WithContext(ctx)
	for name, list := range followed {
		if _, twice := found.kueue[name]; !twice && (found.volcano || name == "nodes") {
			work.Go(func() error { return r.kind(ctx, name, list) })
		}
	}
	for name, list := range found.kueue {
		list.Needed = list.Needed && !found.volcano
		work.Go(func() error { return r.kind(ctx, name, list) })
	}
	if f.Configuration && found.volcano {
		work.Go(func() error { return r.configMap(ctx) })
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	c := r.cluster()
	c.Volcano, c.Kueue = found.volcano, len(found.kueue) > 0
	return c, nil
}

// loader returns what the kubeconfig says, and the flags instead of it.
func (f *Flags) loader() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, &f.overrides)
}

// client returns a client of the API server that the flags name.
func (f *Flags) client() (*rest.RESTClient, error) {
	config, err := f.loader().ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientOf(config)
}

// silence ends the logging of the client library, once and before its first client: its goroutines read the logger without a lock, and some
// of them outlive the client. What it would log is returned as an error or reported by the states of the kinds.
var silence = sync.OnceFunc(func() { klog.SetLogger(klog.Logger{}) })

// clientOf returns a client of an API server that sends and receives bytes as they are.
func clientOf(config *rest.Config) (*rest.RESTClient, error) {
	silence()
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	// Only errors are decoded, of the kind Status.
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	config.QPS, config.Burst = -1, 0 // The API server's own priority and fairness bounds the requests.
	config.UserAgent = "apportion"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounding{next} })
	sender, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	sender.Transport = leaving{sender.Transport}
	return rest.RESTClientForConfigAndClient(config, sender)
}

// reader collects the pages of all lists.
type reader struct {
	client    *rest.RESTClient
	namespace string
	chunk     int

	mu     sync.Mutex
	pages  map[string][]objects.Source
	unread []string
	// missing is Cluster.Missing.
	missing map[string]string
	// unjudged are the lists that could not be read, by what is not judged without them.
	unjudged map[string][]string
	// configuration is the ConfigMap of Volcano's scheduler, if it was read.
	configuration []objects.Source
}

// cluster returns the pages in the order of the kinds, and the ConfigMap.
func (r *reader) cluster() *Cluster {
	for _, what := range slices.Sorted(maps.Keys(r.unjudged)) {
		lists := r.unjudged[what]
		slices.Sort(lists)
		r.note(fmt.Sprintf("%s may not be read, so some %s are not judged", text.Few(lists), what))
	}
	c := &Cluster{Unread: r.unread, Missing: r.missing}
	for _, name := range order {
		c.Sources = append(c.Sources, r.pages[name]...)
	}
	c.Sources = append(c.Sources, r.configuration...)
	return c
}

// configMap reads the ConfigMap of Volcano's scheduler, and its Deployment. That the ConfigMap is absent is no fault, and that the user may
// not read it is noted.
func (r *reader) configMap(ctx context.Context) error {
	objects, err := configurationOf(ctx, r.client)
	switch {
	case err == nil:
		r.configuration = sourcesOf("the cluster", objects)
		return nil
	case apierrors.IsForbidden(err):
		r.note("the configuration of Volcano's scheduler may not be read, and its default is used (--policy names another): " + reason(err))
		return nil
	}
	return err
}

// kind reads one list. A list that the user may not read is tried in the namespace of the kubeconfig, if it has any.
func (r *reader) kind(ctx context.Context, name string, list objects.Resource) error {
	path := list.Path(list.Versions[0])
	err := r.list(ctx, name, path)
	if apierrors.IsForbidden(err) && list.Namespaced {
		if err = r.list(ctx, name, inNamespace(path, r.namespace)); err == nil {
			if list.Judges == "" {
				r.note(fmt.Sprintf("only the %s of namespace %s may be read: others are left out of all sums", name, r.namespace))
			}
			return nil
		}
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && list.Group == volcanoGroup:
		return fmt.Errorf("the cluster has no %s of Volcano (%s): is Volcano installed?", name, groupVersion)
	case apierrors.IsNotFound(err) && list.Judges != "":
		return nil
	case list.Judges != "" && !unreachable(err) && ctx.Err() == nil:
		r.unjudge(list.Judges, name)
		return nil
	case apierrors.IsForbidden(err) && !list.Needed:
		r.note(fmt.Sprintf("%s may not be read and are left out: %s", name, reason(err)))
		if list.Decides {
			r.miss(list.Kind, reason(err))
		}
		return nil
	}
	return failure(name, err)
}

// failure returns the error of a request for objects of a kind that cannot be read.
func failure(name string, err error) error {
	if unreachable(err) || failed(err) {
		return fmt.Errorf("%w%s", ErrUnavailable, reason(err))
	}
	return fmt.Errorf("%s: %s", name, reason(err))
}

// ErrUnavailable is wrapped by errors of an API server that cannot be reached or fails. It has no text of its own.
var ErrUnavailable = errors.New("")

// unreachable reports whether no response of the API server arrived.
func unreachable(err error) bool {
	call, ok := errors.AsType[*url.Error](err)
	if !ok {
		return false
	}
	_, large := errors.AsType[*sizeError](err)
	return !large && !errors.Is(call, context.Canceled)
}

// failed reports whether the API server answered that it cannot answer now.
func failed(err error) bool {
	said, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && (said.ErrStatus.Code >= http.StatusInternalServerError || said.ErrStatus.Code == http.StatusTooManyRequests)
}

func (r *reader) note(sentence string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread = append(r.unread, sentence)
}

// miss notes that a kind may not be read.
func (r *reader) miss(kind, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing == nil {
		r.missing = map[string]string{}
	}
	r.missing[kind] = why
}

// unjudge notes that a list could not be read, and what is not judged without it.
func (r *reader) unjudge(what, list string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unjudged == nil {
		r.unjudged = map[string][]string{}
	}
	r.unjudged[what] = append(r.unjudged[what], list)
}

// reason returns the message of the API server, or why the request failed.
func reason(err error) string {
	if said, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return said.ErrStatus.Message
	}
	if large, ok := errors.AsType[*sizeError](err); ok {
		return large.Error()
	}
	if call, ok := errors.AsType[*url.Error](err); ok && unreachable(err) {
		return "the API server cannot be reached: " + call.Err.Error()
	}
	return err.Error()
}

// list reads all pages of a list. A list whose rest has expired is read again from its beginning, in one page.
func (r *reader) list(ctx context.Context, name, path string) error {
	var pages []objects.Source
	size, next := r.chunk, ""
	for {
		request := r.client.Get().AbsPath(path).SetHeader("Accept", "application/json")
		if size > 0 {
			request.Param("limit", strconv.Itoa(size))
		}
		if next != "" {
			request.Param("continue", next)
		}
		result := request.Do(ctx)
		data, err := result.Raw()
		if err != nil {
			err = result.Error() // What the API server says, decoded.
		}
		if less, again := fewer(err, int64(size)); again {
			size = int(less)
			continue
		}
		if expired(err) && next != "" {
			pages, size, next = nil, 0, ""
			continue
		}
		if err != nil {
			return err
		}
		page, err := objects.ReadPage(fmt.Sprintf("%s, page %d", name, len(pages)+1), data, pageShape)
		if err != nil {
			return err
		}
		pages = append(pages, page.Source)
		if next = page.Continue; next == "" {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pages == nil {
		r.pages = map[string][]objects.Source{}
	}
	r.pages[name] = pages
	return nil
}

// expired reports whether the API server no longer has the rest of a list.
func expired(err error) bool {
	said, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && said.ErrStatus.Code == http.StatusGone
}
