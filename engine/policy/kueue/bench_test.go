package kueue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/policy/kueue"
)

// large returns 10,000 workloads on 1,000 queues in 100 cohorts, half of them admitted.
func large() *kueue.Cluster {
	c := &kueue.Cluster{Flavors: []kueue.Flavor{{Name: "f"}}}
	for i := range 100 {
		c.Cohorts = append(c.Cohorts, kueue.Cohort{Name: fmt.Sprint("c", i), Parent: "root", Weight: 1})
	}
	for i := range 1000 {
		c.Queues = append(c.Queues, queue(fmt.Sprint("q", i), fmt.Sprint("c", i/10), 8000))
	}
	for i := range 10_000 {
		name, queue := fmt.Sprint("w", i), fmt.Sprint("q", i%1000)
		if i < 5000 {
			c.Workloads = append(c.Workloads, running(name, queue, 1000))
		} else {
			c.Workloads = append(c.Workloads, waiting(name, queue, 1000))
		}
	}
	return c
}

// BenchmarkShares compiles the cluster, and forms the shares of all queues and one assignment.
func BenchmarkShares(b *testing.B) {
	c := large()
	for b.Loop() {
		m, err := kueue.Compile(c, kueue.Default())
		require.NoError(b, err)
		s := m.NewSession()
		for q := range int32(s.Queues()) {
			s.Share(q)
		}
		s.Assign(9000, nil)
	}
}

// BenchmarkAssign is one question of a list.
func BenchmarkAssign(b *testing.B) {
	s := open(b, large(), kueue.Default())
	i := int32(0)
	for b.Loop() {
		s.Assign(5000+i%5000, nil)
		i++
	}
}

// BenchmarkCycle decides about the heads of 1,000 queues.
func BenchmarkCycle(b *testing.B) {
	for _, fair := range []bool{false, true} {
		b.Run(fmt.Sprintf("fair=%v", fair), func(b *testing.B) {
			settings := kueue.Default()
			settings.Fair = fair
			s := open(b, large(), settings)
			for b.Loop() {
				s.Cycle()
			}
		})
	}
}

// BenchmarkRemedies finds all remedies of a workload in one tree with 5,000 that hold quota.
func BenchmarkRemedies(b *testing.B) {
	c := large()
	c.Workloads[9999].PodSets[0].Requests[0].Amount = 9_000_000
	state := opened(b, c, kueue.Default())
	for b.Loop() {
		state.Remedies(9999, nil)
	}
}
