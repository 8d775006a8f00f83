package kubescheduler

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/apportion/apportion/adapter/connection"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
)

// Arguments are the args of the plugin in a KubeSchedulerConfiguration.
type Arguments struct {
	// Queues is the path of a file of Queue manifests, such as a mounted ConfigMap. It is read again when it changes.
	Queues string `json:"queues"`
	// Settings say who decides. Without decisions, closed places no further pod of a queue, and open schedules them as others; gangs still
	// start whole.
	connection.Settings

	// QueueLabel of a namespace or of a pod names the queue. Default: apportion.dev/queue.
	QueueLabel string `json:"queueLabel,omitempty"`
	// QueueFrom says whose label counts if both the namespace and the pod have one: namespace (the default) or pod. With pod, everyone who
	// may label pods chooses their queue.
	QueueFrom string `json:"queueFrom,omitempty"`
	// Evict lets plans evict pods: all (the default), reclaim (of other queues only), preempt (of the same queue only), none.
	Evict string `json:"evict,omitempty"`
	// Interval is the shortest time between two decisions. Default: 200ms.
	Interval metav1.Duration `json:"interval"`
	// PermitTimeout is how long the pods of a gang hold their nodes for the others. Default: 30s.
	PermitTimeout metav1.Duration `json:"permitTimeout"`
}

// What QueueFrom may be.
const fromNamespace, fromPod = "namespace", "pod"

const defaultInterval, defaultPermitTimeout = 200 * time.Millisecond, 30 * time.Second

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
	a.Complete()
	a.QueueLabel = cmp.Or(a.QueueLabel, "apportion.dev/queue")
	a.QueueFrom = cmp.Or(a.QueueFrom, fromNamespace)
	a.Evict = cmp.Or(a.Evict, connection.EvictAll)
	a.Interval.Duration = cmp.Or(a.Interval.Duration, defaultInterval)
	a.PermitTimeout.Duration = cmp.Or(a.PermitTimeout.Duration, defaultPermitTimeout)
}

func (a *Arguments) faults() (faults []string) {
	if a.Queues == "" {
		faults = append(faults, "queues: the path of a file of Queue manifests is required")
	}
	if a.QueueFrom != fromNamespace && a.QueueFrom != fromPod {
		faults = append(faults, fmt.Sprintf("queueFrom: %q is neither %s nor %s", a.QueueFrom, fromNamespace, fromPod))
	}
	faults = append(faults, a.Faults()...)
	if fault := connection.Evict(a.Evict); fault != "" {
		faults = append(faults, fault)
	}
	for _, set := range []struct {
		field string
		value time.Duration
	}{{"interval", a.Interval.Duration}, {"permitTimeout", a.PermitTimeout.Duration}} {
		if set.value < 0 {
			faults = append(faults, fmt.Sprintf("%s: %s is negative", set.field, duration.Format(set.value)))
		}
	}
	return faults
}

// readQueues returns the queues of a file of manifests as a snapshot, and the content of the file.
func readQueues(file string) (*apportionv1.Snapshot, []byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("queues: %w", err)
	}
	cluster, err := volcano.ReadManifests([]objects.Source{{Name: file, Data: data}})
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
