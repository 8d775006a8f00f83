package tdm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/policytest"
	"github.com/apportion/apportion/engine/policy/tdm"
)

// task is a running one on a node, or a pending one without a node.
type task struct {
	uid, node, zone string
	firm            bool
	status          model.Status
}

type job struct {
	name       string
	min        uint32
	mark       *bool
	disruption model.JobDisruption
	tasks      []task
}

// open returns a cluster with a node for each zone, at a time of day.
func open(t require.TestingT, zones []tdm.Zone, at string, nodes []string, jobs ...job) (*policy.View, *tdm.State) {
	now, err := time.Parse(time.DateTime, "2026-11-20 "+at)
	require.NoError(t, err)
	b := model.NewBuilder(now.UnixNano())
	position := map[string]int{}
	for i, zone := range nodes {
		position["n"+zone] = i
		b.Node(model.NodeSpec{Name: "n" + zone, RevocableZone: zone})
	}
	b.Queue(model.QueueSpec{Name: "q"})
	for _, j := range jobs {
		b.Job(model.JobSpec{
			UID: j.name, Queue: "q", MinAvailable: j.min, Detail: &model.JobDetail{Preemptable: j.mark, Disruption: j.disruption},
		})
		b.Group(model.GroupSpec{})
		for _, k := range j.tasks {
			spec := model.TaskSpec{UID: k.uid, Node: model.None, Status: k.status, Preemptable: !k.firm, Detail: &model.Detail{}}
			if k.zone != "" {
				spec.Rare = &model.RareSpec{RevocableZone: k.zone}
			}
			if k.node != "" {
				spec.Node = model.NodeID(position[k.node])
			}
			b.Task(&spec)
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	v := policy.NewView(m, nil)
	s, err := tdm.Plugin{Zones: zones}.Open(v)
	require.NoError(t, err)
	return v, s.(*tdm.State)
}

func TestNodesAreLentForSomeHours(t *testing.T) {
	lends := func(period, at string) bool {
		_, s := open(t, []tdm.Zone{{Name: "z", Period: period}}, at, []string{"z"}, job{name: "j", tasks: []task{{uid: "t", zone: "*"}}})
		out := []float64{-1}
		s.ScoreNodes(0, []model.NodeID{0}, out)
		fits := s.Fits(0, 0, nil)
		require.Equal(t, fits, out[0] == 100, "%s at %s", period, at)
		return fits
	}
	for period, c := range map[string]struct{ during, outside []string }{
		"10:00-21:00":    {[]string{"10:00:00", "15:30:01", "21:00:00"}, []string{"09:59:59", "21:00:01", "00:00:00"}},
		" 9:05-9:06 ":    {[]string{"09:05:00", "09:06:00"}, []string{"09:04:59", "09:06:01"}},
		"22:00-06:00":    {[]string{"22:00:00", "23:59:59"}, []string{"05:00:00", "21:59:59"}},
		"00:00-00:00":    {[]string{"00:00:00", "12:00:00", "23:59:59"}, nil},
		"10:00 - 21:00":  {nil, []string{"15:00:00"}},
		"10:00-21:0":     {nil, []string{"15:00:00"}},
		"10-21":          {nil, []string{"15:00:00"}},
		"10:00-24:00":    {nil, []string{"15:00:00"}},
		"10:60-21:00":    {nil, []string{"15:00:00"}},
		"+1:00-21:00":    {nil, []string{"15:00:00"}},
		"1:00-2:00-3:00": {nil, []string{"01:30:00"}},
		"":               {nil, []string{"15:00:00"}},
	} {
		for _, at := range c.during {
			require.True(t, lends(period, at), "%q at %s", period, at)
		}
		for _, at := range c.outside {
			require.False(t, lends(period, at), "%q at %s", period, at)
		}
	}
}

// What counts as within a period is what Go's package time says of the same texts, as Volcano asks it.
func TestPeriodsAreReadAsVolcanoReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := rapid.StringMatching(`[0-2]?[0-9]:[0-5][0-9]?`)
		from, until := clock.Draw(t, "from"), clock.Draw(t, "until")
		at := rapid.StringMatching(`([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]`).Draw(t, "at")
		want := func() bool {
			start, err := time.Parse("15:04", from)
			end, err2 := time.Parse("15:04", until)
			if err != nil || err2 != nil {
				return false
			}
			if !start.Before(end) {
				end = end.AddDate(0, 0, 1)
			}
			now, err := time.Parse(time.TimeOnly, at)
			require.NoError(t, err)
			return !now.Before(start) && !now.After(end)
		}()
		_, s := open(t, []tdm.Zone{{Name: "z", Period: from + "-" + until}}, at, []string{"z"}, job{name: "j", tasks: []task{{uid: "t", zone: "*"}}})
		require.Equal(t, want, s.Fits(0, 0, nil))
	})
}

func TestANodeOfAZoneIsForTasksThatMayBeRevoked(t *testing.T) {
	zones := []tdm.Zone{{Name: "day", Period: "10:00-21:00"}, {Name: "night", Period: "21:30-22:00"}}
	_, s := open(t, zones, "12:00:00", []string{"", "day", "night", "other"}, job{name: "j", tasks: []task{{uid: "any", zone: "*"}, {uid: "none"}}})
	refuse := func(code policy.Code, zone string) []policy.Reason {
		return []policy.Reason{{Plugin: "tdm", Code: code, Queue: model.None, Dimension: -1, Detail: zone}}
	}
	for n, want := range [][2][]policy.Reason{
		{},
		{nil, refuse(policy.RevocableZoneForbidden, "day")},
		{refuse(policy.RevocableZoneClosed, "night"), refuse(policy.RevocableZoneClosed, "night")},
		{refuse(policy.RevocableZoneClosed, "other"), refuse(policy.RevocableZoneClosed, "other")},
	} {
		for k, reasons := range want {
			var why policy.Reasons
			require.Equal(t, reasons == nil, s.Fits(model.TaskID(k), model.NodeID(n), &why))
			require.Equal(t, reasons, why.List)
		}
	}
	out := make([]float64, 4)
	s.ScoreNodes(0, []model.NodeID{0, 1, 2, 3}, out)
	require.Equal(t, []float64{0, 100, 0, 0}, out)
	s.ScoreNodes(1, []model.NodeID{0, 1, 2, 3}, out)
	require.Equal(t, []float64{0, 0, 0, 0}, out)
}

func running(node string, uids ...string) []task {
	var list []task
	for _, uid := range uids {
		list = append(list, task{uid: uid, node: node, status: model.Running})
	}
	return list
}

func TestOneTaskOfEachJobOnOrdinaryNodesIsAVictim(t *testing.T) {
	claimant := job{name: "claimant", tasks: []task{{uid: "firm", firm: true}, {uid: "soft"}, {uid: "guest", firm: true, zone: "*"}}}
	a := job{name: "a", tasks: append(running("n", "a1", "a2"), task{uid: "bound", node: "n", status: model.Bound}, task{uid: "fixed", node: "n", firm: true, status: model.Running})}
	b := job{name: "b", tasks: append(running("nz", "b1"), running("n", "b2")...)}
	v, s := open(t, []tdm.Zone{{Name: "z", Period: "00:00-00:00"}}, "12:00:00", []string{"", "z"}, claimant, a, b)
	because := func(code policy.Code, limit float64, detail string) policy.Reason {
		return policy.Reason{Plugin: "tdm", Code: code, Queue: model.None, Dimension: -1, Limit: limit, Detail: detail}
	}
	all := []string{"b1", "a2", "b2", "bound", "fixed", "a1"}
	chosen, spared := policytest.Victims(t, v, s.Preemptable, "firm", all...)
	require.Equal(t, []string{"a2", "b2"}, chosen)
	require.Equal(t, map[string]policy.Reason{
		"b1": because(policy.OnRevocableNode, 0, "z"), "bound": because(policy.NotPreemptable, 0, ""),
		"fixed": because(policy.NotPreemptable, 0, ""), "a1": because(policy.JobDisruption, 1, ""),
	}, spared)
	for _, by := range []string{"soft", "guest"} {
		got, vote := s.Preemptable(policytest.Task(t, v, by), policytest.TaskIDs(t, v, all...), nil, nil)
		require.Empty(t, got, by)
		require.Equal(t, policy.Reject, vote, by)
	}
}

func TestTheDisruptionBudgetOfAJobBoundsItsVictims(t *testing.T) {
	for name, c := range map[string]struct {
		budget model.JobDisruption
		want   int
	}{
		"without one":                      {model.JobDisruption{}, 1},
		"at least so many stay":            {model.JobDisruption{MinAvailable: "2"}, 2},
		"at least a part stays":            {model.JobDisruption{MinAvailable: "30%"}, 2},
		"a part is rounded up":             {model.JobDisruption{MinAvailable: "33%"}, 2},
		"more must stay than run":          {model.JobDisruption{MinAvailable: "5"}, 1},
		"what is no number counts as zero": {model.JobDisruption{MinAvailable: "few"}, 4},
		"at most so many are missing":      {model.JobDisruption{MaxUnavailable: "3"}, 2},
		"as many are missing already":      {model.JobDisruption{MaxUnavailable: "1"}, 0},
		"a part is missing at most":        {model.JobDisruption{MaxUnavailable: "50%"}, 2},
		"no part":                          {model.JobDisruption{MaxUnavailable: "%"}, 0},
		"the missing count first":          {model.JobDisruption{MinAvailable: "0", MaxUnavailable: "2"}, 1},
		"below zero":                       {model.JobDisruption{MaxUnavailable: "-4"}, 0},
	} {
		// Four of six run, one waits, one has ended.
		tasks := append(running("n", "r1", "r2", "r3", "r4"), task{uid: "waits"}, task{uid: "done", node: "n", status: model.Succeeded})
		v, s := open(t, nil, "12:00:00", []string{""}, job{name: "claimant", tasks: []task{{uid: "firm", firm: true}}},
			job{name: "j", disruption: c.budget, tasks: tasks})
		got, _ := s.Preemptable(0, policytest.TaskIDs(t, v, "r1", "r2", "r3", "r4"), nil, nil)
		require.Len(t, got, c.want, name)
	}
}

func TestShuffleTakesNodesBackThatAreNoLongerLent(t *testing.T) {
	zones := []tdm.Zone{{Name: "day", Period: "10:00-21:00"}, {Name: "night", Period: "21:30-22:00"}, {Name: "odd", Period: "never"}}
	a := job{name: "a", tasks: append(running("nnight", "a1", "a2"), running("nodd", "a3")...)}
	b := job{name: "b", tasks: append(append(running("nnight", "b1"), running("nday", "b2")...), running("nother", "b3")...)}
	c := job{name: "c", tasks: append(running("n", "c1"), task{uid: "c2", node: "nnight", firm: true, status: model.Running})}
	v, s := open(t, zones, "12:00:00", []string{"", "day", "night", "odd", "other"}, a, b, c)
	got := s.Shuffled(policytest.TaskIDs(t, v, "c2", "a2", "a1", "a3", "b3", "b2", "b1", "c1"), nil)
	require.Equal(t, policytest.TaskIDs(t, v, "a2", "a3", "b1"), got)
}

func TestJobsThatAreNotPreemptableComeFirstAndStarve(t *testing.T) {
	v, s := open(t, nil, "12:00:00", []string{""},
		job{name: "plain", tasks: []task{{uid: "p"}}}, job{name: "firm", mark: new(false), tasks: running("n", "f")},
		job{name: "soft", mark: new(true), tasks: []task{{uid: "s"}}})
	for l, first := range []bool{true, true, false} {
		for r, second := range []bool{true, true, false} {
			want := 0
			if first != second {
				if want = 1; first {
					want = -1
				}
			}
			require.Equal(t, want, s.CompareJobs(model.JobID(l), model.JobID(r)), "%d, %d", l, r)
		}
	}
	var why policy.Reasons
	require.True(t, s.Starving(policytest.JobID(t, v, "plain"), &why))
	require.False(t, s.Starving(policytest.JobID(t, v, "firm"), &why))
	require.False(t, s.Starving(policytest.JobID(t, v, "soft"), &why))
	require.Equal(t, []policy.Reason{
		{Plugin: "tdm", Code: policy.NotStarving, Queue: model.None, Dimension: -1, Have: 1, Limit: 1},
		policy.Because("tdm", policy.ClaimantPreemptable, model.None),
	}, why.List)
}

func TestAJobIsPipelinedWhateverItsRoles(t *testing.T) {
	_, s := open(t, nil, "12:00:00", []string{""},
		job{name: "enough", min: 3, tasks: append(running("n", "a"), task{uid: "b", node: "n", status: model.Pipelined}, task{uid: "c"})},
		job{name: "lacking", min: 2, tasks: []task{{uid: "d", node: "n", status: model.Failed}, {uid: "e", node: "n", status: model.Running}}})
	require.Equal(t, policy.Permit, s.Pipelined(0, nil))
	var why policy.Reasons
	require.Equal(t, policy.Reject, s.Pipelined(1, &why))
	require.Equal(t, []policy.Reason{{Plugin: "tdm", Code: policy.NotPipelined, Queue: model.None, Dimension: -1, Have: 1, Limit: 2}}, why.List)
}
