package wire_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

func BenchmarkZZ(b *testing.B) {
	m, err := wire.Compile(generate.Snapshot(generate.Standard()))
	if err != nil {
		b.Fatal(err)
	}
	s, err := wire.Open(m, &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{{Plugin: &apportionv1.Plugin_Proportion{}}}}}}, wire.Options{})
	if err != nil {
		b.Fatal(err)
	}
	tasks := &apportionv1.Tasks{}
	for i := range 1000 {
		tasks.Index = append(tasks.Index, uint32(i*97))
	}
	jobs := &apportionv1.Jobs{}
	for i := range 1000 {
		jobs.Index = append(jobs.Index, uint32(i*9))
	}
	for name, step := range map[string]*apportionv1.Step{
		"allocatable": {Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: tasks}}},
		"enqueue":     {Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: jobs}}},
		"shares":      {Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
		"one":         {Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: &apportionv1.Tasks{Index: []uint32{7}}}}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Do(step)
			}
		})
		b.Run(name+"/marshal", func(b *testing.B) {
			a := s.Do(step)
			b.ReportMetric(float64(proto.Size(a)), "bytes")
			b.ReportAllocs()
			for b.Loop() {
				proto.Marshal(a)
			}
		})
	}
}
