package checker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Check compares a response with what follows from the request, without the engine. Of plugin fair that is every number and verdict of the
// answers to shares, order (of queues), allocatable, preemptive, enqueue and reclaim; of other plugins, what follows from arithmetic. The
// report lists the fields that were not checked. Shares and verdicts of fair need the shares of all queues with `explain` in a step before
// the first that changes the state. It returns an error if the request cannot be checked.
func Check(request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) (report *Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			report, err = nil, fmt.Errorf("the request cannot be checked: %v", p)
		}
	}()
	switch {
	case request.GetInput().GetSnapshot() == nil:
		return nil, errors.New("the request holds no snapshot")
	case request.GetInput().GetPolicy() == nil:
		return nil, errors.New("the request holds no policy")
	}
	known := map[string]bool{}
	for _, q := range request.GetInput().GetSnapshot().GetQueues() {
		known[q.GetName()] = true
	}
	for i, j := range request.GetInput().GetSnapshot().GetJobs() {
		if !known[j.GetQueue()] {
			return nil, fmt.Errorf("snapshot.jobs[%d].queue %q does not exist", i, j.GetQueue())
		}
	}
	policy := request.GetInput().GetPolicy()
	c := &check{
		findings: &findings{unchecked: map[string]string{}}, policy: policy, texts: request.GetInput().GetTexts(),
		cluster: read(request.GetInput().GetSnapshot(), Settings(policy)), admitted: map[int]bool{},
		turns: hasTurns(request.GetInput().GetSnapshot(), Settings(policy)),
	}
	for d := range c.dims {
		if c.settings != nil {
			c.bounds, c.sated = append(c.bounds, c.bound(d, false)), append(c.sated, c.bound(d, true))
		}
	}
	c.width = len(c.dims)
	c.compare("basis", orEmpty(response.GetBasis()), &apportionv1.Basis{Dimensions: c.dims}, ofBasis)
	if len(response.GetAnswers()) != len(request.GetSteps()) {
		c.wrong("answers has %d entries, not one for each of %d steps", len(response.GetAnswers()), len(request.GetSteps()))
		return c.report(), nil
	}
	if len(response.ProtoReflect().GetUnknown()) > 0 {
		c.wrong("the response has fields that the contract does not have")
	}
	c.certificate(request.GetSteps(), response.GetAnswers())
	changed := false
	for i, step := range request.GetSteps() {
		changed = c.answer(fmt.Sprintf("answers[%d]", i), step, orEmpty(response.GetAnswers()[i]), changed)
	}
	return c.report(), nil
}

// orEmpty returns an empty message for an absent one.
func orEmpty[M any](m *M) *M {
	if m == nil {
		return new(M)
	}
	return m
}

var ofBasis = omitted{
	"Basis.engine_version":  "only the server knows its version",
	"Basis.policy_digest":   "only the engine writes a policy in its canonical form",
	"Basis.snapshot_digest": "it depends on the bytes that were sent",
	"Basis.warnings":        "they do not affect decisions",
	"Basis.view":            "the request holds the snapshot, not how the server came by it",
	"Basis.restricted":      "the request does not say what its caller may see",
}

// Settings are the settings of plugin fair in a policy; nil without it.
func Settings(policy *apportionv1.Policy) *apportionv1.Fair {
	for _, tier := range policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if plugin.GetFair() != nil {
				return plugin.GetFair()
			}
		}
	}
	return nil
}

// hasTurns reports whether gangs may hold reservations: the settings let them, and the snapshot says what some queue was entitled to.
func hasTurns(s *apportionv1.Snapshot, settings *apportionv1.Fair) bool {
	return settings.GetTurns() != nil && s.GetMemory() != nil &&
		slices.ContainsFunc(s.GetQueues(), func(q *apportionv1.Queue) bool { return q.GetEntitled() != nil })
}

// plugins lists the names and tiers of the policy's plugins that are among some.
func (c *check) plugins(among ...string) (names []string, tiers []int) {
	for i, tier := range c.policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if name := string(memberOf(plugin)); slices.Contains(among, name) {
				names, tiers = append(names, name), append(tiers, i)
			}
		}
	}
	return names, tiers
}

// decidesByKueue reports whether the policy decides by Kueue's quotas.
func (c *check) decidesByKueue() bool {
	names, _ := c.plugins("kueue")
	return len(names) > 0
}

// voting says which of the policy's plugins that are among some take part in a decision.
func (c *check) voting(d apportionv1.Decision, among ...string) (list []bool) {
	for _, tier := range c.policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if slices.Contains(among, string(memberOf(plugin))) {
				list = append(list, !slices.Contains(plugin.GetDisabled(), d))
			}
		}
	}
	return list
}

// alone reports whether fair is the policy's only plugin among some, takes part in all decisions, and has its certificate.
func (c *check) alone(among ...string) bool {
	for _, tier := range c.policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if len(plugin.GetDisabled()) > 0 {
				return false
			}
		}
	}
	names, _ := c.plugins(append(among, ofFair)...)
	return c.lines != nil && len(names) == 1
}

// changing are the steps that change the state, and beside those that leave the answers here as they are: a mark changes what a rollback
// returns to, and an admission what the next one may take.
var (
	changing = []protoreflect.Name{"set_status", "allocate", "deallocate", "add_job", "remove_job", "rollback", "change"}
	beside   = []protoreflect.Name{"mark", "enqueue"}
)

// answer checks one answer and reports whether the state has changed after it.
func (c *check) answer(path string, step *apportionv1.Step, answer *apportionv1.Answer, changed bool) bool {
	question, kind := memberOf(step), memberOf(answer)
	// A step that fails changes nothing.
	changes := kind != "error" && slices.Contains(changing, question)
	changed = changed || changes
	expect(c, path+".changed", answer.GetChanged(), changes || kind != "error" && slices.Contains(beside, question))
	if len(answer.ProtoReflect().GetUnknown()) > 0 {
		c.wrong("%s has fields that the contract does not have", path)
	}
	c.enqueued = c.enqueued || question == "enqueue" && kind != "error"
	at := path + "." + string(kind)
	switch {
	case kind == "" || question == "":
		c.wrong("%s answers nothing", path)
	case changed:
		c.omit(at, "the state has changed since the request")
	case kind == "error":
		c.omit(path, "it is an error, which says nothing that could be checked")
		c.errors++
	case kind != question:
		c.wrong("%s answers %s, not %s", path, kind, question)
	case c.turns:
		c.omit(at, "the rules of turns are not repeated here; of the shares of all queues with explain, the divisions are checked")
	case c.decidesByKueue():
		c.omit(at, "the rules of Kueue are not repeated here")
	case !c.question(at, step, answer) && !c.own(at, step, answer):
		c.omit(at, cmp.Or(notChecked[question], "answers of this kind are not checked"))
	}
	return changed
}

// memberOf names the set member of a message's only oneof; "" if none is set.
func memberOf(m proto.Message) protoreflect.Name {
	if field := m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().Get(0)); field != nil {
		return field.Name()
	}
	return ""
}

const onlyFair = "only the order of queues under fair is checked, and only with the shares of all queues and explain"

// notChecked says why answers are not checked, by question, where there is more to say than that.
var notChecked = map[protoreflect.Name]string{
	"jobs":      "the rules of gangs are not repeated here",
	"order":     onlyFair,
	"nodes":     "the rules for nodes are not repeated here",
	"inspect":   "it shows how the snapshot was read, and decides nothing",
	"explain":   "the search for the cause is not repeated here",
	"remedies":  "the search is not repeated here",
	"evictable": "the choices of many claimants are not repeated here",
	"mark":      "it decides nothing",
}

// question checks the answer to a step of its kind; false if it is not checked.
func (c *check) question(path string, step *apportionv1.Step, answer *apportionv1.Answer) bool {
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_Shares:
		c.shares(path, q.Shares, answer.GetShares())
		return true
	case *apportionv1.Step_Order:
		return c.orders(path, q.Order, answer.GetOrder())
	case *apportionv1.Step_Allocatable:
		simulation := q.Allocatable.GetMode() == apportionv1.AccountingMode_ACCOUNTING_MODE_SIMULATION
		return c.taskVerdicts(path, q.Allocatable, answer.GetAllocatable().GetTasks(), func(s served) verdict {
			return c.allocatable(s, simulation)
		})
	case *apportionv1.Step_Preemptive:
		return c.taskVerdicts(path, q.Preemptive, answer.GetPreemptive().GetTasks(), c.preemptive)
	case *apportionv1.Step_Enqueue:
		repeated := c.enqueue(path, q.Enqueue, answer.GetEnqueue())
		c.entered = c.entered || !repeated
		return repeated
	case *apportionv1.Step_Reclaim:
		return c.reclaim(path, q.Reclaim, answer.GetReclaim())
	default:
		return false
	}
}
