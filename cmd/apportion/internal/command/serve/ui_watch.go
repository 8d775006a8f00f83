package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/ui"
)

// reading is the state of the source that `apportion ui --watch` shows.
type reading struct {
	mutex sync.Mutex
	read  time.Time
	fault error
}

// note records that the source was read now, or why it could not be read.
func (r *reading) note(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.fault = err; err == nil {
		r.read = time.Now()
	}
}

// view completes the view of the newest version.
func (r *reading) view(view *apportionv1.SnapshotView) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	view.AsOf, view.Complete, view.Kinds = r.read.UnixNano(), r.fault == nil, nil
	if r.fault != nil {
		view.Kinds = []*apportionv1.ViewedKind{{Resource: "the source", Fault: r.fault.Error()}}
	}
}

// keep gives the server the snapshot and its new versions until the context ends, and keeps their history in memory.
func (l *looking) keep(ctx context.Context, server *service.Server, loaded *question.Loaded) (*ui.Cluster, error) {
	const name = ledgerName
	if _, err := l.remember(server); err != nil {
		return nil, err
	}
	r := &reading{}
	kept := server.Keep(name, "", r.view)
	settings := setting.Default[setting.History]()
	settings.Interval = min(settings.Interval, l.watch.Interval)
	past, err := cluster.OpenHistory(&settings, loaded.Policy, "")
	if err != nil {
		return nil, err
	}
	var last []byte
	put := func(snapshot *apportionv1.Snapshot) error {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(snapshot)
		if err != nil || last != nil && bytes.Equal(data, last) {
			return err
		}
		if err := kept.Put(ctx, data, &apportionv1.SnapshotView{}); err != nil {
			return err
		}
		last = data
		return nil
	}
	r.note(nil)
	if err := put(loaded.Snapshot); err != nil {
		return nil, err
	}
	go past.Record(ctx, kept, nil, nil, slog.New(slog.DiscardHandler))
	quiet := l.Streams
	quiet.Err = io.Discard
	go func() {
		tick := time.NewTicker(l.watch.Interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			again, err := l.input.Load(ctx, quiet)
			if err == nil {
				err = put(again.Snapshot)
			}
			r.note(err)
		}
	}()
	return &ui.Cluster{Title: l.title(), Name: name}, nil
}
