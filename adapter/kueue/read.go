// Package kueue reads the objects of a cluster with Kueue into a snapshot for the policy `kueue`: ClusterQueue, LocalQueue, Cohort,
// ResourceFlavor, AdmissionCheck and Workload of kueue.x-k8s.io/v1beta1 and v1beta2 (Cohort also of v1alpha1), and Namespace. Topology and
// WorkloadPriorityClass are known and not needed: a workload has the priority of its class, and placement by topology is not judged.
//
// Objects of other kinds are counted, not read. Errors name the source, the object and the path of the field.
package kueue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire"
)

// Cluster is the snapshot of a cluster's objects.
type Cluster struct {
	// Snapshot has the queues and workloads by name.
	Snapshot *apportionv1.Snapshot
	// Unread counts the objects of kinds that are not read, by kind with its apiVersion.
	Unread map[string]int
	// Faulty are the objects that are left out because they are invalid, with LeaveOutFaulty. The snapshot lists the first of them.
	Faulty []Faulty
	// HasWorkloads reports whether a workload was read, or a list of workloads without any.
	HasWorkloads bool
	// WithoutNodes are the flavors whose labels no node has; empty if no nodes are among the objects.
	WithoutNodes []string
}

// Option changes how objects are read.
type Option func(*reader)

// LeaveOutFaulty leaves invalid objects out and lists them, where otherwise they are an error.
func LeaveOutFaulty() Option { return func(r *reader) { r.lenient = true } }

// WithLimits are those of the server for which the snapshot is made: an object that exceeds them by itself is invalid.
func WithLimits(l wire.Limits) Option { return func(r *reader) { r.limits = l } }

// WithClusterLabel sets the snapshot's label, which has no effect on decisions.
func WithClusterLabel(label string) Option { return func(r *reader) { r.label = label } }

// maxFaults bounds how many faults an error lists.
const maxFaults = 50

// group is the API group of Kueue's kinds.
const group = "kueue.x-k8s.io/"

// header is what all objects have.
type header struct {
	Version  string   `json:"apiVersion"`
	Kind     string   `json:"kind"`
	Metadata metadata `json:"metadata"`
	// Items are those of a list.
	Items []json.RawMessage `json:"items"`
}

type metadata struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Created         time.Time         `json:"creationTimestamp"`
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
	Owners          []owner           `json:"ownerReferences"`
}

// key is the name, with the namespace if there is one.
func (m *metadata) key() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

// owner is an object that owns another one.
type owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// reader collects objects.
type reader struct {
	now     time.Time
	label   string
	lenient bool
	limits  wire.Limits
	// decoder decodes the objects that are judged alone.
	decoder wire.Decoder
	faulty  []Faulty
	source  string
	// object names the object that is read.
	object string
	faults []string
	total  int
	unread map[string]int
	// listed are the kinds of which all objects were given, if only none; unlisted those that could not be read, and why.
	listed   map[string]bool
	unlisted map[string]string
	seen     map[string]bool
	// past has the finished workloads; nil if they are not read.
	past map[string]*past

	entities
}

// kinds read one object each, by kind and the versions of Kueue's group; "" is the core group.
var kinds = map[string]struct {
	versions []string
	read     func(*reader, header, []byte)
}{
	namespaceKind:  {[]string{"v1"}, (*reader).readNamespace},
	nodeKind:       {[]string{"v1"}, (*reader).readNode},
	flavorKind:     {[]string{group + "v1beta1", group + "v1beta2"}, (*reader).readFlavor},
	cohortKind:     {[]string{group + "v1alpha1", group + "v1beta1", group + "v1beta2"}, (*reader).readCohort},
	queueKind:      {[]string{group + "v1beta1", group + "v1beta2"}, (*reader).readQueue},
	localQueueKind: {[]string{group + "v1beta1", group + "v1beta2"}, (*reader).readLocalQueue},
	checkKind:      {[]string{group + "v1beta1", group + "v1beta2"}, (*reader).readCheck},
	workloadKind:   {[]string{group + "v1beta1", group + "v1beta2"}, (*reader).readWorkload},
	"Topology":     {[]string{group + "v1alpha1", group + "v1beta1", group + "v1beta2"}, (*reader).readNothing},
	"WorkloadPriorityClass": {
		[]string{group + "v1beta1", group + "v1beta2"}, (*reader).readNothing,
	},
}

func (r *reader) readNothing(header, []byte) {}

func newReader(now time.Time, options []Option) *reader {
	r := &reader{
		now: now, unread: map[string]int{}, listed: map[string]bool{}, unlisted: map[string]string{}, seen: map[string]bool{},
		entities: newEntities(),
	}
	for _, option := range options {
		option(r)
	}
	return r
}

// Read reads all sources at a time, which decides what is in the future. It returns an error that lists what is wrong.
func Read(sources []objects.Source, now time.Time, options ...Option) (*Cluster, error) {
	r := newReader(now, options)
	for _, s := range sources {
		r.source, r.object = s.Name, ""
		r.documents(s.Data)
	}
	cluster := r.cluster()
	if r.total > 0 {
		if r.total > len(r.faults) {
			r.faults = append(r.faults, fmt.Sprintf("%d faults in all", r.total))
		}
		return nil, errors.New(strings.Join(r.faults, "\n"))
	}
	return cluster, nil
}

// documents reads the documents of a source.
func (r *reader) documents(data []byte) {
	const lookahead = 4096
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), lookahead); ; {
		var raw json.RawMessage
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.fault("", "%v", err)
			return
		case len(raw) > 0 && !bytes.Equal(raw, []byte("null")):
			r.read(raw)
		}
	}
}

// read reads an object, or those of a list.
func (r *reader) read(raw []byte) {
	var h header
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &h.Items); err == nil {
			for _, item := range h.Items {
				r.read(item)
			}
			return
		}
	}
	r.object = ""
	if !r.decode(raw, &h) {
		return
	}
	if h.Items != nil || strings.HasSuffix(h.Kind, "List") {
		for _, item := range h.Items {
			r.read(item)
		}
		if of := strings.TrimSuffix(h.Kind, "List"); of != "" && of != h.Kind && len(h.Items) == 0 {
			r.listed[of] = true
		}
		return
	}
	r.single(h, raw)
}

// single reads an object that is no list.
func (r *reader) single(h header, raw []byte) {
	kind, ok := kinds[h.Kind]
	switch {
	case ok && slices.Contains(kind.versions, h.Version):
	case ok && strings.HasPrefix(h.Version, group):
		r.object = h.Kind + " " + h.Metadata.Name
		r.fault("apiVersion", "%q is not read; there are %s", h.Version, strings.Join(kind.versions, " and "))
		return
	default:
		r.unread[strings.TrimPrefix(h.Version+" "+h.Kind, " ")]++
		return
	}
	key := h.Metadata.key()
	r.object = h.Kind + " " + key
	before := r.total
	switch {
	case h.Metadata.Name == "":
		r.fault("metadata.name", "a name is needed")
	case r.seen[r.object]:
		r.fault("", "is there twice")
	default:
		r.seen[r.object] = true
		if kind.read(r, h, raw); r.total == before {
			r.refuse(&h, r.get(h.Kind, key))
		}
		if r.lenient && r.total > before {
			r.leaveOut(&h, r.total-before)
		}
	}
}

// decode decodes JSON, and reports whether it succeeded.
func (r *reader) decode(raw []byte, into any) bool {
	err := json.Unmarshal(raw, into)
	if err == nil {
		return true
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		r.fault(wrong.Field, "%s is not possible here", wrong.Value)
	} else {
		r.fault("", "%v", err)
	}
	return false
}

// fault notes what is wrong at a path of the object that is read.
func (r *reader) fault(path, format string, args ...any) {
	if r.total++; len(r.faults) >= maxFaults {
		return
	}
	text := r.shortened(fmt.Sprintf(format, args...))
	if path != "" {
		text = r.shortened(path) + ": " + text
	}
	r.faults = append(r.faults, r.prefix()+text)
}

// prefix begins the faults of the object that is read.
func (r *reader) prefix() string {
	var prefix strings.Builder
	for _, part := range []string{r.source, r.shortened(r.object)} {
		if part != "" {
			prefix.WriteString(part + ": ")
		}
	}
	return prefix.String()
}

// byName returns the values of a map in the order of the keys.
func byName[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[key])
	}
	return out
}

// Recognizes reports whether a text is likely to hold objects of Kueue.
func Recognizes(data []byte) bool { return bytes.Contains(data, []byte(group)) }
