package convert

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/adapter/fairshare"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
)

// convertFrom proposes policy fair with memory for the settings of another scheduler, in several files: as documents of one stream, or in a
// directory.
func convertFrom(s cli.Streams, input *question.InputFlags, system, into string) error {
	if len(input.Files) == 0 {
		return errors.New("--from: name the files of " + system + " with -f")
	}
	now := time.Now()
	if input.AsOf != "" {
		var err error
		if now, _, err = input.Moment(nil); err != nil {
			return err
		}
	}
	var sources []fairshare.Source
	for _, name := range input.Files {
		read, err := question.ReadSource(name)
		if err != nil {
			return err
		}
		sources = append(sources, fairshare.Source{Name: read.Name, Data: read.Data})
	}
	proposal, err := fairshare.Read(fairshare.System(system), sources, now)
	if err != nil {
		return err
	}
	var notes []*apportionv1.Warning
	for _, note := range proposal.Notes {
		notes = append(notes, &apportionv1.Warning{Message: note})
	}
	render.Warnings(s.Err, notes)
	files, err := proposed(proposal)
	if err != nil {
		return err
	}
	return writeFiles(s, files, into)
}

// writeFiles writes files into a directory, which it makes, or as documents of one stream if that is "". It replaces no file.
func writeFiles(s cli.Streams, files []written, into string) error {
	if into != "" {
		const listed = 0o755
		if err := os.MkdirAll(into, listed); err != nil {
			return err
		}
	}
	for i, f := range files {
		if into == "" {
			if i > 0 {
				f.data = append([]byte("---\n"), f.data...)
			}
			if _, err := s.Out.Write(f.data); err != nil {
				return err
			}
			continue
		}
		out, err := os.OpenFile(filepath.Join(into, f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = out.Write(f.data)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return nil
}

// written is a file of a proposal.
type written struct {
	name string
	data []byte
}

// proposed returns the files of a proposal that have content.
func proposed(p *fairshare.Proposal) ([]written, error) {
	raw, err := protojson.Marshal(p.Policy)
	if err != nil {
		return nil, err
	}
	policy, err := document.YAML(raw)
	if err != nil {
		return nil, err
	}
	const policyName, configName, budgetsName, queuesName = "policy.yaml", "config.yaml", "budgets.yaml", "queues.yaml"
	head := "# " + policyName + ": apportion shares --policy " + policyName + ", or policies.NAME of a server\n"
	files := []written{{policyName, append([]byte(head), policy...)}}
	add := func(name, use string, documents ...any) {
		data := []byte("# " + name + ": " + use + "\n")
		for i, d := range documents {
			var one []byte
			if one, err = yaml.Marshal(d); err != nil {
				return
			}
			if i > 0 {
				data = append(data, "---\n"...)
			}
			data = append(data, one...)
		}
		files = append(files, written{name, data})
	}
	if p.HalfLife > 0 {
		ledger := map[string]string{"half_life": duration.Format(p.HalfLife), "epoch": duration.Format(p.Epoch)}
		if len(p.Budgets) > 0 {
			ledger["budgets"] = budgetsName
		}
		add(configName, "settings of a server, with ledger.file and follow.enabled", map[string]any{"ledger": ledger})
	}
	if len(p.Budgets) > 0 {
		var list []any
		for _, b := range p.Budgets {
			period := map[string]any{"begin": b.Begin.Format(time.DateOnly), "hours": b.Hours}
			list = append(list, map[string]any{"queue": b.Queue, "kind": "hard", "periods": []any{period}})
		}
		add(budgetsName, "ledger.budgets of a server, or --budgets", map[string]any{"budgets": list})
	}
	var queues []any
	for _, q := range p.Queues {
		spec := map[string]any{"weight": q.Weight}
		if q.Priority != 0 {
			spec["priority"] = q.Priority
		}
		if q.Parent != "" {
			spec["parent"] = q.Parent
		}
		for name, amounts := range map[string]map[string]string{"deserved": q.Deserved, "capability": q.Capability} {
			if len(amounts) > 0 {
				spec[name] = amounts
			}
		}
		queues = append(queues, queueObject(q.Name, spec))
	}
	if len(queues) > 0 {
		add(queuesName, "kubectl apply -f "+queuesName, queues...)
	}
	return files, err
}

// queueObject returns a Queue of Volcano.
func queueObject(name string, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": name}, "spec": spec,
	}
}
