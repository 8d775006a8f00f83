package file

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/ledger"
)

// BenchmarkEvents stores the starts and ends of up to five million tasks (with -short 50,000) of 1,000 queues, over the 224 epochs that
// count, and then asks for the row of the next epoch.
func BenchmarkEvents(b *testing.B) {
	for events := 100_000; events <= 10_000_000; events *= 10 {
		if testing.Short() && events > 100_000 {
			break
		}
		b.Run(fmt.Sprint("events=", events), func(b *testing.B) { benchmarkEvents(b, events) })
	}
}

func benchmarkEvents(b *testing.B, wanted int) {
	b.Helper()
	const epochs, queues, epoch = 224, 1000, 6 * 3600
	perEpoch := wanted / 2 / epochs
	paths := make([][]string, queues)
	tree := []ledger.Queue{{Name: "root", Weight: 1}}
	for q := range paths {
		name, dept := "queue-"+strconv.Itoa(q), "department-"+strconv.Itoa(q%30)
		paths[q] = []string{name, dept, "root"}
		tree = append(tree, ledger.Queue{Name: name, Parent: dept, Weight: 1, Created: 1})
	}
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "ledger")
		f, err := Open(path, ledger.Options{})
		require.NoError(b, err)
		events, before := 0, processorTime()
		for n := range int64(epochs) {
			require.NoError(b, f.Update(func(l *ledger.Ledger) error {
				for i := range perEpoch {
					start := n*epoch + int64(i)%epoch
					e := ledger.Evidence{
						Task: fmt.Sprint(n, "-", i), Start: start, Path: paths[i%queues], Owner: "owner-" + strconv.Itoa(i%7),
						Amounts: map[string]int64{"cpu": 4000, "memory": 1 << 34, "nvidia.com/gpu": 1000, "pods": 1}, Seen: start,
					}
					require.NoError(b, l.Enter(&e, 1<<39))
					e.Seen, e.End, e.Ended = start+7200, start+7200, true
					require.NoError(b, l.Enter(&e, 1<<39))
					events += 2
				}
				l.Seal()
				return nil
			}))
		}
		b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(events), "cpu-µs/event")
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		began := time.Now()
		f.View(func(l *ledger.Ledger) { require.Len(b, l.Row(epochs*epoch, tree, nil).Queues, queues+1) })
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "row-ms")
		b.ReportMetric(float64(memory.HeapAlloc)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(f.Size())/(1<<20), "file-MiB")
		b.ReportMetric(float64(events), "events")
		require.NoError(b, f.Close())
		began = time.Now()
		f, err = Open(path, ledger.Options{})
		require.NoError(b, err)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "open-ms")
		require.NoError(b, f.Close())
		require.NoError(b, os.Remove(path))
	}
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
