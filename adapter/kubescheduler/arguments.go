package kubescheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"google.golang.org/protobuf/encoding/protojson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Arguments are the args of the plugin in a KubeSchedulerConfiguration.
type Arguments struct {
	// Queues is the path of a file of Queue manifests, such as a mounted ConfigMap. It is read again when it changes.
	Queues string `json:"queues"`
	// Policy is a preset, the path of a policy in YAML or JSON, or that of a volcano-scheduler.conf. Default: fair.
	Policy string `json:"policy,omitempty"`
	// Server is the target of a service, such as dns:///apportion:7171. Empty: the engine in this process decides.
	Server string `json:"server,omitempty"`
	// PolicyName is a policy that the service configures; it replaces Policy.
	PolicyName string `json:"policyName,omitempty"`
	// Plaintext calls the server without TLS. CA, Certificate and Key are PEM files, TokenFile has a bearer token.
	Plaintext   bool   `json:"plaintext,omitempty"`
	CA          string `json:"ca,omitempty"`
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	TokenFile   string `json:"tokenFile,omitempty"`
	// Fallback is what happens while the server does not answer: engine (the default), closed (no further pod of a queue is placed), or
	// open (pods of queues are scheduled as others are; gangs still start whole).
	Fallback string `json:"fallback,omitempty"`
	// QueueLabel of a pod, or else of its namespace, names its queue. Default: apportion.dev/queue.
	QueueLabel string `json:"queueLabel,omitempty"`
	// Evict lets plans evict pods: all (the default), reclaim (of other queues only), preempt (of the same queue only), none.
	Evict string `json:"evict,omitempty"`
	// Interval is the shortest time between two decisions. Default: 200ms.
	Interval metav1.Duration `json:"interval"`
	// PermitTimeout is how long the pods of a gang hold their nodes for the others. Default: 30s.
	PermitTimeout metav1.Duration `json:"permitTimeout"`
	// Deadline of a conversation with the server. Default: 10s.
	Deadline metav1.Duration `json:"deadline"`
}

// The values of Arguments.Fallback and Arguments.Evict.
const (
	fallbackEngine, fallbackClosed, fallbackOpen         = "engine", "closed", "open"
	evictAll, evictReclaim, evictPreempt, evictNone      = "all", "reclaim", "preempt", "none"
	defaultInterval, defaultPermitTimeout, defaultAnswer = 200 * time.Millisecond, 30 * time.Second, 10 * time.Second
)

// readArguments returns the arguments with defaults, or an error that names every faulty field.
func readArguments(object runtime.Object) (*Arguments, error) {
	a := &Arguments{}
	if unknown, ok := object.(*runtime.Unknown); ok && len(unknown.Raw) > 0 {
		data, err := yaml.YAMLToJSON(unknown.Raw)
		if err != nil {
			return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(a); err != nil {
			return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
		}
	}
	a.complete()
	if faults := a.faults(); len(faults) > 0 {
		return nil, fmt.Errorf("args of plugin %s: %s", Name, strings.Join(faults, "; "))
	}
	return a, nil
}

func (a *Arguments) complete() {
	for field, value := range map[*string]string{
		&a.Policy: "fair", &a.Fallback: fallbackEngine, &a.QueueLabel: "apportion.dev/queue", &a.Evict: evictAll,
	} {
		if *field == "" {
			*field = value
		}
	}
	for field, value := range map[*time.Duration]time.Duration{
		&a.Interval.Duration: defaultInterval, &a.PermitTimeout.Duration: defaultPermitTimeout, &a.Deadline.Duration: defaultAnswer,
	} {
		if *field == 0 {
			*field = value
		}
	}
}

func (a *Arguments) faults() (faults []string) {
	add := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	if a.Queues == "" {
		add("queues: the path of a file of Queue manifests is required")
	}
	for _, choice := range []struct {
		field, value string
		of           []string
	}{
		{"fallback", a.Fallback, []string{fallbackEngine, fallbackClosed, fallbackOpen}},
		{"evict", a.Evict, []string{evictAll, evictReclaim, evictPreempt, evictNone}},
	} {
		if !slices.Contains(choice.of, choice.value) {
			add("%s: %q is none of %s", choice.field, choice.value, strings.Join(choice.of, ", "))
		}
	}
	for _, duration := range []struct {
		field string
		value time.Duration
	}{{"interval", a.Interval.Duration}, {"permitTimeout", a.PermitTimeout.Duration}, {"deadline", a.Deadline.Duration}} {
		if duration.value < 0 {
			add("%s: %v is negative", duration.field, duration.value)
		}
	}
	if a.Server == "" {
		for _, field := range [][2]string{
			{"policyName", a.PolicyName}, {"ca", a.CA}, {"certificate", a.Certificate}, {"tokenFile", a.TokenFile},
		} {
			if field[1] != "" {
				add("%s: needs server", field[0])
			}
		}
	}
	if (a.Certificate == "") != (a.Key == "") {
		add("certificate, key: one needs the other")
	}
	return faults
}

// connect returns the client and the policy of the arguments.
func (a *Arguments) connect() (*client.Client, client.Input, error) {
	in := client.Input{PolicyName: a.PolicyName}
	if a.PolicyName == "" {
		policy, err := readPolicy(a.Policy)
		if err != nil {
			return nil, in, fmt.Errorf("policy: %w", err)
		}
		in.Policy = policy
	}
	if a.Server == "" {
		return client.InProcess(), in, nil
	}
	options := []client.Option{client.WithDeadline(a.Deadline.Duration)}
	if a.Fallback == fallbackEngine {
		options = append(options, client.WithFallback(client.FallbackEngine))
	}
	if a.Plaintext {
		options = append(options, client.WithPlaintext())
	} else if a.CA != "" || a.Certificate != "" {
		config, err := client.TLSFiles(a.CA, a.Certificate, a.Key)
		if err != nil {
			return nil, in, fmt.Errorf("ca, certificate, key: %w", err)
		}
		options = append(options, client.WithTLS(config))
	}
	if a.TokenFile != "" {
		options = append(options, client.WithToken(client.TokenFile(a.TokenFile)))
	}
	decide, err := client.Dial(a.Server, options...)
	if err != nil {
		return nil, in, fmt.Errorf("server: %w", err)
	}
	return decide, in, nil
}

func readPolicy(name string) (*apportionv1.Policy, error) {
	if policy, ok := client.Preset(name); ok {
		return policy, nil
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		presets := client.Presets()
		slices.Sort(presets)
		return nil, fmt.Errorf("%q is neither a preset (%s) nor a file", name, strings.Join(presets, ", "))
	}
	if err != nil {
		return nil, err
	}
	source := volcano.Source{Name: name, Data: data}
	if found, ok, err := volcano.FindConfiguration(source); err != nil || ok {
		if err != nil {
			return nil, err
		}
		policy, _, err := volcano.ReadConfiguration(found)
		return policy, err
	}
	policy := &apportionv1.Policy{}
	written, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = protojson.Unmarshal(written, policy)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return policy, nil
}

// readQueues returns the queues of a file of manifests as a snapshot, and the content of the file.
func readQueues(file string) (*apportionv1.Snapshot, []byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("queues: %w", err)
	}
	cluster, err := volcano.ReadManifests([]volcano.Source{{Name: file, Data: data}})
	if err != nil {
		return nil, nil, fmt.Errorf("queues: %w", err)
	}
	if len(cluster.Snapshot.GetQueues()) == 0 {
		return nil, nil, fmt.Errorf("queues: %s has no Queue", file)
	}
	for _, q := range cluster.Snapshot.GetQueues() {
		// In a cluster of Volcano its controller opens a queue; in a file a queue is open unless its status says closed.
		if q.GetState() != apportionv1.QueueState_QUEUE_STATE_CLOSED && q.GetState() != apportionv1.QueueState_QUEUE_STATE_CLOSING {
			q.State = apportionv1.QueueState_QUEUE_STATE_OPEN
		}
	}
	return &apportionv1.Snapshot{Dimensions: cluster.Snapshot.GetDimensions(), Queues: cluster.Snapshot.GetQueues()}, data, nil
}
