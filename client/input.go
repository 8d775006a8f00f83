package client

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// Input is the input of a question: a snapshot, inline or uploaded, or the state of a mirror, and a policy.
type Input struct {
	Snapshot *apportionv1.Snapshot
	// Upload replaces Snapshot.
	Upload *Upload
	// State replaces both. Its mirror must belong to the same client.
	State *State
	// Policy to decide by; nil: PolicyName.
	Policy *apportionv1.Policy
	// PolicyName is the name of a policy configured in the service, or, in process, of a policy of WithPolicy.
	PolicyName string
	// Texts adds a text to every reason in the answers.
	Texts bool
}

// sends reports whether the input is an upload that can be sent to a replica that does not hold it.
func (in Input) sends() bool { return in.Upload != nil && in.Upload.data != nil }

// partial reports whether the input has only what the caller may see of a snapshot, so that only the service can answer.
func (in Input) partial() bool {
	return in.Upload != nil && in.Upload.data == nil && in.Upload.digest != ""
}

// snapshot returns the snapshot of the input. The snapshot of a State is assembled for the call.
func (in Input) snapshot() *apportionv1.Snapshot {
	switch {
	case in.State != nil:
		return in.State.Snapshot()
	case in.Upload != nil:
		return in.Upload.snapshot
	}
	return in.Snapshot
}

// names returns the names of positions in an answer. at describes the State of the input as the answering replica holds it, nil for other
// inputs.
func (in Input) names(basis *apportionv1.Basis, at *held) text.Names {
	if at != nil {
		return text.Names{Dimensions: basis.GetDimensions(), Queues: at.queues}
	}
	return text.NamesOf(basis, in.snapshot())
}

// nodes returns the names of nodes by position, with at as in names.
func (in Input) nodes(at *held) []string {
	if at != nil {
		return at.nodes
	}
	all := in.snapshot().GetNodes()
	nodes := make([]string, len(all))
	for i, node := range all {
		nodes[i] = node.GetName()
	}
	return nodes
}

// message returns the input as it is sent.
func (in Input) message() *apportionv1.Input {
	message := &apportionv1.Input{Texts: in.Texts}
	switch {
	case in.State != nil:
		// The digest follows when the State is held.
	case in.Upload != nil && in.Upload.digest == "":
		message.Source = &apportionv1.Input_Snapshot{Snapshot: in.Upload.snapshot}
	case in.Upload != nil:
		message.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: in.Upload.digest}
	case in.Snapshot != nil:
		message.Source = &apportionv1.Input_Snapshot{Snapshot: in.Snapshot}
	}
	switch {
	case in.Policy != nil:
		message.Rule = &apportionv1.Input_Policy{Policy: in.Policy}
	case in.PolicyName != "":
		message.Rule = &apportionv1.Input_PolicyName{PolicyName: in.PolicyName}
	}
	return message
}
