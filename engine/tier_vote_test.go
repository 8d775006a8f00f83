package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// says is a plugin that answers as it is told, and is its own state.
type says struct {
	name      string
	pipelined policy.Vote
	// gone are the tasks that it names, each time.
	gone []model.TaskID
	vote policy.Vote
}

func (s says) Name() string { return s.name }

func (s says) Open(*policy.View) (policy.State, error) { return s, nil }

func (s says) Pipelined(model.JobID, *policy.Reasons) policy.Vote { return s.pipelined }

func (s says) Shuffled(_, dst []model.TaskID) []model.TaskID { return append(dst, s.gone...) }

func (s says) GangEvictable(_ model.JobID, _, dst []model.TaskID) ([]model.TaskID, policy.Vote) {
	return append(dst, s.gone...), s.vote
}

// saying opens a session with plugins that say something, tier by tier; those with a name of "off" are excluded from Victim and
// JobPipelined.
func saying(t *testing.T, tiers ...[]says) engine.Host {
	t.Helper()
	b := model.NewBuilder(0)
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{UID: "j", Queue: "q"})
	b.Group(model.GroupSpec{})
	for range 6 {
		b.Task(&model.TaskSpec{Node: model.None, Status: model.Running})
	}
	m, err := b.Build()
	require.NoError(t, err)
	p := engine.Policy{Walk: engine.Volcano}
	for i, list := range tiers {
		var tier engine.Tier
		for k, s := range list {
			e := engine.Entry{}
			if s.name == "off" {
				e.Disabled = engine.DecisionsOf(engine.Victim, engine.JobPipelined)
			}
			s.name += string(rune('a'+i)) + string(rune('a'+k))
			e.Plugin = s
			tier = append(tier, e)
		}
		p.Tiers = append(p.Tiers, tier)
	}
	s, err := engine.Open(m, p, nil)
	require.NoError(t, err)
	return s.Host()
}

func TestWhetherAJobIsPipelinedIsVotedTierByTier(t *testing.T) {
	yes, no, silent := says{pipelined: policy.Permit}, says{pipelined: policy.Reject}, says{pipelined: policy.Abstain}
	for name, c := range map[string]struct {
		tiers [][]says
		want  bool
	}{
		"no plugin":                                    {nil, true},
		"no opinion":                                   {[][]says{{silent}, {silent, silent}}, true},
		"a permit":                                     {[][]says{{yes}}, true},
		"a rejection":                                  {[][]says{{no}}, false},
		"a rejection after a permit of its tier":       {[][]says{{yes, no}}, false},
		"a rejection before a permit":                  {[][]says{{no}, {yes}}, false},
		"a permit leaves later tiers unasked":          {[][]says{{silent, yes, silent}, {no}}, true},
		"no opinion leaves the decision to the next":   {[][]says{{silent}, {no}}, false},
		"a plugin that is excluded is not asked":       {[][]says{{{name: "off", pipelined: policy.Permit}}, {no}}, false},
		"tiers without plugins that vote count little": {[][]says{{}, {silent}, {}, {no}}, false},
	} {
		require.Equal(t, c.want, saying(t, c.tiers...).Job(0).Pipelined(nil), name)
	}
}

func names(tasks ...model.TaskID) says { return says{gone: tasks, vote: policy.Permit} }

func TestVictimsOfWholeJobsAreChosenAsOtherVictims(t *testing.T) {
	all := []model.TaskID{5, 4, 3, 2, 1, 0}
	off := names(1, 2)
	off.name = "off"
	for name, c := range map[string]struct {
		tiers [][]says
		want  []model.TaskID
	}{
		"no plugin":                                     {nil, nil},
		"both of a tier name it":                        {[][]says{{names(0, 1, 2), names(2, 1)}}, []model.TaskID{1, 2}},
		"an empty intersection is forgotten":            {[][]says{{names(0), names(1), names(3, 4)}}, []model.TaskID{3, 4}},
		"who names nobody ends the tier":                {[][]says{{names(0), names(), names(3)}, {names(5)}}, []model.TaskID{5}},
		"the first tier that names somebody decides":    {[][]says{{names(0)}, {names(5)}}, []model.TaskID{0}},
		"no opinion":                                    {[][]says{{{gone: all, vote: policy.Abstain}, names(3)}}, []model.TaskID{3}},
		"no switch of Volcano's excludes a plugin here": {[][]says{{off}, {names(5)}}, []model.TaskID{1, 2}},
	} {
		got := saying(t, c.tiers...).UnifiedEvictable(0, all)
		require.True(t, slices.Equal(c.want, got), "%s: %v", name, got)
	}
}

func TestShuffleEvictsAllThatTheFirstTierNames(t *testing.T) {
	off := names(1)
	off.name = "off"
	running := []model.TaskID{4, 3, 2, 1, 0}
	for name, c := range map[string]struct {
		tiers [][]says
		want  []model.TaskID
	}{
		"no plugin":                                  {nil, nil},
		"all that the plugins of a tier name":        {[][]says{{names(0, 3), names(3, 4)}, {names(1)}}, []model.TaskID{4, 3, 0}},
		"a tier that names nobody leaves it to next": {[][]says{{names()}, {names(2), names(1)}}, []model.TaskID{2, 1}},
		"nobody is named":                            {[][]says{{names()}, {names()}}, nil},
		"what does not run is no victim":             {[][]says{{names(5, 1)}}, []model.TaskID{1}},
		"a plugin may be excluded":                   {[][]says{{off}, {names(2)}}, []model.TaskID{2}},
	} {
		got := saying(t, c.tiers...).VictimTasks(running)
		require.True(t, slices.Equal(c.want, got), "%s: %v", name, got)
	}
	require.Equal(t, []model.TaskID{4, 3, 2, 1, 0}, running, "the caller's list stays")
}
