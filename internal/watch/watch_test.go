package watch_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/apportion/apportion/internal/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watching watches files until the test ends, and returns the reports.
func watching(t *testing.T, interval time.Duration, list func() []string) <-chan struct{} {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	changes, ended := make(chan struct{}, 100), make(chan struct{})
	// What is written from now on differs from what was seen, whenever the goroutine begins.
	seen := watch.Look(list())
	go func() {
		defer close(ended)
		watch.Files(ctx, watch.Options{Interval: interval, Seen: seen}, list, func() { changes <- struct{}{} })
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return changes
}

func requireChange(t *testing.T, changes <-chan struct{}) {
	t.Helper()
	select {
	case <-changes:
	case <-time.After(10 * time.Second):
		require.Fail(t, "no change was reported")
	}
}

func requireNone(t *testing.T, changes <-chan struct{}) {
	t.Helper()
	select {
	case <-changes:
		require.Fail(t, "a change was reported")
	case <-time.After(400 * time.Millisecond):
	}
}

// write replaces the content of a file in place, or makes the file. Texts have one length, so that the file never holds anything between
// the two texts: a file that is truncated first, or made empty, may be seen as a change of its own.
func write(t *testing.T, name, text string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteAt([]byte(text), 0)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		return
	}
	prepared := filepath.Join(t.TempDir(), "prepared")
	require.NoError(t, os.WriteFile(prepared, []byte(text), 0o600))
	require.NoError(t, os.Rename(prepared, name))
}

func TestChangesAreToldHoweverAFileIsReplaced(t *testing.T) {
	directory := t.TempDir()
	name := filepath.Join(directory, "a")
	write(t, name, "1")
	changes := watching(t, time.Hour, func() []string { return []string{name} })

	write(t, name, "2")
	requireChange(t, changes)
	write(t, name+".next", "3")
	require.NoError(t, os.Rename(name+".next", name))
	requireChange(t, changes)
	require.NoError(t, os.Remove(name))
	requireChange(t, changes)
	write(t, name, "4")
	requireChange(t, changes)
	requireNone(t, changes)
}

func TestAWriteOfTheSameAndOtherFilesAreNoChange(t *testing.T) {
	directory := t.TempDir()
	name := filepath.Join(directory, "a")
	write(t, name, "1")
	changes := watching(t, time.Hour, func() []string { return []string{name} })
	write(t, name, "1")
	write(t, filepath.Join(directory, "b"), "1")
	requireNone(t, changes)
}

func TestLinksAreFollowedAsKubernetesReplacesThem(t *testing.T) {
	directory := t.TempDir()
	version := func(name, text string) {
		require.NoError(t, os.Mkdir(filepath.Join(directory, name), 0o700))
		write(t, filepath.Join(directory, name, "a"), text)
		link := filepath.Join(directory, "..next")
		require.NoError(t, os.Symlink(name, link))
		require.NoError(t, os.Rename(link, filepath.Join(directory, "..data")))
	}
	version("..1", "1")
	name := filepath.Join(directory, "a")
	require.NoError(t, os.Symlink(filepath.Join("..data", "a"), name))
	changes := watching(t, time.Hour, func() []string { return []string{name} })
	version("..2", "2")
	requireChange(t, changes)
	require.NoError(t, os.RemoveAll(filepath.Join(directory, "..1")))
	version("..3", "3")
	requireChange(t, changes)

	elsewhere := filepath.Join(t.TempDir(), "target")
	write(t, elsewhere, "1")
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Symlink(elsewhere, name))
	requireChange(t, changes)
	write(t, elsewhere, "2")
	requireChange(t, changes)
}

func TestTheFilesAreAskedForAgainAfterAChange(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	write(t, first, "1")
	write(t, second, "1")
	var file atomic.Pointer[string]
	file.Store(&first)
	changes := watching(t, time.Hour, func() []string { return []string{*file.Load()} })
	write(t, second, "2")
	requireNone(t, changes)
	file.Store(&second)
	write(t, first, "2")
	requireChange(t, changes)
	requireChange(t, changes) // What the new file held when it was read is not known.
	write(t, second, "3")
	requireChange(t, changes)
	write(t, first, "3")
	requireNone(t, changes)
}

func TestChangesInADirectoryThatCameLaterAreFoundByLooking(t *testing.T) {
	name := filepath.Join(t.TempDir(), "not there yet", "a")
	changes := watching(t, 20*time.Millisecond, func() []string { return []string{name} })
	require.NoError(t, os.Mkdir(filepath.Dir(name), 0o700))
	write(t, name, "1")
	requireChange(t, changes)
}

func TestAChangeWhileTheFilesAreReadIsAChangeAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	write(t, name, "1")
	seen := watch.Look([]string{name})
	write(t, name, "2")
	ctx, stop := context.WithCancel(t.Context())
	var read []string
	watch.Files(ctx, watch.Options{Interval: 10 * time.Millisecond, Seen: seen}, func() []string { return []string{name} }, func() {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		read = append(read, string(data))
		switch len(read) {
		case 1:
			write(t, name, "3")
		case 2:
			stop()
		}
	})
	require.Equal(t, []string{"2", "3"}, read)
}
