package reference

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/test/recording"
)

// fairAsked asks the questions of a case in a session.
type fairAsked struct {
	snapshot *apportionv1.Snapshot
	base     apportionv1.FairBase
	session  Session
	// shares is the answer that most others are read from.
	shares *apportionv1.SharesAnswer
	// memory says that the case is one with memory, and owners that jobs are served by the usage of their owners.
	memory, owners bool
	plugin         *apportionv1.PluginShares
	queues         map[string]uint32
	refused        map[uint32]bool
	uids           []string
}

func newFairAsked(snapshot *apportionv1.Snapshot, policy *apportionv1.Policy, session Session) *fairAsked {
	a := &fairAsked{
		snapshot: snapshot, session: session, base: policy.GetTiers()[0].GetPlugins()[0].GetFair().GetBase(),
		queues: map[string]uint32{}, refused: map[uint32]bool{},
		owners: snapshot.GetMemory() != nil && policy.GetTiers()[0].GetPlugins()[0].GetFair().GetMemory().GetOwners(),
	}
	for i, q := range snapshot.GetQueues() {
		a.queues[q.GetName()] = uint32(i)
	}
	for _, j := range snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, t := range g.GetTasks() {
				a.uids = append(a.uids, t.GetUid())
			}
		}
	}
	return a
}

// answers returns the answers to all questions. A run to rest comes last: it changes the state.
func (a *fairAsked) answers(ctx context.Context, questions []recording.FairQuestion) (object, error) {
	answer, err := a.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Shares{
		Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}},
	}})
	if err != nil {
		return nil, err
	}
	if a.shares = answer.GetShares(); len(a.shares.GetPlugins()) != 1 {
		return nil, fmt.Errorf("%d plugins divide", len(a.shares.GetPlugins()))
	}
	a.plugin = a.shares.GetPlugins()[0]
	for _, reason := range a.plugin.GetHierarchyCauses() {
		a.refused[reason.GetQueue()] = true
	}
	out := object{}
	for i, q := range questions {
		if out[fairKey(i, q)], err = a.answer(ctx, q); err != nil {
			return nil, fmt.Errorf("question %d: %w", i, err)
		}
	}
	return out, nil
}

// ask asks one step.
func (a *fairAsked) ask(ctx context.Context, step *apportionv1.Step) (*apportionv1.Answer, error) {
	answers, err := a.session.Do(ctx, step)
	if err != nil {
		return nil, err
	}
	if failure := answers[0].GetError(); failure != nil {
		return nil, fmt.Errorf("code %d: %s", failure.GetCode(), failure.GetMessage())
	}
	return answers[0], nil
}

func (a *fairAsked) answer(ctx context.Context, q recording.FairQuestion) (any, error) {
	switch q.Kind {
	case "shares":
		return a.divisions(), nil
	case "order":
		return a.order(ctx)
	case "claims":
		return a.claims(), nil
	case "overused":
		return a.shares.GetStandings()[a.queues[q.Queue]].GetOverused(), nil
	case "enqueue":
		answer, err := a.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Enqueue{
			Enqueue: &apportionv1.EnqueueStep{Jobs: &apportionv1.Selector{Names: []string{q.Job}}},
		}})
		if err != nil {
			return nil, err
		}
		return a.verdict(answer.GetEnqueue().GetJobs()[0].GetVerdict()), nil
	case allocatableKey:
		answer, err := a.ask(ctx, jointlyAllocatable(&apportionv1.Selector{Names: q.Tasks}))
		if err != nil {
			return nil, err
		}
		return a.verdict(answer.GetAllocatable().GetTasks()[0].GetVerdict()), nil
	case "reclaim":
		return a.reclaim(ctx, q)
	case "loop":
		return a.loop(ctx)
	case checkKey:
		return a.checked(), nil
	case weightsKey:
		return a.weights(), nil
	case "saved":
		return a.saved(), nil
	case "preemptive":
		return a.preemptive(ctx, q.Task)
	case "jobs":
		return a.jobsOf(ctx, q.Queue)
	}
	return nil, fmt.Errorf("no question %q", q.Kind)
}

func jointlyAllocatable(tasks *apportionv1.Selector) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Allocatable{
		Allocatable: &apportionv1.AllocatableStep{Tasks: tasks, Jointly: true},
	}}
}

// leaves lists the queues without children that take part.
func (a *fairAsked) leaves() []uint32 {
	var list []uint32
	for _, q := range a.plugin.GetQueues() {
		if q.GetParticipating() && len(q.GetChildren()) == 0 {
			list = append(list, q.GetQueue())
		}
	}
	return list
}

// inOrder lists the leaves in order of service.
func (a *fairAsked) inOrder(ctx context.Context) ([]uint32, error) {
	leaves := a.leaves()
	if len(leaves) == 0 {
		return nil, nil
	}
	answer, err := a.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Order{
		Order: &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Queues{Queues: &apportionv1.Selector{Indices: leaves}}},
	}})
	return answer.GetOrder().GetItems(), err
}

func (a *fairAsked) order(ctx context.Context) (any, error) {
	sorted, err := a.inOrder(ctx)
	names := []any{}
	for _, q := range sorted {
		names = append(names, a.queueName(q))
	}
	return names, err
}

func (a *fairAsked) queueName(q uint32) string { return a.snapshot.GetQueues()[q].GetName() }

func (a *fairAsked) dimension(d uint32) string { return a.session.Basis().GetDimensions()[d] }

func (a *fairAsked) claims() any {
	out := object{}
	for _, q := range a.plugin.GetFair().GetQueues() {
		out[a.queueName(q.GetQueue())] = a.row(q.GetClaimed())
	}
	return out
}

// whole is a whole number as text.
func whole(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// code is a reason's code as it is recorded.
func code(r *apportionv1.Cause) string {
	return strings.TrimPrefix(r.GetCode().String(), "CAUSE_CODE_")
}

func (a *fairAsked) verdict(v *apportionv1.Verdict) any {
	out := object{"verdict": strings.TrimPrefix(v.GetVote().String(), "VOTE_"), "code": nil, "detail": nil}
	if len(v.GetCauses()) == 0 {
		return out
	}
	reason := v.GetCauses()[0]
	out["code"] = code(reason)
	switch reason.GetCode() {
	case apportionv1.CauseCode_CAUSE_CODE_HIERARCHY_REFUSED:
		return object{refusedText: refusedText}
	case apportionv1.CauseCode_CAUSE_CODE_NOT_IDLE:
		out["detail"] = []any{a.dimension(reason.GetDimensions()[0]), whole(reason.GetLimit()), whole(reason.GetHave())}
	case apportionv1.CauseCode_CAUSE_CODE_ABOVE_LIMIT:
		out["detail"] = []any{a.queueName(reason.GetQueue()), a.dimension(reason.GetDimensions()[0])}
	case apportionv1.CauseCode_CAUSE_CODE_ABOVE_TOTAL:
		out["detail"] = a.dimension(reason.GetDimensions()[0])
	default:
	}
	return out
}

func (a *fairAsked) reclaim(ctx context.Context, q recording.FairQuestion) (any, error) {
	step := &apportionv1.ReclaimStep{
		Claimant: &apportionv1.Selector{Names: q.Claimant}, Candidates: &apportionv1.Selector{Names: q.Candidates},
		Room: apportionv1.ClaimRoom_CLAIM_ROOM_CLUSTER,
	}
	if node, err := strconv.ParseUint(fmt.Sprint(q.Room), 10, 32); err == nil {
		step.Room, step.Node = apportionv1.ClaimRoom_CLAIM_ROOM_NODE, &apportionv1.Selector{Indices: []uint32{uint32(node)}}
	}
	answer, err := a.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: step}})
	if err != nil {
		return nil, err
	}
	victims, plan := answer.GetReclaim(), answer.GetReclaim().GetPlan()
	out := object{
		"plan": plan.GetMade(), "code": "PLAN", "line": nil, "fall": fractions(plan.GetFalls()), "rise": fractions(plan.GetRises()),
		"victims": []any{}, "spared": []any{},
	}
	if !plan.GetMade() {
		out["code"] = code(plan.GetRefusal())
		if plan.GetRefusal().GetCode() == apportionv1.CauseCode_CAUSE_CODE_HIERARCHY_REFUSED {
			return object{refusedText: refusedText}, nil
		}
	} else {
		out["line"] = strconv.Itoa(int(plan.GetLine()) - 1)
	}
	list := []any{}
	for _, v := range victims.GetVictims() {
		list = append(list, v.GetUid())
	}
	out["victims"] = list
	list = []any{}
	for _, spared := range victims.GetProtections() {
		list = append(list, []any{spared.GetUid(), code(spared)})
	}
	out["spared"] = list
	return out, nil
}

func fractions(list []*apportionv1.Fraction) []any {
	out := []any{}
	for _, f := range list {
		out = append(out, fraction(f))
	}
	return out
}

func fraction(f *apportionv1.Fraction) []any { return []any{f.GetNumerator(), f.GetDenominator()} }
