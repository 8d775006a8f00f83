package decisionlog

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/internal/backlog"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/service"
)

// item is an entry or a snapshot that waits to be written.
type item struct {
	bytes   int64
	write   func() error
	release func()
	// entry says that the item is an entry, not a snapshot to be stored.
	entry bool
}

// Options of a Log. Only Sink is required.
type Options struct {
	// Sink receives the entries.
	Sink Sink
	// Store stores snapshots and policies by digest, so that entries can be replayed. nil: only their digests are written.
	Store *Store
	// Settings select and limit what is logged. If Mask is not empty, texts of errors are removed too. The settings of the sink and the
	// store are not used here.
	Settings setting.DecisionLog
	// Logger of errors of the sink. nil: they are not logged.
	Logger *slog.Logger
}

// Log is an observer of the service that writes entries to a sink.
type Log struct {
	options Options
	queue   *backlog.Queue[item]
	mask    map[string]bool
	nonce   string
	lost    atomic.Uint64
	faulted time.Time
	// held counts the entries that the sink has buffered, and reported the lost entries that these report.
	held     int
	reported uint64

	close   sync.Once
	closing chan struct{}
	closed  chan struct{}

	written prometheus.Counter
	dropped *prometheus.CounterVec
}

// New returns a log that writes until Close.
func New(o Options) *Log {
	setting.Complete(&o.Settings)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{
		options: o, queue: backlog.New[item](o.Settings.Waiting, int64(o.Settings.WaitingBytes)), mask: map[string]bool{},
		nonce:   strconv.FormatUint(rand.Uint64(), 36), //nolint:gosec // It is no secret.
		closing: make(chan struct{}), closed: make(chan struct{}),
		written: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apportion_decision_log_written_total", Help: "Entries of the decision log that were written.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apportion_decision_log_dropped_total",
			Help: "Entries of the decision log, or snapshots to be stored, that were dropped.",
		}, []string{"cause"}),
	}
	for _, name := range o.Settings.Mask {
		// Lists of what a field names have its plural.
		l.mask[name], l.mask[name+"s"] = true, true
		if name == "uid" {
			// Selectors name jobs and tasks by their uids.
			l.mask["names"] = true
		}
	}
	for _, cause := range []string{causeFull, causeOversize, causeSink} {
		l.dropped.WithLabelValues(cause)
	}
	go l.run()
	return l
}

// Why entries are dropped.
const (
	causeFull     = "full"
	causeOversize = "oversize"
	causeSink     = "sink"
)

// Collectors returns the metrics of the log.
func (l *Log) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	return []prometheus.Collector{
		l.written, l.dropped,
		gauge("apportion_decision_log_queue_length", "Entries that wait to be written.", func() float64 {
			items, _ := l.queue.Usage()
			return float64(items)
		}),
		gauge("apportion_decision_log_queue_bytes", "Estimated memory of the entries that wait to be written.", func() float64 {
			_, bytes := l.queue.Usage()
			return float64(bytes)
		}),
	}
}

// Wants reports whether to log a call: one of Settings.OneIn at random.
func (l *Log) Wants(context.Context, string, string) bool {
	return rand.IntN(l.options.Settings.OneIn) == 0 //nolint:gosec // A caller that predicts it gains nothing.
}

// entryBytes is the approximate memory of an entry without its messages.
const entryBytes = 1 << 10

// nameBytes is the memory of a name without its text.
const nameBytes = 16

// Observe queues an entry. Expensive work is done later.
func (l *Log) Observe(ctx context.Context, d *service.Decision) {
	e := &Entry{
		Time: d.Began, Method: d.Method, Identity: service.IdentityOf(ctx), Scheduler: d.Scheduler, Sent: d.Sent, Batch: d.Batch,
		End: d.Last, EngineVersion: engine.Version, PolicyName: d.PolicyName, PolicyDigest: d.Basis.GetPolicyDigest(),
		SnapshotDigest: d.Snapshot.Digest, Texts: d.Texts, OmitNames: d.OmitNames, Seconds: d.Took.Seconds(),
		Restricted: d.Restricted, Owned: d.Owned,
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if d.Session != nil {
		e.Session = l.nonce + "-" + strconv.FormatUint(d.Session.Number, 10)
	}
	if d.Batch == 0 {
		e.Dimensions = d.Basis.GetDimensions()
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		e.TraceID, e.SpanID = span.TraceID().String(), span.SpanID().String()
	}
	size := int64(entryBytes+d.AnswerBytes) + d.QuestionBytes()
	for _, name := range d.Owned {
		size += int64(len(name) + nameBytes)
	}
	release := func() {}
	var data []byte
	if e.SnapshotDigest == "" || d.Snapshot.Base != "" {
		data, release = d.Snapshot.Bytes()
		size += int64(len(data))
		switch {
		case data != nil:
		case d.Snapshot.Message != nil:
			size += int64(proto.Size(d.Snapshot.Message))
		case d.Snapshot.Model != nil:
			size += decode.ModelBytes(d.Snapshot.Model)
		}
	}
	kept := *d
	kept.Snapshot = service.Snapshot{Message: d.Snapshot.Message, Model: d.Snapshot.Model, Base: d.Snapshot.Base}
	l.put(ctx, item{bytes: size, release: release, entry: true, write: func() error { return l.write(e, &kept, data) }})
}

// Received queues the bytes of a snapshot for the store, if there is one.
func (l *Log) Received(ctx context.Context, r service.Received) {
	if l.options.Store == nil {
		return
	}
	l.put(ctx, item{bytes: int64(len(r.Data)), release: func() {}, write: func() error { return l.store(r.Digest, r.Base, r.Data) }})
}

// store stores a snapshot, or the change that produces it from its base.
func (l *Log) store(digest, base string, data []byte) error {
	if base != "" {
		return l.options.Store.Change(digest, base, data)
	}
	return l.options.Store.Snapshot(digest, data)
}

func (l *Log) put(ctx context.Context, i item) {
	if !l.queue.Fits(i.bytes) {
		l.drop(i, causeOversize)
		return
	}
	if l.options.Settings.Drop == setting.DropBlock {
		if !l.queue.PutWithin(ctx, i, i.bytes, l.options.Settings.BlockTime) {
			l.drop(i, causeFull)
		}
		return
	}
	for !l.queue.Put(i, i.bytes) {
		if l.options.Settings.Drop != setting.DropOldest {
			l.drop(i, causeFull)
			return
		}
		if oldest, ok := l.queue.Take(); ok {
			l.drop(oldest, causeFull)
		}
	}
}

func (l *Log) drop(i item, cause string) {
	i.release()
	l.dropped.WithLabelValues(cause).Inc()
	if i.entry {
		l.lost.Add(1)
	}
}

// run writes queued items until the log is closed and the queue is empty.
func (l *Log) run() {
	defer close(l.closed)
	for {
		i, ok := l.queue.Take()
		if !ok || l.held >= flushed {
			l.flush()
		}
		if !ok {
			select {
			case <-l.queue.Work():
				continue
			case <-l.closing:
			}
			if i, ok = l.queue.Take(); !ok {
				l.settle(l.options.Sink.Close())
				return
			}
		}
		if err := i.write(); err != nil {
			l.drop(i, causeSink)
			l.settle(err)
			continue
		}
		i.release()
		if i.entry {
			l.held++
		}
	}
}

// flushed is the maximum number of entries that the sink buffers.
const flushed = 256

// flush lets the sink write its buffer.
func (l *Log) flush() { l.settle(l.options.Sink.Flush()) }

// settle counts the buffered entries as written or, if the sink has failed, as lost, because it is unknown which of them were written.
func (l *Log) settle(err error) {
	if err == nil {
		l.written.Add(float64(l.held))
	} else {
		l.dropped.WithLabelValues(causeSink).Add(float64(l.held))
		l.lost.Add(uint64(l.held) + l.reported)
		l.report(err)
	}
	l.held, l.reported = 0, 0
}

// report logs an error of the sink, at most one in ten seconds.
func (l *Log) report(err error) {
	const pause = 10 * time.Second
	if err != nil && time.Since(l.faulted) > pause {
		l.faulted = time.Now()
		l.options.Logger.Warn("the decision log cannot be written", slog.String("error", err.Error()))
	}
}

// Close writes the remaining entries until ctx ends.
func (l *Log) Close(ctx context.Context) error {
	l.close.Do(func() { close(l.closing) })
	select {
	case <-l.closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write completes an entry and hands it to the sink.
func (l *Log) write(e *Entry, d *service.Decision, data []byte) error {
	if err := l.basis(e, d, data); err != nil {
		return err
	}
	if err := l.messages(e, d); err != nil {
		return err
	}
	if lost := l.lost.Swap(0); lost > 0 {
		e.Lost = lost
	}
	l.maskEntry(e)
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.reported += e.Lost
	return l.options.Sink.Write(e, line)
}

// basis adds the digests of the snapshot and the policy to an entry, and stores both.
func (l *Log) basis(e *Entry, d *service.Decision, data []byte) (err error) {
	if e.SnapshotDigest == "" {
		message := d.Snapshot.Message
		if data == nil && message == nil && d.Snapshot.Model != nil {
			message = decode.SnapshotOf(d.Snapshot.Model)
		}
		if data == nil && message != nil {
			if data, err = (proto.MarshalOptions{Deterministic: true}).Marshal(message); err != nil {
				return err
			}
		}
		if data != nil {
			e.SnapshotDigest = decode.Digest(data)
		}
	}
	if e.PolicyDigest == "" && d.Policy != nil {
		e.PolicyDigest = decode.PolicyDigest(d.Policy)
	}
	store := l.options.Store
	if store == nil || d.Batch > 0 {
		return nil
	}
	if d.Policy != nil {
		if err := store.Policy(e.PolicyDigest, d.Policy); err != nil {
			return err
		}
	}
	if data != nil {
		return l.store(e.SnapshotDigest, d.Snapshot.Base, data)
	}
	return nil
}

// messages adds the questions and the answers to an entry.
func (l *Log) messages(e *Entry, d *service.Decision) (err error) {
	events, edits, steps, answers := d.Events, d.Edits, d.Steps, d.Answers
	if len(l.mask) > 0 {
		events, edits = maskAll(events, l.mask), maskAll(edits, l.mask)
		steps, answers = maskAll(steps, l.mask), maskAll(answers, l.mask)
		e.Masked, e.Sent, e.Owned = true, nil, nil
	}
	if l.options.Settings.Questions == setting.QuestionsDigest {
		e.StepsDigest, err = digestOf(append(wire.Since(events, edits), steps...))
	} else if e.Events, err = rawAll(events); err == nil {
		if e.Edits, err = rawAll(edits); err != nil {
			return err
		}
		e.Steps, err = rawAll(steps)
	}
	if err != nil {
		return err
	}
	if e.Answers, err = rawAll(answers); err != nil {
		return err
	}
	if d.Err != nil {
		st := status.Convert(d.Err).Proto()
		if e.Masked {
			maskStatus(st)
		}
		e.Error, err = protojson.Marshal(st)
	}
	return err
}
