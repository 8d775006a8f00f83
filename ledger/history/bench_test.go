package history_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
	"github.com/apportion/apportion/ledger/history"
)

// BenchmarkImport imports jobs of Slurm of 6,000 pairs of account and user, and then opens the ledger and adds up what was used.
func BenchmarkImport(b *testing.B) {
	const jobs = 100_000
	var text strings.Builder
	text.WriteString("JobID|Account|User|Start|End|AllocTRES\n")
	for i := range jobs {
		from := first.Add(time.Duration(i) * 24 * time.Second)
		until := from.Add(time.Duration(60+i*7919%86400) * time.Second)
		fmt.Fprintf(&text, "%d|acc%d|u%d|%s|%s|billing=4,cpu=4,gres/gpu=1,mem=16G,node=1\n", i, i%300, i%2000,
			from.Format("2006-01-02T15:04:05"), until.Format("2006-01-02T15:04:05"))
	}
	o := history.Options{Now: first.Add(9000 * time.Hour).Unix()}
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "ledger")
		from, err := ledger.New(ledger.Options{Retain: 2000})
		require.NoError(b, err)
		began := time.Now()
		_, err = history.Read(history.Slurm, strings.NewReader(text.String()), o, from)
		require.NoError(b, err)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "read-ms")
		f, err := file.Open(path, ledger.Options{Retain: 2000})
		require.NoError(b, err)
		require.NoError(b, f.Update(func(l *ledger.Ledger) error {
			_, err := history.Import(l, from)
			return err
		}))
		require.NoError(b, f.Close())
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "import-ms")
		began = time.Now()
		f, err = file.Open(path, ledger.Options{Retain: 2000})
		require.NoError(b, err)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "open-ms")
		f.View(func(l *ledger.Ledger) {
			begin, end, _ := l.Span()
			require.NotEmpty(b, l.Spent(begin, end+1))
		})
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "usage-ms")
		require.NoError(b, f.Close())
	}
}
