package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/apportion/apportion/adapter/objects"
)

// item is an object in the form of client-go's reflector. It contains only the fields on which decisions depend.
type item struct{ *objects.Object }

// GetObjectKind returns no kind, because each reflector has one kind.
func (i *item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the object itself, which never changes.
func (i *item) DeepCopyObject() runtime.Object { return i }

// GetObjectMeta returns the metadata that the reflector reads.
func (i *item) GetObjectMeta() metav1.Object {
	m := &metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name, ResourceVersion: i.ResourceVersion}
	if i.Synced {
		m.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return m
}

// itemList is a page of a list.
type itemList struct {
	metav1.ListMeta

	Items []runtime.Object
}

// GetObjectKind returns no kind.
func (l *itemList) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns a list of the same objects.
func (l *itemList) DeepCopyObject() runtime.Object {
	return &itemList{ListMeta: l.ListMeta, Items: append([]runtime.Object(nil), l.Items...)}
}

// source lists and watches the objects of one kind, and reports the results to its kindState.
type source struct {
	client *rest.RESTClient
	// paths are the lists of the versions that may be served, the newest first; the one at serving is read.
	paths   []string
	serving atomic.Int32
	kind    objects.Kind
	objects store
	state   *kindState
	// pageTime is how long a page of a list may take.
	pageTime time.Duration
	// listed counts the objects of the list under way, of which most may be read. The reflector reads one list at a time.
	listed, most int
}

// path is the list that is read now.
func (s *source) path() string { return s.paths[s.serving.Load()] }

// next turns to the next version if the one that is read is not served. It reports whether there is one that was not tried; otherwise the
// newest is tried again.
func (s *source) next(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	at := (int(s.serving.Load()) + 1) % len(s.paths)
	s.serving.Store(int32(at))
	return at > 0
}

// request is a GET of the kind's objects.
func (s *source) request(options *metav1.ListOptions) *rest.Request {
	r := s.client.Get().AbsPath(s.path()).SetHeader("Accept", "application/json")
	for name, value := range map[string]string{
		"resourceVersion": options.ResourceVersion, "resourceVersionMatch": string(options.ResourceVersionMatch),
		"continue": options.Continue,
	} {
		if value != "" {
			r.Param(name, value)
		}
	}
	if options.Limit > 0 {
		r.Param("limit", strconv.FormatInt(options.Limit, 10))
	}
	if options.TimeoutSeconds != nil {
		r.Param("timeoutSeconds", strconv.FormatInt(*options.TimeoutSeconds, 10))
	}
	if options.AllowWatchBookmarks {
		r.Param("allowWatchBookmarks", "true")
	}
	if options.SendInitialEvents != nil {
		r.Param("sendInitialEvents", strconv.FormatBool(*options.SendInitialEvents))
	}
	return r
}

const (
	// pageTime is how long a page of a list may take, and maxObjects the number of objects of a kind that are read: etcd holds at most
	// 8 GB, of which an object takes a kilobyte, and a list whose pages never end would fill the memory.
	pageTime, maxObjects = time.Minute, 4 << 20
)

var errLatePage = errors.New("a page of the list did not arrive in time")

// fail records why a request failed, unless the follower ends.
func (s *source) fail(ctx context.Context, err error) error {
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		s.state.failed(err)
	}
	return err
}

// List reads a page of the newest state. The reflector requests a state that is at least as new as its own. With pages, an API server would
// return exactly that state, which may be too old for a watch, or everything in one piece from its cache.
func (s *source) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Limit > 0 && options.Continue == "" {
		options.ResourceVersion = ""
	}
	s.state.listing()
	ctx, cancel := context.WithTimeoutCause(ctx, s.pageTime, errLatePage)
	defer cancel()
	result := s.request(&options).Do(ctx)
	data, err := result.Raw()
	if err != nil {
		err = result.Error() // What the API server says, decoded.
		if less, again := fewer(err, options.Limit); again {
			options.Limit = less
			return s.List(ctx, options)
		}
		if s.next(err) {
			options.Continue = ""
			return s.List(ctx, options)
		}
		if late := context.Cause(ctx); errors.Is(late, errLatePage) {
			err = late
		}
		return nil, s.fail(ctx, err)
	}
	read, next, version, err := s.objects.ReadList(s.kind, data)
	if options.Continue == "" {
		s.listed = 0
	}
	if s.listed += len(read); err == nil && s.listed > s.most {
		err = fmt.Errorf("the API server lists more than %d objects", s.most)
	}
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	list := &itemList{ListMeta: metav1.ListMeta{Continue: next, ResourceVersion: version}}
	for _, o := range read {
		list.Items = append(list.Items, &item{o})
	}
	return list, nil
}

// Watch begins a watch.
func (s *source) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	watching, cancel := context.WithCancel(ctx)
	stream, err := s.request(&options).Param("watch", "true").Stream(watching)
	if err != nil {
		cancel()
		if s.next(err) {
			return s.Watch(ctx, options)
		}
		return nil, s.fail(ctx, err)
	}
	s.state.opened()
	body := &bounded{stream, maxEvent, &sizeError{"one event of " + s.path(), maxEvent}}
	decoder := &decoder{json: json.NewDecoder(body), stream: body, source: s}
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
	w := &watched{Interface: watch.NewStreamWatcher(decoder, reporter)}
	w.end = sync.OnceFunc(func() {
		cancel()
		s.state.ended()
	})
	return w, nil
}

// watched is a watch that reports its end. The reflector stops every watch, even one that has ended.
type watched struct {
	watch.Interface

	end func()
}

// Stop ends the watch.
func (w *watched) Stop() {
	w.Interface.Stop()
	w.end()
}

// decoder reads the events of a watch.
type decoder struct {
	json   *json.Decoder
	stream *bounded
	source *source
}

// Decode reads an event.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	d.stream.left = maxEvent
	if err := d.json.Decode(&event); err != nil {
		if garbage(err) {
			d.source.state.failed(err)
		}
		return "", nil, err
	}
	d.source.state.countEvent(event.Type)
	switch event.Type {
	case watch.Error:
		status := &metav1.Status{}
		err := json.Unmarshal(event.Object, status)
		d.source.state.failed(apierrors.FromObject(status))
		return watch.Error, status, err
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		object, err := d.source.objects.Read(d.source.kind, event.Object)
		if err != nil {
			d.source.state.failed(err)
			return event.Type, nil, err
		}
		return event.Type, &item{object}, nil
	}
	err := fmt.Errorf("not an event of a watch: %q", event.Type)
	d.source.state.failed(err)
	return "", nil, err
}

// garbage reports whether an error is due to what the API server sent, not to the end of the connection.
func garbage(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, form := errors.AsType[*json.UnmarshalTypeError](err)
	_, large := errors.AsType[*sizeError](err)
	return syntax || form || large
}

// Close ends the stream.
func (d *decoder) Close() { _ = d.stream.Close() }
