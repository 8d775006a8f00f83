package fairshare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// documents decodes each document of YAML or JSON sources.
func documents[T any](sources []Source, use func(*T)) error {
	const lookahead = 4096
	for _, s := range sources {
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(s.Data), lookahead); ; {
			one := new(T)
			err := decoder.Decode(one)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			use(one)
		}
	}
	return nil
}

// kaiObject is a SchedulingShard or a Queue of KAI.
type kaiObject struct {
	Version  string `json:"apiVersion"`
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec  kaiSpec     `json:"spec"`
	Items []kaiObject `json:"items"`
}

// kaiSpec is the specification of either.
type kaiSpec struct {
	kaiFields

	// unread are the names of the fields that are not read.
	unread []string
}

// UnmarshalJSON reads the fields that are known and names the others.
func (s *kaiSpec) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, &s.kaiFields), json.Unmarshal(data, &all)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains([]string{"kValue", "usageDBConfig", "parentQueue", "priority", "resources", "displayName"}, name) {
			s.unread = append(s.unread, name)
		}
	}
	return nil
}

type kaiFields struct {
	KValue  *float64 `json:"kValue"`
	UsageDB *struct {
		ClientType       string `json:"clientType"`
		ConnectionString string `json:"connectionString"`
		Params           struct {
			HalfLife   string `json:"halfLifePeriod"`
			WindowSize string `json:"windowSize"`
			WindowType string `json:"windowType"`
		} `json:"usageParams"`
	} `json:"usageDBConfig"`
	Parent    string                 `json:"parentQueue"`
	Priority  *int32                 `json:"priority"`
	Resources map[string]kaiResource `json:"resources"`
}

type kaiResource struct {
	Quota  kaiNumber `json:"quota"`
	Weight kaiNumber `json:"overQuotaWeight"`
	Limit  kaiNumber `json:"limit"`
}

// kaiNumber is a number; wrong is what stands in its place if that is none.
type kaiNumber struct {
	value *float64
	wrong string
}

// UnmarshalJSON reads a number, and keeps what is none: only the queue knows where it stands.
func (n *kaiNumber) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &n.value) != nil {
		n.value, n.wrong = nil, string(data)
	}
	return nil
}

// kai reads a SchedulingShard and Queues.
func (p *proposal) kai(sources []Source) error {
	shards := 0
	var faults []error
	var read func(o *kaiObject)
	read = func(o *kaiObject) {
		for _, name := range o.Spec.unread {
			p.note("%s %s: %s is not carried over", o.Kind, o.Metadata.Name, name)
		}
		switch o.Kind {
		case "SchedulingShard":
			if shards++; shards == 1 {
				p.shard(o)
			} else {
				p.note("SchedulingShard %s is left out: one policy is written, of the first", o.Metadata.Name)
			}
		case "Queue":
			if o.Version != "" && !strings.HasPrefix(o.Version, "scheduling.run.ai/") {
				p.note("Queue %s of %s is left out: it is not one of KAI", o.Metadata.Name, o.Version)
				break
			}
			faults = append(faults, p.kaiQueue(o))
		case "List", "QueueList", "SchedulingShardList", "":
		default:
			p.note("%s %s is not read", o.Kind, o.Metadata.Name)
		}
		for i := range o.Items {
			read(&o.Items[i])
		}
	}
	if err := errors.Join(documents(sources, read), errors.Join(faults...)); err != nil {
		return err
	}
	if shards == 0 {
		return errors.New("there is no SchedulingShard")
	}
	p.base = apportionv1.FairBase_FAIR_BASE_DESERVED
	p.unprotected = []apportionv1.Decision{apportionv1.Decision_DECISION_RECLAIMABLE, apportionv1.Decision_DECISION_PREEMPTABLE}
	p.note("KAI reclaims whole jobs: gangs are not protected here either (the plugin gang would protect each, and every single pod), " +
		"but one " +
		"task of a gang may be taken alone, and the gang stops; take \"disabled\" out of the policy to protect gangs")
	return nil
}

func (p *proposal) shard(o *kaiObject) {
	db := o.Spec.UsageDB
	if db == nil {
		p.note("SchedulingShard %s has no usageDBConfig: KAI does not use past usage, and neither does the policy", o.Metadata.Name)
		return
	}
	k := 1.0
	if o.Spec.KValue != nil {
		k = *o.Spec.KValue
	}
	const one, most = 1 << 16, 255
	if !(k >= 0 && k <= most) {
		p.note("kValue %v is not from 0 to %d, which is the greatest gain", k, most)
		k = math.Max(0, math.Min(k, most))
	}
	p.settings.Gain, p.settings.Power = new(uint32(math.Round(k*one))), new(uint32(1))
	half, err := time.ParseDuration(db.Params.HalfLife)
	if err != nil || half <= 0 {
		half = 7 * 24 * time.Hour
		p.note("halfLifePeriod %q is no time: in KAI usage then does not decay within the window; 7 days are taken", db.Params.HalfLife)
	}
	p.halfLife(half)
	if db.Params.WindowSize != "" {
		p.note("windowSize %s is not needed: usage counts for 8 half-lives", db.Params.WindowSize)
	}
	if kind := db.Params.WindowType; kind != "" && kind != "sliding" {
		p.note("windowType %s: usage is not reset; budgets have periods", kind)
	}
	if db.ConnectionString != "" {
		p.note("fill the ledger from the same database: apportion usage import --from prometheus --url %s", db.ConnectionString)
	}
	p.note("KAI takes back by past usage, and compares only queues that ask; here taking back is decided by weight, and all queues count")
}

// kaiUnits are the names and units of the resources of KAI's queues.
var kaiUnits = map[string]struct{ name, unit string }{"gpu": {gpu, ""}, "cpu": {"cpu", "m"}, memory: {memory, "M"}}

// kaiQueue reads a queue: its quota is what it deserves, its weight that of GPUs. The error names each field that is no number.
func (p *proposal) kaiQueue(o *kaiObject) error {
	q := Queue{Name: o.Metadata.Name, Parent: o.Spec.Parent, Weight: 1, Deserved: map[string]string{}, Capability: map[string]string{}}
	if o.Spec.Priority != nil {
		q.Priority = *o.Spec.Priority
		p.priority(&q)
	}
	var faults []error
	for _, kind := range slices.Sorted(maps.Keys(o.Spec.Resources)) {
		r, unit := o.Spec.Resources[kind], kaiUnits[kind]
		if unit.name == "" {
			p.note("queue %s: %s is no resource of KAI's queues, and is left out", q.Name, kind)
			continue
		}
		for _, f := range [...]struct {
			name string
			of   kaiNumber
			to   map[string]string
		}{{"quota", r.Quota, q.Deserved}, {"limit", r.Limit, q.Capability}, {"overQuotaWeight", r.Weight, nil}} {
			const most = 1 << 53
			switch x := f.of.value; {
			case f.of.wrong != "":
				faults = append(faults, fmt.Errorf("queue %s: spec.resources.%s.%s: %s is not a number", q.Name, kind, f.name, f.of.wrong))
			case x == nil || *x < 0 || f.to == nil:
			case *x >= most:
				p.note("queue %s: the %s of %s is beyond all clusters, and is left out", q.Name, f.name, kind)
			default:
				f.to[unit.name] = strconv.FormatFloat(*x, 'f', -1, 64) + unit.unit
			}
		}
		if quota := r.Quota.value; quota != nil && *quota < 0 {
			p.note("queue %s has an unlimited quota of %s, which is not carried over: fair divides what there is", q.Name, kind)
		}
		if w := r.Weight.value; kind == "gpu" && w != nil {
			if *w < 0 || *w >= 1<<31 || *w != math.Trunc(*w) {
				p.note("queue %s: overQuotaWeight %v is rounded to a whole number", q.Name, *w)
			}
			q.Weight = uint32(math.Max(0, math.Min(math.Round(*w), math.MaxInt32)))
		}
	}
	p.Queues = append(p.Queues, q)
	return errors.Join(faults...)
}

// priority notes, of the first queue that has one, what its priority means here.
func (p *proposal) priority(of *Queue) {
	if !slices.ContainsFunc(p.Queues, func(q Queue) bool { return q.Priority != 0 }) && of.Priority != 0 {
		p.note("queue %s and others have priorities: in KAI a queue of higher priority gets what is over quota first; here weights divide "+
			"it, and priority decides ties and order", of.Name)
	}
}

// kueueObject is Kueue's Configuration, or a ConfigMap that holds it.
type kueueObject struct {
	Kind    string            `json:"kind"`
	Data    map[string]string `json:"data"`
	Sharing *struct {
		HalfLife string              `json:"usageHalfLifeTime"`
		Weights  map[string]*float64 `json:"resourceWeights"`
	} `json:"admissionFairSharing"`
}

// kueue reads the Configuration of Kueue's manager.
func (p *proposal) kueue(sources []Source) error {
	found := false
	var nested []Source
	read := func(o *kueueObject) {
		for _, name := range slices.Sorted(maps.Keys(o.Data)) {
			if strings.Contains(o.Data[name], "kind: Configuration") {
				nested = append(nested, Source{Name: name, Data: []byte(o.Data[name])})
			}
		}
		if o.Kind == "Configuration" {
			found = true
			p.admission(o)
		}
	}
	if err := documents(sources, read); err != nil {
		return err
	}
	if err := documents(nested, read); err != nil {
		return err
	}
	if !found {
		return errors.New("there is no Configuration of Kueue, and no ConfigMap that holds one")
	}
	p.note("queues are not converted: the policy kueue reads ClusterQueues and Cohorts as they are, and decides as Kueue does")
	return nil
}

func (p *proposal) admission(o *kueueObject) {
	if o.Sharing == nil {
		p.note("there is no admissionFairSharing: Kueue does not use past usage, and neither does the policy")
		return
	}
	half, err := time.ParseDuration(o.Sharing.HalfLife)
	if err != nil || half <= 0 {
		p.note("usageHalfLifeTime %q: usage is forgotten at once, so the policy has no memory", o.Sharing.HalfLife)
		return
	}
	p.halfLife(half)
	p.settings.Owners = true
	p.note("LocalQueues become the owners of jobs: Workloads name theirs, PodGroups need the annotation apportion.dev/owner")
	p.note("usageSamplingInterval is not needed: tasks are seen when they start and end")
	p.note("there is no entry penalty: what an owner's jobs hold, and what is given to them in the same pass, counts at once")
	if o.Sharing.Weights == nil {
		p.note("resourceWeights are absent: in Kueue a byte of memory then weighs as much as a core; here owners are compared by " +
			"their parts of the cluster")
		return
	}
	prices := map[string]*big.Rat{}
	for _, name := range slices.Sorted(maps.Keys(o.Sharing.Weights)) {
		weight := o.Sharing.Weights[name]
		if weight == nil || !(*weight >= 0 && *weight < 1<<31) {
			p.note("resourceWeights: that of %s is not carried over", name)
			continue
		}
		prices[name], _ = new(big.Rat).SetString(strconv.FormatFloat(*weight, 'f', 6, 64))
	}
	p.note("resources that resourceWeights do not list weigh 1 in Kueue, and cost nothing here")
	p.prices(prices)
}
