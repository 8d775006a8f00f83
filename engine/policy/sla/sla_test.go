package sla_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/sla"
)

const (
	second = 1_000_000_000
	hour   = 3600 * second
	now    = 1_000_000 * hour
)

// job is created so long before now; 0: its age is not known.
type job struct{ created, limit int64 }

func open(t *testing.T, waiting, asOf int64, jobs ...job) *sla.State {
	t.Helper()
	b := model.NewBuilder(asOf)
	b.Queue(model.QueueSpec{Name: "q"})
	for i, j := range jobs {
		spec := model.JobSpec{UID: string(rune('a' + i)), Queue: "q", CreateTime: j.created}
		if j.limit > 0 {
			spec.Detail = &model.JobDetail{WaitingLimit: j.limit}
		}
		b.Job(spec)
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := sla.Plugin{WaitingTime: waiting}.Open(policy.NewView(m, nil))
	require.NoError(t, err)
	return s.(*sla.State)
}

func TestAJobThatHasWaitedLongEnoughIsPermitted(t *testing.T) {
	for name, c := range map[string]struct {
		waiting, asOf int64
		job           job
		want          policy.Vote
	}{
		"without any limit it waits for ever":         {0, now, job{now - hour, 0}, policy.Abstain},
		"a setting below zero is no limit":            {-hour, now, job{now - hour, 0}, policy.Abstain},
		"below the limit of the plugin":               {hour, now, job{now - hour + 1, 0}, policy.Abstain},
		"at the limit of the plugin":                  {hour, now, job{now - hour, 0}, policy.Permit},
		"its own limit counts before the plugin's":    {hour, now, job{now - hour, 2 * hour}, policy.Abstain},
		"its own limit is shorter":                    {hour, now, job{now - second, second}, policy.Permit},
		"its own limit suffices":                      {0, now, job{now - second, second}, policy.Permit},
		"a job whose age is not known waits for ever": {hour, now, job{0, 0}, policy.Permit},
		"without a limit it never ends":               {0, now, job{0, 0}, policy.Abstain},
		"created in the future":                       {second, now, job{now + hour, 0}, policy.Abstain},
		"a limit beyond the range of times":           {math.MaxInt64, now, job{now, 0}, policy.Abstain},
		"without a clock nothing has waited":          {second, 0, job{now, 0}, policy.Abstain},
		"times before 1970 count":                     {second, -hour, job{-2 * hour, 0}, policy.Permit},
	} {
		s := open(t, c.waiting, c.asOf, c.job)
		require.Equal(t, c.want, s.Enqueueable(0, nil), name)
		require.Equal(t, c.want, s.Pipelined(0, nil), name)
	}
}

func TestTheJobWhoseTimeEndsFirstComesFirst(t *testing.T) {
	jobs := []job{
		{0, second}, {0, hour}, {now - 2*hour, hour}, {now - hour, 1}, {now - 2*hour, 3 * hour}, {now, math.MaxInt64}, {math.MaxInt64, math.MaxInt64},
	}
	s := open(t, 0, now, append(jobs, job{now - 9*hour, 0}, job{0, 0})...)
	for l := range jobs {
		for r := range jobs {
			require.Equal(t, sign(l-r), s.CompareJobs(model.JobID(l), model.JobID(r)), "%d, %d", l, r)
		}
		require.Equal(t, -1, s.CompareJobs(model.JobID(l), model.JobID(len(jobs))), "one without a limit comes last")
		require.Equal(t, 1, s.CompareJobs(model.JobID(len(jobs)), model.JobID(l)))
	}
	require.Zero(t, s.CompareJobs(model.JobID(len(jobs)), model.JobID(len(jobs)+1)), "two without a limit are alike")
}

func sign(n int) int { return min(max(n, -1), 1) }
