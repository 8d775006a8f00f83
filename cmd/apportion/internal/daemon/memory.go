package daemon

import (
	"fmt"
	"os"

	"github.com/apportion/apportion/cmd/apportion/internal/cluster"
	"github.com/apportion/apportion/config"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/budget"
	"github.com/apportion/apportion/ledger/file"
)

// openMemory opens the ledger in the settings; nil if there is none.
func openMemory(c *config.Ledger) (*cluster.Memory, error) {
	if c.File == "" {
		return nil, nil //nolint:nilnil // No ledger is no fault.
	}
	options := ledger.Options{Epoch: c.Epoch, HalfLife: int(c.HalfLife / c.Epoch), Retain: int(c.Retain / c.Epoch)}
	budgets, err := readBudgets(c.Budgets, options)
	if err != nil {
		return nil, err
	}
	kept, err := file.Open(c.File, options)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return cluster.NewMemory(kept, budgets, c.Interval), nil
}

func readBudgets(name string, o ledger.Options) ([]ledger.Budget, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	budgets, err := budget.Read(data, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return budgets, nil
}

// forget releases the file of the ledger.
func (d *Daemon) forget() error {
	if d.memory == nil {
		return nil
	}
	return d.memory.File.Close()
}
