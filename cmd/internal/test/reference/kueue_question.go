package reference

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/recording"
)

// KueueQuestion is what a recorded case of Kueue asks the service.
type KueueQuestion struct {
	// Label is the profile with the seed or the name of the case.
	Label string
	Input *apportionv1.Input
	// Explain are the positions of the steps that explain all workloads.
	Steps   []*apportionv1.Step
	Explain int
	// Nominations are the recorded ones by workload, as far as Kueue itself always gives them. Only the profile victims has them.
	Nominations map[string]KueueNomination
}

// KueueNomination is how a workload would be admitted.
type KueueNomination struct {
	Mode    string
	Borrows uint32
	Counts  []int32
	Partial bool
	// Victims are workloads with the reason, in the order of eviction.
	Victims []string
}

// ReadKueueQuestion decodes a recorded case of Kueue.
func ReadKueueQuestion(line recording.Line) (*KueueQuestion, error) {
	c, ok := readKueue(line)
	if !ok {
		return nil, errors.New("no case of Kueue")
	}
	settings, err := c.settings()
	if err != nil {
		return nil, err
	}
	snapshot, err := c.snapshot()
	if err != nil {
		return nil, err
	}
	q := &KueueQuestion{Label: c.group() + "/" + c.label(), Explain: 1, Input: &apportionv1.Input{
		Source: &apportionv1.Input_Snapshot{Snapshot: snapshot},
		Rule: &apportionv1.Input_Policy{Policy: &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
			{Plugin: &apportionv1.Plugin_Kueue{Kueue: settings}},
		}}}}},
	}}
	every := &apportionv1.Selector{}
	for i := range snapshot.GetJobs() {
		every.Indices = append(every.Indices, uint32(i))
	}
	shares := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}}
	q.Steps = []*apportionv1.Step{
		shares,
		{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{Jobs: every}}},
		{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{}}},
		{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Jobs{Jobs: &apportionv1.Selector{}}}}},
		{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_VOTES}}},
		shares,
		{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}},
		shares,
	}
	q.Nominations, err = c.nominations()
	return q, err
}

// nominations decodes the recorded ones, without those that are unstable anywhere.
func (c *kueueCase) nominations() (map[string]KueueNomination, error) {
	var expect struct {
		Workloads map[string]struct {
			Final *struct {
				Mode    string  `json:"mode"`
				Borrows uint32  `json:"borrows"`
				Counts  []int32 `json:"counts"`
				Partial bool    `json:"partial"`
				Targets []struct {
					Workload string `json:"workload"`
					Reason   string `json:"reason"`
				} `json:"targets"`
			} `json:"final"`
		} `json:"workloads"`
	}
	out := map[string]KueueNomination{}
	if c.Profile != "victims" {
		return out, nil
	}
	if err := json.Unmarshal(c.Expect, &expect); err != nil {
		return nil, err
	}
	for name, w := range expect.Workloads {
		below := "/workloads/" + escape(name) + "/"
		if w.Final == nil || slices.ContainsFunc(c.Unstable, func(p string) bool { return strings.HasPrefix(p+"/", below) }) {
			continue
		}
		n := KueueNomination{Mode: w.Final.Mode, Borrows: w.Final.Borrows, Counts: w.Final.Counts, Partial: w.Final.Partial}
		for _, t := range w.Final.Targets {
			n.Victims = append(n.Victims, fmt.Sprintf("%s %s", t.Workload, t.Reason))
		}
		out[name] = n
	}
	return out, nil
}
