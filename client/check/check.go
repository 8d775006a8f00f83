// Package check checks what plugin fair promises of its answers, by the rules of docs/fair.md: that shares are what the division makes of
// the snapshot, with past usage if it has a memory, and that a plan keeps its word. It shares no code with the engine, so that a fault in
// one is not a fault in the other. It says of everything else that it is not checked.
//
// A check reads the snapshot (cluster.go, count.go), checks the certificate of the division (division.go, portion.go, memory.go), then each
// answer: shares (shares.go) and plans (plan.go, reclaim.go, placement.go).
package check

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// check is the check of one response.
type check struct {
	*cluster
	*findings

	policy *apportionv1.Policy
	// fair is the certificate; nil if the answers have none.
	fair *apportionv1.FairDerivation
	// bounds are those of the division by weight, by dimension and queue.
	bounds []map[int]bound
	// lines are guarantee, fair share, entitlement and the line with memory by queue and dimension, in quanta; nil without a certificate.
	lines map[int][][4]int64
	// effective are the weights with memory by dimension and queue; nil without a memory.
	effective []map[int]int64
	// derived counts the numbers of the certificate.
	derived int
	// omitNames: the answers have no names beside positions.
	omitNames bool
}

// Response returns what is wrong with a response, what was checked and what was not. It checks plugin fair alone, and only before the first
// step that changes the state. A step must ask for the shares of all queues with explain. It returns an error if the request cannot be
// read.
func Response(request *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) (report *Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			report, err = nil, fmt.Errorf("the request cannot be checked: %v", p)
		}
	}()
	snapshot, policy := request.GetInput().GetSnapshot(), request.GetInput().GetPolicy()
	if err := readable(snapshot, policy); err != nil {
		return nil, err
	}
	c := &check{findings: newFindings(), policy: policy, cluster: read(snapshot, Settings(policy))}
	c.omitNames = request.GetInput().GetOmitNames()
	c.width = len(c.dims)
	c.compare("basis", orEmpty(response.GetBasis()), &apportionv1.Basis{Dimensions: c.dims}, ofBasis)
	if len(response.GetAnswers()) != len(request.GetSteps()) {
		c.wrong("answers has %d entries, not one for each of %d steps", len(response.GetAnswers()), len(request.GetSteps()))
		return c.report(), nil
	}
	c.known("the response", response)
	c.certificate(request.GetSteps(), response.GetAnswers())
	changed := false
	for i, step := range request.GetSteps() {
		changed = c.answer(fmt.Sprintf("answers[%d]", i), step, orEmpty(response.GetAnswers()[i]), changed)
	}
	return c.report(), nil
}

// readable returns why a request has nothing to compare answers with; nil if it has.
func readable(snapshot *apportionv1.Snapshot, policy *apportionv1.Policy) error {
	switch {
	case snapshot == nil:
		return errors.New("the request holds no snapshot")
	case policy == nil:
		return errors.New("the request holds no policy")
	}
	queues := map[string]bool{}
	for _, q := range snapshot.GetQueues() {
		queues[q.GetName()] = true
	}
	for i, j := range snapshot.GetJobs() {
		if !queues[j.GetQueue()] {
			return fmt.Errorf("snapshot.jobs[%d].queue %q does not exist", i, j.GetQueue())
		}
	}
	return nil
}

const ofTheCall = "it describes the call"

var ofBasis = omitted{
	"Basis.engine_version": ofTheCall, "Basis.policy_digest": ofTheCall, "Basis.snapshot_digest": ofTheCall, "Basis.warnings": ofTheCall,
	"Basis.view": ofTheCall, "Basis.restricted": ofTheCall, "Basis.policy_source": ofTheCall,
}

// orEmpty returns an empty message for an absent one.
func orEmpty[M any](m *M) *M {
	if m == nil {
		return new(M)
	}
	return m
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

// changing are the steps that change the state, and beside those that leave the answers here as they are: a mark changes what a rollback
// returns to, and an admission what the next one may take.
var (
	changing = []protoreflect.Name{"event", "rollback"}
	beside   = []protoreflect.Name{"mark", "enqueue"}
)

// answer checks one answer and reports whether the state has changed after it.
func (c *check) answer(path string, step *apportionv1.Step, answer *apportionv1.Answer, changed bool) bool {
	question, kind := memberOf(step), memberOf(answer)
	// A step that fails changes nothing.
	changes := kind != "error" && slices.Contains(changing, question)
	changed = changed || changes
	if says := changes || kind != "error" && slices.Contains(beside, question); answer.GetChanged() != says {
		c.wrong("%s.changed is %v, not %v", path, answer.GetChanged(), says)
	}
	c.known(path, answer)
	at := path + "." + string(kind)
	switch {
	case kind == "" || question == "":
		c.wrong("%s answers nothing", path)
	case kind == "error":
		c.omit(path, "it is an error, which says nothing that could be checked")
		c.errors++
	case changed:
		c.omit(at, "the state has changed since the request")
	case kind != question:
		c.wrong("%s answers %s, not %s", path, kind, question)
	case c.settings == nil:
		c.omit(at, "only what plugin fair promises is checked, and the policy does not have it")
	default:
		c.question(at, step, answer)
	}
	return changed
}

// question checks an answer of the kind that was asked for.
func (c *check) question(at string, step *apportionv1.Step, answer *apportionv1.Answer) {
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_Shares:
		c.shares(at, q.Shares, answer.GetShares())
	case *apportionv1.Step_Reclaim:
		c.reclaim(at, q.Reclaim, answer.GetReclaim())
	case *apportionv1.Step_Plan:
		c.planned(at, q.Plan, answer.GetPlan())
	default:
		c.omit(at, "shares and plans are checked, and no other answers")
	}
}

// memberOf names the set member of a message's only oneof; "" if none is set.
func memberOf(m proto.Message) protoreflect.Name {
	if field := m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().Get(0)); field != nil {
		return field.Name()
	}
	return ""
}
