package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	adapter "github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	wirekueue "github.com/apportion/apportion/internal/decode/kueue"
	"github.com/apportion/apportion/internal/test/recording"
)

// kueueCase is a recorded case of Kueue, whose form testdata/kueue/README.md describes.
type kueueCase struct {
	Schema    int               `json:"schema"`
	Kueue     string            `json:"kueue"`
	Profile   string            `json:"profile"`
	Seed      int64             `json:"seed"`
	Name      string            `json:"name"`
	Config    kueueConfig       `json:"config"`
	Manifests []json.RawMessage `json:"manifests"`
	Expect    json.RawMessage   `json:"expect"`
	Unstable  []string          `json:"unstable"`
}

type kueueConfig struct {
	FairSharing *struct {
		Strategies []string `json:"preemptionStrategies"`
	} `json:"fairSharing"`
	QuotaCheckStrategy string          `json:"quotaCheckStrategy"`
	FeatureGates       map[string]bool `json:"featureGates"`
	Now                time.Time       `json:"now"`
}

// cycleProfile is the profile of whole cycles.
const cycleProfile = "cycle"

// readKueue decodes a case of Kueue; false if the line is none.
func readKueue(line recording.Line) (*kueueCase, bool) {
	var c kueueCase
	if json.Unmarshal(line.Data, &c) != nil || c.Kueue == "" || c.Schema != Schema || c.Expect == nil {
		return nil, false
	}
	return &c, true
}

// group is the profile; hand-made cases are a group of their own.
func (c *kueueCase) group() string {
	if c.Name != "" {
		return "kueue probes"
	}
	return "kueue " + c.Profile
}

func (c *kueueCase) label() string {
	if c.Name != "" {
		return c.Name
	}
	return strconv.FormatInt(c.Seed, 10)
}

// settings returns the message of the plugin. It fails for a gate or a value that is not known.
func (c *kueueCase) settings() (*apportionv1.Kueue, error) {
	// Only the profile cycle was recorded with a whole scheduler; the others with a preemptor whose order knows no timeouts.
	m := &apportionv1.Kueue{
		Gates: &apportionv1.KueueGates{}, IgnoreUndeclared: c.Config.QuotaCheckStrategy == "IgnoreUndeclared",
		RequeueByCreation: c.Profile != cycleProfile,
	}
	if c.Config.QuotaCheckStrategy != "" && !m.IgnoreUndeclared {
		return nil, fmt.Errorf("quotaCheckStrategy %q", c.Config.QuotaCheckStrategy)
	}
	if f := c.Config.FairSharing; f != nil {
		m.FairSharing = &apportionv1.KueueFairSharing{}
		for _, name := range f.Strategies {
			strategy, ok := map[string]apportionv1.KueueStrategy{
				"LessThanOrEqualToFinalShare": apportionv1.KueueStrategy_KUEUE_STRATEGY_LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
				"LessThanInitialShare":        apportionv1.KueueStrategy_KUEUE_STRATEGY_LESS_THAN_INITIAL_SHARE,
			}[name]
			if !ok {
				return nil, fmt.Errorf("strategy %q", name)
			}
			m.FairSharing.Strategies = append(m.FairSharing.Strategies, strategy)
		}
	}
	gates := m.Gates.ProtoReflect()
	for name, on := range c.Config.FeatureGates {
		if name == "UnadmittedWorkloadsObservability" {
			continue // It only fills noFitReason.
		}
		fields, found := gates.Descriptor().Fields(), false
		for i := range fields.Len() {
			if field := fields.Get(i); strings.EqualFold(strings.ReplaceAll(string(field.Name()), "_", ""), name) {
				gates.Set(field, gates.NewField(field))
				m.Gates.ProtoReflect().Set(field, valueOf(on))
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("feature gate %q", name)
		}
	}
	return m, nil
}

// snapshot reads the manifests.
func (c *kueueCase) snapshot() (*apportionv1.Snapshot, error) {
	list, err := json.Marshal(c.Manifests)
	if err != nil {
		return nil, err
	}
	cluster, err := adapter.Read([]objects.Source{{Name: "manifests", Data: list}}, c.Config.Now)
	if err != nil {
		return nil, err
	}
	return cluster.Snapshot, nil
}

// session opens the policy on the case, whose snapshot goes through its encoding.
func (c *kueueCase) session(snapshot *apportionv1.Snapshot, settings *apportionv1.Kueue) (*kueue.Session, error) {
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return nil, err
	}
	m, err := decode.CompileBytes(data)
	if err != nil {
		return nil, err
	}
	cluster, err := wirekueue.ClusterOf(m)
	if err != nil {
		return nil, err
	}
	var faults []string
	read := wirekueue.Settings(settings, func(path, format string, args ...any) {
		faults = append(faults, path+": "+fmt.Sprintf(format, args...))
	})
	if len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "\n"))
	}
	compiled, err := kueue.Compile(cluster, read)
	if err != nil {
		return nil, err
	}
	return compiled.NewSession(), nil
}

// notHeld are the answers that nobody is held to.
const (
	ruleUnstable Rule = "unstable"
	ruleText     Rule = "text"
)

// check asks the case's questions and compares the answers.
func (c *kueueCase) check(only string) *Result {
	result := &Result{Case: &Case{Profile: c.group(), Name: c.label()}, Unheld: map[Rule]int{}}
	want, err := c.expected()
	var got any = absent{}
	if err == nil {
		got, err = c.answers()
	}
	if err != nil {
		result.Failures = append(result.Failures, err.Error())
	}
	c.leaveCycles()
	compared := comparison{only: only, unheld: result.Unheld}
	want, got = c.held("", want, &compared), c.held("", got, nil)
	compared.tree("", nil, want, []any{got})
	result.Answers, result.Equal, result.Differences = compared.answers, compared.equal, compared.differ
	return result
}

// leaveCycles adds to what is unstable the readiness of queues below a cycle of cohorts, which depends on the order of events.
func (c *kueueCase) leaveCycles() {
	snapshot, err := c.snapshot()
	if err != nil {
		return
	}
	parents := map[string]string{}
	for _, q := range snapshot.GetQueues() {
		if q.GetKueue().GetCohort() {
			parents[q.GetName()] = q.GetParent()
		}
	}
	for _, q := range snapshot.GetQueues() {
		at := q.GetParent()
		for range parents {
			at = parents[at]
		}
		if at != "" && parents[at] != "" {
			c.Unstable = append(c.Unstable, "/clusterQueues/"+q.GetName()+"/active", "/clusterQueues/"+q.GetName()+"/reason")
		}
	}
}

// expected decodes the recorded answers. Whole numbers that a float64 does not hold exactly are texts.
func (c *kueueCase) expected() (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(c.Expect))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	return plain(v)
}

// exact is the largest whole number up to which all are exact in a float64.
const exact = 1 << 53

func plain(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case object:
		for key, below := range v {
			if v[key], err = plain(below); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, below := range v {
			if v[i], err = plain(below); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if n, err := v.Int64(); err == nil && (n > exact || n < -exact) {
			return v.String(), nil
		}
		return v.Float64()
	}
	return v, nil
}

// kueueAmount is an amount in the recorded form.
func kueueAmount(a kueue.Amount) any {
	switch {
	case a == kueue.Unlimited:
		return "unlimited"
	case a > exact || a < -exact:
		return strconv.FormatInt(int64(a), 10)
	}
	return float64(a)
}

// weighted is a weighted share in the recorded form.
func weighted(share float64) string {
	if math.IsInf(share, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(share, 'f', -1, 64)
}

// held returns an answer without what is not held: unstable parts, English texts, and what Kueue says on insertion. count counts them.
func (c *kueueCase) held(pointer string, v any, count *comparison) any {
	drop := func(rule Rule, v any) {
		if count != nil && count.looksAt(pointer) {
			count.unheld[rule] += leaves(v)
		}
	}
	if slices.Contains(c.Unstable, pointer) {
		drop(ruleUnstable, v)
		return absent{}
	}
	switch v := v.(type) {
	case object:
		out := object{}
		for key, below := range v {
			if key == "message" || pointer == "" && key == "errors" {
				drop(ruleText, below)
				continue
			}
			if kept := c.held(pointer+"/"+escape(key), below, count); kept != (absent{}) {
				out[key] = kept
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, below := range v {
			out[i] = c.held(pointer+"/"+strconv.Itoa(i), below, count)
		}
		return out
	}
	return v
}
