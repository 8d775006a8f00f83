package volcano

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire"
)

// Cluster is the snapshot of a cluster's objects, with warnings and positions.
type Cluster struct {
	Snapshot *apportionv1.Snapshot
	// Warnings name what was left out.
	Warnings []*apportionv1.Warning
	// Empty names the sources without objects.
	Empty []string
	// Nothing reports that no source but those of the background has an object that is read.
	Nothing bool
	// Faulty lists the objects that are left out because they are invalid, or because the snapshot has no room for them.
	Faulty []*Faulty
	// Unread counts the objects of kinds that are not read, by kind with its apiVersion.
	Unread map[string]int
	// HasPods reports whether a pod was read, or a list of pods without any.
	HasPods bool
	// Started says for each job of the snapshot when the first of its pods started that hold resources, in Unix nanoseconds; 0: not known.
	Started []int64

	// queues, jobs and nodes are the positions in the input of the snapshot's, by index.
	queues, jobs, nodes []objects.Origin
	// placed has the placements of the tasks of each job of the snapshot, by group; candidates are its nodes.
	placed     [][][]placed
	candidates []nodeCandidate
}

// Fault returns an error that lists the problems of the objects that are left out, of one file or of all; nil if there are none.
func (c *Cluster) Fault(file string) error {
	var all objects.Problems
	for _, f := range c.Faulty {
		if file != "" && f.at.Doc.Name != file {
			continue
		}
		all.AppendError(f.Problems)
	}
	return all.Err()
}

// Place returns where a queue, a job or a node of the snapshot was written, as `file:line`, given a path of a warning or of a violation
// such as `snapshot.queues[3].capability`. It returns "" for a path that names none of them. The sources stay in memory as long as the
// Cluster does.
func (c *Cluster) Place(path string) string {
	kind, index, ok := entityOf(path)
	if !ok {
		return ""
	}
	list := map[string][]objects.Origin{"queues": c.queues, "jobs": c.jobs, "nodes": c.nodes}[kind]
	if index >= len(list) {
		return ""
	}
	return list[index].String()
}

// entityPath matches paths of an entity of a snapshot.
var entityPath = regexp.MustCompile(`^(?:open\.)?(?:input\.)?snapshot\.(queues|jobs|nodes)\[(\d{1,9})\]`)

// entityOf returns which list of a snapshot a path is about, and the position in it.
func entityOf(path string) (kind string, index int, ok bool) {
	match := entityPath.FindStringSubmatch(path)
	if match == nil {
		return "", 0, false
	}
	index, err := strconv.Atoi(match[2])
	return match[1], index, err == nil
}

// Option sets a value that the objects of a cluster do not contain.
type Option func(*reader)

// WithAsOf sets the time of all decisions. Default: the epoch, at which no cooldown has ended yet.
func WithAsOf(now time.Time) Option {
	return func(r *reader) { r.asOf = now.UnixNano() }
}

// WithClusterLabel sets the snapshot's label, which has no effect on decisions.
func WithClusterLabel(label string) Option {
	return func(r *reader) { r.label = label }
}

// WithProgress calls progress at intervals with the number of bytes read so far, of all sources together.
func WithProgress(progress func(read int)) Option {
	return func(r *reader) { r.progress = progress }
}

// LeaveOutFaulty leaves out the objects that are invalid, and those for which the snapshot has no room. Without it they are an error.
func LeaveOutFaulty() Option { return func(r *reader) { r.lenient = true } }

// WithLimits sets the limits of the server that the snapshot is for. Default: those that every server has.
func WithLimits(limits wire.Limits) Option { return func(r *reader) { r.limits = limits } }

// WithStarts states when each pod was scheduled that holds resources, from which a ledger of usage counts. Without it only pods with a
// cooldown say so.
func WithStarts() Option { return func(r *reader) { r.starts = true } }

// AsScheduler reads queues as Volcano's scheduler has them: one without a state, which its controller has not opened yet, is in none of its
// states and admits nothing. It is for comparisons with what Volcano decided.
func AsScheduler() Option { return func(r *reader) { r.unopened = true } }

// WithQueueDefaults gives queues without a weight the weight 1, as a cluster does: files in a repository state none. Without it such queues
// have the weight 0.
func WithQueueDefaults() Option { return func(r *reader) { r.defaults = true } }

// WithMemory bounds what the jobs of the snapshot take in the memory of a server, in bytes, as wire.Size.Memory estimates it. Default:
// unlimited.
func WithMemory(bytes int64) Option { return func(r *reader) { r.memory = bytes } }

// defaultScheduler is the name of Volcano's scheduler unless its configuration gives another.
const defaultScheduler = "volcano"

// WithSchedulers names the schedulers whose pods are considered. Default: volcano. A waiting pod of another one is left out.
func WithSchedulers(names ...string) Option {
	return func(r *reader) { r.schedulers = names }
}

// Schedulers returns the names of the schedulers whose pods are considered with these options, at least one.
func Schedulers(opts ...Option) []string {
	if names := newReader(opts).schedulers; len(names) > 0 {
		return names
	}
	return []string{defaultScheduler}
}

// ReadManifests reads the objects in any number of files, as `kubectl get … -o yaml` and `-o json` print them: lists, single objects,
// streams of documents, in any order. Queue, PodGroup, Pod, Node, PriorityClass and Namespace are read, and those of volumes:
// PersistentVolumeClaim, PersistentVolume, StorageClass, CSIDriver, CSINode and CSIStorageCapacity. For each other kind one warning says
// that it was left out. An error is an *Error.
func ReadManifests(sources []objects.Source, opts ...Option) (*Cluster, error) {
	r := newReader(opts)
	r.dump = true
	for _, background := range []bool{false, true} {
		r.background = background
		for _, source := range sources {
			if source.Background != background {
				continue
			}
			before := r.objects
			objects.Each(source, objectShape, &r.Found, r.object)
			if r.objects == before && r.Found.Total == 0 {
				r.empty = append(r.empty, source.Name)
			}
			r.sources += len(source.Data)
		}
	}
	if r.defaults || slices.ContainsFunc(sources, func(s objects.Source) bool { return s.Background }) {
		for _, u := range r.unstated {
			u.fill()
		}
	}
	return r.cluster()
}

// FromObjects reads objects in their JSON form. An error is an *Error, whose files are named by position: `objects[3]`.
func FromObjects(list []json.RawMessage, opts ...Option) (*Cluster, error) {
	r := newReader(opts)
	for i, raw := range list {
		doc := &objects.Document{Name: fmt.Sprintf("objects[%d]", i), Data: raw}
		objects.EachJSON(doc, objectShape, &r.Found, r.object)
	}
	return r.cluster()
}

// reader collects objects, and returns a snapshot of them at the end.
type reader struct {
	asOf  int64
	label string

	objects.Reader
	units      units
	dimensions dimensions
	requests   requests
	// limits are those of the snapshot, memory that of its jobs. A lenient reader leaves out faulty objects; any other fails for them.
	limits  wire.Limits
	memory  int64
	lenient bool
	faulty  []*Faulty
	// clashes are objects of one name in two files, for which a lenient reader fails too.
	clashes objects.Problems
	decoder *wire.Decoder
	// starts: tasks say when they were scheduled.
	starts bool

	// objects counts all objects, empty names the sources without any.
	objects int
	empty   []string
	// progress receives the number of bytes read: sources in earlier sources, and cut in the items of the current one.
	progress     func(read int)
	sources, cut int

	entities
	placements placements
	traits     sharedTraits
	// listed are the kinds of which all objects were given, if only none; unlisted those that could not be read, and why.
	listed   map[string]bool
	unlisted map[string]string
	// dump: the objects are from files, in which a kind may be missing. Other callers give all that there are.
	dump bool
	// claimUsers names a pod on a node that uses a claim, by namespace/claim, and attached lists the claims that pods use by node.
	claimUsers map[string]string
	attached   map[string][]string
	// generation is Objects.generation; 0 if the objects are read only once.
	generation uint64
	// schedulers are the names of the schedulers whose pods are considered.
	schedulers []string
	leftOut    []*apportionv1.LeftOut

	// seen is the position of each object, by kind and name.
	seen map[identity]objects.Origin
	// unread counts the objects of kinds that are not read, by kind.
	unread map[string]int
	// background is true while background sources are read; given are the kinds that other sources hold.
	background bool
	given      map[string]bool
	// unstated are the queues that may replace one of a background source.
	unstated map[string]*unstated
	// defaults: queues without a weight have that of new ones. unopened: queues without a state have none.
	defaults, unopened bool
}

// identity distinguishes objects.
type identity struct{ kind, namespace, name string }

func newReader(opts []Option) *reader {
	r := &reader{
		placements: make(placements), traits: sharedTraits{}, listed: map[string]bool{}, seen: make(map[identity]objects.Origin),
		unread: make(map[string]int), unstated: make(map[string]*unstated),
		given: make(map[string]bool), schedulers: []string{defaultScheduler}, units: make(units), decoder: &wire.Decoder{},
	}
	for _, opt := range opts {
		opt(r)
	}
	return r
}

// read reads one object, and returns its kind and its metadata as far as it has them.
func (r *reader) read(root *objects.Value) (kindName string, m metadata) {
	if root.Type != objects.Map {
		r.Found.Add(r.Doc, root, "not an object of Kubernetes")
		return "", m
	}
	kindName = r.TextAt(root.Field(objects.KindField))
	if kindName == "" {
		r.Found.Add(r.Doc, root, "not an object of Kubernetes: no kind")
		return "", m
	}
	version := r.TextAt(root.Field(objects.VersionField))
	if of, list := strings.CutSuffix(kindName, "List"); list && root.Field(objects.MetadataField).TextOf(objects.NameField) == "" {
		// An empty list: of another one its objects are visited.
		r.listed[of] = true
		return kindName, m
	}
	read := r.readerOf(version, kindName)
	if read == nil {
		r.ignore(version, kindName, root)
		return kindName, m
	}
	m, ok := r.metadata(kindName, root)
	if ok {
		read(m, root)
	}
	return kindName, m
}

// hidden reports whether an object of a background source does not count.
func (r *reader) hidden(key identity) bool {
	if !r.background {
		r.given[key.kind] = true
		return false
	}
	if key.kind == queueKind && (key.name == "root" || key.name == "default") {
		_, seen := r.seen[key]
		return seen
	}
	return r.given[key.kind]
}

// advance reports the progress after root, of doc, has been read.
func (r *reader) advance(doc *objects.Document, root *objects.Value) {
	if r.progress == nil {
		return
	}
	if !doc.Lines {
		r.progress(r.sources + root.At)
		return
	}
	if r.Doc == nil || r.Doc.Name != doc.Name {
		r.cut = 0
	}
	if r.Doc != doc {
		r.cut += len(doc.Data)
	}
	r.progress(r.sources + r.cut)
}

// groups are the API groups of the kinds that are read and not in Kubernetes' core group.
var groups = map[string]string{
	queueKind: volcanoGroup, podGroupKind: volcanoGroup, classKind: priorityGroup, storageKind: storageGroup, driverKind: storageGroup,
	attachKind: storageGroup, capacityKind: storageGroup,
}

// readerOf returns the method that reads a kind, nil if it is not read. Without an apiVersion, the kind decides.
func (r *reader) readerOf(version, kindName string) func(metadata, *objects.Value) {
	if group, grouped := groups[kindName]; version != "" && grouped {
		if of, _, some := strings.Cut(version, "/"); !some || of != group {
			return nil
		}
	} else if version != "" && version != coreVersion {
		return nil
	}
	switch kindName {
	case queueKind:
		return r.queue
	case podGroupKind:
		return r.podGroup
	case podKind:
		return r.pod
	case nodeKind:
		return r.node
	case classKind:
		return r.priorityClass
	case namespaceKind:
		return r.namespace
	case claimKind:
		return r.persistentVolumeClaim
	case volumeKind:
		return r.persistentVolume
	case storageKind:
		return r.storageClass
	case driverKind:
		return r.csiDriver
	case attachKind:
		return r.csiNode
	case capacityKind:
		return r.storageCapacity
	}
	return nil
}

// ignore warns of a kind that is not read, once. HeldConfiguration reads the ConfigMap and the Deployment of Volcano's scheduler.
func (r *reader) ignore(version, kindName string, root *objects.Value) {
	name := root.Field(objects.MetadataField).TextOf(objects.NameField)
	if kindName == configMapKind && name == ConfigMapName || kindName == deploymentKind && name == DeploymentName {
		return
	}
	full := kindName
	if version != "" {
		full = version + " " + kindName
	}
	if r.unread[full]++; r.unread[full] > 1 {
		return
	}
	r.Warn(apportionv1.WarningCode_WARNING_CODE_DROPPED, root, "objects of kind %s are not read", full)
}

// metadata holds the fields that are read of every kind.
type metadata struct {
	name, namespace, uid string
	created              int64
	labels, annotations  *objects.Value
	value                *objects.Value
}

// metadata reads an object's metadata. It is false if the object has no name, or if another one of its kind has the same.
func (r *reader) metadata(kindName string, root *objects.Value) (metadata, bool) {
	v := root.Field(objects.MetadataField)
	m := metadata{
		name: r.TextAt(v.Field(objects.NameField)), namespace: r.TextAt(v.Field("namespace")), uid: r.TextAt(v.Field("uid")),
		created: r.MomentAt(v.Field("creationTimestamp")),
		labels:  v.Field("labels"), annotations: v.Field(objects.AnnotationsField), value: v,
	}
	if m.name == "" {
		r.Found.Add(r.Doc, root, "%s without metadata.name", kindName)
		return m, false
	}
	for _, name := range []string{m.name, m.namespace} {
		for _, why := range path.IsValidPathSegmentName(name) {
			r.Found.Add(r.Doc, root, "no name of Kubernetes: %q %s", r.shortened(name), why)
		}
	}
	key := identity{kind: kindName, namespace: m.namespace, name: m.name}
	if r.hidden(key) {
		if u := r.unstated[m.name]; u != nil && kindName == queueKind {
			u.take(r, root)
		}
		return m, false
	}
	if first, ok := r.seen[key]; ok {
		found := &r.Found
		if r.lenient && first.Doc.Name != r.Doc.Name {
			// With two files it is not known which one is meant.
			found = &r.clashes
		}
		found.Add(r.Doc, root, "%s %s is already at %s", kindName, m.full(), first)
		return m, false
	}
	r.seen[key] = objects.Origin{Doc: r.Doc, At: root.At}
	return m, true
}

// full returns namespace/name, or name without a namespace.
func (m metadata) full() string {
	if m.namespace == "" {
		return m.name
	}
	return m.namespace + "/" + m.name
}
