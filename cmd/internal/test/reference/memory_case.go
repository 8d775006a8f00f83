package reference

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Questions of cases with memory.
const (
	checkKey   = "check"
	weightsKey = "weights"
)

// invalid answers what makes the input of a case invalid: its settings alone, and its snapshot alone.
func (c fairCase) invalid(ctx context.Context, way Way, snapshot *apportionv1.Snapshot, policy *apportionv1.Policy) (any, error) {
	found := map[string][]any{}
	for _, input := range []struct {
		snapshot *apportionv1.Snapshot
		policy   *apportionv1.Policy
	}{{snapshot, &apportionv1.Policy{}}, {&apportionv1.Snapshot{}, policy}} {
		session, err := way.Open(ctx, input.snapshot, input.policy)
		if err == nil {
			if err := session.Close(); err != nil {
				return nil, err
			}
			continue
		}
		for _, path := range violated(err) {
			fault, err := faultOf(path, snapshot)
			if err != nil {
				return nil, err
			}
			found[fmt.Sprint(fault...)] = fault
		}
	}
	list := []any{}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[key])
	}
	return object{fairKey(0, c.Questions[0]): object{"invalid": list, "warnings": []any{}}}, nil
}

// violated lists the paths that an error names.
func violated(err error) []string {
	var paths []string
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				paths = append(paths, strings.TrimPrefix(v.GetField(), "open.input."))
			}
		}
	}
	return paths
}

// faultOf returns the recorded code of the fault of a field.
func faultOf(path string, snapshot *apportionv1.Snapshot) ([]any, error) {
	switch {
	case strings.HasPrefix(path, "policy."):
		return []any{"SETTINGS"}, nil
	case strings.HasPrefix(path, "snapshot.memory"):
		return []any{"MEMORY"}, nil
	}
	for part, code := range map[string]string{usageKey: "USAGE", "budget": "BUDGET", "owners": "OWNERS"} {
		position, rest, ok := strings.Cut(strings.TrimPrefix(path, "snapshot.queues["), "].")
		if i, err := strconv.Atoi(position); err == nil && ok && strings.HasPrefix(rest, part) {
			return []any{code, snapshot.GetQueues()[i].GetName()}, nil
		}
	}
	return nil, fmt.Errorf("no recorded code is that of %s", path)
}

// checked is the answer to `check` of a valid input: the warnings about memory.
func (a *fairAsked) checked() any {
	list := []any{}
	for _, w := range a.session.Basis().GetWarnings() {
		one := []any{strings.TrimPrefix(w.GetCode().String(), "WARNING_CODE_")}
		switch w.GetCode() {
		case apportionv1.WarningCode_WARNING_CODE_MEMORY_IGNORED, apportionv1.WarningCode_WARNING_CODE_MEMORY_SWINGS:
		case apportionv1.WarningCode_WARNING_CODE_MEMORY_STALE:
			one = append(one, strconv.FormatInt(w.GetEpochs(), 10))
		case apportionv1.WarningCode_WARNING_CODE_BUDGET_CUTS_GUARANTEE:
			one = append(one, a.queueName(w.GetQueue()), a.dimension(w.GetDimension()))
		case apportionv1.WarningCode_WARNING_CODE_BUDGET_WITHOUT_EFFECT:
			one = append(one, a.queueName(w.GetQueue()))
		default:
			continue
		}
		list = append(list, one)
	}
	return object{"invalid": []any{}, "warnings": sortedTexts(list)}
}

// sortedTexts sorts a list by what its entries look like.
func sortedTexts(list any) []any {
	sorted, _ := list.([]any)
	slices.SortFunc(sorted, func(l, r any) int { return cmp.Compare(fmt.Sprint(l), fmt.Sprint(r)) })
	return sorted
}

// weights is the answer to `weights`.
func (a *fairAsked) weights() any {
	type cell struct{ effective, factor, soft any }
	cells, nodes := map[string]cell{}, object{}
	for _, division := range a.plugin.GetFair().GetWeights() {
		dimension, name := a.dimension(division.GetDimension()), rootName
		if division.Queue != nil {
			name = a.queueName(division.GetQueue())
		}
		for _, child := range division.GetChildren() {
			one := cell{effective: strconv.FormatUint(child.GetEffectiveWeight(), 10)}
			if child.GetWeight() > 0 {
				one.factor, one.soft = fmt.Sprint(child.GetFactor()), fmt.Sprint(child.GetBudgetFactor())
			}
			cells[a.queueName(child.GetQueue())+" "+dimension] = one
		}
		if len(division.GetChildren()) > 0 && slices.Contains(a.snapshot.GetDimensions(), dimension) {
			nodes[name+" "+dimension] = object{
				nodeKey: name, "dimension": dimension, "V": division.GetUsage(), "ref": division.GetReference(),
				"nominal": division.GetNominal(), "W": fmt.Sprint(division.GetWeight()), "all": fmt.Sprint(division.GetWeightAll()),
			}
		}
	}
	queues := object{}
	for _, q := range a.plugin.GetQueues() {
		if !q.GetParticipating() {
			continue
		}
		name := a.queueName(q.GetQueue())
		entry := object{"queue": name, "effective": []any{}, "factor": []any{}, "soft": []any{}, "capability": []any{}}
		push := func(key string, value any) {
			list, _ := entry[key].([]any)
			entry[key] = append(list, value)
		}
		for _, dimension := range a.snapshot.GetDimensions() {
			one, ok := cells[name+" "+dimension]
			if !ok {
				one.effective = fmt.Sprint(q.GetWeight())
			}
			push("effective", one.effective)
			push("factor", one.factor)
			push("soft", one.soft)
			push("capability", a.limit(q.GetCapability(), dimension))
		}
		queues[fmt.Sprint(name, " ", nil)] = entry
	}
	return object{queuesKey: queues, "nodes": nodes}
}

// limit is the amount of a capability.
func (a *fairAsked) limit(of *apportionv1.Resource, dimension string) string {
	for i, d := range of.GetDimensions() {
		if a.dimension(d) == dimension {
			return strings.Replace(whole(of.GetAmounts()[i]), "+Inf", "Infinity", 1)
		}
	}
	return "Infinity"
}

// steered adds the division with memory to the answer to `shares`: that by weight where there is none.
func (a *fairAsked) steered(queues, nodes object) {
	fair := a.plugin.GetFair()
	divisions := fair.GetRememberedDivisions()
	if len(divisions) == 0 {
		divisions = fair.GetDivisions()
	}
	for _, division := range divisions {
		dimension, name, unit := a.dimension(division.GetDimension()), rootName, fair.GetQuanta()[division.GetDimension()]
		for _, portion := range append(slices.Clone(division.GetChildren()), division.GetRoot()) {
			if portion == nil || portion.Queue == nil {
				continue
			}
			if entry, ok := queues[a.queueName(portion.GetQueue())+" "+dimension].(object); ok {
				entry["steer"] = times(portion.GetShare(), unit)
			}
		}
		if division.Queue != nil {
			name = a.queueName(division.GetQueue())
		}
		if node, ok := nodes[name+" "+dimension].(object); ok {
			node["steerX"], node["steerR"] = times(division.GetAmount(), unit), any(nil)
			node["steerCase"] = []string{"", "a", "b", "c"}[division.GetRule()]
			if division.GetLevel() != nil {
				node["steerR"] = fraction(division.GetLevel())
			}
		}
	}
}

// saved is the answer to `saved`.
func (a *fairAsked) saved() any {
	out := object{}
	for _, q := range a.plugin.GetFair().GetQueues() {
		if q.GetSaved() != nil {
			out[a.queueName(q.GetQueue())] = a.row(q.GetSaved())
		}
	}
	return out
}

// row lists the amounts of the dimensions of the snapshot.
func (a *fairAsked) row(r *apportionv1.Resource) []any {
	amounts := map[string]float64{}
	for i, d := range r.GetDimensions() {
		amounts[a.dimension(d)] = r.GetAmounts()[i]
	}
	row := []any{}
	for _, name := range a.snapshot.GetDimensions() {
		row = append(row, whole(amounts[name]))
	}
	return row
}

// preemptive is the answer to `preemptive`.
func (a *fairAsked) preemptive(ctx context.Context, task string) (any, error) {
	answer, err := a.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Preemptive{
		Preemptive: &apportionv1.PreemptiveStep{Tasks: &apportionv1.Selector{Names: []string{task}}},
	}})
	if err != nil {
		return nil, err
	}
	verdict := answer.GetPreemptive().GetTasks()[0].GetVerdict()
	for _, reason := range verdict.GetCauses() {
		if reason.GetCode() == apportionv1.CauseCode_CAUSE_CODE_HIERARCHY_REFUSED {
			return object{refusedText: refusedText}, nil
		}
	}
	return verdict.GetVote() == apportionv1.Vote_VOTE_PERMIT, nil
}

// jobsInOrder returns the positions of the jobs of a queue as they are served.
func (a *fairAsked) jobsInOrder(ctx context.Context, queue string) ([]uint32, error) {
	var jobs []uint32
	for i, j := range a.snapshot.GetJobs() {
		if j.GetQueue() == queue {
			jobs = append(jobs, uint32(i))
		}
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	answer, err := a.ask(ctx, &apportionv1.Step{Step: &apportionv1.Step_Order{
		Order: &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Jobs{Jobs: &apportionv1.Selector{Indices: jobs}}},
	}})
	return answer.GetOrder().GetItems(), err
}

// jobs is the answer to `jobs`.
func (a *fairAsked) jobsOf(ctx context.Context, queue string) (any, error) {
	if a.refused[a.queues[queue]] {
		return object{refusedText: refusedText}, nil
	}
	sorted, err := a.jobsInOrder(ctx, queue)
	list := []any{}
	for _, j := range sorted {
		list = append(list, a.snapshot.GetJobs()[j].GetUid())
	}
	return list, err
}
