package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/service"
)

// crowd is a snapshot of one node at a time in Unix seconds, on which one job runs and another waits. Jobs that run have other names each
// time.
func crowd(at int64, running, waiting string) *apportionv1.Snapshot {
	job := func(name string, status apportionv1.TaskStatus, node *uint32) *apportionv1.Job {
		return &apportionv1.Job{
			Uid: name, Queue: "lab", CreateTime: (at - 300) * 1e9, Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING, MinAvailable: 1,
			Groups: []*apportionv1.TaskGroup{{
				Request: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{4000}},
				Tasks:   []*apportionv1.Task{{Uid: name, Status: status, Node: node}},
			}},
		}
	}
	s := &apportionv1.Snapshot{
		AsOf: at * 1e9, Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "lab"}},
		Nodes: []*apportionv1.Node{{Name: "n", Allocatable: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{4000}}}},
		Jobs:  []*apportionv1.Job{job(running, apportionv1.TaskStatus_TASK_STATUS_RUNNING, new(uint32(0)))},
	}
	if waiting != "" {
		s.Jobs = append(s.Jobs, job(waiting, apportionv1.TaskStatus_TASK_STATUS_PENDING, nil))
	}
	return s
}

func TestAForecastReadsThePastJobsThatTheServerRemembers(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	const begin, each = int64(1_000_000), int64(600)
	last := begin
	for i := range int64(50) {
		last = begin + i*each
		l.Follow(crowd(last, fmt.Sprint("job-", i), ""), last)
		l.Follow(crowd(last+each/2, fmt.Sprint("job-", i), ""), last+each/2)
	}
	now := crowd(last+each/2, "job-49", "mine")
	ask := func(server *service.Server, name string) (*apportionv1.ForecastAnswer, error) {
		policy := &apportionv1.Policy{}
		out, err := server.Direct().Forecast(t.Context(), &apportionv1.ForecastRequest{
			Input: &apportionv1.Input{
				Source: &apportionv1.Input_Snapshot{Snapshot: now}, Rule: &apportionv1.Input_Policy{Policy: policy},
			},
			Forecast: &apportionv1.ForecastStep{
				Job: &apportionv1.Selector{Names: []string{"mine"}}, Seed: 1, Arrivals: true, Remembered: name,
				RunningJobs: []uint32{0}, StartedUnixNanos: []int64{now.GetAsOf() - 100e9},
			},
		})
		return out.GetForecast(), err
	}
	server, err := service.New(service.Options{})
	require.NoError(t, err)
	server.Remember("cluster", memory{l}, nil)
	answer, err := ask(server, "cluster")
	require.NoError(t, err)
	require.Equal(t, apportionv1.ForecastKind_FORECAST_KIND_ODDS, answer.GetKind())
	require.Equal(t, uint32(1), answer.GetSources().GetAlike())
	require.LessOrEqual(t, answer.GetP50(), each)
	again, err := ask(server, "cluster")
	require.NoError(t, err)
	require.Equal(t, answer.GetStarts(), again.GetStarts())

	_, err = ask(server, "other")
	require.ErrorContains(t, err, "remembered")
	member, err := service.New(service.Options{Own: owning("lab")})
	require.NoError(t, err)
	member.Remember("cluster", memory{l}, nil)
	_, err = ask(member, "cluster")
	require.ErrorContains(t, err, "who may see all of it")
}
