package daemon

import (
	"errors"
	"fmt"

	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/cmd/apportion/internal/config"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/budget"
	"github.com/apportion/apportion/ledger/file"
)

// openMemory opens the ledger in the settings; nil if there is none.
func openMemory(c *config.Ledger) (*cluster.Memory, error) {
	if c.File == "" {
		return nil, nil //nolint:nilnil // No ledger is no fault.
	}
	budgets, err := budget.ReadFile(c.Budgets, optionsOf(c))
	if err != nil {
		return nil, err
	}
	kept, err := file.Open(c.File, optionsOf(c))
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	m := cluster.NewMemory(kept, budgets, c.Interval)
	m.Copy = c.Copy
	if m.Entitled, err = cluster.OpenEntitled(c.File, optionsOf(c)); err != nil {
		return nil, errors.Join(fmt.Errorf("ledger: %w", err), kept.Close())
	}
	if c.Cluster != "" {
		if err := m.Identify(c.Cluster); err != nil {
			return nil, errors.Join(fmt.Errorf("ledger: %s: %w", c.File, err), m.Close())
		}
	}
	return m, nil
}

// optionsOf returns the options of the ledger in the settings.
func optionsOf(c *config.Ledger) ledger.Options {
	return ledger.Options{Epoch: c.Epoch, HalfLife: int(c.HalfLife / c.Epoch), Retain: int(c.Retain / c.Epoch)}
}

// openHistory opens the history in the settings; nil if none is kept. policies are those of the settings.
func openHistory(c *setting.History, policies map[string]string, followed *followed) (*cluster.History, error) {
	if !c.Enabled {
		return nil, nil //nolint:nilnil // No history is no fault.
	}
	name, policy := c.Policy, (*apportionv1.Policy)(nil)
	switch {
	case name != "":
	case len(policies) == 0:
		name = followed.name
	case len(policies) == 1:
		for name = range policies {
			break
		}
	default:
		policy = followed.policy
	}
	h, err := cluster.OpenHistory(c, policy, name)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return h, nil
}

// forget releases the files of the ledger and of the history.
func (d *Daemon) forget() error {
	var faults []error
	if d.memory != nil {
		faults = append(faults, d.memory.Close())
	}
	if d.history != nil {
		faults = append(faults, d.history.Close())
	}
	return errors.Join(faults...)
}
