package docs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/binpack"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/cooldown"
	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/hdrf"
	"github.com/apportion/apportion/engine/policy/nodegroup"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/notation"
)

var plugins = map[string]policy.Plugin{
	"proportion": proportion.Plugin{}, "gang": gang.Plugin{}, "priority": priority.Plugin{}, "drf": drf.Plugin{},
	"hdrf": hdrf.Plugin{}, "conformance": conformance.Plugin{}, "cdp": cooldown.Plugin{},
	"binpack": binpack.Default(), "binpack(cpu=5)": binpack.Plugin{Weight: 1, CPU: 5, Memory: 1},
	"binpack(gpu=1)":     binpack.Plugin{Weight: 1, CPU: 1, Memory: 1, Resources: []binpack.Weight{{Name: "gpu", Weight: 1}}},
	"binpack(weight=-1)": binpack.Plugin{Weight: -1, CPU: 1, Memory: 1},
	"nodegroup":          nodegroup.Default(), "nodegroup(lax)": nodegroup.Plugin{},
	"nodegroup(ordered)":      nodegroup.Plugin{Strict: true, PreferredOrder: true},
	"nodegroup(hierarchical)": nodegroup.Plugin{Strict: true, Hierarchical: true},
	"overcommit":              overcommit.Default(),
	"capacity":                capacity.Plugin{}, "capacity(tree)": capacity.Plugin{Hierarchical: true},
	"capacity(tree,level=1)": capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: 1},
}

// console answers the questions of one transcript.
type console struct {
	m   *model.Model
	s   *engine.Session
	out strings.Builder
	err error
}

// play returns a transcript with every answer as the engine gives it: lines after `> ` are kept, all others are replaced.
func play(m *model.Model, transcript string) (string, error) {
	c := &console{m: m}
	for text := range strings.SplitSeq(transcript, "\n") {
		question, ok := strings.CutPrefix(text, "> ")
		if !ok {
			continue
		}
		c.say("> %s", question)
		plain, _, _ := strings.Cut(question, "#")
		if err := c.answer(strings.Fields(plain)); err != nil {
			return "", fmt.Errorf("%q: %w", question, err)
		}
	}
	return c.out.String(), nil
}

func (c *console) say(format string, args ...any) {
	fmt.Fprintf(&c.out, format, args...)
	c.out.WriteByte('\n')
}

func (c *console) answer(words []string) error {
	c.err = nil
	verb, rest := words[0], words[1:]
	if verb == "policy" {
		return c.open(rest)
	}
	ask := map[string]func([]string){
		"shares": c.shares, "rounds": c.rounds, "overused": c.overused, "allocatable": c.allocatable, "preemptive": c.preemptive,
		"enqueue": c.enqueue, "admit": c.admit, "reclaim": c.reclaim, "preempt": c.preempt, "order": c.order, "jobs": c.jobs,
		"nodes": c.scores, "allocate": c.allocate, "deallocate": c.deallocate, "status": c.status, "drf": c.drf, "tree": c.tree,
		"mark": c.mark, "rollback": c.rollback, "submit": c.submit, "withdraw": c.withdraw, "warnings": c.warnings, "victims": c.victims,
		"total": c.total,
	}[verb]
	if ask == nil {
		return fmt.Errorf("no question %q", verb)
	}
	ask(rest)
	return c.err
}

// open reads `strict` or `volcano`, and `v1.16`, then tiers of plugins separated by `|`.
func (c *console) open(words []string) error {
	p := engine.Policy{Tiers: []engine.Tier{nil}}
	for _, word := range words {
		switch word {
		case "strict":
		case "volcano":
			p.Walk = engine.Volcano
		case "v1.16":
			p.Release = policy.V116
		case "|":
			p.Tiers = append(p.Tiers, nil)
		default:
			plugin, ok := plugins[word]
			if !ok {
				return fmt.Errorf("no plugin %q", word)
			}
			last := len(p.Tiers) - 1
			p.Tiers[last] = append(p.Tiers[last], engine.Entry{Plugin: plugin})
		}
	}
	var err error
	c.s, err = engine.Open(c.m, p, nil)
	if err != nil {
		c.say("%s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return nil
}

func (c *console) view() *policy.View { return c.s.View() }

func (c *console) task(uid string) model.TaskID {
	t, ok := c.view().TaskOf(uid)
	if !ok {
		c.err = fmt.Errorf("no task %q", uid)
		return 0
	}
	return t
}

func (c *console) tasks(words []string) []model.TaskID {
	var list []model.TaskID
	for _, word := range words {
		names, err := notation.Spread(word)
		if err != nil {
			c.err = err
		}
		for _, name := range names {
			list = append(list, c.task(name))
		}
	}
	return list
}

func (c *console) names(tasks []model.TaskID) string {
	if len(tasks) == 0 {
		return "none"
	}
	list := make([]string, len(tasks))
	for i, t := range tasks {
		list[i] = c.view().TaskUID(t)
	}
	return strings.Join(list, " ")
}

func (c *console) job(uid string) model.JobID {
	j, ok := c.view().Job(uid)
	if !ok {
		c.err = fmt.Errorf("no job %q", uid)
		return 0
	}
	return j
}

// selected keeps the named queues, or all.
func (c *console) selected(words []string) []model.QueueID {
	var list []model.QueueID
	for q := range c.view().Queues {
		if len(words) == 0 || slices.Contains(words, c.view().Queues[q].Name) {
			list = append(list, model.QueueID(q))
		}
	}
	return list
}

func (c *console) verdict(who string, yes bool, why *policy.Reasons) {
	answer := "no"
	if yes {
		answer = "yes"
	}
	c.say("%s: %s", who, answer)
	if !yes {
		for _, r := range why.List {
			c.say("  %s", c.reason(r))
		}
	}
}

func (c *console) overused(words []string) {
	for _, q := range c.selected(words) {
		var why policy.Reasons
		yes := c.s.IsOverused(q, &why)
		c.verdict(c.view().Queues[q].Name, yes, &policy.Reasons{})
	}
}

// allocatable reads tasks, then `together` and `in simulation`.
func (c *console) allocatable(words []string) {
	mode := policy.InSession
	if n := len(words); n > 2 && words[n-1] == "simulation" {
		mode, words = policy.InSimulation, words[:n-2]
	}
	c.each(words, func(tasks []model.TaskID, why *policy.Reasons) bool { return c.s.Allocatable(tasks, mode, why, nil) })
}

func (c *console) preemptive(words []string) {
	c.each(words, func(tasks []model.TaskID, why *policy.Reasons) bool { return c.s.Preemptive(tasks, why, nil) })
}

func (c *console) each(words []string, ask func([]model.TaskID, *policy.Reasons) bool) {
	together := words[len(words)-1] == "together"
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "together" })
	tasks := c.tasks(words)
	if c.err != nil {
		return
	}
	if together {
		var why policy.Reasons
		yes := ask(tasks, &why)
		c.verdict(strings.Join(words, " ")+" together", yes, &why)
		return
	}
	for _, t := range tasks {
		var why policy.Reasons
		yes := ask([]model.TaskID{t}, &why)
		c.verdict(c.view().TaskUID(t), yes, &why)
	}
}

func (c *console) enqueue(words []string) {
	for _, word := range words {
		j := c.job(word)
		if c.err != nil {
			return
		}
		var why policy.Reasons
		yes := c.s.Job(j).Enqueueable(&why)
		c.verdict(word, yes, &why)
	}
}

func (c *console) admit(words []string) {
	for _, word := range words {
		j := c.job(word)
		if c.err != nil {
			return
		}
		var why policy.Reasons
		yes := c.s.Job(j).Enqueue(&why)
		c.verdict(word, yes, &why)
	}
}

func (c *console) reclaim(words []string) { c.evict(words, c.s.Reclaim().Choose) }

func (c *console) preempt(words []string) { c.evict(words, c.s.Preempt().Choose) }

// evict reads `CLAIMANT from CANDIDATE…`, and `plugin by plugin` at the end.
func (c *console) evict(words []string, ask func(*policy.Claim, bool) engine.Choice) {
	if len(words) < 3 || words[1] != "from" {
		c.err = fmt.Errorf("CLAIMANT from CANDIDATE…")
		return
	}
	claimant, candidates := c.task(words[0]), c.tasks(words[2:])
	if c.err != nil {
		return
	}
	choice := ask(&policy.Claim{Tasks: []model.TaskID{claimant}, Candidates: candidates}, false)
	if len(choice.Ballots) > 1 {
		for _, b := range choice.Ballots {
			c.say("  tier %d, %s: %s", b.Tier+1, b.Plugin, c.names(b.Victims))
		}
	}
	switch {
	case !choice.Decided:
		c.say("victims: no plugin has an opinion")
	case choice.Tier >= 0 && len(choice.Ballots) > 1:
		c.say("victims: %s (tier %d)", c.names(choice.Victims), choice.Tier+1)
	default:
		c.say("victims: %s", c.names(choice.Victims))
	}
	for _, check := range choice.Spared {
		if slices.Contains(choice.Victims, check.Task) {
			continue
		}
		c.say("  %s is spared: %s", c.view().TaskUID(check.Task), c.reason(check.Reason))
	}
}

// victims reads `for CLAIMANT: TASK…`: who goes first.
func (c *console) victims(words []string) {
	claimant, tasks := c.task(words[1]), c.tasks(words[2:])
	if c.err != nil {
		return
	}
	c.s.Order().SortVictims(claimant, tasks)
	c.say("%s", c.names(tasks))
}

// order reads `queues`, `jobs` or `tasks TASK…`.
func (c *console) order(words []string) {
	v := c.view()
	var list []string
	switch words[0] {
	case "queues":
		queues := c.s.View().Busy()
		c.s.Order().SortQueues(queues)
		for _, q := range queues {
			list = append(list, v.Queues[q].Name)
		}
	case "jobs":
		jobs := slices.Clone(v.Present())
		c.s.Order().SortJobs(jobs)
		for _, j := range jobs {
			list = append(list, v.Jobs.At(j).UID)
		}
	default:
		tasks := c.tasks(words[1:])
		engine.Sort(tasks, func(l, r model.TaskID) int { return strings.Compare(v.TaskKey(l), v.TaskKey(r)) },
			func(l, r model.TaskID) bool { return c.s.Order().CompareTasks(l, r).Less })
		list = strings.Fields(c.names(tasks))
	}
	c.say("%s", strings.Join(list, " "))
}

func (c *console) jobs(words []string) {
	for _, j := range c.view().Present() {
		uid := c.view().Jobs.At(j).UID
		if len(words) > 0 && !slices.Contains(words, uid) {
			continue
		}
		ask := []struct {
			name string
			ask  func(*policy.Reasons) bool
		}{{"valid", c.s.Job(j).Valid}, {"ready", c.s.Job(j).Ready}, {"pipelined", c.s.Job(j).Pipelined}, {"starving", c.s.Job(j).Starving}}
		var list, reasons []string
		for _, a := range ask {
			var why policy.Reasons
			answer := "no"
			if a.ask(&why) {
				answer = "yes"
			}
			list = append(list, a.name+" "+answer)
			for _, r := range why.List {
				reasons = append(reasons, "  "+c.reason(r))
			}
		}
		c.say("%s: %s", uid, strings.Join(list, ", "))
		for _, r := range slices.Compact(reasons) {
			c.say("%s", r)
		}
	}
}

func (c *console) scores(words []string) {
	t := c.task(words[0])
	if c.err != nil {
		return
	}
	v := c.view()
	nodes := make([]model.NodeID, len(v.Nodes))
	for n := range nodes {
		nodes[n] = model.NodeID(n)
	}
	scorers := c.s.Nodes().Scorers()
	scores := make([][]float64, len(scorers))
	for i, s := range scorers {
		scores[i] = make([]float64, len(nodes))
		s.ScoreNodes(t, nodes, scores[i])
	}
	for i, n := range nodes {
		parts := []string{"fits"}
		var why policy.Reasons
		if !c.s.Nodes().Fits(t, n, &why) {
			parts[0] = "does not fit: " + c.reason(why.List[0])
		} else if !c.s.Nodes().HasRoom(t, n, &why) {
			parts[0] = "has no room: " + c.reason(why.List[0])
		}
		for k, s := range scorers {
			parts = append(parts, s.Name+" "+digits(scores[k][i]))
		}
		c.say("%s: %s", v.Nodes[n].Name, strings.Join(parts, ", "))
	}
}

// allocate reads `TASK…` or `TASK on NODE`.
func (c *console) allocate(words []string) {
	node := model.NodeID(model.None)
	if n := len(words); n > 2 && words[n-2] == "on" {
		at, ok := c.view().Node(words[n-1])
		if !ok {
			c.err = fmt.Errorf("no node %q", words[n-1])
		}
		node, words = at, words[:n-2]
	}
	for _, t := range c.tasks(words) {
		if err := c.s.Allocate(t, node); err != nil {
			c.say("%s: %s", c.view().TaskUID(t), err)
		}
	}
}

func (c *console) deallocate(words []string) {
	for _, t := range c.tasks(words) {
		if err := c.s.Deallocate(t, model.Releasing); err != nil {
			c.say("%s: %s", c.view().TaskUID(t), err)
		}
	}
}

// status reads `TASK STATUS`.
func (c *console) status(words []string) {
	c.s.SetStatus(c.task(words[0]), notation.Statuses[words[1]])
}

func (c *console) mark([]string) { c.say("mark %d", c.s.Mark()) }

func (c *console) rollback(words []string) {
	n, err := strconv.Atoi(words[0])
	if err != nil {
		c.err = err
		return
	}
	c.err = c.s.Rollback(n)
}

// submit reads `JOB queue=Q N x RESOURCES`: a job of N pending tasks JOB-0, JOB-1 and so on.
func (c *console) submit(words []string) {
	l := notation.ParseLine("job " + strings.Join(words, " "))
	n, err := strconv.Atoi(flagBefore(&l, "x"))
	if err != nil {
		c.err = err
		return
	}
	request := l.Flags[len(l.Flags)-1]
	dims := c.view().Dims.Names()
	c.err = c.s.Change(dims, func(b *model.ChangeBuilder) {
		r := notation.NewReader(&b.Builder, dims)
		b.Job(model.JobSpec{UID: l.Name, Name: l.Name, Queue: l.Set["queue"], MinResources: r.Optional(l, "needs", &err)})
		b.Group(model.GroupSpec{Request: r.Amounts(request, &err)})
		for i := range n {
			uid := fmt.Sprintf("%s-%d", l.Name, i)
			b.Task(&model.TaskSpec{UID: uid, Name: uid, Node: model.None, Priority: 1, Index: int32(i), Preemptable: true})
		}
	})
}

// flagBefore returns the flag of a line that comes before another.
func flagBefore(l *notation.Line, flag string) string {
	if i := slices.Index(l.Flags, flag); i > 0 {
		return l.Flags[i-1]
	}
	return ""
}

func (c *console) withdraw(words []string) {
	var jobs []model.JobID
	for _, word := range words {
		jobs = append(jobs, c.job(word))
	}
	if c.err == nil {
		c.err = c.s.Change(nil, func(b *model.ChangeBuilder) { b.RemoveJobs(jobs...) })
	}
}

func (c *console) warnings([]string) {
	for _, w := range c.s.Warnings() {
		if w.Queue == model.None {
			c.say("%s", warningName(w.Code))
		} else {
			c.say("%s, queue %s", warningName(w.Code), c.view().Queues[w.Queue].Name)
		}
	}
}
