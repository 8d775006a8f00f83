// Package binpack scores nodes by how full they will be, so that tasks are packed onto few nodes: Volcano's plugin binpack
// (pkg/scheduler/plugins/binpack/binpack.go).
package binpack

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Name is the plugin's name in a configuration.
const Name = "binpack"

// maxScore is the score of a node that a task fills exactly, at weight 1 (Kubernetes' MaxNodeScore).
const maxScore = 100

// Plugin holds the settings. A weight below 0, except Weight itself, counts as 1, and so does any that is not finite.
type Plugin struct {
	// Weight of the whole score. 0: the plugin scores nothing. Below 0: empty nodes are preferred, and nodes without room most of all.
	Weight float64
	// CPU and Memory are the weights of these dimensions.
	CPU, Memory float64
	// Resources are the other dimensions that count. `cpu` and `memory` have no effect here; of a repeated name the last one counts.
	Resources []Weight
}

// Weight is the weight of a dimension in the score.
type Weight struct {
	Name   string
	Weight float64
}

// Default returns the default settings.
func Default() Plugin { return Plugin{Weight: 1, CPU: 1, Memory: 1} }

// Name returns "binpack".
func (Plugin) Name() string { return Name }

// Normal returns equivalent settings with effective weights, in which Resources contains no `cpu` or `memory`.
func (p Plugin) Normal() Plugin {
	if !finite(p.Weight) {
		p.Weight = 1
	}
	p.CPU, p.Memory = counted(p.CPU), counted(p.Memory)
	var others []Weight
	for _, r := range p.Resources {
		if r.Name != "cpu" && r.Name != "memory" {
			others = append(others, Weight{Name: r.Name, Weight: counted(r.Weight)})
		}
	}
	p.Resources = others
	return p
}

// Open returns a policy.NodeScorer, or a state without any part if the weight of the score is 0.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	counts := p.Normal()
	if counts.Weight == 0 {
		return struct{}{}, nil
	}
	weights := make([]float64, v.Dims.Len())
	for _, r := range counts.Resources {
		if d, ok := v.Dims.Index(r.Name); ok {
			weights[d] = r.Weight
		}
	}
	weights[resource.CPU], weights[resource.Memory] = counts.CPU, counts.Memory
	s := &state{view: v, scale: maxScore * counts.Weight, weights: weights, terms: make([]term, 0, len(weights))}
	for d, w := range weights {
		if w > 0 {
			s.weighted = s.weighted.With(d)
		}
	}
	return s, nil
}

func counted(weight float64) float64 {
	if weight < 0 || !finite(weight) {
		return 1
	}
	return weight
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

type state struct {
	view  *policy.View
	scale float64
	// weights are by dimension; weighted are the dimensions whose weight is not 0: the others neither score nor refuse.
	weights  []float64
	weighted resource.Mask
	// terms is scratch memory for the dimensions of one task.
	terms []term
}

// term is one dimension that a task requests.
type term struct {
	dimension       int
	request, weight float64
}

var _ policy.NodeScorer = (*state)(nil)

// ScoreNodes sets out[i] to weight * 100 * sum(w * (used + request) / allocatable) / sum(w) of nodes[i], over the weighted dimensions
// that the task asks for. A dimension that the node does not offer adds nothing to the first sum; one that has no room makes the score 0.
func (s *state) ScoreNodes(t model.TaskID, nodes []model.NodeID, out []float64) {
	terms, weight := s.demand(s.view.Request(t))
	if weight == 0 {
		clear(out[:len(nodes)])
		return
	}
	for i, n := range nodes {
		out[i] = s.scaled(fullness(terms, s.view.Used(n).V, s.view.Nodes[n].Allocatable.V) / weight)
	}
}

// demand returns the requested amounts in the weighted dimensions, and the sum of their weights. The list is valid until the next call.
func (s *state) demand(request resource.Row) ([]term, float64) {
	terms, sum := s.terms[:0], 0.0
	for m := request.AtLeastThreshold() & s.weighted; m != 0; m = m.Rest() {
		d := m.First()
		terms = append(terms, term{dimension: d, request: request.V[d], weight: s.weights[d]})
		sum += s.weights[d]
	}
	return terms, sum
}

// fullness returns sum(w * (used + request) / capacity), or 0 if there is no room for the request.
func fullness(terms []term, used, capacity []float64) float64 {
	sum := 0.0
	for i := range terms {
		t := &terms[i]
		limit := capacity[t.dimension]
		if limit == 0 {
			continue
		}
		then := t.request + used[t.dimension]
		if then > limit {
			return 0
		}
		sum += float64(then*t.weight) / limit
	}
	return sum
}

// scaled returns the score of a mean fullness. It is always finite: weights whose products overflow score 0. Adding 0 keeps a negative
// weight from turning 0 into negative zero.
func (s *state) scaled(mean float64) float64 {
	score := float64(mean*s.scale) + 0
	if !finite(score) {
		return 0
	}
	return score
}
