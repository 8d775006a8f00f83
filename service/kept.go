package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/admission"
)

// Kept is a snapshot that the server's program maintains, and to which requests refer by name. It is safe for concurrent use.
type Kept struct {
	server *Server
	// cluster is the one that the versions name.
	name, cluster string
	now           func(*apportionv1.SnapshotView)
	// fresh receives a value when there is a version that the history lacks.
	fresh chan struct{}

	mutex sync.Mutex
	// newest and before are the last two versions; nil: there are none yet.
	newest, before *version
	// sent are the versions that were sent as a whole, the last one last, until they are no longer held for their callers.
	sent []sentVersion
	// recording is the history; nil: none is kept.
	recording *recording
}

// sentVersion is a version that was sent whole, so that questions about it follow.
type sentVersion struct {
	*version

	tenant string
	until  time.Time
}

const (
	// sentTime is the time for which a version is held after it was sent, and sentVersions the maximum number of such versions.
	sentTime     = time.Minute
	sentVersions = 6
)

// version is one state of a kept snapshot. It does not change.
type version struct {
	*entry

	// view is as of when the version was put, or replaced.
	view *apportionv1.SnapshotView
}

// Keep returns a snapshot without a version, to which requests may refer from now on. cluster is the cluster that its versions will name:
// only callers that may name it learn that, and why, there is no version yet. now completes the view of the newest version, or of
// none, with its time and completeness. It is called for each answer, concurrently.
func (s *Server) Keep(name, cluster string, now func(*apportionv1.SnapshotView)) *Kept {
	k := &Kept{server: s, name: name, cluster: cluster, now: now, fresh: make(chan struct{}, 1)}
	s.keptMutex.Lock()
	defer s.keptMutex.Unlock()
	kept := maps.Clone(s.kept.Load().(map[string]*Kept)) //nolint:errcheck,forcetypeassert // Only such maps are stored.
	kept[name] = k
	s.kept.Store(kept)
	return k
}

// Put makes the bytes of a snapshot the newest version, within the limits of a snapshot and after waiting for its turn. view describes its
// contents.
func (k *Kept) Put(ctx context.Context, data []byte, view *apportionv1.SnapshotView) error {
	s := k.server
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	p := follow(ctx)
	size := decode.Measure(data)
	leave, err := s.enter(p, admission.Decision, size.Memory())
	if err != nil {
		return StatusOf(err)
	}
	defer leave()
	began := time.Now()
	g := s.guard(p.stop)
	g.Size = &size
	m, err := new(decode.Decoder).CompileWithin(data, g)
	s.metrics.compiledModel(began, m)
	if err != nil {
		return StatusOf(err)
	}
	bytes := decode.OwnBytes(m) + int64(len(data)) + entryBytes
	// It is not in the cache's lists, and the cache pools no sessions of it.
	e := &entry{
		key: entryKey{digest: digest}, model: m, cluster: decode.ClusterOf(data), kept: k.name, bytes: bytes, own: bytes, gone: true,
		data: data,
	}
	next := &version{entry: e, view: proto.CloneOf(view)}
	next.view.Name, next.view.Digest = k.name, digest
	e.viewed = func() *apportionv1.SnapshotView { return k.viewOf(next) }
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.newest != nil {
		k.now(k.newest.view)
	}
	k.newest, k.before = next, k.newest
	select {
	case k.fresh <- struct{}{}:
	default:
	}
	return nil
}

// Most returns the largest memory that a version may take, as decode.Size.Memory estimates it.
func (k *Kept) Most() int64 { return k.server.admission.Most() }

// viewOf returns the present age and completeness of a version; nil stands for a snapshot without versions.
func (k *Kept) viewOf(v *version) *apportionv1.SnapshotView {
	view := &apportionv1.SnapshotView{Name: k.name}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if v != nil {
		view = proto.CloneOf(v.view)
	}
	if v == k.newest {
		k.now(view)
	}
	if v != nil {
		view.Age = max(time.Now().UnixNano()-view.GetAsOf(), 0)
	}
	return view
}

// Bytes returns the approximate size of the stored versions.
func (k *Kept) Bytes() int64 {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	bytes := int64(0)
	for _, v := range k.held() {
		bytes += v.own
	}
	return bytes
}

// held returns the versions that are held.
func (k *Kept) held() []*version {
	var held []*version
	now := time.Now()
	k.sent = slices.DeleteFunc(k.sent, func(s sentVersion) bool { return now.After(s.until) })
	for _, v := range []*version{k.newest, k.before} {
		if v != nil {
			held = append(held, v)
		}
	}
	for _, s := range k.sent {
		if !slices.Contains(held, s.version) { // Several callers may hold one.
			held = append(held, s.version)
		}
	}
	return held
}

// hold keeps a version for questions after it was sent to a caller. Of too many versions it drops the oldest of the caller with the most.
func (k *Kept) hold(v *version, tenant string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	now := time.Now()
	k.sent = slices.DeleteFunc(k.sent, func(s sentVersion) bool { return s.version == v && s.tenant == tenant || now.After(s.until) })
	k.sent = append(k.sent, sentVersion{v, tenant, now.Add(sentTime)})
	if len(k.sent) <= sentVersions {
		return
	}
	counts := map[string]int{}
	for _, s := range k.sent {
		counts[s.tenant]++
	}
	most := slices.Max(slices.Collect(maps.Values(counts)))
	first := slices.IndexFunc(k.sent, func(s sentVersion) bool { return counts[s.tenant] == most })
	k.sent = slices.Delete(k.sent, first, first+1)
}

// latest returns the newest version, nil if there is none.
func (k *Kept) latest() *version {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.newest
}

// versionOf returns the version of a digest, nil if it is not held.
func (k *Kept) versionOf(digest string) *entry {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, v := range k.held() {
		if v.key.digest == digest {
			return v.entry
		}
	}
	return nil
}

// keptNamed returns the snapshot of a name, nil if there is none.
func (s *Server) keptNamed(name string) *Kept {
	kept, _ := s.kept.Load().(map[string]*Kept)
	return kept[name]
}

// mayAsk returns an error if the caller may not ask about a kept snapshot.
func (s *Server) mayAsk(ctx context.Context, name string) error {
	if s.options.PermitSnapshot == nil {
		return nil
	}
	return s.options.PermitSnapshot(ctx, name)
}

// newestOf returns the newest version of the snapshot that a field of a request names, to a caller that may see all of it.
func (s *Server) newestOf(ctx context.Context, name, field string) (*version, error) {
	v, err := s.newestShown(ctx, name, field)
	if err == nil {
		err = s.whole(ctx, v.entry, field)
	}
	return v, err
}

// newestShown is newestOf for a caller that may see all of the snapshot, or its own queues alone.
func (s *Server) newestShown(ctx context.Context, name, field string) (*version, error) {
	if err := s.mayAsk(ctx, name); err != nil {
		return nil, err
	}
	k := s.keptNamed(name)
	if k == nil {
		return nil, &decode.Fault{
			Code: codes.NotFound, Reason: apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NAME_NOT_FOUND, Field: field,
			Text: "this server keeps no snapshot " + strconv.Quote(name),
		}
	}
	v := k.latest()
	if err := s.permit(ctx, func() string { return k.clusterOf(v) }); err != nil {
		return nil, err
	}
	if v == nil {
		return nil, &decode.Fault{
			Code: codes.Unavailable, Reason: apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_READY, Field: field, Retry: time.Second,
			Text: "snapshot " + strconv.Quote(name) + " is not there yet" + faultsOf(k.viewOf(nil)),
		}
	}
	return v, nil
}

// clusterOf returns the cluster of a version; nil stands for the first one, which is not there yet.
func (k *Kept) clusterOf(v *version) string {
	if v == nil {
		return k.cluster
	}
	return v.cluster
}

// faultsOf lists what cannot be read.
func faultsOf(view *apportionv1.SnapshotView) string {
	var text strings.Builder
	for _, kind := range view.GetKinds() {
		if kind.GetFault() != "" {
			text.WriteString("; " + kind.GetResource() + ": " + kind.GetFault())
		}
	}
	return text.String()
}

// keptVersion returns the version of a digest of any kept snapshot that the caller may ask about, nil if none is held.
func (s *Server) keptVersion(ctx context.Context, digest string) *entry {
	kept, _ := s.kept.Load().(map[string]*Kept)
	for name, k := range kept {
		if e := k.versionOf(digest); e != nil && s.mayAsk(ctx, name) == nil {
			return e
		}
	}
	return nil
}
