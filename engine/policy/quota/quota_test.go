package quota_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/policytest"
	"github.com/apportion/apportion/engine/policy/quota"
)

type amounts = []model.NamedAmount

func of(name string, n float64) model.NamedAmount { return model.NamedAmount{Name: name, Amount: n} }

// job has a minimum of cpu, or none if that is below zero, and states its request if that is not nil.
type job struct {
	namespace string
	cpu       float64
	request   amounts
}

func open(t require.TestingT, quotas []model.Quota, jobs ...job) (*policy.View, *quota.State) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	for _, q := range quotas {
		b.Quota(q)
	}
	b.Queue(model.QueueSpec{Name: "q"})
	for i, j := range jobs {
		spec := model.JobSpec{UID: string(rune('a' + i)), Namespace: j.namespace, Queue: "q"}
		if j.cpu >= 0 {
			spec.MinResources = policytest.Sparse([]string{"cpu", "gpu"}, policytest.Amounts{"cpu": j.cpu})
		}
		if j.request != nil {
			spec.Detail = &model.JobDetail{QuotaRequest: j.request}
		}
		b.Job(spec)
	}
	m, err := b.Build()
	require.NoError(t, err)
	v := policy.NewView(m, nil)
	s, err := quota.Plugin{}.Open(v)
	require.NoError(t, err)
	return v, s.(*quota.State)
}

func TestAJobNeedsRoomInEveryQuotaOfItsNamespace(t *testing.T) {
	team := func(hard, used amounts) []model.Quota {
		return []model.Quota{{Namespace: "team", Name: "limits", Hard: hard, Used: used}}
	}
	above := func(dimension int, have, need, limit float64, detail string) []policy.Reason {
		return []policy.Reason{{
			Plugin: "resourcequota", Code: policy.AboveNamespaceQuota, Queue: model.None, Dimension: dimension, Have: have, Need: need,
			Limit: limit, Detail: detail,
		}}
	}
	for name, c := range map[string]struct {
		quotas []model.Quota
		job    job
		why    []policy.Reason
	}{
		"without any quota":            {nil, job{"team", 4000, nil}, nil},
		"a quota of another namespace": {team(amounts{of("cpu", 1)}, nil), job{"other", 4000, nil}, nil},
		"a job without a minimum":      {team(amounts{of("cpu", 1)}, nil), job{"team", -1, amounts{of("cpu", 5)}}, nil},
		"exactly what is left":         {team(amounts{of("cpu", 6000)}, amounts{of("cpu", 2000)}), job{"team", 4000, nil}, nil},
		"more than is left":            {team(amounts{of("cpu", 5000)}, amounts{of("cpu", 2000)}), job{"team", 4000, nil}, above(0, 2000, 4000, 5000, "cpu of quota limits")},
		"names that the job lacks":     {team(amounts{of("requests.cpu", 1), of("pods", 0)}, amounts{of("pods", 9)}), job{"team", 4000, nil}, nil},
		"names as the job states them": {team(amounts{of("requests.cpu", 1000)}, nil), job{"team", 1, amounts{of("requests.cpu", 1001)}}, above(0, 0, 1001, 1000, "requests.cpu of quota limits")},
		"accelerators behind a prefix": {team(amounts{of("requests.gpu", 1000)}, nil), job{"team", 1, amounts{of("requests.gpu", 2000)}}, above(2, 0, 2000, 1000, "requests.gpu of quota limits")},
		"counts are of no dimension":   {team(amounts{of("count/pods", 3)}, amounts{of("count/pods", 2)}), job{"team", 1, amounts{of("count/pods", 2)}}, above(-1, 2, 2, 3, "count/pods of quota limits")},
		"nothing of what is used up":   {team(amounts{of("cpu", 1)}, amounts{of("cpu", 2)}), job{"team", 0, amounts{of("cpu", 0)}}, above(0, 2, 0, 1, "cpu of quota limits")},
		"what only the usage has":      {team(amounts{of("gpu", 1)}, amounts{of("cpu", 9)}), job{"team", 4000, nil}, nil},
		"the first by name is the why": {
			[]model.Quota{
				{Namespace: "team", Name: "small", Hard: amounts{of("cpu", 2)}},
				{Namespace: "team", Name: "large", Hard: amounts{of("cpu", 9000)}},
				{Namespace: "team", Name: "middle", Hard: amounts{of("cpu", 3)}},
			},
			job{"team", 4000, nil},
			above(0, 0, 4000, 3, "cpu of quota middle"),
		},
	} {
		_, s := open(t, c.quotas, c.job)
		var why policy.Reasons
		vote := policy.Permit
		if c.why != nil {
			vote = policy.Reject
		}
		require.Equal(t, vote, s.Enqueueable(0, &why), name)
		require.Equal(t, c.why, why.List, name)
		if vote == policy.Reject {
			require.Equal(t, vote, s.Enqueueable(0, nil), "%s: a rejected job books nothing", name)
		}
	}
}

func TestWhatWasPermittedCounts(t *testing.T) {
	v, s := open(t, []model.Quota{{Namespace: "team", Name: "a", Hard: amounts{of("cpu", 6000)}, Used: amounts{of("cpu", 1000)}}},
		job{"team", 3000, nil}, job{"team", 3000, nil}, job{"team", 2000, nil}, job{"other", 9000, nil})
	at := v.Journal.Mark()
	require.Equal(t, policy.Permit, s.Enqueueable(3, nil))
	require.Equal(t, policy.Permit, s.Enqueueable(0, nil))
	require.Equal(t, policy.Reject, s.Enqueueable(1, nil))
	require.Equal(t, policy.Permit, s.Enqueueable(2, nil))
	require.Equal(t, policy.Reject, s.Enqueueable(2, nil))
	v.Journal.Rollback(at)
	require.Equal(t, policy.Permit, s.Enqueueable(1, nil), "what is undone does not count")
	v.Journal.Release()
}

// Votes after others were undone are those of a state that never had them, whatever the amounts: bits are put back.
func TestUndoneVotesLeaveNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Float64Range(0, 0.7)
		n := rapid.IntRange(1, 5).Draw(t, "jobs")
		var jobs []job
		for range n {
			jobs = append(jobs, job{"team", amount.Draw(t, "cpu"), nil})
		}
		quotas := []model.Quota{{Namespace: "team", Name: "a", Hard: amounts{of("cpu", 2*amount.Draw(t, "hard"))}}}
		v, s := open(t, quotas, jobs...)
		_, fresh := open(t, quotas, jobs...)
		order := rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 6)
		v.Journal.Mark()
		at := v.Journal.Mark()
		for _, j := range order.Draw(t, "undone") {
			s.Enqueueable(model.JobID(j), nil)
		}
		v.Journal.Rollback(at)
		for _, j := range order.Draw(t, "then") {
			var got, want policy.Reasons
			require.Equal(t, fresh.Enqueueable(model.JobID(j), &want), s.Enqueueable(model.JobID(j), &got))
			require.Equal(t, want, got)
		}
	})
}
