package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// QueueOptions of a Queues.
type QueueOptions struct {
	// Maximum limits the number of queues. 0: 100.
	Maximum int
	// Age after which an answer is no longer exported. 0: 15 minutes.
	Age time.Duration
}

// Queues exports the last answers about each queue: it is an observer of the service and a Prometheus collector. The service itself is
// stateless, so the values are as recent as the last question about shares.
type Queues struct {
	options QueueOptions
	mutex   sync.Mutex
	// answers are the latest of each source, the newest last.
	answers []shown
}

// source identifies answers: the caller, the cluster and the policy.
type source struct{ identity, cluster, policy string }

// shown is an exported answer.
type shown struct {
	source
	at         time.Time
	dimensions []string
	plugins    []*apportionv1.PluginShares
}

const (
	// maxSources is the maximum number of exported sources; a new one replaces the oldest.
	maxSources = 8
	// maxLabel is the length of the longest name that is exported. It holds every name of Kubernetes: 253 bytes of a queue, 317 of a
	// resource. Callers choose names, and each is in every line about its queue.
	maxLabel = 320
	// maxResources is the maximum number of exported resources of a queue.
	maxResources = 24
)

// NewQueues returns empty gauges.
func NewQueues(o QueueOptions) *Queues {
	const maximum, age = 100, 15 * time.Minute
	if o.Maximum <= 0 {
		o.Maximum = maximum
	}
	if o.Age <= 0 {
		o.Age = age
	}
	return &Queues{options: o}
}

// Wants calls that may ask for shares.
func (q *Queues) Wants(_ context.Context, method, _ string) bool {
	return method == "EvaluateShares" || method == "Simulate" || method == "RunSession"
}

// Observe stores an answer about shares, if it names queues and contains all of them.
func (q *Queues) Observe(ctx context.Context, d *service.Decision) {
	if d.Restricted || len(d.Snapshot.Cluster()) > maxLabel {
		return
	}
	for _, answer := range d.Answers {
		plugins := answer.GetShares().GetPlugins()
		if !slices.ContainsFunc(plugins, named) {
			continue
		}
		q.show(shown{
			source: source{service.IdentityOf(ctx), d.Snapshot.Cluster(), d.PolicyName}, at: d.Began,
			dimensions: d.Basis.GetDimensions(), plugins: q.cut(plugins),
		})
	}
}

// named reports whether a plugin's shares name queues.
func named(p *apportionv1.PluginShares) bool {
	return len(p.GetQueues()) > 0 && p.GetQueues()[0].GetName() != ""
}

// cut removes the shares that would not be exported, so that they take no memory.
func (q *Queues) cut(plugins []*apportionv1.PluginShares) []*apportionv1.PluginShares {
	out := make([]*apportionv1.PluginShares, 0, len(plugins))
	for _, p := range plugins {
		kept := make([]*apportionv1.QueueShare, 0, min(len(p.GetQueues()), q.options.Maximum))
		for _, share := range p.GetQueues() {
			if share.GetParticipating() && len(share.GetName()) <= maxLabel && len(kept) < q.options.Maximum {
				kept = append(kept, share)
			}
		}
		out = append(out, &apportionv1.PluginShares{Plugin: p.GetPlugin(), Queues: kept})
	}
	return out
}

func (q *Queues) show(s shown) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.answers = slices.DeleteFunc(q.answers, func(other shown) bool { return other.source == s.source })
	q.answers = append(q.answers, s)
	if len(q.answers) > maxSources {
		q.answers = slices.Delete(q.answers, 0, 1)
	}
}

var (
	queueLabels    = []string{"identity", "cluster", "policy", "plugin", "queue"}
	resourceLabels = append(slices.Clip(queueLabels), "resource")

	weightDesc   = queueDesc("weight", "Weight.", queueLabels)
	shareDesc    = queueDesc("share", "Allocated over deserved, in the dominant resource.", queueLabels)
	overusedDesc = queueDesc("overused", "1 if the queue is overused.", queueLabels)
)

const resourceUnits = " Cores of cpu, bytes of memory, units of other resources."

// amounts are the parts of a share with one gauge for each resource.
var amounts = []struct {
	desc *prometheus.Desc
	of   func(*apportionv1.QueueShare) *apportionv1.Resource
}{
	{queueDesc("guarantee", "Guaranteed."+resourceUnits, resourceLabels), (*apportionv1.QueueShare).GetGuarantee},
	{queueDesc("deserved", "Deserved."+resourceUnits, resourceLabels), (*apportionv1.QueueShare).GetDeserved},
	{queueDesc("allocated", "Allocated."+resourceUnits, resourceLabels), (*apportionv1.QueueShare).GetAllocated},
	{queueDesc("request", "Requested."+resourceUnits, resourceLabels), (*apportionv1.QueueShare).GetRequest},
	{queueDesc("inqueue", "Minimum of admitted jobs that wait."+resourceUnits, resourceLabels), (*apportionv1.QueueShare).GetInqueue},
	{queueDesc("elastic", "Used above the minimum of jobs."+resourceUnits, resourceLabels), (*apportionv1.QueueShare).GetElastic},
	{queueDesc("capability", "Most that may be used."+resourceUnits, resourceLabels), (*apportionv1.QueueShare).GetCapability},
	{
		queueDesc("real_capability", "Most that may be used beside the guarantees of others."+resourceUnits, resourceLabels),
		(*apportionv1.QueueShare).GetRealCapability,
	},
}

func queueDesc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc("apportion_queue_"+name, help, labels, nil)
}

// Describe describes the gauges.
func (q *Queues) Describe(to chan<- *prometheus.Desc) {
	for _, a := range amounts {
		to <- a.desc
	}
	to <- weightDesc
	to <- shareDesc
	to <- overusedDesc
}

// Collect collects the gauges, the latest answers first, up to the limit.
func (q *Queues) Collect(to chan<- prometheus.Metric) {
	q.mutex.Lock()
	answers := append([]shown(nil), q.answers...)
	q.mutex.Unlock()
	room := q.options.Maximum
	for i := len(answers) - 1; i >= 0; i-- {
		if time.Since(answers[i].at) <= q.options.Age {
			room = answers[i].collect(to, room)
		}
	}
}

func (s *shown) collect(to chan<- prometheus.Metric, room int) int {
	plugins := map[string]bool{}
	for _, p := range s.plugins {
		if plugins[p.GetPlugin()] {
			continue
		}
		plugins[p.GetPlugin()] = true
		queues := map[string]bool{}
		for _, share := range p.GetQueues() {
			if !share.GetParticipating() || queues[share.GetName()] {
				continue
			}
			if room == 0 {
				return 0
			}
			room--
			queues[share.GetName()] = true
			s.queue(to, p.GetPlugin(), share)
		}
	}
	return room
}

func (s *shown) queue(to chan<- prometheus.Metric, plugin string, share *apportionv1.QueueShare) {
	labels := []string{s.identity, s.cluster, s.policy, plugin, share.GetName()}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		// A name that is not UTF-8 is not exported.
		if m, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, labels...); err == nil {
			to <- m
		}
	}
	gauge(weightDesc, float64(share.GetWeight()), labels...)
	gauge(shareDesc, share.GetShare(), labels...)
	overused := 0.0
	if share.GetOverused() {
		overused = 1
	}
	gauge(overusedDesc, overused, labels...)
	for _, a := range amounts {
		r, left := a.of(share), maxResources
		for i, d := range r.GetDimensions() {
			name := s.dimensions[d]
			if len(name) > maxLabel || left == 0 {
				continue
			}
			left--
			gauge(a.desc, r.GetAmounts()[i]/scaleOf(name), append(slices.Clip(labels), name)...)
		}
	}
}

// scaleOf returns the number of the contract's units in one of Prometheus' base units.
func scaleOf(dimension string) float64 {
	switch dimension {
	case "memory", "pods":
		return 1
	default:
		const milli = 1000
		return milli
	}
}
