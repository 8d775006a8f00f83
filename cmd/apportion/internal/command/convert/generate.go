package convert

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/internal/generate"
)

// NewGenerate is `apportion generate`.
func NewGenerate(s cli.Streams) *cobra.Command {
	shape := generate.Standard()
	shape.Queues, shape.Jobs, shape.Tasks, shape.Nodes = 10, 100, 1000, 50
	var standard bool
	c := &converting{cli.Answering{Streams: s, Format: cli.FormatJSON}}
	command := &cobra.Command{
		Use:    "generate",
		Hidden: true, // The first help lists what people ask about a cluster.
		Short:  "Create a snapshot of a busy cluster, for experiments and load tests",
		Long: `Create a snapshot that resembles a busy cluster. The same flags give the same bytes on every machine.
Its tasks may use every node, and no rules on other pods concern them.`,
		Example: `  apportion generate --queues 20 --tasks 5000 > snapshot.json
  apportion generate --standard -o binary > snapshot.pb`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkShape(shape); err != nil {
				return err
			}
			if standard {
				seed, uids := shape.Seed, shape.UIDs
				shape = generate.Standard()
				shape.Seed, shape.UIDs = seed, uids
			}
			return c.writeMessage(generate.Snapshot(shape))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&standard, "standard", false,
		"the size used in published measurements: 1,000 queues, 10,000 jobs, 100,000 tasks, 5,000 nodes")
	flags.IntVar(&shape.Queues, "queues", shape.Queues, "number of queues")
	flags.IntVar(&shape.Jobs, "jobs", shape.Jobs, "number of jobs")
	flags.IntVar(&shape.Tasks, "tasks", shape.Tasks, "number of tasks")
	flags.IntVar(&shape.Nodes, "nodes", shape.Nodes, "number of nodes")
	flags.IntVar(&shape.Depth, "depth", 0, "levels of a tree of queues below root; 0: no tree")
	flags.IntVar(&shape.Dimensions, "dimensions", 0, "number of resources, 2 to 64; 0: cpu, memory, pods and GPUs")
	flags.BoolVar(&shape.UIDs, "uids", shape.UIDs, "give every task a UUID; without it, tasks are identified by number")
	flags.Uint64Var(&shape.Seed, "seed", shape.Seed, "seed; different values give different snapshots of one size")
	for _, size := range []string{"queues", "jobs", "tasks", "nodes", "depth", "dimensions"} {
		command.MarkFlagsMutuallyExclusive("standard", size)
	}
	c.Register(command, cli.FormatBinary)
	return command
}

// The most of anything that generate creates, which fits the memory of a small machine, and the deepest tree of queues.
const mostGenerated, deepest = 1_000_000, 100

// checkShape returns an error that names each number that is out of its range.
func checkShape(shape generate.Shape) error {
	var faults []error
	for _, flag := range []struct {
		name         string
		number, most int
	}{
		{"queues", shape.Queues, mostGenerated},
		{"jobs", shape.Jobs, mostGenerated},
		{"tasks", shape.Tasks, mostGenerated},
		{"nodes", shape.Nodes, mostGenerated},
		{"depth", shape.Depth, deepest},
	} {
		if flag.number < 0 || flag.number > flag.most {
			faults = append(faults, fmt.Errorf("--%s %d: a number from 0 to %d is expected", flag.name, flag.number, flag.most))
		}
	}
	if shape.Dimensions != 0 && (shape.Dimensions < 2 || shape.Dimensions > 64) {
		faults = append(faults, fmt.Errorf("--dimensions %d: 0 or a number from 2 to 64 is expected", shape.Dimensions))
	}
	return errors.Join(faults...)
}
