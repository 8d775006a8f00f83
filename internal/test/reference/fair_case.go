package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// fairGroup is the profile of the cases of `fair`, whose form testdata/fair/README.md describes.
const fairGroup = "fair"

// fairCase is one recorded case of `fair`.
type fairCase struct {
	ID        string            `json:"id"`
	Snapshot  json.RawMessage   `json:"snapshot"`
	Settings  fairSettings      `json:"settings"`
	Questions []fairQuestion    `json:"questions"`
	Answers   []json.RawMessage `json:"answers"`
}

type fairSettings struct {
	Base             string            `json:"base"`
	ReserveGuarantee bool              `json:"reserve_guarantee"`
	Quanta           map[string]uint64 `json:"quanta"`
	Memory           *memorySettings   `json:"memory"`
}

// memorySettings are those of past usage; what is absent has its default.
type memorySettings struct {
	Gain     *uint32            `json:"gain"`
	Power    *uint32            `json:"power"`
	Price    *map[string]uint32 `json:"price"`
	Owners   bool               `json:"owners"`
	NoSaving bool               `json:"no_saving"`
}

// fairQuestion is one question; Kind says which fields mean something.
type fairQuestion struct {
	Kind       string   `json:"kind"`
	Queue      string   `json:"queue"`
	Task       string   `json:"task"`
	Job        string   `json:"job"`
	Tasks      []string `json:"tasks"`
	Claimant   []string `json:"claimant"`
	Candidates []string `json:"candidates"`
	Room       any      `json:"room"`
}

// readFair decodes a case of `fair`; false if the line is none.
func readFair(line Line) (*fairCase, bool) {
	var c fairCase
	if json.Unmarshal(line.Data, &c) != nil || c.ID == "" || c.Snapshot == nil || len(c.Questions) != len(c.Answers) {
		return nil, false
	}
	return &c, len(c.Questions) > 0
}

// policy is the policy with the case's settings.
func (c *fairCase) policy() (*apportionv1.Policy, error) {
	base, ok := apportionv1.FairBase_value["FAIR_BASE_"+c.Settings.Base]
	if !ok {
		return nil, fmt.Errorf("settings: no base %q", c.Settings.Base)
	}
	fair := &apportionv1.Fair{Base: apportionv1.FairBase(base), ReserveGuarantee: c.Settings.ReserveGuarantee}
	for _, name := range slices.Sorted(maps.Keys(c.Settings.Quanta)) {
		fair.Quanta = append(fair.Quanta, &apportionv1.Quantum{Name: name, Amount: c.Settings.Quanta[name]})
	}
	fair.Memory = c.Settings.Memory.message()
	plugin := &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Fair{Fair: fair}}
	return &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{plugin}}}}, nil
}

// check asks the case's questions along all ways and compares the answers, exactly.
func (c *fairCase) check(ctx context.Context, ways []Way, only string) *Result {
	result := &Result{Case: &Case{Profile: c.group(), Name: c.ID}}
	want, err := c.expected()
	got := make([]any, len(ways))
	for i, way := range ways {
		var failure error
		if got[i], failure = c.ask(ctx, way, err); failure != nil {
			result.Failures = append(result.Failures, way.Name+": "+failure.Error())
			got[i] = absent{}
		}
	}
	compared := comparison{only: only, unheld: map[Rule]int{}}
	compared.tree("", nil, want, got)
	result.Answers, result.Equal, result.Unheld, result.Differences = compared.answers, compared.equal, compared.unheld, compared.differ
	return result
}

// ask asks along one way, unless the case could not be read.
func (c *fairCase) ask(ctx context.Context, way Way, unreadable error) (any, error) {
	var snapshot apportionv1.Snapshot
	if unreadable != nil {
		return nil, unreadable
	}
	data, err := c.contractual()
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	if err := protojson.Unmarshal(data, &snapshot); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	policy, err := c.policy()
	if err != nil {
		return nil, err
	}
	if len(c.Questions) == 1 && c.Questions[0].Kind == checkKey {
		return c.invalid(ctx, way, &snapshot, policy)
	}
	session, err := way.Open(ctx, &snapshot, policy)
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close() }()
	asked := newFairAsked(&snapshot, policy, session)
	asked.memory = c.group() == memoryGroup
	return asked.answers(ctx, c.Questions)
}

// expected is the recorded answers by position and kind, in the form in which ours are put: numbers as text, so that nothing is tolerated,
// what has no order by its name, and refusals without their texts, which are free.
func (c *fairCase) expected() (object, error) {
	out := object{}
	for i, q := range c.Questions {
		decoder := json.NewDecoder(bytes.NewReader(c.Answers[i]))
		decoder.UseNumber()
		var answer any
		if err := decoder.Decode(&answer); err != nil {
			return nil, fmt.Errorf("answers[%d]: %w", i, err)
		}
		out[fairKey(i, q)] = fairForm(q.Kind, exactly(answer))
	}
	return out, nil
}

func fairKey(i int, q fairQuestion) string { return fmt.Sprintf("%d %s", i, q.Kind) }

// exactly turns numbers into text.
func exactly(v any) any {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case object:
		for key := range v {
			v[key] = exactly(v[key])
		}
	case []any:
		for i := range v {
			v[i] = exactly(v[i])
		}
	}
	return v
}

// Keys of answers that several kinds of cases have. An inner queue is a node, too.
const (
	nodeKey, usageKey = "node", "usage"
	clusterQueueKey   = "clusterQueue"
	modeKey           = "mode"
)

// refusedText is the key of a refusal, and stands for its text.
const refusedText = "refused"

// fairForm brings a recorded answer into the form in which it is compared.
func fairForm(kind string, answer any) any {
	o, ok := answer.(object)
	if !ok {
		return answer
	}
	if _, refused := o[refusedText]; refused {
		o[refusedText] = refusedText
	}
	if kind == checkKey {
		o["warnings"] = sortedTexts(o["warnings"])
	}
	if kind != "shares" && kind != weightsKey {
		return o
	}
	for part, key := range map[string]string{queuesKey: "queue", "nodes": nodeKey} {
		named := object{}
		list, _ := o[part].([]any)
		for _, each := range list {
			entry, _ := each.(object)
			named[fmt.Sprint(entry[key], " ", entry["dimension"])] = entry
		}
		o[part] = named
	}
	for _, part := range []string{"refusedQueues", "refusedJobs"} {
		texts, _ := o[part].(object)
		for name := range texts {
			texts[name] = refusedText
		}
	}
	return o
}
