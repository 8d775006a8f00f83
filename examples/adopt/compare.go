package adopt

import (
	"context"
	"log/slog"
	"time"

	"github.com/apportion/apportion/client"
)

// Dial connects to the service and never blocks the scheduler: after half a second without an answer, the engine in this process decides
// which jobs may start, and nothing is evicted.
func Dial(target string, options ...client.Option) (*client.Client, error) {
	return client.Dial(target, append([]client.Option{
		client.WithDeadline(500 * time.Millisecond),
		client.WithDeadline(5*time.Second, client.KindUpload, client.KindSession),
		client.WithFallback(client.FallbackEngine, client.KindEnqueue, client.KindSession),
		client.WithFallback(client.FailClosed, client.KindVictims),
	}, options...)...)
}

// Compare asks about every job that waits, changes nothing, and says where the answer is not the scheduler's own.
func Compare(ctx context.Context, decide client.Decider, c *Cluster, log *slog.Logger) (different int, err error) {
	snapshot, err := c.Describe()
	if err != nil {
		return 0, err
	}
	in := client.Input{Snapshot: snapshot, Policy: client.VolcanoDefault()}
	admissions, err := decide.Enqueue(ctx, in, client.EnqueueQuestion{AsAction: true})
	if err != nil {
		return 0, err
	}
	for i, admission := range admissions.Jobs {
		job := c.Jobs[admissions.Answer.GetJobs()[i].GetJob()]
		if own := c.MayStart(job); own != admission.Permitted {
			different++
			log.InfoContext(ctx, "they differ", "job", job.Name, "own", own, "apportion", admission.Permitted, "why", admission.Why)
		}
	}
	return different, nil
}
