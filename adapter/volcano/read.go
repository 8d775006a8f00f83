// Package volcano reads the objects of a cluster as kubectl prints them. It returns the Snapshot
// of which Volcano would make its decisions; package schedulerconf has the Policy.
//
// Rules that belong to Kubernetes' and Volcano's way of writing things live here and nowhere else: units and their rounding, resource names
// that Volcano drops, defaults, labels and annotations. Tests compare the results with those of Volcano for the same objects
// (testdata/reference).
//
// Input that Volcano or Kubernetes would refuse is an *Error that names every place; input that they accept but leave out, or that has
// no effect, is a warning.
package volcano

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// Cluster is the snapshot of a cluster's objects, with warnings and positions.
type Cluster struct {
	objects.Account

	Snapshot *apportionv1.Snapshot
	// Warnings name what was left out.
	Warnings []*apportionv1.Warning
	// Nothing reports that no source but those of the background has an object that is read.
	Nothing bool
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
		if file != "" && f.At.Doc.Name != file {
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
	return func(r *reader) { r.Progress = progress }
}

// LeaveOutFaulty leaves out the objects that are invalid, and those for which the snapshot has no room. Without it they are an error.
func LeaveOutFaulty() Option { return func(r *reader) { r.Lenient = true } }

// WithLimits sets the limits of the server that the snapshot is for. Default: those that every server has.
func WithLimits(limits decode.Limits) Option { return func(r *reader) { r.Limits = limits } }

// WithStarts states when each pod was scheduled that holds resources, from which a ledger of usage counts. Without it only pods with a
// cooldown say so.
func WithStarts() Option { return func(r *reader) { r.starts = true } }

// AsScheduler reads queues as Volcano's scheduler has them: one without a state, which its controller has not opened yet, is in none of its
// states and admits nothing, and one without a weight has the weight 0. It is for comparisons with what Volcano decided.
func AsScheduler() Option { return func(r *reader) { r.unopened = true } }

// WithMemory bounds what the jobs of the snapshot take in the memory of a server, in bytes, as decode.Size.Memory estimates it. Default:
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
// PersistentVolumeClaim, PersistentVolume, StorageClass, CSIDriver, CSINode and CSIStorageCapacity; and PodDisruptionBudget and
// ResourceQuota. For each other kind one warning says that it was left out. An error is an *Error.
func ReadManifests(sources []objects.Source, opts ...Option) (*Cluster, error) {
	r := newReader(opts)
	r.dump = true
	for _, background := range []bool{false, true} {
		r.background = background
		kinds.Each(r, slices.DeleteFunc(slices.Clone(sources), func(s objects.Source) bool { return s.Background != background }))
	}
	return r.cluster()
}

// FromObjects reads objects in their JSON form. An error is an *Error, whose files are named by position: `objects[3]`.
func FromObjects(list []json.RawMessage, opts ...Option) (*Cluster, error) {
	r := newReader(opts)
	for i, raw := range list {
		doc := &objects.Document{Name: fmt.Sprintf("objects[%d]", i), Data: raw}
		objects.EachJSON(doc, kinds.Shape(), &r.Found, func(doc *objects.Document, root *objects.Value) { kinds.Object(r, doc, root) })
	}
	return r.cluster()
}

// reader collects objects, and returns a snapshot of them at the end.
type reader struct {
	objects.Reader

	asOf  int64
	label string

	units      units
	dimensions dimensions
	requests   requests
	// memory is that of the jobs of the snapshot.
	memory  int64
	decoder *decode.Decoder
	// starts: tasks say when they were scheduled.
	starts bool

	entities
	// marked are the entities before the object that is read.
	marked     entities
	placements placements
	traits     sharedTraits
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

	// background is true while background sources are read; given are the kinds that other sources hold.
	background bool
	given      map[string]bool
	// unstated are the queues that may replace one of a background source.
	unstated map[string]*unstated
	// unopened: queues without a state have none, and those without a weight the weight 0.
	unopened bool
}

func newReader(opts []Option) *reader {
	r := &reader{
		Reader: objects.NewReader(), placements: make(placements), traits: sharedTraits{}, unstated: make(map[string]*unstated),
		given: make(map[string]bool), schedulers: []string{defaultScheduler}, units: make(units), decoder: &decode.Decoder{},
	}
	for _, opt := range opts {
		opt(r)
	}
	return r
}

// Hides reports whether an object of a background source does not count.
func (r *reader) Hides(key objects.Identity, root *objects.Value) bool {
	if !r.background {
		r.given[key.Kind] = true
		return false
	}
	hides := r.given[key.Kind]
	if key.Kind == queueKind && (key.Name == "root" || key.Name == "default") {
		hides = r.Seen(key)
	}
	if u := r.unstated[key.Name]; u != nil && hides && key.Kind == queueKind {
		u.take(r, root)
	}
	return hides
}
