package file

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/ledger"
)

// BenchmarkTenMillionEvents stores the starts and ends of five million tasks of 1,000 queues, over the 224 epochs that count (with -short
// a hundredth of them), and then asks for the row of the next epoch.
func BenchmarkTenMillionEvents(b *testing.B) {
	const epochs, queues, epoch = 224, 1000, 6 * 3600
	perEpoch := 5_000_000 / epochs
	if testing.Short() {
		perEpoch /= 100
	}
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
		events := 0
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
