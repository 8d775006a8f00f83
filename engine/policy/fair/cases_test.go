package fair_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/test/recording"
)

// pluginOf is the policy of a case.
func pluginOf(s *recording.FairSettings) fair.Plugin {
	p := fair.Plugin{
		Base:             map[string]fair.Base{"GUARANTEE": fair.OnGuarantee, "DESERVED": fair.OnDeserved}[s.Base],
		ReserveGuarantee: s.ReserveGuarantee,
	}
	for dimension, amount := range s.Quanta {
		p.Quanta = append(p.Quanta, fair.Quantum{Dimension: dimension, Amount: int64(amount)})
	}
	return p
}

type object = map[string]any

func TestTheEngineAnswersAsRecorded(t *testing.T) {
	raced.Skip(t)
	file, err := os.Open("../../../testdata/fair/cases.jsonl.gz")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	source, err := gzip.NewReader(file)
	require.NoError(t, err)
	lines := bufio.NewScanner(source)
	lines.Buffer(nil, 1<<24)
	answers, wrong := 0, map[string]int{}
	for lines.Scan() {
		c, ok := recording.ReadFair(recording.Line{Data: lines.Bytes()})
		require.True(t, ok)
		a := open(t, c)
		for i, q := range c.Questions {
			var want any
			require.NoError(t, json.Unmarshal(c.Answers[i], &want))
			want = comparableForm(q, want)
			answers++
			got := plain(t, a.answer(t, q))
			if !equal(want, got) {
				if wrong[q.Kind]++; wrong[q.Kind] <= 3 {
					t.Errorf("%s %d %+v\nwant %v\ngot  %v", c.ID, i, q, text(want), text(got))
				}
			}
		}
	}
	require.NoError(t, lines.Err())
	require.Greater(t, answers, 17_000)
	require.Empty(t, wrong, "of %d answers", answers)
}

// comparableForm leaves out of an answer what is free: the texts of refusals, and the order of lists that have none.
func comparableForm(q recording.FairQuestion, want any) any {
	answer, ok := want.(object)
	if !ok {
		return want
	}
	if answer["refused"] != nil {
		answer["refused"] = "refused"
	}
	if q.Kind == "shares" {
		answer["queues"], answer["nodes"] = byName(answer["queues"].([]any), "queue"), byName(answer["nodes"].([]any), "node")
		for _, kind := range []string{"refusedQueues", "refusedJobs"} {
			for key := range answer[kind].(object) {
				answer[kind].(object)[key] = "refused"
			}
		}
	}
	return answer
}

func text(x any) string {
	data, err := json.Marshal(x)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func equal(l, r any) bool { return text(l) == text(r) }

func plain(t *testing.T, x any) any {
	t.Helper()
	data, err := json.Marshal(x)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// asked is a session about a case.
type asked struct {
	*engine.Session
	v    *policy.View
	f    *fair.State
	dims []int
	base fair.Base
}

func open(t *testing.T, c *recording.Fair) *asked {
	t.Helper()
	snapshot, _, err := c.Input()
	require.NoError(t, err)
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{{Plugin: pluginOf(&c.Settings)}}}}, nil)
	require.NoError(t, err)
	a := &asked{Session: s, v: s.View(), f: s.Dividers()[0].State.(*fair.State), base: pluginOf(&c.Settings).Base}
	for _, name := range snapshot.Dimensions {
		d, _ := m.Dims.Index(name)
		a.dims = append(a.dims, d)
	}
	return a
}

func (a *asked) queue(name string) model.QueueID {
	q, _ := a.v.Queue(name)
	return q
}

func (a *asked) tasks(uids []string) []model.TaskID {
	ids := make([]model.TaskID, len(uids))
	for i, uid := range uids {
		ids[i], _ = a.v.Task(uid)
	}
	return ids
}

func (a *asked) answer(t *testing.T, q recording.FairQuestion) any {
	t.Helper()
	switch q.Kind {
	case "shares":
		return a.shares()
	case "order":
		names := []string{}
		for _, id := range a.f.Order() {
			names = append(names, a.v.Queues[id].Name)
		}
		return names
	case "claims":
		out := object{}
		for _, id := range a.f.Order() {
			claimed, row := make([]int64, a.v.Dims.Len()), []int64{}
			a.f.Claims(id, claimed, nil)
			for _, d := range a.dims {
				row = append(row, claimed[d])
			}
			out[a.v.Queues[id].Name] = row
		}
		return out
	case "overused":
		return a.IsOverused(a.queue(q.Queue), nil)
	case "enqueue":
		j, _ := a.v.Job(q.Job)
		var why policy.Reasons
		return a.verdict(a.Job(j).Enqueueable(&why), &why)
	case "allocatable":
		var why policy.Reasons
		return a.verdict(a.Allocatable(a.tasks(q.Tasks), policy.InSession, &why, nil), &why)
	case "reclaim":
		return a.reclaim(q)
	case "loop":
		return a.loop(t)
	}
	return nil
}

var codes = map[policy.Code]string{
	policy.QueueNotOpen: "QUEUE_NOT_OPEN", policy.Entitled: "ENTITLED", policy.Borrowed: "BORROWED", policy.AboveLimit: "ABOVE_LIMIT",
	policy.NotIdle: "NOT_IDLE", policy.NeverFits: "NEVER_FITS", policy.AboveTotal: "ABOVE_TOTAL", policy.NotEntitled: "NOT_ENTITLED",
	policy.NoPlan: "NO_PLAN", policy.NotCalm: "NOT_CALM", policy.NotNeeded: "NOT_NEEDED", policy.WithinEntitlement: "WITHIN_ENTITLEMENT",
	policy.BestEffortClaimant: "BEST_EFFORT_CLAIMANT", policy.NoSharedDimension: "NO_SHARED_DIMENSION", policy.NotRunning: "NOT_RUNNING",
	policy.NotPreemptable: "NOT_PREEMPTABLE", policy.BestEffortVictim: "BEST_EFFORT_VICTIM",
	policy.QueueNotReclaimable: "QUEUE_NOT_RECLAIMABLE", policy.SameQueue: "SAME_QUEUE", policy.HierarchyRefused: "HIERARCHY_REFUSED",
}

func (a *asked) verdict(permitted bool, why *policy.Reasons) any {
	out := object{"verdict": "REJECT", "code": nil, "detail": nil}
	if permitted {
		out["verdict"] = "PERMIT"
	}
	if len(why.List) > 0 {
		r := why.List[0]
		out["code"] = codes[r.Code]
		switch r.Code {
		case policy.HierarchyRefused:
			return object{"refused": a.refusal(r)}
		case policy.NotIdle:
			out["detail"] = []any{a.v.Dims.Name(r.Dimension), r.Limit, r.Have}
		case policy.AboveLimit:
			out["detail"] = []any{a.v.Queues[r.Queue].Name, a.v.Dims.Name(r.Dimension)}
		case policy.AboveTotal:
			out["detail"] = a.v.Dims.Name(r.Dimension)
		}
	}
	return out
}

// refusal is the recorded text, which is free: what counts is that there is one.
func (a *asked) refusal(policy.Reason) any { return "refused" }

func fractions(list [3]*big.Rat) any {
	out := []any{}
	for _, f := range list {
		out = append(out, []any{f.Num(), f.Denom()})
	}
	return out
}

func (a *asked) reclaim(q recording.FairQuestion) any {
	claim := policy.Claim{Tasks: a.tasks(q.Claimant), Candidates: a.tasks(q.Candidates)}
	if n, ok := q.Room.(float64); ok {
		claim.Room = policy.Room{Kind: policy.OneNode, Node: model.NodeID(n)}
	} else if q.Room != "sum" {
		var n int
		_, _ = fmt.Sscan(q.Room.(string), &n)
		claim.Room = policy.Room{Kind: policy.OneNode, Node: model.NodeID(n)}
	}
	var g policy.Grounds
	plan := a.f.Plan(&claim, &g)
	out := object{"plan": plan.Made, "line": nil, "fall": []any{}, "rise": []any{}, "victims": []string{}}
	spared := [][]string{}
	for _, check := range g.Spared.List {
		spared = append(spared, []string{a.v.TaskUID(check.Task), codes[check.Reason.Code]})
	}
	out["spared"] = spared
	if !plan.Made {
		out["code"] = codes[plan.Refusal.Code]
		if plan.Refusal.Code == policy.QueueNotOpen || plan.Refusal.Code == policy.BestEffortClaimant || plan.Refusal.Code == policy.NotEntitled {
			out["spared"] = []any{}
		}
		return out
	}
	victims := []string{}
	for _, v := range plan.Victims {
		victims = append(victims, a.v.TaskUID(v))
	}
	fall, rise := plan.Potential()
	out["code"], out["line"], out["fall"], out["rise"], out["victims"] = "PLAN", plan.Line, fractions(fall), fractions(rise), victims
	return out
}

func (a *asked) shares() any {
	queues, nodes := []any{}, []any{}
	refusedQueues, refusedJobs := object{}, object{}
	for q := range a.v.Queues {
		if a.f.Refused(model.QueueID(q)) != 0 {
			refusedQueues[a.v.Queues[q].Name] = "refused"
		}
	}
	for j := range a.v.Jobs.All() {
		if a.f.SetAside(j) {
			refusedJobs[a.v.Jobs.At(j).UID] = "refused"
		}
	}
	byQueue := map[string]object{}
	add := func(p fair.Portion, d int, name, bound string) {
		// Recorded are the weight and base of the third case, whatever the case.
		p.Base, p.Weight = p.Begin, 1
		if a.base == fair.OnNothing {
			p.Base = 0
		}
		if q, ok := a.v.Queue(name); ok {
			p.Weight = int64(a.v.Queues[q].Weight)
		}
		u := a.f.Quantum(d)
		byQueue[name+"\x00"+a.v.Dims.Name(d)] = object{
			"queue": name, "dimension": a.v.Dims.Name(d), "lo": p.Guaranteed * u, "m": p.Begin * u, "b": p.Base * u, "hi": p.Useful * u,
			"e": p.Share * u, "lines": []int64{p.Lines[0] * u, p.Lines[1] * u, p.Lines[2] * u}, "weight": p.Weight, "bound": bound,
		}
	}
	for _, d := range a.dims {
		if q, ok := a.v.Queue("root"); ok {
			p := a.f.Root(d)
			add(p, d, a.v.Queues[q].Name, "ROOT")
		}
		for _, q := range a.f.Inner() {
			name := "root"
			if q != model.None {
				name = a.v.Queues[q].Name
			}
			division := a.f.Division(q, d, false)
			for _, c := range division.Children {
				add(c, d, a.v.Queues[c.Queue].Name, []string{"", "UPPER", "LOWER", "LEVEL"}[c.Bound])
			}
			if len(division.Children) > 0 {
				var level any
				if division.Level != nil {
					level = []any{division.Level.Num(), division.Level.Denom()}
				}
				nodes = append(nodes, object{
					"node": name, "dimension": a.v.Dims.Name(d), "X": division.Amount * a.f.Quantum(d),
					"case": []string{"", "a", "b", "c"}[division.Stage], "R": level,
				})
			}
		}
	}
	for _, x := range byQueue {
		queues = append(queues, x)
	}
	return object{"queues": byName(queues, "queue"), "nodes": byName(nodes, "node"), "refusedQueues": refusedQueues, "refusedJobs": refusedJobs}
}

func byName(list []any, key string) object {
	out := object{}
	for _, x := range list {
		o := x.(object)
		out[o[key].(string)+" "+o["dimension"].(string)] = o
	}
	return out
}

// loop is a run to rest, after which everything is as before.
func (a *asked) loop(t *testing.T) any {
	t.Helper()
	mark := a.Mark()
	r := a.f.RunToRest()
	running := []string{}
	for id, task := range a.v.Tasks.All() {
		if a.v.Status(id) == model.Running && !a.f.SetAside(task.Job) {
			running = append(running, a.v.TaskUID(id))
		}
	}
	slices.Sort(running)
	require.NoError(t, a.Rollback(mark))
	return object{"steps": r.Steps, "plans": r.Plans, "evictions": r.Evictions, "running": running}
}
