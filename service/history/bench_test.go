package history

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkTake takes in versions of a large cluster, in which every hundredth job has another cause each time.
func BenchmarkTake(b *testing.B) {
	for _, onDisk := range []bool{false, true} {
		b.Run(fmt.Sprintf("disk=%v", onDisk), func(b *testing.B) {
			path := ""
			if onDisk {
				path = filepath.Join(b.TempDir(), "history")
			}
			o := large
			o.Retain = 168 * time.Hour
			h, err := Open(path, o)
			if err != nil {
				b.Fatal(err)
			}
			v := &Version{Dimensions: []string{"cpu", "memory", "nvidia.com/gpu", "pods"}, Exists: func(string) bool { return true }}
			for i := range 7200 {
				v.Jobs = append(v.Jobs, Job{ID: fmt.Sprintf("team-%03d/job-%05d-of-a-usual-name", i%1000, i), Name: fmt.Sprint("job", i), Queue: fmt.Sprint("queue-", i%1000), Cause: gpus})
			}
			for i := range 1000 {
				v.Queues = append(v.Queues, Queue{
					Name: fmt.Sprint("queue-", i), Waiting: 7, Deserved: []float64{1, 2, 3, 4}, Allocated: []float64{1, 2, 3, 4}, Request: []float64{1, 2, 3, 4},
				})
			}
			now := start
			b.ReportAllocs()
			for b.Loop() {
				now += int64(10 * time.Second)
				v.At = now
				for i := range v.Jobs {
					if (int64(i)+now/1e10)%100 == 0 {
						v.Jobs[i].Cause = []Cause{gpus, limit}[(now/1e12)%2]
					}
				}
				if err := h.Take(v); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(h.Bytes())/(1<<20), "MiB")
			b.ReportMetric(float64(h.Size())/(1<<20), "MiB-file")
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
