// Package nodeorder scores nodes by what the pods on them ask for, as Kubernetes does: Volcano's plugin nodeorder
// (pkg/scheduler/plugins/nodeorder) with the scores of Kubernetes' plugins noderesources.
package nodeorder

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Name is the plugin's name in a configuration.
const Name = "nodeorder"

// maxScore is the best score of one kind (Kubernetes' MaxNodeScore).
const maxScore = 100

// accelerator is the dimension that is balanced with CPU and memory for pods that ask for it.
const accelerator = "nvidia.com/gpu"

// Plugin holds the settings: the weight of each kind of score; 0 leaves it out.
type Plugin struct {
	LeastRequested, MostRequested, BalancedResource int32
	// TaintToleration is that of soft taints, NodeAffinity that of what tasks prefer of nodes.
	TaintToleration, NodeAffinity int32
}

// Default returns the default settings.
func Default() Plugin {
	return Plugin{LeastRequested: 1, BalancedResource: 1, TaintToleration: 3, NodeAffinity: 2}
}

// Name returns "nodeorder".
func (Plugin) Name() string { return Name }

// Open returns a policy.NodeScorer. What pods ask for is summed when nodes are first scored.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	s := &state{Plugin: p, view: v, gpu: -1}
	if d, ok := v.Dims.Index(accelerator); ok {
		s.gpu = d
	}
	return s, nil
}

type state struct {
	Plugin
	view *policy.View
	// gpu is the dimension of accelerators, or -1.
	gpu int
	// unstated counts, by node, the containers that ask for no CPU and those that ask for no memory; nil until nodes are scored.
	unstated [][2]int32
}

var (
	_ policy.NodeScorer    = (*state)(nil)
	_ policy.StatusHandler = (*state)(nil)
	_ policy.NodeBook      = (*state)(nil)
)

// ScoreNodes sets out[i] to the weighted sum of the scores of nodes[i] as if the task were on it. Each score is a whole number from 0 to
// 100; what is below is cut off.
func (s *state) ScoreNodes(t model.TaskID, nodes []model.NodeID, out []float64) {
	book := s.view.Book
	if book == nil {
		book = s
	}
	request := s.view.Request(t)
	cpu, memory := policy.Stated(request, s.view.UnstatedOf(t))
	set := s.preferring(t)
	most := highest(set, nodes)
	for i, n := range nodes {
		total := s.preference(set, n, most)
		if s.LeastRequested != 0 || s.MostRequested != 0 {
			usedCPU, usedMemory := book.Stated(n)
			allocatable := s.view.Nodes[n].Allocatable.V
			amounts := [...]amount{
				{whole(usedCPU + cpu), whole(allocatable[resource.CPU])}, {whole(usedMemory + memory), whole(allocatable[resource.Memory])},
			}
			total += int64(s.LeastRequested)*mean(amounts[:], amount.least) + int64(s.MostRequested)*mean(amounts[:], amount.most)
		}
		if s.BalancedResource != 0 {
			total += int64(s.BalancedResource) * s.balance(book, n, request)
		}
		out[i] = float64(total)
	}
}

// preferences are how much a task prefers a node: the soft taints that it does not tolerate, and the weights of its terms that match.
type preferences struct{ untolerated, affinity int64 }

// preferring returns the node set of a task, or nil if it prefers no node.
func (s *state) preferring(t model.TaskID) *model.NodeSet {
	if id := s.view.NodeSetOf(t); int(id) < len(s.view.NodeSets) && len(s.view.NodeSets[id].Preferences) > 0 {
		return &s.view.NodeSets[id]
	}
	return nil
}

// highest returns the highest preferences among nodes.
func highest(set *model.NodeSet, nodes []model.NodeID) (most preferences) {
	if set == nil {
		return most
	}
	for _, n := range nodes {
		untolerated, affinity := set.Preference(n)
		most = preferences{max(most.untolerated, int64(untolerated)), max(most.affinity, int64(affinity))}
	}
	return most
}

// preference is the weighted sum of the scores that compare a node with the highest preferences: 100 without soft taints, and 100 times the
// part of the terms that match.
func (s *state) preference(set *model.NodeSet, n model.NodeID, most preferences) int64 {
	tolerated, affinity := int64(maxScore), int64(0)
	if most != (preferences{}) {
		untolerated, matched := set.Preference(n)
		if most.untolerated > 0 {
			tolerated -= maxScore * int64(untolerated) / most.untolerated
		}
		if most.affinity > 0 {
			affinity = maxScore * int64(matched) / most.affinity
		}
	}
	return int64(s.TaintToleration)*tolerated + int64(s.NodeAffinity)*affinity
}

// balance is 100 less a hundred times the standard deviation of the parts of CPU, memory and accelerators that are asked for. It is 0 for
// a task that asks for none of them.
func (s *state) balance(book policy.NodeBook, n model.NodeID, request resource.Row) int64 {
	var parts [3]float64
	count, asks := 0, false
	for _, d := range [...]int{resource.CPU, resource.Memory, s.gpu} {
		if d < 0 {
			continue
		}
		asks = asks || request.V[d] > 0
		most := s.view.Nodes[n].Allocatable.V[d]
		if most <= 0 || d == s.gpu && request.V[d] == 0 {
			continue
		}
		parts[count] = min((book.Requested(n, d)+request.V[d])/most, 1)
		count++
	}
	if !asks {
		return 0
	}
	return int64((1 - deviation(parts[:count])) * maxScore)
}

// deviation is the standard deviation of at most three numbers, as Kubernetes computes it: of two, half their distance.
func deviation(parts []float64) float64 {
	switch len(parts) {
	case 0, 1:
		return 0
	case 2:
		return math.Abs((parts[0] - parts[1]) / 2)
	}
	sum, squares := 0.0, 0.0
	for _, part := range parts {
		sum += part
	}
	mean := sum / float64(len(parts))
	for _, part := range parts {
		squares += float64((part - mean) * (part - mean))
	}
	return math.Sqrt(squares / float64(len(parts)))
}

// amount is what is asked for of a dimension of a node, and what there is.
type amount struct{ asked, allocatable int64 }

// least is the part that stays free, in hundredths; 0 if more is asked for than there is.
func (a amount) least() int64 {
	if a.asked > a.allocatable {
		return 0
	}
	return hundredths(a.allocatable-a.asked, a.allocatable)
}

// most is the part that is asked for, in hundredths, and at most 100.
func (a amount) most() int64 { return hundredths(min(a.asked, a.allocatable), a.allocatable) }

// mean is the mean of the scores of the dimensions that a node has, rounded down.
func mean(amounts []amount, score func(amount) int64) int64 {
	sum, count := int64(0), int64(0)
	for _, a := range amounts {
		if a.allocatable > 0 {
			sum, count = sum+score(a), count+1
		}
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

// hundredths returns 100 * part / all, rounded down, for 0 <= part <= all, without a product that overflows.
func hundredths(part, all int64) int64 {
	if part <= math.MaxInt64/maxScore {
		return part * maxScore / all
	}
	return min(part/(all/maxScore), maxScore)
}

// whole returns an amount as an integer, at most the largest half one, so that sums of two do not overflow.
func whole(x float64) int64 { return int64(max(0, min(x, math.MaxInt64/2))) }

// Requested is what the view counts as used.
func (s *state) Requested(n model.NodeID, dimension int) float64 { return s.view.Used(n).V[dimension] }

// Stated is what the view counts as used, with what stands for requests that containers do not state. Pods that are not in the snapshot
// count as they are.
func (s *state) Stated(n model.NodeID) (cpu, memory float64) {
	if s.unstated == nil {
		s.count()
	}
	used, unstated := s.view.Used(n).V, s.unstated[n]
	return used[resource.CPU] + float64(unstated[0])*policy.UnstatedCPU, used[resource.Memory] + float64(unstated[1])*policy.UnstatedMemory
}

// count counts the containers that state no request. The counts of a state that may be undone are forgotten when it is.
func (s *state) count() {
	v := s.view
	s.unstated = make([][2]int32, len(v.Nodes))
	v.Journal.Undo(func() { s.unstated = nil })
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			v.Yield(int(t))
			s.add(t, v.Status(t), v.NodeOf(t), 1)
		}
	}
}

// Moved follows a task from node to node.
func (s *state) Moved(t model.TaskID, from model.Status, node model.NodeID) {
	if s.unstated != nil {
		s.add(t, from, node, -1)
		s.add(t, s.view.Status(t), s.view.NodeOf(t), 1)
	}
}

// add counts a task that the node counts n times more.
func (s *state) add(t model.TaskID, status model.Status, node model.NodeID, n int32) {
	if node == model.None || !status.Counts() {
		return
	}
	open := policy.Unstated(s.view.Request(t), s.view.UnstatedOf(t))
	for i, containers := range [...]uint16{open.CPU, open.Memory} {
		if containers > 0 {
			count := &s.unstated[node][i]
			s.view.Journal.Int(count)
			*count += n * int32(containers)
		}
	}
}
