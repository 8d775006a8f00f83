// Package watch reports when files change, by the system's notifications where they work and by polling where they do not.
package watch

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is the time for which files must be unchanged before they are read: a certificate and its key are seldom written in one step.
	settle = 100 * time.Millisecond
	// longest is the longest time for which continuing changes may delay that.
	longest = 2 * time.Second
	// maxFile bounds what is read of a file to see whether it changed.
	maxFile = 64 << 20
)

// Options of Files.
type Options struct {
	// Interval at which files are checked without a notification.
	Interval time.Duration
	// Seen is the content of the files before the first read. nil: their present content.
	Seen Contents
	// Logger of faults that prevent notifications.
	Logger *slog.Logger
}

// Contents maps names of files to hashes of their contents. A missing file has a special value, so that creation and removal are changes.
type Contents map[string][sha256.Size]byte

// Files calls changed, in this goroutine, each time that the content of a file differs from what it was, until ctx ends. list is asked for
// the files at the start and after each change. What changes while changed reads is a change again, so that the last content is
// always read.
func Files(ctx context.Context, o Options, list func() []string, changed func()) {
	w := watcher{log: o.Logger, reported: make(chan fsnotify.Event), directories: map[string]bool{}}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	notifier, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.WarnContext(ctx, "file watches do not work; changes of files are found only by polling", "error", err.Error())
	} else {
		w.notifier, w.reported = notifier, notifier.Events
		defer w.close()
	}
	files, last := list(), o.Seen
	w.follow(ctx, files)
	if last == nil {
		last = Look(files)
	}
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for ok := true; ok; ok = w.wait(ctx, tick.C) {
		for now := Look(files); !maps.Equal(last, now); now = Look(files) {
			last = now
			changed()
			// New files may have changed since they were read: what they held is not known.
			files = list()
			w.follow(ctx, files)
		}
	}
}

type watcher struct {
	log         *slog.Logger
	notifier    *fsnotify.Watcher
	reported    <-chan fsnotify.Event
	directories map[string]bool
}

func (w *watcher) close() {
	if err := w.notifier.Close(); err != nil {
		w.log.Warn("the watch on files did not end", "error", err.Error())
	}
}

// follow watches the directories of files, and of what they are links to. A directory has events of files that are replaced by renaming,
// which a watch on the file itself would miss; Kubernetes replaces a link beside the file.
func (w *watcher) follow(ctx context.Context, files []string) {
	if w.notifier == nil {
		return
	}
	wanted := map[string]bool{}
	for _, file := range files {
		wanted[filepath.Dir(file)] = true
		if target, err := filepath.EvalSymlinks(file); err == nil {
			wanted[filepath.Dir(target)] = true
		}
	}
	for directory := range w.directories {
		if !wanted[directory] {
			// The directory may no longer exist.
			_ = w.notifier.Remove(directory)
		}
	}
	for directory := range wanted {
		if err := w.notifier.Add(directory); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.log.WarnContext(ctx, "file watches do not work; changes of files are found only by polling",
				"directory", directory, "error", err.Error())
		}
	}
	w.directories = wanted
}

// wait returns true when there may be a change and things have settled, false when ctx ends.
func (w *watcher) wait(ctx context.Context, tick <-chan time.Time) bool {
	var faults <-chan error
	if w.notifier != nil {
		faults = w.notifier.Errors
	}
	var quiet, enough <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case <-quiet:
			return true
		case <-enough:
			return true
		case <-w.reported:
			quiet = time.After(settle)
			if enough == nil {
				enough = time.After(longest)
			}
		case err := <-faults:
			// Events were lost: look.
			w.log.WarnContext(ctx, "changes of files may have been missed", "error", err.Error())
			return true
		}
	}
}

// Look returns what files hold.
func Look(files []string) Contents {
	contents := make(Contents, len(files))
	for _, name := range files {
		contents[name] = contentOf(name)
	}
	return contents
}

// contentOf returns a hash of a file; zero if it cannot be read.
func contentOf(name string) (content [sha256.Size]byte) {
	file, err := os.Open(name)
	if err != nil {
		return content
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(file, maxFile)); err == nil {
		hash.Sum(content[:0])
	}
	_ = file.Close()
	return content
}
