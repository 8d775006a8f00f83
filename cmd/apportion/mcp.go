package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/agent"
	"github.com/apportion/apportion/internal/visible"
)

// agentTools are the commands that agents may call. None of them changes anything or reads files other than the input.
func agentTools() []agent.Tool {
	const one = "resource"
	job := agent.Argument{Name: "job", Usage: "NAMESPACE/NAME, or NAME alone, of a job or of one of its pods"}
	return []agent.Tool{
		{
			Name: "pending", Title: "What waits and why", Command: "pending",
			Flags: "queue namespace cause resource top", Sentence: "explain.text",
		},
		{
			Name: "explain", Title: "Why a job waits", Command: "explain", Set: []string{"--no-remedies"},
			Arguments: []agent.Argument{job}, Flags: one, Sentence: "explain.jobs.text",
		},
		{
			Name: "remedies", Title: "What would help a job", Command: "explain", Set: []string{"--remedies"},
			Arguments: []agent.Argument{job}, Flags: one, Sentence: "remedies.text",
		},
		{
			Name: "shares", Title: "Who holds and deserves what", Command: "shares", Flags: one,
		},
		{
			Name: "queue", Title: "One queue", Command: "queue",
			Arguments: []agent.Argument{{Name: "queue", Usage: "the name of the queue"}}, Flags: "resource top",
			Sentence: "explain.text",
		},
		{
			Name: "plan", Title: "Where a job fits, and what to evict for it", Command: "plan",
			Arguments: []agent.Argument{job}, Flags: "by max-victims", Sentence: "plan.text",
		},
		{
			Name: "whatif", Title: "What a change would do", Command: "whatif",
			Flags: "set add-nodes like remove-node finish resource", Input: "job",
		},
		{
			Name: "audit", Title: "Mistakes in the settings, and unfair shares", Command: "audit", Flags: one,
		},
		{
			Name: "diff", Title: "What another policy would change", Command: "diff", Set: []string{"--no-audit"},
			Arguments: []agent.Argument{
				{Name: "a", Usage: "a policy", Among: client.Presets()},
				{Name: "b", Usage: "the policy to compare it with", Among: client.Presets()},
			},
			Flags: one,
		},
	}
}

// newMCP is `apportion mcp`. root returns the command line with all commands.
func newMCP(s streams, root func(streams) *cobra.Command) *cobra.Command {
	a := &asking{answering: answering{streams: s}}
	command := &cobra.Command{
		Use:   "mcp",
		Short: "Answer the questions of an agent by the Model Context Protocol, on standard input and output",
		Long: `Serve the questions of people as tools of the Model Context Protocol, on standard input and output: why
jobs wait, who holds what, what would help, what a change would do. Tools only read: manifests or a
snapshot, which each call reads again, the live cluster, or what a server follows. An answer begins with
its sentence; its numbers are the structured content, at most 64 KiB; a longer answer is a resource.
docs/agents.md shows how to add it to common hosts.`,
		Example: `  apportion mcp -f cluster.yaml
  kubectl apportion mcp
  apportion mcp --server apportion:7171 --snapshot-name cluster --token-file token`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !a.input.given() && !a.input.live.On {
				return errors.New("no input: name manifests with -f FILE, --snapshot FILE, the live cluster with --cluster, " +
					"or what a server follows with --server and --snapshot-name")
			}
			_, flags := a.again()
			server, err := agentServer(s, root, flags)
			if err != nil {
				return err
			}
			err = server.Run(command.Context(), agent.Lines(s.in, s.out))
			if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
				err = nil
			}
			return err
		},
	}
	a.running = command
	a.registerInput(command)
	return command
}

// agentServer returns a server whose tools add these flags to their command. root returns the command line with all commands.
func agentServer(s streams, root func(streams) *cobra.Command, flags []string) (*mcp.Server, error) {
	run := func(ctx context.Context, command string, args []string, in string) (r agent.Run) {
		var out, errOut bytes.Buffer
		var raw json.RawMessage
		whole := root(streams{in: strings.NewReader(in), out: &out, err: &errOut, version: s.version, answered: func(answer any) (err error) {
			var full []byte
			if full, err = marshal(answer); err == nil {
				var short bytes.Buffer
				err = json.Compact(&short, full)
				raw = short.Bytes()
			}
			return err
		}})
		whole.SetArgs(slices.Concat([]string{command}, flags, args))
		err := whole.ExecuteContext(ctx)
		r = agent.Run{Text: out.String(), Warnings: errOut.String(), Answer: raw, No: errors.Is(err, errDecidedNo)}
		if err != nil && !r.No {
			r.Fault = visible.Lines(describe(err))
		}
		return r
	}
	return agent.Server(s.version, root(streams{version: s.version}), agentTools(), run)
}
