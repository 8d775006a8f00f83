package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

func ballot(tier int, vote policy.Vote, victims ...model.TaskID) Ballot {
	return Ballot{Tier: tier, Vote: vote, Victims: victims}
}

func TestTierWalk(t *testing.T) {
	const permit, abstain, reject = policy.Permit, policy.Abstain, policy.Reject
	type outcome struct {
		decided bool
		tier    int
		victims []model.TaskID
	}
	none := []model.TaskID{}
	for name, tc := range map[string]struct {
		ballots         []Ballot
		strict, volcano outcome
	}{
		"no plugin votes": {
			[]Ballot{ballot(0, abstain), ballot(1, abstain)},
			outcome{false, -1, nil},
			outcome{false, -1, nil},
		},
		"one plugin decides": {
			[]Ballot{ballot(0, permit, 3, 1)},
			outcome{true, 0, []model.TaskID{3, 1}},
			outcome{true, 0, []model.TaskID{3, 1}},
		},
		"a tier agrees on what every plugin chose, in the first plugin's order": {
			[]Ballot{ballot(0, permit, 3, 1, 2), ballot(0, permit, 1, 2, 3), ballot(0, permit, 2, 3)},
			outcome{true, 0, []model.TaskID{3, 2}},
			outcome{true, 0, []model.TaskID{3, 2}},
		},
		"an abstention in a tier changes nothing": {
			[]Ballot{ballot(0, permit, 1, 2), ballot(0, abstain), ballot(0, permit, 2)},
			outcome{true, 0, []model.TaskID{2}},
			outcome{true, 0, []model.TaskID{2}},
		},
		"the first tier that decides wins": {
			[]Ballot{ballot(0, permit, 1), ballot(1, permit, 2)},
			outcome{true, 0, []model.TaskID{1}},
			outcome{true, 0, []model.TaskID{1}},
		},
		"disjoint choices: strictly no victim, in Volcano the next plugin starts afresh": {
			[]Ballot{ballot(0, permit, 1), ballot(0, permit, 2), ballot(0, permit, 1, 2, 3)},
			outcome{true, 0, none},
			outcome{true, 0, []model.TaskID{1, 2, 3}},
		},
		"a tier that decided for no victim: strictly none, in Volcano the next tier decides": {
			[]Ballot{ballot(0, permit), ballot(1, permit, 4)},
			outcome{true, 0, none},
			outcome{true, 1, []model.TaskID{4}},
		},
		"in Volcano a plugin without victims ends its tier": {
			[]Ballot{ballot(0, permit, 1), ballot(0, permit), ballot(0, permit, 1), ballot(1, permit, 5)},
			outcome{true, 0, none},
			outcome{true, 1, []model.TaskID{5}},
		},
		"decided for no victim everywhere": {
			[]Ballot{ballot(0, reject), ballot(1, permit)},
			outcome{true, 0, none},
			outcome{true, -1, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			strict := Choice{Tier: -1, Ballots: tc.ballots}
			walkStrictly(&strict)
			require.Equal(t, tc.strict.decided, strict.Decided)
			require.Equal(t, tc.strict.tier, strict.Tier)
			require.ElementsMatch(t, tc.strict.victims, strict.Victims)
			volcano := Choice{Tier: -1, Ballots: tc.ballots}
			walkAsVolcano(&volcano, nil)
			got := outcome{volcano.Decided, volcano.Tier, volcano.Victims}
			require.Equal(t, tc.volcano, got)
		})
	}
}
