package admission

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/apportion/apportion/adapter/connection"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/round"
	"github.com/apportion/apportion/internal/catalogue"
)

const (
	// patience is how long room is kept for a Workload without quota before Workloads that wait give up theirs for it.
	patience = 5 * time.Second
	// sentenceAge is the age after which the sentence of a Workload is formed again, sentenceMost how many are formed at once.
	sentenceAge, sentenceMost = 30 * time.Second, 50
	// refresh is how often the loop decides again while Workloads wait, because time alone may change the decision.
	refresh = 2 * time.Second
)

// Controller admits Workloads.
type Controller struct {
	settings *Settings
	decide   *client.Client
	input    client.Input
	mirror   *client.Mirror
	cluster  *cluster
	log      *slog.Logger
	from     discovery.DiscoveryInterface
	clients  dynamic.Interface
	version  string
	now      func() time.Time

	// placed is since when a Workload without quota has had a place, aside until when it is left out because Kueue gave it no quota.
	placed, aside map[string]time.Time
	// said is when the sentence of a Workload was formed.
	said map[string]time.Time
	// last is the last decision, nil if it may not be used again.
	last *decision
}

// decision is what the policy decided.
type decision struct {
	*view

	plans []*round.Plan
	of    *moment
}

// New returns a controller. The error names the faulty setting.
func New(s *Settings, from discovery.DiscoveryInterface, clients dynamic.Interface, log *slog.Logger) (*Controller, error) {
	decide, in, err := s.connect()
	if err != nil {
		return nil, err
	}
	return &Controller{
		settings: s, decide: decide, input: in, mirror: client.NewMirror(decide), cluster: newCluster(log), log: log, from: from,
		clients: clients, now: time.Now, placed: map[string]time.Time{}, aside: map[string]time.Time{}, said: map[string]time.Time{},
	}, nil
}

// Run admits Workloads until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	defer func() { _ = c.decide.Close() }()
	resources, err := c.await(ctx)
	if err != nil {
		return err
	}
	following := make(chan struct{})
	go func() {
		defer close(following)
		c.cluster.follow(ctx, c.clients, c.version, resources)
	}()
	c.loop(ctx)
	<-following
	return ctx.Err()
}

// await waits until Kueue's kinds are served.
func (c *Controller) await(ctx context.Context) (resources []string, err error) {
	const again = 5 * time.Second
	for said := ""; ; {
		if c.version, resources, err = served(c.from); err == nil {
			return resources, nil
		}
		if said != err.Error() {
			said = err.Error()
			c.log.WarnContext(ctx, "waiting for Kueue", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(again):
		}
	}
}

func (c *Controller) loop(ctx context.Context) {
	again := time.NewTicker(refresh)
	defer again.Stop()
	waits, failed := false, ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			if !waits {
				continue
			}
		case <-c.cluster.changed:
		}
		if !c.cluster.complete() {
			continue
		}
		var err error
		began := time.Now()
		waits, err = c.once(ctx)
		if said := errorText(err); said != failed && ctx.Err() == nil {
			if failed = said; err != nil {
				c.log.WarnContext(ctx, "no decision, or it was not written", "error", err, "fallback", c.settings.Fallback)
			}
		}
		waits = waits || err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(c.settings.Interval.Duration, time.Since(began))): // At most half of the time is spent on decisions.
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// once decides about the cluster as it is now. It reports whether Workloads wait.
func (c *Controller) once(ctx context.Context) (waits bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now := c.now()
	if d := c.last; d != nil && c.cluster.same(d.of) && (d.of.until.IsZero() || now.Before(d.of.until)) {
		return true, c.write(ctx, c.outcome(ctx, d.view, d.plans, now))
	}
	c.last = nil
	of := c.cluster.at(now)
	if err := c.activate(ctx, of.checks); err != nil {
		return true, err
	}
	v := newView(of.snapshot, of.workloads, of.checks, func(uid string) bool { return now.Before(c.aside[uid]) })
	c.forget(v)
	if err := c.write(ctx, v.returned(now)); err != nil {
		return true, err
	}
	if len(v.waiting) == 0 {
		return false, nil
	}
	plans, err := c.ask(ctx, v)
	if err != nil {
		return true, cmp.Or(c.write(ctx, c.undecided(v, err)), err)
	}
	c.keep(&decision{v, plans, of}, now)
	return true, c.write(ctx, c.outcome(ctx, v, plans, now))
}

// ask asks for the plans about a view.
func (c *Controller) ask(ctx context.Context, v *view) ([]*round.Plan, error) {
	if err := c.mirror.Replace(v.snapshot); err != nil {
		return nil, err
	}
	c.input.State = c.mirror.State()
	var plans []*round.Plan
	told := round.Told{Planned: func(p *round.Plan) { plans = append(plans, p) }}
	return plans, round.Decide(ctx, c.decide, c.input, v.waiting, told, connection.Actions(c.settings.Evict)...)
}

// keep lets a decision be used again while nothing changes, if time alone does not change what the policy decides. A translation states
// neither what queues were entitled to nor reservations, by which time would count in other policies, too.
func (c *Controller) keep(d *decision, now time.Time) {
	if c.input.Policy == nil || catalogue.Clocked(c.input.Policy) {
		return
	}
	for _, until := range c.aside {
		if until.After(now) {
			d.of.until = earlier(d.of.until, until)
		}
	}
	c.last = d
}

// undecided is what is written without a decision: nothing but the reason, or, if the controller fails open, that all who ask are admitted.
func (c *Controller) undecided(v *view, err error) []change {
	const silent = "Apportion does not answer"
	why, state := silent+": "+client.Describe(err), statePending
	if c.settings.Fallback == connection.FallbackOpen {
		why, state = "admitted without a decision, because "+silent+" (fallback: open)", stateReady
	}
	var changes []change
	for _, s := range v.asking() {
		// The words of an error may differ each time, and are written once.
		if state != statePending || !strings.HasPrefix(s.Status.Checks[s.own[0]].Message, silent) {
			changes = append(changes, change{standing: s, state: state, message: why})
		}
	}
	return changes
}

// forget drops what is known of Workloads that have gone or hold quota.
func (c *Controller) forget(v *view) {
	gone := func(uid string, _ time.Time) bool { s := v.standings[uid]; return s == nil || s.reserved }
	maps.DeleteFunc(c.placed, gone)
	maps.DeleteFunc(c.aside, gone)
	maps.DeleteFunc(c.said, func(uid string, _ time.Time) bool { s := v.standings[uid]; return s == nil || !s.asking })
}

// asking returns the Workloads that ask, the oldest first.
func (v *view) asking() []*standing {
	var list []*standing
	for _, s := range v.standings {
		if s.asking {
			list = append(list, s)
		}
	}
	order(list)
	return list
}

// outcome returns what plans change: Workloads with a plan are admitted, its victims leave, and the others learn why they wait.
func (c *Controller) outcome(ctx context.Context, v *view, plans []*round.Plan, now time.Time) []change {
	var changes []change
	settled := map[string]bool{}
	for _, plan := range plans {
		s := v.standings[plan.Job]
		for _, left := range plan.Victims {
			if victim := v.workloadOf(left.Task); victim != nil && !settled[victim.uid] {
				settled[victim.uid] = true
				changes = append(changes, change{
					standing: victim, state: stateRetry, after: c.settings.RetryAfter.Duration, reason: "Evicted",
					message: "leaves for " + s.key + ": " + plan.Sentence,
				})
			}
		}
		settled[s.uid] = true
		if s.asking && len(plan.Victims) == 0 {
			changes = append(changes, change{standing: s, state: stateReady, reason: "Admitted", message: plan.Sentence})
		}
	}
	kept := c.keepRoom(v, plans, now)
	var refused []*standing
	for _, s := range v.asking() {
		if !settled[s.uid] {
			refused = append(refused, s)
		}
	}
	return append(changes, c.refuse(ctx, v, refused, kept, now)...)
}

// keepRoom returns the flavors on which room is kept for a Workload to which Kueue has given no quota for some time, by the Workload. Such
// a Workload is left out for a while when Kueue gives it none at all.
func (c *Controller) keepRoom(v *view, plans []*round.Plan, now time.Time) map[string]*standing {
	kept := map[string]*standing{}
	has := map[string]bool{}
	for _, plan := range plans {
		s := v.standings[plan.Job]
		if s.reserved || len(plan.Victims) > 0 {
			continue
		}
		has[s.uid] = true
		if c.placed[s.uid].IsZero() {
			c.placed[s.uid] = now
		}
		switch waited := now.Sub(c.placed[s.uid]); {
		case waited >= c.settings.QuotaTimeout.Duration:
			c.aside[s.uid] = now.Add(c.settings.QuotaTimeout.Duration)
			c.last = nil
			delete(c.placed, s.uid)
			c.log.Info("Kueue gives no quota to a Workload that has a place: its room is not kept for a while", "workload", s.key)
		case waited >= patience:
			for _, p := range plan.Placements {
				if kept[p.Node] == nil {
					kept[p.Node] = s
				}
			}
		}
	}
	maps.DeleteFunc(c.placed, func(uid string, _ time.Time) bool { return !has[uid] })
	return kept
}

// refuse returns what is written about Workloads that ask and have no place: their sentences, and that those leave which hold the quota
// that a Workload before them needs, or have held it for long.
func (c *Controller) refuse(ctx context.Context, v *view, refused []*standing, kept map[string]*standing, now time.Time) []change {
	var changes []change
	sentences := c.sentences(ctx, v, refused, kept, now)
	for _, s := range refused {
		next := change{standing: s, state: statePending, message: cmp.Or(sentences[s.uid], s.Status.Checks[s.own[0]].Message)}
		before := s.before(kept)
		if before != nil || now.Sub(s.since()) >= c.settings.Hold.Duration {
			next.state, next.after, next.reason = stateRetry, c.settings.RetryAfter.Duration, "Retried"
			if limit := c.settings.RejectAfter; limit > 0 && s.Status.Checks[s.own[0]].RetryCount >= limit {
				next.state, next.reason = stateRejected, "Rejected"
			}
		}
		if before != nil {
			next.message += " It gives up its quota, which " + before.key + " needs: that comes first."
		}
		changes = append(changes, next)
	}
	return changes
}

// before returns the Workload for which room is kept on a flavor of which another one holds quota, or nil.
func (s *standing) before(kept map[string]*standing) *standing {
	for _, node := range slices.Sorted(maps.Keys(s.nodes)) {
		if kept[node] != nil {
			return kept[node]
		}
	}
	return nil
}

// sentences says why Workloads wait: those about which nothing was said for a while, and those that will be retried now.
func (c *Controller) sentences(
	ctx context.Context, v *view, refused []*standing, kept map[string]*standing, now time.Time,
) map[string]string {
	said := map[string]string{}
	var asked []string
	for _, s := range refused {
		if len(asked) < sentenceMost && (now.Sub(c.said[s.uid]) >= sentenceAge || s.before(kept) != nil) {
			asked = append(asked, s.uid)
			c.said[s.uid] = now
		}
	}
	if len(asked) == 0 {
		return said
	}
	answer, err := c.decide.Explain(ctx, c.input, client.ExplainQuestion{Jobs: asked})
	if err != nil {
		c.log.DebugContext(ctx, "no sentences", "error", err)
		return said
	}
	for _, job := range answer.Answer.GetJobs() {
		said[job.GetUid()] = job.GetText()
		if job.Blocking == nil {
			said[job.GetUid()] = v.standings[job.GetUid()].key + " waits, because Workloads that come first take what is free."
		}
	}
	return said
}
