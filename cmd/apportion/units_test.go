package main

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
)

var (
	bytesPattern = regexp.MustCompile(`(?:^|[ (])-?([0-9.]+)([KMGTPE]i)?\b(?: more)?(?: (?:of )?(memory|ephemeral-storage))?`)
	milliPattern = regexp.MustCompile(`(?:^|[ (])([0-9.]+m)\b`)
	sentenceEnd  = regexp.MustCompile(`\.(?: |$)|\n`)
)

// mixed returns what a text says in two units in one sentence; "" if there is nothing.
func mixed(text string) string {
	for _, sentence := range sentenceEnd.Split(text, -1) {
		if milli := milliPattern.FindString(sentence); milli != "" {
			return "thousandths," + milli + ", where others are in ones: " + sentence
		}
		if strings.Contains(sentence, "memory") && strings.Contains(sentence, "ephemeral-storage") {
			continue
		}
		unit := ""
		for _, amount := range bytesPattern.FindAllStringSubmatch(sentence, -1) {
			suffix := amount[2]
			if suffix == "" && (amount[3] == "" || amount[1] == "0") {
				continue
			}
			if suffix == "" {
				suffix = "bytes"
			}
			if unit != "" && unit != suffix {
				return unit + " and " + suffix + ": " + sentence
			}
			unit = suffix
		}
	}
	return ""
}

func TestMixedUnitsAreFound(t *testing.T) {
	require.Contains(t, mixed("a holds 512Mi of 2Gi of memory"), "Mi and Gi")
	require.Contains(t, mixed("a holds 4096 of memory and may hold 2Gi"), "bytes and Gi")
	require.Contains(t, mixed("a holds 500m cpu"), "thousandths")
	require.Empty(t, mixed("a holds 0.5Gi of memory: 0 taken, 2Gi more asked. b holds 3Mi"))
}

// sentences calls visit with every text for people in a message.
func sentences(m protoreflect.Message, visit func(text string)) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		people := f.Name() == "text" || f.Name() == "message"
		switch {
		case f.IsMap():
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				sentences(v.List().Get(i).Message(), visit)
			}
		case f.Message() != nil:
			sentences(v.Message(), visit)
		case people && f.Kind() == protoreflect.StringKind:
			visit(v.String())
		}
		return true
	})
}

// drawAmount draws an amount of a dimension as people write them: small and large ones, in all units.
func drawAmount(t *rapid.T, dimension string) float64 {
	number := float64(rapid.IntRange(1, 3000).Draw(t, dimension))
	switch dimension {
	case "memory":
		return number * rapid.SampledFrom([]float64{1, 1000, 1 << 10, 1 << 20, 1 << 20, 1 << 30, 1 << 30}).Draw(t, "unit")
	case "pods":
		return math.Ceil(number / 100)
	}
	return number * rapid.SampledFrom([]float64{1, 10, 100, 1000}).Draw(t, "unit")
}

// TestASentenceHasOneUnitForEachResource asks every question that answers in sentences about clusters whose amounts have all units.
func TestASentenceHasOneUnitForEachResource(t *testing.T) {
	raced.Skip(t)
	read, decider := 0, client.InProcess()
	rapid.Check(t, func(t *rapid.T) {
		snapshot := generate.Snapshot(generate.Shape{
			Queues: rapid.IntRange(1, 5).Draw(t, "queues"), Jobs: 8, Tasks: 24, Nodes: 4, Seed: rapid.Uint64().Draw(t, "seed"),
		})
		vary := func(r *apportionv1.Resource) {
			for i, d := range r.GetDimensions() {
				r.Amounts[i] = drawAmount(t, snapshot.GetDimensions()[d])
			}
		}
		for _, q := range snapshot.GetQueues() {
			vary(q.GetGuarantee())
			vary(q.GetCapability())
			vary(q.GetDeserved())
		}
		for _, j := range snapshot.GetJobs() {
			vary(j.GetMinResources())
			for _, g := range j.GetGroups() {
				vary(g.GetRequest())
			}
		}
		policy, _ := client.Preset(rapid.SampledFrom([]string{"proportion", "capacity", "fair"}).Draw(t, "policy"))
		steps := []*apportionv1.Step{
			{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{}}},
			{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
			{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{}}},
		}
		for j := range uint32(4) {
			jobs := &apportionv1.Selector{Indices: []uint32{j}}
			steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{Job: jobs}}},
				&apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: &apportionv1.RemediesStep{Job: jobs}}},
				&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Jobs: jobs}}})
		}
		answered, err := decider.Simulate(t.Context(), client.Input{Snapshot: snapshot, Policy: policy, Texts: true}, steps...)
		require.NoError(t, err)
		check := func(text string) {
			read++
			require.Empty(t, mixed(text))
		}
		sentences(answered.Basis.ProtoReflect(), check)
		for i, answer := range answered.Answers {
			require.NoError(t, answered.Err(i), fmt.Sprint(steps[i]))
			sentences(answer.ProtoReflect(), check)
		}
	})
	require.Greater(t, read, 1000)
}
