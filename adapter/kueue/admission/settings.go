package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/apportion/apportion/adapter/connection"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
	"github.com/apportion/apportion/internal/duration"
)

// ControllerName is the spec.controllerName of the AdmissionChecks that this controller serves.
const ControllerName = "apportion.dev/admission"

// Settings of a Controller.
type Settings struct {
	connection.Settings

	// Evict lets Workloads leave for others: all (the default), reclaim (of other queues only), preempt (of the same queue only), none.
	Evict string `json:"evict,omitempty"`
	// Hold is how long a Workload that the policy refuses keeps its quota before it is retried. Default: 5m.
	Hold metav1.Duration `json:"hold"`
	// RetryAfter is how long a Workload that was retried or evicted waits before Kueue gives it quota again, at least 3s. Default: 30s.
	RetryAfter metav1.Duration `json:"retryAfter"`
	// RejectAfter is the number of retries after which a Workload that the policy refuses is rejected, which deactivates it. 0: never.
	RejectAfter int `json:"rejectAfter,omitempty"`
	// QuotaTimeout is how long room is kept for a Workload to which Kueue gives no quota. Default: 1m.
	QuotaTimeout metav1.Duration `json:"quotaTimeout"`
	// Interval is the shortest time between two decisions. Default: 200ms.
	Interval metav1.Duration `json:"interval"`
	// Lease is the NAMESPACE/NAME of the Lease by which one of several controllers acts. Empty: there is one controller.
	Lease string `json:"lease,omitempty"`
}

// leastRetry is the least RetryAfter. Kueue tries Workloads that found no quota again within a second after some became free, and writes
// times in whole seconds.
const leastRetry = 3 * time.Second

// ReadSettings reads settings in YAML, with defaults. The error names every faulty field.
func ReadSettings(data []byte) (*Settings, error) {
	s := &Settings{}
	written, err := yaml.ToJSON(data)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data)) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(written))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(s); err != nil {
			return nil, err
		}
	}
	s.complete()
	if faults := s.faults(); len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "; "))
	}
	return s, nil
}

func (s *Settings) complete() {
	s.Complete()
	if s.Evict == "" {
		s.Evict = connection.EvictAll
	}
	for field, value := range map[*time.Duration]time.Duration{
		&s.Hold.Duration: 5 * time.Minute, &s.RetryAfter.Duration: 30 * time.Second, &s.QuotaTimeout.Duration: time.Minute,
		&s.Interval.Duration: 200 * time.Millisecond,
	} {
		if *field == 0 {
			*field = value
		}
	}
}

func (s *Settings) faults() []string {
	faults := s.Faults()
	if fault := connection.Evict(s.Evict); fault != "" {
		faults = append(faults, fault)
	}
	for _, set := range []struct {
		field string
		value time.Duration
	}{
		{"hold", s.Hold.Duration},
		{"retryAfter", s.RetryAfter.Duration},
		{"quotaTimeout", s.QuotaTimeout.Duration},
		{"interval", s.Interval.Duration},
	} {
		if set.value < 0 {
			faults = append(faults, fmt.Sprintf("%s: %s is negative", set.field, duration.Format(set.value)))
		}
	}
	if after := s.RetryAfter.Duration; after >= 0 && after < leastRetry {
		faults = append(faults, fmt.Sprintf(
			"retryAfter: %s is less than %s, in which Kueue tries the Workloads for which others left",
			duration.Format(after), duration.Format(leastRetry)))
	}
	if s.RejectAfter < 0 {
		faults = append(faults, fmt.Sprintf("rejectAfter: %d is negative", s.RejectAfter))
	}
	namespace, name, _ := strings.Cut(s.Lease, "/")
	if s.Lease != "" && (namespace == "" || name == "" || strings.Contains(name, "/")) {
		faults = append(faults, fmt.Sprintf("lease: %q is not NAMESPACE/NAME", s.Lease))
	}
	return faults
}

// connect returns the client and the policy. Of the preset fair it takes the form that `apportion convert --to fair` writes for Kueue:
// shares count from nominal quotas, and a Workload that runs may be evicted as a whole.
func (s *Settings) connect() (*client.Client, client.Input, error) {
	decide, in, err := s.Connect()
	if err != nil {
		return nil, in, err
	}
	if decidesAsKueue(in.Policy) {
		return nil, in, errors.New("policy: kueue decides as Kueue itself does: name another one, such as fair")
	}
	if s.Policy == "fair" && in.Policy != nil {
		asfair.Adapt(in.Policy)
	}
	return decide, in, nil
}

func decidesAsKueue(policy *apportionv1.Policy) bool {
	for _, tier := range policy.GetTiers() {
		for _, p := range tier.GetPlugins() {
			if p.GetKueue() != nil {
				return true
			}
		}
	}
	return false
}
