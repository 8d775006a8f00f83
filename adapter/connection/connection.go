// Package connection has the settings by which an adapter finds its policy, and the service or the engine in its own process that decides.
// Adapters embed them in their own settings.
package connection

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
)

// Settings say who decides, and by which policy.
type Settings struct {
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
	// Fallback is what happens while the server does not answer: engine (the default) decides in this process; closed admits nothing, and
	// open everything.
	Fallback string `json:"fallback,omitempty"`
	// Deadline of a conversation with the server. Default: 10s.
	Deadline metav1.Duration `json:"deadline"`
}

// The values of Settings.Fallback.
const (
	FallbackEngine = "engine"
	FallbackClosed = "closed"
	FallbackOpen   = "open"
)

const defaultDeadline = 10 * time.Second

// Complete sets the defaults.
func (s *Settings) Complete() {
	s.Policy = cmp.Or(s.Policy, "fair")
	s.Fallback = cmp.Or(s.Fallback, FallbackEngine)
	s.Deadline.Duration = cmp.Or(s.Deadline.Duration, defaultDeadline)
}

// Faults returns a sentence for each faulty field, which begins with its name.
func (s *Settings) Faults() (faults []string) {
	if fault := OneOf("fallback", s.Fallback, FallbackEngine, FallbackClosed, FallbackOpen); fault != "" {
		faults = append(faults, fault)
	}
	if s.Deadline.Duration < 0 {
		faults = append(faults, fmt.Sprintf("deadline: %s is negative", duration.Format(s.Deadline.Duration)))
	}
	if s.Server == "" {
		for _, field := range [][2]string{
			{"policyName", s.PolicyName}, {"ca", s.CA}, {"certificate", s.Certificate}, {"tokenFile", s.TokenFile},
		} {
			if field[1] != "" {
				faults = append(faults, field[0]+": needs server")
			}
		}
	}
	if (s.Certificate == "") != (s.Key == "") {
		faults = append(faults, "certificate, key: one needs the other")
	}
	return faults
}

// OneOf returns the fault of a field that must have one of some values, or "".
func OneOf(field, value string, of ...string) string {
	if slices.Contains(of, value) {
		return ""
	}
	return fmt.Sprintf("%s: %q is none of %s", field, value, strings.Join(of, ", "))
}

// Connect returns the client and the policy. The error names the field.
func (s *Settings) Connect() (*client.Client, client.Input, error) {
	in := client.Input{PolicyName: s.PolicyName}
	if s.PolicyName == "" {
		policy, err := readPolicy(s.Policy)
		if err != nil {
			return nil, in, fmt.Errorf("policy: %w", err)
		}
		in.Policy = policy
	}
	if s.Server == "" {
		return client.InProcess(), in, nil
	}
	options := []client.Option{client.WithDeadline(s.Deadline.Duration)}
	if s.Fallback == FallbackEngine {
		options = append(options, client.WithFallback(client.FallbackEngine))
	}
	if s.Plaintext {
		options = append(options, client.WithPlaintext())
	} else if s.CA != "" || s.Certificate != "" {
		config, err := client.TLSFiles(s.CA, s.Certificate, s.Key)
		if err != nil {
			return nil, in, fmt.Errorf("ca, certificate, key: %w", err)
		}
		options = append(options, client.WithTLS(config))
	}
	if s.TokenFile != "" {
		options = append(options, client.WithToken(client.TokenFile(s.TokenFile)))
	}
	decide, err := client.Dial(s.Server, options...)
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
	source := objects.Source{Name: name, Data: data}
	if found, ok, err := schedulerconf.Find(source); err != nil || ok {
		if err != nil {
			return nil, err
		}
		policy, _, err := schedulerconf.Read(found)
		return policy, err
	}
	policy := &apportionv1.Policy{}
	written, err := yaml.ToJSON(data)
	if err == nil {
		err = protojson.Unmarshal(written, policy)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return policy, nil
}
