package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Profiles of the cases of `fair`, whose forms testdata/fair/README.md and testdata/memory/README.md describe.
const (
	FairGroup   = "fair"
	MemoryGroup = "memory"
)

// Fair is one recorded case of `fair`.
type Fair struct {
	ID        string            `json:"id"`
	Snapshot  json.RawMessage   `json:"snapshot"`
	Settings  FairSettings      `json:"settings"`
	Questions []FairQuestion    `json:"questions"`
	Answers   []json.RawMessage `json:"answers"`
}

// FairSettings are those of the policy.
type FairSettings struct {
	Base             string            `json:"base"`
	ReserveGuarantee bool              `json:"reserve_guarantee"`
	Quanta           map[string]uint64 `json:"quanta"`
	Memory           *MemorySettings   `json:"memory"`
}

// MemorySettings are those of past usage; what is absent has its default.
type MemorySettings struct {
	Gain     *uint32            `json:"gain"`
	Power    *uint32            `json:"power"`
	Price    *map[string]uint32 `json:"price"`
	Owners   bool               `json:"owners"`
	NoSaving bool               `json:"no_saving"`
}

// FairQuestion is one question; Kind says which fields mean something.
type FairQuestion struct {
	Kind       string   `json:"kind"`
	Queue      string   `json:"queue"`
	Task       string   `json:"task"`
	Job        string   `json:"job"`
	Tasks      []string `json:"tasks"`
	Claimant   []string `json:"claimant"`
	Candidates []string `json:"candidates"`
	Room       any      `json:"room"`
}

// ReadFair decodes a case of `fair`; false if the line is none.
func ReadFair(line Line) (*Fair, bool) {
	var c Fair
	if json.Unmarshal(line.Data, &c) != nil || c.ID == "" || c.Snapshot == nil || len(c.Questions) != len(c.Answers) {
		return nil, false
	}
	return &c, len(c.Questions) > 0
}

// Group is the profile of the case.
func (c *Fair) Group() string {
	if strings.HasPrefix(c.ID, MemoryGroup) {
		return MemoryGroup
	}
	return FairGroup
}

// Input returns the snapshot and the policy with the case's settings.
func (c *Fair) Input() (*apportionv1.Snapshot, *apportionv1.Policy, error) {
	data, err := c.contractual()
	if err != nil {
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	snapshot := &apportionv1.Snapshot{}
	if err := protojson.Unmarshal(data, snapshot); err != nil {
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	base, ok := apportionv1.FairBase_value["FAIR_BASE_"+c.Settings.Base]
	if !ok {
		return nil, nil, fmt.Errorf("settings: no base %q", c.Settings.Base)
	}
	fair := &apportionv1.Fair{Base: apportionv1.FairBase(base), ReserveGuarantee: c.Settings.ReserveGuarantee}
	for _, name := range slices.Sorted(maps.Keys(c.Settings.Quanta)) {
		fair.Quanta = append(fair.Quanta, &apportionv1.Quantum{Name: name, Amount: c.Settings.Quanta[name]})
	}
	fair.Memory = c.Settings.Memory.message()
	plugin := &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Fair{Fair: fair}}
	return snapshot, &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{plugin}}}}, nil
}

// message returns the settings as the contract has them; nil for none.
func (m *MemorySettings) message() *apportionv1.FairMemory {
	if m == nil {
		return nil
	}
	out := &apportionv1.FairMemory{Gain: m.Gain, Power: m.Power, Owners: m.Owners, NoSaving: m.NoSaving}
	if m.Price != nil {
		out.Prices = &apportionv1.Prices{}
		for _, name := range slices.Sorted(maps.Keys(*m.Price)) {
			out.Prices.Prices = append(out.Prices.Prices, &apportionv1.Price{Dimension: name, Amount: (*m.Price)[name]})
		}
	}
	return out
}

type object = map[string]any

// contractual is the snapshot in the contract's JSON. Recordings have names of their own: `dimension` and `amount` of a resource, usage in
// `amount`, and kinds of budgets without their prefix. Amounts of usage that the contract cannot express become -1, which it refuses just
// as it would them.
func (c *Fair) contractual() ([]byte, error) {
	var snapshot object
	decoder := json.NewDecoder(strings.NewReader(string(c.Snapshot)))
	decoder.UseNumber()
	if err := decoder.Decode(&snapshot); err != nil {
		return nil, err
	}
	if c.Group() == MemoryGroup {
		nameUsage(snapshot)
	}
	nameAmounts(snapshot)
	return json.Marshal(snapshot)
}

// nameUsage gives usage its name, and kinds of budgets their prefix.
func nameUsage(snapshot object) {
	usage := func(of any, key string) {
		o, _ := of.(object)
		if u, ok := o[key].(object); ok {
			u["quantumSeconds"] = expressible(u["amount"])
			delete(u, "amount")
		}
	}
	usage(snapshot["memory"], "offered")
	queues, _ := snapshot["queues"].([]any)
	for _, q := range queues {
		queue, _ := q.(object)
		usage(queue, "usage")
		if budget, ok := queue["budget"].(object); ok {
			budget["kind"] = fmt.Sprint("BUDGET_KIND_", budget["kind"])
			usage(budget, "amount")
			usage(budget, "spent")
		}
		owners, _ := queue["owners"].([]any)
		for _, o := range owners {
			usage(o, "usage")
		}
	}
}

// nameAmounts gives the lists of every resource and usage below a value their names.
func nameAmounts(value any) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			nameAmounts(each)
		}
	case object:
		for old, name := range map[string]string{"dimension": "dimensions", "amount": "amounts"} {
			if list, ok := v[old].([]any); ok {
				v[name] = list
				delete(v, old)
			}
		}
		for _, each := range v {
			nameAmounts(each)
		}
	}
}

// expressible returns amounts with -1 for those that have more than 64 bits.
func expressible(amounts any) []any {
	list, _ := amounts.([]any)
	out := make([]any, 0, len(list))
	for _, amount := range list {
		x, ok := new(big.Int).SetString(fmt.Sprint(amount), 10)
		if !ok || !x.IsInt64() {
			amount = "-1"
		}
		out = append(out, amount)
	}
	return out
}
