package convert

import (
	"errors"
	"time"

	"github.com/apportion/apportion/adapter/fairshare"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
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
	found, err := fairshare.Read(fairshare.System(system), sources, now)
	if err != nil {
		return err
	}
	render.Warnings(s.Err, question.Noted(found.Notes))
	return proposed(found).write(s, into)
}

// proposed returns the files of a proposal that have content.
func proposed(p *fairshare.Proposal) *proposal {
	out := propose(p.Policy)
	const budgetsName = "budgets.yaml"
	if p.HalfLife > 0 {
		ledger := map[string]string{"half_life": duration.Format(p.HalfLife), "epoch": duration.Format(p.Epoch)}
		if len(p.Budgets) > 0 {
			ledger["budgets"] = budgetsName
		}
		out.add("config.yaml", "settings of a server, with ledger.file and follow.enabled", map[string]any{"ledger": ledger})
	}
	if len(p.Budgets) > 0 {
		var list []any
		for _, b := range p.Budgets {
			period := map[string]any{"begin": b.Begin.Format(time.DateOnly), "hours": b.Hours}
			list = append(list, map[string]any{"queue": b.Queue, "kind": "hard", "periods": []any{period}})
		}
		out.add(budgetsName, "ledger.budgets of a server, or --budgets", map[string]any{"budgets": list})
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
		out.addQueues(queues)
	}
	return out
}
