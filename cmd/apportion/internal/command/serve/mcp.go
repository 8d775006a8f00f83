package serve

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
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
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

// NewMCP is `apportion mcp`. root returns the command line with all commands.
func NewMCP(s cli.Streams, root func(cli.Streams) *cobra.Command) *cobra.Command {
	a := &question.Asking{Answering: cli.Answering{Streams: s}}
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
		Args: cli.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !a.From.Given() && !a.From.Live.On {
				return errors.New("no input: name manifests with -f FILE, --snapshot FILE, the live cluster with --cluster, " +
					"or what a server follows with --server and --snapshot-name")
			}
			_, flags := a.Again()
			server, err := Agent(s, root, flags)
			if err != nil {
				return err
			}
			err = server.Run(command.Context(), agent.Lines(s.In, s.Out))
			if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
				err = nil
			}
			return err
		},
	}
	a.RegisterInput(command)
	return command
}

// Agent returns a server whose tools add these flags to their command. root returns the command line with all commands.
func Agent(s cli.Streams, root func(cli.Streams) *cobra.Command, flags []string) (*mcp.Server, error) {
	run := func(ctx context.Context, command string, args []string, in string) (r agent.Run) {
		var out, errOut bytes.Buffer
		var raw json.RawMessage
		whole := root(cli.Streams{In: strings.NewReader(in), Out: &out, Err: &errOut, Answered: func(answer any) (err error) {
			var full []byte
			if full, err = cli.Marshal(answer); err == nil {
				var short bytes.Buffer
				err = json.Compact(&short, full)
				raw = short.Bytes()
			}
			return err
		}})
		whole.SetArgs(slices.Concat([]string{command}, flags, args))
		err := whole.ExecuteContext(ctx)
		r = agent.Run{Text: out.String(), Warnings: errOut.String(), Answer: raw, No: errors.Is(err, cli.ErrDecidedNo)}
		if err != nil && !r.No {
			r.Fault = visible.Lines(cli.Describe(err))
		}
		return r
	}
	return agent.Server(s.Version, root(cli.Streams{}), agentTools(), run)
}
