package convert

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
	"github.com/apportion/apportion/internal/quantity"
)

// convertKueue proposes policy fair and its queues for a cluster with Kueue.
func convertKueue(ctx context.Context, s cli.Streams, input *question.InputFlags, into string) error {
	if input.Policy != "" {
		return errors.New("--to fair takes a configuration or a preset without manifests, or manifests of Kueue: " +
			"give --policy or -f, not both")
	}
	sources, err := input.Sources(ctx, s.In)
	if err != nil {
		return err
	}
	if !manifest.OfKueue(sources) {
		return errors.New("--to fair: the input has no objects of Kueue, or objects of Volcano, too; " +
			"for a configuration of Volcano give --policy")
	}
	policy, err := fairAboveDeserved()
	if err != nil {
		return err
	}
	loaded, err := input.ReadKueue(sources, policy)
	if err != nil {
		return err
	}
	for _, q := range loaded.Snapshot.GetQueues() {
		if q.GetState() == apportionv1.QueueState_QUEUE_STATE_CLOSED {
			loaded.Warnings = append(loaded.Warnings, &apportionv1.Warning{Message: "queue " + q.GetName() +
				" is stopped in Kueue and closed in queues.yaml: kubectl apply leaves out the status, so close it in Volcano as well"})
		}
	}
	render.Warnings(s.Err, loaded.Warnings)
	files := proposedForKueue(loaded.Snapshot, policy)
	if into != "" {
		snapshot, err := protojson.Marshal(loaded.Snapshot)
		if err != nil {
			return err
		}
		files.files = append(files.files, written{"snapshot.json", append(snapshot, '\n')})
	}
	return files.write(s, into)
}

// fairAboveDeserved returns the preset fair for a cluster of Kueue.
func fairAboveDeserved() (*apportionv1.Policy, error) {
	policy, ok := client.Preset(policyFair)
	if !ok {
		return nil, fmt.Errorf("there is no preset %s", policyFair)
	}
	asfair.Adapt(policy)
	return policy, nil
}

// proposedForKueue returns a policy and the queues of a snapshot as files.
func proposedForKueue(snapshot *apportionv1.Snapshot, policy *apportionv1.Policy) *proposal {
	amounts := func(r *apportionv1.Resource) map[string]string {
		out := map[string]string{}
		for i, d := range r.GetDimensions() {
			name := snapshot.GetDimensions()[d]
			out[name] = quantity.Format(name, r.GetAmounts()[i])
		}
		return out
	}
	var queues []any
	for _, q := range snapshot.GetQueues() {
		spec := map[string]any{}
		if q.Weight != nil {
			spec["weight"] = q.GetWeight()
		}
		if q.GetParent() != "" {
			spec["parent"] = q.GetParent()
		}
		for name, of := range map[string]*apportionv1.Resource{"deserved": q.GetDeserved(), "capability": q.GetCapability()} {
			if len(of.GetDimensions()) > 0 {
				spec[name] = amounts(of)
			}
		}
		if len(q.GetGuarantee().GetDimensions()) > 0 {
			spec["guarantee"] = map[string]any{"resource": amounts(q.GetGuarantee())}
		}
		object := queueObject(q.GetName(), spec)
		if q.GetState() == apportionv1.QueueState_QUEUE_STATE_CLOSED {
			object["status"] = map[string]any{"state": "Closed"}
		}
		queues = append(queues, object)
	}
	out := propose(policy)
	out.addQueues(queues)
	return out
}
