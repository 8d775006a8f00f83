package agent

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// prompt is a task that people ask for often.
type prompt struct {
	name, title, usage string
	// subject names the argument, which is required unless the text makes sense without it.
	subject, about string
	required       bool
	text           func(subject string) string
}

var prompts = []prompt{
	{
		"why-pending", "Why does this job wait?", "Find out why a job waits and what would let it run.",
		"job", "NAMESPACE/NAME of the job", true,
		func(job string) string {
			return fmt.Sprintf("Why does job %q wait? Call explain, then remedies. Say the cause in one sentence with its numbers, "+
				"then the smallest changes that would let it run and who would pay for each, and what was not judged.", job)
		},
	},
	{
		"who-holds", "Who holds the resources?", "Compare what queues hold with what they deserve.",
		"resource", "a resource such as nvidia.com/gpu; default: all", false,
		func(resource string) string {
			which := "the resources"
			if resource != "" {
				which = fmt.Sprintf("resource %q", resource)
			}
			return fmt.Sprintf("Who holds %s of this cluster? Call shares, then pending. List the queues that hold more "+
				"than they deserve, those that hold less while their jobs wait, and what would be given back.", which)
		},
	},
	{
		"cluster-health", "What is wrong with the sharing of this cluster?", "Summarize what waits, why, and which settings cause it.",
		"queue", "a queue; default: all", false,
		func(queue string) string {
			where := "in this cluster"
			if queue != "" {
				where = fmt.Sprintf("in queue %q and below it", queue)
			}
			return fmt.Sprintf("What is wrong with the sharing of resources %s? Call pending and audit. Name the three "+
				"causes that block most jobs, the settings behind them, and try the best change of a setting with whatif "+
				"before you propose it.", where)
		},
	},
}

func addPrompts(s *mcp.Server) {
	for _, p := range prompts {
		s.AddPrompt(&mcp.Prompt{
			Name: p.name, Title: p.title, Description: p.usage,
			Arguments: []*mcp.PromptArgument{{Name: p.subject, Description: p.about, Required: p.required}},
		}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			subject := r.Params.Arguments[p.subject]
			if p.required && subject == "" {
				return nil, fmt.Errorf("%s is required: %s", p.subject, p.about)
			}
			return &mcp.GetPromptResult{Description: p.usage, Messages: []*mcp.PromptMessage{{
				Role: "user", Content: &mcp.TextContent{Text: p.text(subject)},
			}}}, nil
		})
	}
}
