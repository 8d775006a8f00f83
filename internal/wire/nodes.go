package wire

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

var nodesQuestion = question[*apportionv1.NodesStep]{
	of:       (*apportionv1.Step).GetNodes,
	answer:   (*Session).nodes,
	work:     (*Session).spendOnNodes,
	memory:   (*asking).nodes,
	explains: (*apportionv1.NodesStep).GetExplain,
}

func (s *Session) nodes(q *apportionv1.NodesStep) (*apportionv1.Answer, error) {
	var faults model.Error
	tasks := s.selectTasks(q.GetTasks(), "tasks", &faults)
	var nodes []model.NodeID
	if q.GetNodes() != nil {
		nodes = s.selectNodes(q.GetNodes(), "nodes", &faults)
	} else {
		nodes = s.allNodes()
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	if err := s.out.room(len(tasks), "tasks"); err != nil {
		return nil, err
	}
	table := nodeTable{
		Session: s, q: q, nodes: nodes, scorers: s.engine.Nodes().Scorers(),
		fits: make([]bool, len(nodes)), total: make([]float64, len(nodes)),
	}
	if q.GetTop() > 0 {
		table.ranks = s.engine.View().NodeRanks(nodes)
	}
	table.scores = make([][]float64, len(table.scorers))
	for i := range table.scores {
		table.scores[i] = make([]float64, len(nodes))
	}
	answer := &apportionv1.NodesAnswer{Tasks: make([]*apportionv1.TaskNodes, len(tasks))}
	for i, t := range tasks {
		if s.stop != nil && s.stop() {
			return nil, policy.ErrStopped
		}
		answer.Tasks[i] = table.row(t)
		if s.out.left < 0 {
			return nil, s.out.tooLarge("tasks")
		}
	}
	if q.GetJointly() {
		placement, err := place.Tasks(s.engine.Session, tasks, nodes)
		if err != nil {
			return nil, err
		}
		answer.Placement = s.out.placement(&placement)
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Nodes{Nodes: answer}}, s.out.check("tasks")
}

// placement encodes where tasks have room at the same time.
func (e *encoder) placement(p *place.Placement) *apportionv1.JointPlacement {
	return &apportionv1.JointPlacement{
		Outcome: apportionv1.PlacementOutcome(p.Outcome), Nodes: indices(e, p.Nodes), Most: uint32(p.Most),
	}
}

// nodeTable makes the rows of a table tasks x nodes, with room for one row.
type nodeTable struct {
	*Session

	q       *apportionv1.NodesStep
	nodes   []model.NodeID
	scorers []engine.Scorer
	fits    []bool
	total   []float64
	scores  [][]float64
	// ranks order nodes of equal scores; nil if all nodes are wanted.
	ranks []int32
	order []int
}

// row is one task's row.
func (n *nodeTable) row(t model.TaskID) *apportionv1.TaskNodes {
	out := &apportionv1.TaskNodes{Task: uint32(t)}
	n.out.left -= messageBytes
	for i, node := range n.nodes {
		n.engine.View().Yield(i)
		n.reasons.List = n.reasons.List[:0]
		n.fits[i] = n.engine.Nodes().Fits(t, node, &n.reasons) && n.engine.Nodes().HasRoom(t, node, &n.reasons)
		if n.q.GetExplain() && !n.fits[i] && n.out.left >= 0 {
			for k := range n.reasons.List {
				cause := n.out.reason(&n.reasons.List[k])
				cause.Node = n.out.optional(int(node))
				out.Causes = append(out.Causes, cause)
			}
		}
	}
	clear(n.total)
	for i, scorer := range n.scorers {
		scorer.ScoreNodes(t, n.nodes, n.scores[i])
		for k, score := range n.scores[i] {
			n.total[k] += score
		}
	}
	n.order = engine.BestNodes(n.fits, n.total, n.ranks, int(n.q.GetTop()), n.order[:0])
	n.fill(out)
	return out
}

// fill copies the requested nodes and scores into the answer, as far as its size permits.
func (n *nodeTable) fill(out *apportionv1.TaskNodes) {
	k := len(n.order)
	n.out.left -= k * (2*numberBytes + 1)
	if n.q.GetByPlugin() {
		n.out.left -= k * len(n.scorers) * numberBytes
	}
	if n.out.left < 0 {
		return
	}
	out.Nodes, out.Fits, out.Scores = make([]uint32, k), make([]bool, k), make([]float64, k)
	for i, at := range n.order {
		out.Nodes[i], out.Fits[i], out.Scores[i] = uint32(n.nodes[at]), n.fits[at], n.total[at]
	}
	if !n.q.GetByPlugin() {
		return
	}
	for p, scorer := range n.scorers {
		scores := make([]float64, k)
		for i, at := range n.order {
			scores[i] = n.scores[p][at]
		}
		out.Plugins = append(out.Plugins, &apportionv1.PluginScores{Plugin: scorer.Name, Scores: scores})
	}
}

func (s *Session) spendOnNodes(q *apportionv1.NodesStep) error {
	if q.GetJointly() {
		if err := s.work.Spend(place.Work, 1); err != nil {
			return err
		}
	}
	v := s.engine.View()
	nodes := len(v.Nodes)
	if n := q.GetNodes(); n != nil {
		nodes = len(n.GetIndices()) + len(n.GetNames())
	}
	return s.work.Spend(selected(q.GetTasks(), 0), nodes*(v.Dims.Len()+s.plugins))
}

func (a *asking) nodes(q *apportionv1.NodesStep) (answer, work int64) {
	tasks, nodes := int64(selected(q.GetTasks(), 0)), a.Nodes
	if wanted := q.GetNodes(); wanted != nil {
		nodes = int64(len(wanted.GetIndices()) + len(wanted.GetNames()))
	}
	listed := nodes
	if top := int64(q.GetTop()); top > 0 {
		listed = min(listed, top)
	}
	const perNode = 16
	columns := int64(1)
	if q.GetByPlugin() {
		columns += a.Plugins
	}
	answer = tasks * (decode.BytesOf[apportionv1.TaskNodes](1) + 24 + columns*perNode*listed)
	if q.GetExplain() {
		answer += min(a.explain, tasks*nodes*2*(16+a.reason()))
	}
	work = 8*tasks + nodes*(64+8*a.Plugins)
	if q.GetJointly() {
		work += tasks*(256+2*decode.RowBytes(int(a.Dimensions))) + nodes*(64+2*decode.RowBytes(int(a.Dimensions)))
	}
	return answer, work
}
