package hdrf

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// MaxParts bounds the parts of a path, and with them the work of one comparison.
const MaxParts = 64

// check returns an *model.Error for paths of more than MaxParts parts, and for paths of queues with jobs that have more parts than
// weights: Volcano reads the missing weight and panics.
func check(m *model.Model, busy []bool) error {
	var faults model.Error
	for q := range m.Queues {
		h := m.Queues[q].Hierarchy
		if h == nil {
			continue
		}
		parts, weights := strings.Count(h.Path, "/")+1, strings.Count(h.Weights, "/")+1
		if parts > MaxParts {
			faults.Add(field(q, "path"), "%d parts, at most %d are possible", parts, MaxParts)
		} else if busy[q] && weights < parts {
			faults.Add(field(q, "weights"), "%d weights for a path of %d parts", weights, parts)
		}
	}
	return faults.OrNil()
}

func field(q int, name string) string {
	return fmt.Sprintf("queues[%d].fair_share_hierarchy.%s", q, name)
}

// steps calls step for each part of a path but the first, which always stands for the root, with the part's weight as written.
func steps(h *model.Hierarchy, step func(i int, part, weight string)) {
	if h == nil {
		return
	}
	_, path, more := strings.Cut(h.Path, "/")
	_, weights, _ := strings.Cut(h.Weights, "/")
	for i := 1; more; i++ {
		var part, weight string
		part, path, more = strings.Cut(path, "/")
		weight, weights, _ = strings.Cut(weights, "/")
		step(i, part, weight)
	}
}

// parse returns the weight that a text stands for, and whether it counts as written: a weight below 1, or no number, counts as 1.
func parse(text string) (weight float64, asWritten bool) {
	// ParseFloat returns an infinity with the sign of a number beyond the range, and 0 for any other text that is not a number.
	weight, _ = strconv.ParseFloat(text, 64)
	if weight >= 1 {
		return weight, true
	}
	return 1, false
}

// grower builds the inner nodes, in the order in which the first job below each comes in the session.
type grower struct {
	inner    []inner
	child    map[edge]int32
	warnings []policy.Warning
}

type edge struct {
	parent int32
	part   string
}

type inner struct {
	name   string
	weight float64
	parent int32
}

func newGrower() *grower {
	return &grower{inner: []inner{{"root", 1, -1}}, child: map[edge]int32{}}
}

// grow returns the inner node at the end of a queue's path. A node that is already there keeps its weight.
func (g *grower) grow(q int, h *model.Hierarchy) int32 {
	at := int32(0)
	ignored, contradicts := 0, 0
	steps(h, func(i int, part, text string) {
		weight, asWritten := parse(text)
		if !asWritten && ignored == 0 {
			ignored = i
		}
		next, there := g.child[edge{at, part}]
		switch {
		case !there:
			next = int32(len(g.inner))
			g.child[edge{at, part}] = next
			g.inner = append(g.inner, inner{part, weight, at})
		case g.inner[next].weight != weight && contradicts == 0:
			contradicts = i
		}
		at = next
	})
	if ignored > 0 {
		g.warn(q, fmt.Sprintf("weight %d of the path is below 1 or not a number, and counts as 1", ignored+1))
	}
	if contradicts > 0 {
		g.warn(q, fmt.Sprintf("weight %d of the path is ignored: an earlier job's queue weighs that node differently", contradicts+1))
	}
	return at
}

func (g *grower) warn(q int, text string) {
	g.warnings = append(g.warnings, policy.Warning{
		Code: policy.HierarchyWeightIgnored, Path: field(q, "weights"), Text: text, Queue: model.QueueID(q),
	})
}
